"""Tasks of Inspect AI: our questions, asked of its providers and shown by its viewer.

    inspect eval selfeval/recognise --model anthropic/claude-sonnet-4-0 -T corpus=mine.jsonl

Inspect finds them by the entry point `inspect_ai`. A sample is one question, one conversation or
one text; its metadata hold the records that our own client would have made, and
`selfeval.read_inspect` returns them.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, GenerateConfig, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, grouped, mean, scorer, stderr
from inspect_ai.solver import solver
from pydantic import TypeAdapter

from selfeval.errors import InputError
from selfeval.identity.replies import rescore
from selfeval.identity.run import Conversation, hold, read_suite, records_of, situations
from selfeval.providers import ends
from selfeval.providers import models as registry
from selfeval.providers.request import Request, Response
from selfeval.recognition.prompts import Condition
from selfeval.recognition.run import design, match_authors
from selfeval.recognition.texts import build_writing, generate_texts, writing_prompts
from selfeval.records.texts import read_texts

MESSAGES = TypeAdapter(list[ChatMessage])
FAILED = Response(status="error", error="the sample failed in Inspect, whose log says why")


class Question(NamedTuple):
    """A sample before it is asked.

    messages: as the viewer shows them. group, cluster: what the mean and its standard error are
    taken by. ask: from who asks and the number of the repeat to records.
    """

    id: str
    messages: list[dict]
    group: str
    cluster: str
    ask: Callable[[Any, int], Awaitable[list[dict]]]


class Asker:
    """Asks the model that Inspect evaluates, in the place of our client."""

    messages: list[ChatMessage]
    output: ModelOutput

    async def chat_all(self, requests: Sequence[Request], label: str = "") -> list[Response]:
        """Return the responses to requests, which are made one after another."""
        return [await self._ask(request) for request in requests]

    async def _ask(self, request: Request) -> Response:
        messages, parameters = request.full()
        shown = MESSAGES.validate_python(messages)
        config = GenerateConfig(temperature=parameters.get("temperature"))
        self.output = await get_model().generate(shown, config=config)
        self.messages = [*shown, self.output.message]
        return _response(self.output)


class Nobody:
    """Answers nothing, so that a sample that fails leaves the records of failed calls."""

    async def chat_all(self, requests: Sequence[Request], label: str = "") -> list[Response]:
        """Return a failure for each request."""
        return [FAILED] * len(requests)


def _response(output: ModelOutput) -> Response:
    """Return what Inspect's model answered, as our client returns it."""
    status = ends.of_status(output.stop_reason)
    if output.error:
        status = "error"
    elif status == "ok" and not output.completion.strip():
        status = "empty"
    usage = output.usage or ModelUsage()
    cached = usage.input_tokens_cache_read or 0
    read = usage.input_tokens + cached + (usage.input_tokens_cache_write or 0)
    response = Response(
        output.completion,
        status,
        output.stop_reason,
        {"prompt": read, "completion": usage.output_tokens, "cached": cached},
        served_model=output.model,
        error=output.error,
    )
    return response.without_thinking()


@scorer(
    metrics=[
        grouped(mean(), "group", all=False),
        grouped(stderr(cluster="cluster"), "group", all=False, name_template="{group_name} stderr"),
    ]
)
def by_our_readers(field: str):
    """Score a sample by a field of its records: their mean, NaN where none has an answer."""

    async def score(state, target):
        records = state.metadata["records"]
        values = [record[field] for record in records if record[field] is not None]
        value = sum(values) / len(values) if values else nan
        return Score(value=value, answer=state.output.completion)

    return score


def _task(name: str, questions: Sequence[Question], field: str = "") -> Task:
    """Return the task that asks questions. field: of their records, by which they are scored."""
    by_id = {question.id: question for question in questions}
    samples = []
    for question in questions:
        about = {"group": question.group, "cluster": question.cluster}
        messages = MESSAGES.validate_python(question.messages)
        samples.append(Sample(input=messages, id=question.id, metadata=about))

    @solver(name=name)
    def ask():
        async def solve(state, generate):
            question = by_id[state.sample_id]
            repeat = state.epoch - 1
            state.metadata["records"] = await question.ask(Nobody(), repeat)
            asker = Asker()
            state.metadata["records"] = await question.ask(asker, repeat)
            state.messages = asker.messages
            state.output = asker.output
            return state

        return solve

    scored = by_our_readers(field) if field else None
    return Task(dataset=MemoryDataset(samples, name), solver=ask(), scorer=scored)


def _evaluated(model_id: str) -> registry.Model:
    """Return the model that Inspect evaluates, as our registry has it."""
    return registry.get(model_id or str(get_model()))


@task
def write(
    prompts: int | str = 20,
    words: int = 60,
    temperature: float = 0.7,
    model_id: str = "",
) -> Task:
    """Have the model write on prompts: texts for `recognise`.

    prompts: how many of the packaged ones, or a file. model_id: what our registry calls the model,
    where that is not Inspect's name for it.
    """
    model = _evaluated(model_id)
    questions = []
    for prompt in writing_prompts(prompts, 0, words, 0)[0]:

        async def ask(asker, repeat: int, prompt=prompt) -> list[dict]:
            if repeat:
                raise InputError("`write` has one text for each prompt; leave out --epochs.")
            texts, _ = await generate_texts(
                asker, [model], [prompt], words=words, temperature=temperature
            )
            return texts

        name = str(prompt["prompt_id"])
        messages = build_writing(prompt["prompt"], prompt.get("words") or words)
        questions.append(Question(name, messages, "texts", name, ask))
    return _task("write", questions)


@task
def recognise(
    corpus: str = "confirm",
    tasks: str | Sequence[str] = ("exact_model", "binary_self"),
    limit: int = 0,
    seed: int = 0,
    told: bool = True,
    labels: str = "names",
    hints: bool = False,
    show_prompt: bool = False,
    temperature: float = 0.0,
    authors: dict | None = None,
    allow_strangers: bool = False,
    model_id: str = "",
) -> Task:
    """Ask the model who wrote each text of a corpus; parameters as in `collect_predictions`.

    Answers are free, and without log-probabilities. model_id: what our registry calls the model,
    where that is not Inspect's name for it.
    """
    model = _evaluated(model_id)
    condition = Condition(
        told=told,
        labels=labels,
        hints=hints,
        show_prompt=show_prompt,
        temperature=temperature,
        score="none",
    )
    texts = match_authors(
        read_texts(corpus, limit), [model], authors, allow_strangers=allow_strangers
    )
    questions = []
    for put in design([model], texts, condition, tasks=tasks, seed=seed):

        async def ask(asker, repeat: int, put=put) -> list[dict]:
            [response] = await asker.chat_all([put.request(seed)])
            return replace(put, repeat=repeat).records(response)

        ids = [str(text["text_id"]) for text in put.texts]
        messages, _ = put.request().full()
        prompt = str(put.texts[0]["prompt_id"])
        questions.append(Question(" ".join([put.task, *ids]), messages, put.task, prompt, ask))
    return _task("recognise", questions, "is_correct")


@task
def identity(
    suite: str = "suite",
    arms: list[str] | None = None,
    limit: int = 0,
    turns: int | None = None,
    temperature: float = 0.7,
    seed: int = 0,
    model_id: str = "",
) -> Task:
    """Put the situations of an identity suite to the model; parameters as in `ask_identity`.

    Replies and read-outs are scored by their claims. model_id: what our registry calls the model,
    where that is not Inspect's name for it.
    """
    model = _evaluated(model_id)
    templates = read_suite(suite)
    clusters = {template.id: template.paraphrase_of or template.id for template in templates}
    questions = []
    for situation in situations(templates, model, arms, limit, seed, turns):

        async def ask(asker, repeat: int, situation=situation) -> list[dict]:
            conversation = Conversation(model, situation, repeat)
            await hold(asker, [conversation], temperature, seed)
            return rescore(records_of(conversation, Path(suite).stem, clusters))

        template = situation.template.id
        name = f"{template} {situation.arm}"
        cluster = clusters[template]
        questions.append(Question(name, situation.messages, situation.arm, cluster, ask))
    return _task("identity", questions, "passed")
