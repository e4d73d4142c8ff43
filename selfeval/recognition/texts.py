"""Texts: models write on prompts or rewrite what others wrote; what a text gives away; how likely it is under weights.

The log-likelihood of a text given the request that it answers, log P(text | prompt, model), is the sum over its tokens.
Two scores follow, divided by the number of characters, since models of two families cut a text into different tokens:

own     of one candidate alone: what its weights hold. It says how ordinary a text is for the model.
oracle  the candidate's minus the logarithm of the mean likelihood of the other candidates, before the division: what a
        reader with all candidates sees, and no single model. By Bayes' rule its sign and size per text are those of the
        probability of having written it, where all candidates write equally often.

`implicit_predictions` makes prediction records of them, so that the statistics of answers are those of likelihoods: who
is the likeliest candidate (`predicted_model`), and the score of the candidate itself, mapped to 0..1.
"""

import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
import pandas as pd
from scipy.special import expit, logsumexp

from selfeval.errors import InputError, ProviderError, check_at_least, check_flag, check_whole
from selfeval.providers.client import Client
from selfeval.providers.models import Model
from selfeval.providers.models import models as registry
from selfeval.providers.request import Request, Response, fenced, user
from selfeval.recognition.contrasts import ORACLE, OWN
from selfeval.records.tables import Rows, call_fields, data_path, fields_of
from selfeval.records.texts import chats, read_prompts, text_fields

HUMAN = "human", "Human"  # the author of people's texts: id and display name
ANY_PROMPT = "Write a text."  # in the place of the prompt where the likelihood is to be without it
BEFORE = 4  # turns of a chat that a prompt shows at the least
CONTROLS = ("none", "shuffled", "truncated")
# "as an AI", "I am a language model", "my training data": a model talks about itself, whichever it is
_SELF_TALK = re.compile(
    r"\bas an? (?:ai|artificial intelligence|(?:large )?language model)\b"
    r"|\bi(?:'m| am) (?:just )?an? (?:ai|artificial intelligence|(?:large )?language model|chatbot)\b"
    r"|\bmy (?:training data|training|creators|developers|knowledge cutoff)\b"
    r"|\bi was (?:trained|created|developed) by\b",
    re.I,
)
_ORDINARY = {"sim", "selfeval"}  # families and developers that are no names outside this project


def writing_prompts(source: int | Rows, limit: int, words: int, seed: int) -> tuple[list[dict], list[dict]]:
    """Return (prompts, human texts) of so many packaged prompts, of prompts in a file, texts or rows, or of `chats`.

    Chats between people: a prompt shows BEFORE turns of one or a few more and asks for the next message; the human text
    is what the person wrote there, of within half of the number of words that the models are asked for, so that all
    authors answer the same prompts. Elsewhere there are none. limit: the first `limit` prompts, 0 = all; chats need a
    number.
    """
    if isinstance(source, int | float):
        check_whole("prompts", source, 1)
        found = read_prompts(data_path("prompts.jsonl"), source)
        if len(found) < source:
            raise InputError(f"There are {len(found)} packaged prompts, and `prompts` is {source}; ask for fewer.")
        return read_prompts(found, limit), []
    if not (isinstance(source, str) and source == "chats"):
        return read_prompts(source, limit), []
    check_whole("limit", limit, 1)
    check_whole("words", words, 2)
    asked, texts = [], []
    long = [chat for chat in chats() if len(chat["turns"]) > BEFORE]
    for chat in random.Random(f"texts {seed}").sample(long, len(long)):
        if len(asked) == limit:
            break
        lengths = [len(turn["text"].split()) for turn in chat["turns"]]
        place = next((i for i in range(BEFORE, len(lengths)) if 0.5 * words <= lengths[i] <= 1.5 * words), None)
        if place is not None:
            prompt = {"prompt_id": f"chat-{chat['chat_id'][:13]}", "prompt": chat_prompt(chat, place)}
            asked.append(prompt)
            written = text_fields(*HUMAN, *prompt.values(), 0, chat["turns"][place]["text"])
            texts.append(written | {"status": "ok", "words_asked": words})
    if len(asked) < limit:
        have = f"{len(texts)} chats have a message of about {words} words after {BEFORE} turns"
        raise InputError(f"{have}, and {limit} were asked for; ask for fewer or for another length.")
    return asked, texts


def chat_prompt(chat: dict, place: int) -> str:
    """Return the request to write the message of a chat that stands at a place (from 0), after all before it."""
    topic = f" The site proposed the topic: {chat['topic']}" if chat["topic"] else ""
    so_far = "\n".join(f"{turn['speaker']}: {' / '.join(turn['text'].splitlines())}" for turn in chat["turns"][:place])
    me = chat["turns"][place]["speaker"]
    return f"Two strangers, A and B, are chatting.{topic}\n\n{so_far}\n\nYou are {me}. Write {me}'s next message."


def build_writing(prompt: str, words: int) -> list[dict]:
    """Ask for a text of about so many words."""
    return user(f"{prompt}\n\nWrite about {words} words of plain text, without a title.")


def build_request(text: Mapping) -> list[dict]:
    """Return the request that a text record answers, as its author had it."""
    words = text.get("words_asked")
    return build_writing(text["prompt"], int(words)) if words and words == words else user(text["prompt"])


def build_paraphrase(text: str) -> list[dict]:
    """Ask for the same text in other words."""
    return user(
        f"{fenced(text)}Rewrite this text in your own words: keep what it says and its length, change how it says it. "
        "Answer with the rewritten text and nothing else."
    )


async def generate_texts(
    client: Client, models: Sequence[Model], prompts: Sequence[dict], *, samples=1, words=100, temperature=0.7, seed=0
) -> tuple[list[dict], list[dict]]:
    """Have every model write on every prompt; return (text records, failures), both in the order of the design.

    words: the length asked for, where a prompt has no `words` of its own. temperature: for models whose registry entry
    sets none itself. A reply without text or with an error is a failure: it is no text, and it is not asked for
    again.
    """
    check_whole("samples", samples, 1)
    check_whole("words", words, 1)
    check_whole("seed", seed, 0)
    check_at_least("temperature", temperature, 0)
    design = [(p, p.get("words") or words, s, m) for p in prompts for s in range(samples) for m in models]
    requests = []
    for prompt, asked, sample, model in design:
        # Room for the length asked for and a model that runs over; also what a cut-off text is compared with.
        how = {"temperature": temperature, "max_tokens": max(256, 4 * asked)} | model.parameters
        requests.append(Request(model, build_writing(prompt["prompt"], asked), how, sample, seed, cut_counts=True))
    replies = await client.chat_all(requests, "texts")
    responses = [reply.without_thinking() for reply in replies]
    texts, failures = [], []
    for (prompt, asked, sample, model), request, response in zip(design, requests, responses, strict=True):
        record = _text_record(prompt, asked, sample, model, request, response)
        (texts if _has_text(response) else failures).append(record)
    return texts, failures


def _has_text(response: Response) -> bool:
    return response.status in ("ok", "length") and bool(response.text.strip())


def _text_record(prompt: dict, asked: int, sample: int, model: Model, request: Request, response: Response) -> dict:
    first = text_fields(model.id, model.display, prompt["prompt_id"], prompt["prompt"], sample, response.text)
    first |= {"words_asked": asked} | fields_of(response, "status", "finish_reason", "usage")
    first |= {"parameters": request.full()[1]} | fields_of(response, "request_id", "error")
    return first | call_fields(request, response)


def mixed_settings(texts: Sequence[Mapping]) -> list[str]:
    """Return a sentence for each author whose texts were generated with different settings: they are measured as one.

    Not looked at: the seed, and the length, which answers have in their condition.
    """
    settings = defaultdict(lambda: defaultdict(dict))  # of an author: {setting: its values, in order}
    for text in texts:
        given = dict(text["parameters"]) if isinstance(text.get("parameters"), Mapping) else {}
        for message in text["messages"] if isinstance(text.get("messages"), list) else ():
            if message["role"] == "system":
                given["system prompt"] = message["content"]
        for name in given.keys() - {"seed", "max_tokens"}:
            settings[text["author"]][name][str(given[name])[:40]] = None
    sentences = []
    for author, values in settings.items():
        for name in sorted(values):
            if len(values[name]) > 1:
                sentences.append(
                    f"Texts of {author} differ in their {name} ({', '.join(values[name])}) and are measured as one; to "
                    "compare them, keep each in a corpus of its own."
                )
    return sentences


def missing_texts(texts: Sequence[Mapping], failures: Sequence[Mapping]) -> list[str]:
    """Say for each author how many requests brought no text, why, and what helps; raise `ProviderError` if all did."""
    grouped = defaultdict(list)
    for failure in failures:
        grouped[failure["author"], failure["status"]].append(failure)
    sentences = []
    for (author, status), failed in grouped.items():
        why = f"{status}; the first: {failed[0]['error']}" if status == "error" else status
        remedy = {"error": "run again to make only these calls"}.get(status, "ask another model, or on other prompts")
        if status in ("length", "empty", "filtered"):
            remedy = f'`again = "{status}"` asks once more'
        sentences.append(f"{author} wrote no text for {len(failed)} of its requests ({why}): {remedy}.")
    if not texts:
        raise ProviderError(f"No author wrote a text. {' '.join(sentences)}")
    return sentences


async def paraphrase(
    client: Client, texts: Sequence[dict], model: Model, seed: int = 0
) -> tuple[list[dict], list[dict]]:
    """Have one model rewrite every text; return (records with the new text and their old author, failures).

    The author stays who wrote the original: what an evaluator still recognises is not the author's wording. The
    records keep `text_id` and who served the author, and name the model under `paraphrased_by`.
    """
    parameters = {"temperature": 0.7, "max_tokens": max(256, 4 * max(t["words"] for t in texts))}
    requests = [
        Request(model, build_paraphrase(text["text"]), parameters, seed=seed, cut_counts=True) for text in texts
    ]
    replies = await client.chat_all(requests, "paraphrases")
    responses = [reply.without_thinking() for reply in replies]
    done, failed = [], []
    for text, request, response in zip(texts, requests, responses, strict=True):
        new = {"text": response.text, "words": len(response.text.split()), "paraphrased_by": model.id}
        new |= fields_of(response, "status", "usage", "request_id")
        served = {name: text.get(name) for name in ("served_model", "served_by")}
        new |= {"error": response.error} | call_fields(request, response) | served
        (done if _has_text(response) else failed).append(text | new)
    return done, failed


# controls -----------------------------------------------------------------------------------------------------------


def apply_control(texts: Sequence[dict], control: str, seed: int = 0) -> list[dict]:
    """Return the text records as the evaluators are to see them; ids, authors and prompts stay.

    shuffled: the words in random order (seeded by text), which leaves vocabulary and length and takes the rest.
    truncated: cut to the number of words of the shortest text on the same prompt and sample, so that length says
    nothing.
    """
    if control == "shuffled":
        return [_with_text(text, _shuffled(text["text"], f"{seed} {text['text_id']}")) for text in texts]
    if control == "truncated":
        shortest: dict = {}
        for text in texts:
            on = text["prompt_id"], text["sample"]
            shortest[on] = min(shortest.get(on, text["words"]), text["words"])
        return [_with_text(text, _first(text["text"], shortest[text["prompt_id"], text["sample"]])) for text in texts]
    return list(texts)


def _with_text(record: dict, text: str) -> dict:
    return record | {"text": text, "words": len(text.split())}


def _shuffled(text: str, seed: str) -> str:
    words = text.split()
    random.Random(seed).shuffle(words)
    return " ".join(words)


def _first(text: str, n: int) -> str:
    """Return the first n words, spaced as written."""
    match = re.match(rf"\s*(?:\S+\s+){{{n - 1}}}\S+", text) if n > 0 else None
    return match[0] if match else text


def leaks(text: str) -> list[str]:
    """Return what in a text names a model, a family, a maker, or says that an AI is writing; empty if nothing does.

    It is a flag, not a verdict: a text about llamas is flagged too. Names count as they are written in the registry
    (`Gemini`, not `gemini`), so that fewer ordinary words are.
    """
    return [match[0] for pattern in (_names(), _SELF_TALK) for match in pattern.finditer(text)]


@cache
def _names() -> re.Pattern[str]:
    listed = [m for m in registry().values() if m.provider.name != "sim"]
    names = {name for m in listed for name in (m.display, *m.names, m.developer, m.family.title(), m.family.upper())}
    names = {re.escape(name) for name in names if name and name.casefold() not in _ORDINARY}
    return re.compile(rf"\b(?:{'|'.join(sorted(names, key=len, reverse=True))})\b")


# implicit recognition: how likely is each text under each model's weights? ------------------------------------------


async def collect_likelihoods(
    client: Client, models: Sequence[Model], texts: Sequence[dict], show_prompt: bool = True
) -> list[dict]:
    """Return one row per candidate and text: its log-likelihood in nats, null where a token's is missing.

    show_prompt: False puts `ANY_PROMPT` in the place of the writing prompt, since a chat needs a turn to answer; the
    length that was asked for stays.
    """
    check_flag("show_prompt", show_prompt)
    design = [(model, text) for model in models for text in texts]
    prompt = {} if show_prompt else {"prompt": ANY_PROMPT}
    requests = [
        Request(model, [*build_request(text | prompt), {"role": "assistant", "content": text["text"]}],
                {"likelihood": model.provider.likelihood})
        for model, text in design
    ]  # fmt: skip
    responses = await client.chat_all(requests, "likelihoods")
    rows = []
    for (model, text), response in zip(design, responses, strict=True):
        chances = [logprob for _, logprob, *_ in response.logprobs or ()]
        row = {name: text[name] for name in ("text_id", "prompt_id", "sample", "author")}
        row |= {"candidate": model.id, "show_prompt": show_prompt, "logprob": sum(chances) if chances else None}
        row |= {"tokens": len(chances) or None, "characters": len(text["text"])}
        rows.append(row | fields_of(response, "status", "error", "served_model", "served_by"))
    return rows


def implicit_predictions(likelihoods: pd.DataFrame) -> pd.DataFrame:
    """Return prediction records of the task `exact_model`, one per text, candidate and score (`condition`).

    likelihoods: rows of `collect_likelihoods`. A text without the likelihood of a candidate is left out. Raises
    `InputError` where none is left, and for a single candidate.
    """
    if likelihoods.duplicated(["text_id", "candidate"]).any():
        raise InputError("A text is twice under a candidate; measure those with and without the prompt apart.")
    wide = likelihoods.pivot_table(index="text_id", columns="candidate", values="logprob", sort=False, dropna=False)
    wide = wide.astype(float).dropna()
    if wide.empty or len(wide.columns) < 2:
        raise InputError("No text has a likelihood under each of two candidates or more; ask more `models`.")
    about = likelihoods.drop_duplicates("text_id").set_index("text_id").loc[wide.index]
    values, length, parts = wide.to_numpy(), about["characters"].to_numpy(), []
    for place, candidate in enumerate(wide.columns):
        own, others = values[:, place], np.delete(values, place, axis=1)
        scores = {ORACLE: own - logsumexp(others, axis=1) + np.log(others.shape[1]), OWN: own}
        for name, score in scores.items():
            rows = about[["prompt_id", "sample"]].assign(
                true_model=about["author"], evaluator_model=candidate, task_type="exact_model",
                score=expit(score / length),
                predicted_model=wide.columns[values.argmax(1)], status="ok", condition=f"reading={name}",
            )  # fmt: skip
            parts.append(rows.reset_index())
    return pd.concat(parts, ignore_index=True)
