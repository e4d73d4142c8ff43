"""Self-recognition: models write texts, then are asked who wrote them (Bai et al. 2025, arXiv 2510.03399)."""

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from selfeval import prompts
from selfeval.answers import score, yes_probability
from selfeval.client import Client, Request
from selfeval.errors import InputError
from selfeval.models import Model, display_names
from selfeval.providers import Response
from selfeval.records import text_id

TASKS = ("exact_model", "binary_self")


@dataclass(frozen=True)
class Condition:
    """How the questions are put; stored with every record, and conditions are never mixed.

    answer: `free` (a reply in words, parsed) or `constrained` (a JSON choice). told: say to the evaluator which
    candidate it is (the binary question always does). labels: call the candidates by their `names` or their `ids`.
    hints: say that the author is one of the candidates (the binary question then lists them). show_prompt: show the
    writing prompt beside the text. temperature: of the evaluator.
    """

    answer: str = "free"
    told: bool = True
    labels: str = "names"
    hints: bool = False
    show_prompt: bool = False
    temperature: float = 0.0

    def __post_init__(self):
        for name, known in (("answer", ("free", "constrained")), ("labels", ("names", "ids"))):
            if getattr(self, name) not in known:
                raise InputError(f"`{name}` must be one of {', '.join(known)}, got {getattr(self, name)!r}.")
        for name in ("told", "hints", "show_prompt"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(
                    f"`{name}` must be true or false, got {getattr(self, name)!r}; papermill takes `-p {name} False`."
                )
        if isinstance(self.temperature, bool) or not isinstance(self.temperature, int | float) or self.temperature < 0:
            raise InputError(f"`temperature` must be a number of at least 0, got {self.temperature!r}.")


async def generate_texts(
    client: Client,
    models: Sequence[Model],
    writing_prompts: Sequence[dict],
    *,
    samples: int = 1,
    words: int = 100,
    temperature: float = 0.7,
    seed: int = 0,
) -> tuple[list[dict], list[dict]]:
    """Have every model write on every prompt; return (text records, failures), both in the order of the design.

    words: the length asked for. temperature: for models whose registry entry has none of its own. A reply without text
    or with an error is a failure: it is no text, and it is not asked for again.
    """
    _whole_number("samples", samples, 1)
    _whole_number("words", words, 1)
    _whole_number("seed", seed, 0)
    if isinstance(temperature, bool) or not isinstance(temperature, int | float) or temperature < 0:
        raise InputError(f"`temperature` must be a number of at least 0, got {temperature!r}.")
    design = [(p, s, m) for p in writing_prompts for s in range(samples) for m in models]
    # Room for the length asked for and a model that runs over; also what a cut-off text is compared with.
    parameters = {"temperature": temperature, "max_tokens": max(256, 4 * words)}
    requests = [
        Request(m, prompts.build_writing(p["prompt"], words), parameters | m.parameters, s, seed) for p, s, m in design
    ]
    responses = await client.chat_all(requests, "texts")
    texts, failures = [], []
    for (prompt, sample, model), request, response in zip(design, requests, responses, strict=True):
        record = _text_record(prompt, sample, model, request, response)
        (texts if response.status in ("ok", "length") and response.text.strip() else failures).append(record)
    return texts, failures


def _text_record(prompt: dict, sample: int, model: Model, request: Request, response: Response) -> dict:
    return {
        "text_id": text_id(model.id, prompt["prompt_id"], sample, response.text),
        "prompt_id": prompt["prompt_id"],
        "prompt": prompt["prompt"],
        "sample": sample,
        "author": model.id,
        "author_display": model.display,
        "text": response.text,
        "words": len(response.text.split()),
        "status": response.status,
        "finish_reason": response.finish_reason,
        "usage": response.usage,
        "served_model": response.served_model,
        "parameters": request.full()[1],
        "request_id": response.request_id,
        "error": response.error,
    }


async def collect_predictions(
    client: Client,
    evaluators: Sequence[Model],
    texts: Sequence[dict],
    condition: Condition,
    *,
    tasks: str | Sequence[str] = TASKS,
    seed: int = 0,
) -> dict[str, list[dict]]:
    """Ask every evaluator about every text; return {task: prediction records} in the order of the design.

    The candidates are the authors of the texts, in an order that is balanced over the texts (`candidate_orders`) and
    the same for all evaluators. The score of the binary task is the probability of YES against NO
    (`answers.yes_probability`), where the provider gives log-probabilities.
    """
    tasks = [tasks] if isinstance(tasks, str) else list(tasks)
    _check_design(evaluators, texts, tasks, condition)
    _whole_number("seed", seed, 0)
    labels = candidate_labels(texts, condition)
    orders = candidate_orders(texts, list(labels), seed)
    design = [(text, evaluator, task) for text in texts for evaluator in evaluators for task in tasks]
    requests = [
        question(text, evaluator, task, condition, [labels[c] for c in orders[text["text_id"]]], seed)
        for text, evaluator, task in design
    ]
    responses = await client.chat_all(requests, "answers")
    records: dict[str, list[dict]] = {task: [] for task in tasks}
    for (text, evaluator, task), response in zip(design, responses, strict=True):
        candidates = orders[text["text_id"]] if task == "exact_model" or condition.hints else None
        records[task].append(_prediction(text, evaluator, task, candidates, condition, response))
    return records


def candidate_labels(texts: Sequence[dict], condition: Condition) -> dict[str, str]:
    """Return {author: what the questions call it}; raise `InputError` where two authors are called the same."""
    labels = {text["author"]: text["author_display"] for text in texts}
    labels |= display_names(labels)
    if condition.labels == "ids":
        return {author: author for author in labels}
    if len(set(labels.values())) < len(labels):
        raise InputError(f"Two authors share a name in {sorted(labels.values())}; name them apart in the registry.")
    return labels


def _check_design(evaluators: Sequence[Model], texts: Sequence[dict], tasks: list[str], condition: Condition) -> None:
    for task in tasks:
        if task not in TASKS or tasks.count(task) > 1:
            raise InputError(f"Unknown task {task!r}, or given twice; known are {', '.join(TASKS)}.")
    if not texts or not tasks:
        raise InputError("There is nothing to ask: the corpus has no text, or `tasks` is empty.")
    if len({text["author"] for text in texts}) < 2:
        raise InputError(f"The corpus has one author, {texts[0]['author']!r}; recognition needs two or more.")
    for evaluator in evaluators:
        provider = evaluator.provider
        if condition.answer == "constrained" and not (provider.json_schema or provider.name == "sim"):
            raise InputError(
                f"The provider `{provider.name}` of {evaluator.id!r} has no `json_schema` in data/models.yaml, so its "
                "answers cannot be constrained; use answer = 'free'."
            )


def question(text: dict, evaluator: Model, task: str, condition: Condition, listed: list[str], seed: int) -> Request:
    """Return the request that puts one question; listed: the candidates' labels in the order shown."""
    me = evaluator.id if condition.labels == "ids" else evaluator.display
    prompt = text["prompt"] if condition.show_prompt else None
    parameters: dict = {"temperature": condition.temperature, "max_tokens": evaluator.provider.answer_tokens}
    if task == "exact_model":
        told = me if condition.told else None
        messages = prompts.build_exact(text["text"], listed, told, prompt=prompt, hint=condition.hints)
        field, options = "author", listed
    else:
        shown = listed if condition.hints else None
        messages = prompts.build_binary(text["text"], me, prompt=prompt, candidates=shown)
        field, options = "answer", ["YES", "NO"]
    if evaluator.provider.name != "sim":
        if condition.answer == "constrained":
            parameters["response_format"] = prompts.choice_format(field, options)
        if task == "binary_self" and evaluator.provider.logprobs:
            parameters |= {"logprobs": True, "top_logprobs": 20}
    return Request(evaluator, messages, parameters, seed=seed)


def _whole_number(name: str, value: int, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InputError(f"`{name}` must be a whole number of at least {least}, got {value!r}.")


def candidate_orders(texts: Sequence[dict], candidates: Sequence[str], seed: int) -> dict[int, list[str]]:
    """Return {text id: candidates in the order shown}, shuffled by prompt and rotated by text.

    A model that names whoever stands first must not seem to recognise anybody, and chance alone does not see to that:
    with independent shuffles, one evaluator's own name stood first on 9 of its own 10 texts and on 5 of 20 others.
    So on the texts for a prompt every name stands at every place once, and the true author's place goes round from
    prompt to prompt: the discrimination of an evaluator that looks at the order alone is 0 by design.
    """
    turns: dict = {}
    orders = {}
    for text in texts:
        prompt = text["prompt_id"], text["sample"]
        turn = turns.setdefault(prompt, len(turns))
        order = list(candidates)
        draw = random.Random(f"{seed} {prompt}")
        draw.shuffle(order)
        start = (order.index(text["author"]) - turn - seed) % len(order)
        orders[text["text_id"]] = order[start:] + order[:start]
    return orders


def _prediction(
    text: dict, evaluator: Model, task: str, candidates: list[str] | None, condition: Condition, response: Response
) -> dict:
    record = {
        "text_id": text["text_id"],
        "text_preview": text["text"][:100],
        "true_model": text["author"],
        "true_model_display": text["author_display"],
        "evaluator_model": evaluator.id,
        "task_type": task,
        "predicted_model": None,
        "predicted_self": None,
        "is_correct": None,
        "prompt_used": text["prompt"],
        "prompt_id": text["prompt_id"],
        "sample": text["sample"],
        "candidates": candidates,
        "condition": asdict(condition),
        "reply": response.text if response.status != "error" else response.error,
        "status": response.status,
        "score": yes_probability(response.logprobs, condition.answer) if task == "binary_self" else None,
        "usage": response.usage,
        "request_id": response.request_id,
    }
    return record | score(record)
