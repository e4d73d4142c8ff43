"""Texts: models write them, what gives an author away, how likely weights make them.

The log-likelihood of a text given the request that it answers, log P(text | prompt, model), is the
sum over its tokens. Two scores follow, divided by the number of characters, since models of two
families cut a text into different tokens:

own     of one candidate alone: what its weights hold. It says how ordinary a text is for the model.
oracle  the candidate's minus the logarithm of the mean likelihood of the other candidates, before
        the division: what a reader with all candidates sees, and no single model. By Bayes' rule
        its sign and size per text are those of the probability of having written it, where all
        candidates write equally often.

`implicit_predictions` makes prediction records of them, so that the statistics of answers are those
of likelihoods: who is the likeliest candidate (`predicted_model`), and the score of the candidate
itself, mapped to 0..1.
"""

import math
import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
from scipy.special import expit, logsumexp

from selfeval.errors import InputError, ProviderError, check_at_least, check_flag, check_whole
from selfeval.paths import shipped
from selfeval.providers.client import Client
from selfeval.providers.models import Model
from selfeval.providers.models import models as registry
from selfeval.providers.request import UNANSWERED, Request, Response, user
from selfeval.recognition.contrasts import LENGTH, LIKELIHOOD_OF, ORACLE, OWN
from selfeval.records.tables import Rows, call_fields, fields_of
from selfeval.records.texts import chats, read_prompts, text_fields

HUMAN = "human", "Human"  # the author of people's texts: id and display name
ANY_PROMPT = "Write a text."  # where the likelihood is to be without the prompt
BEFORE = 4  # turns of a chat that a prompt shows at the least
CONTROLS = ("none", "truncated")
# "as an AI", "I am a language model", "my training data": a model talks about itself
_SELF_TALK = re.compile(
    r"\bas an? (?:ai|artificial intelligence|(?:large )?language model)\b"
    r"|\bi(?:'m| am) (?:just )?an? "
    r"(?:ai|artificial intelligence|(?:large )?language model|chatbot)\b"
    r"|\bmy (?:training data|training|creators|developers|knowledge cutoff)\b"
    r"|\bi was (?:trained|created|developed) by\b",
    re.I,
)
_ORDINARY = {"sim", "selfeval"}  # families and developers that are no names outside this project


def writing_prompts(
    source: int | Rows,
    limit: int,
    words: int,
    seed: int,
) -> tuple[list[dict], list[dict]]:
    """Return (prompts, human texts) of packaged prompts, of a file or rows of them, or of `chats`.

    source: how many of the packaged prompts, or where others stand. Chats are between people: a
    prompt shows BEFORE turns of one or a few more and asks for the next message; the human text is
    what the person wrote there, of within half of the number of words that the models are asked
    for, so that all authors answer the same prompts. Elsewhere there are none. limit: the first
    `limit` prompts, 0 = all; chats need a number.
    """
    if isinstance(source, int | float):
        check_whole("prompts", source, 1)
        source = int(source)
        packaged = read_prompts(shipped("prompts.jsonl"), source)
        if len(packaged) < source:
            have = f"There are {len(packaged)} packaged prompts"
            raise InputError(f"{have}, and `prompts` is {source}; ask for fewer.")
        return read_prompts(packaged, limit), []
    if not (isinstance(source, str) and source == "chats"):
        return read_prompts(source, limit), []
    check_whole("limit", limit, 1)
    check_whole("words", words, 2)
    prompts = []
    human_texts = []
    long_chats = [chat for chat in chats() if len(chat["turns"]) > BEFORE]
    for chat in random.Random(f"texts {seed}").sample(long_chats, len(long_chats)):
        place = _place_of_length(chat, words)
        if place is None:
            continue
        prompt_id = f"chat-{chat['chat_id'][:13]}"
        prompt = chat_prompt(chat, place)
        prompts.append({"prompt_id": prompt_id, "prompt": prompt})
        written = text_fields(*HUMAN, prompt_id, prompt, 0, chat["turns"][place]["text"])
        human_texts.append(written | {"status": "ok", "words_asked": words})
        if len(prompts) == limit:
            return prompts, human_texts
    have = f"{len(prompts)} chats have a message of about {words} words after {BEFORE} turns"
    raise InputError(f"{have}, and {limit} were asked for; ask for fewer or for another length.")


def _place_of_length(chat: dict, words: int) -> int | None:
    """Return where the first message of about so many words stands, after BEFORE others."""
    for place, turn in enumerate(chat["turns"]):
        if place >= BEFORE and 0.5 * words <= len(turn["text"].split()) <= 1.5 * words:
            return place
    return None


def chat_prompt(chat: dict, place: int) -> str:
    """Return the request to write the message of a chat that stands at a place, from 0."""
    topic = f" The site proposed the topic: {chat['topic']}" if chat["topic"] else ""
    lines = []
    for turn in chat["turns"][:place]:
        on_one_line = " / ".join(turn["text"].splitlines())
        lines.append(f"{turn['speaker']}: {on_one_line}")
    so_far = "\n".join(lines)
    me = chat["turns"][place]["speaker"]
    asked = f"You are {me}. Write {me}'s next message."
    return f"Two strangers, A and B, are chatting.{topic}\n\n{so_far}\n\n{asked}"


def build_writing(prompt: str, words: int) -> list[dict]:
    """Ask for a text of about so many words."""
    return user(f"{prompt}\n\nWrite about {words} words of plain text, without a title.")


def build_request(text: Mapping) -> list[dict]:
    """Return the request that a text record answers, as its author had it."""
    words = text.get("words_asked")
    if not words or pd.isna(words):
        return user(text["prompt"])
    return build_writing(text["prompt"], int(words))


async def generate_texts(
    client: Client,
    models: Sequence[Model],
    prompts: Sequence[dict],
    *,
    samples=1,
    words=100,
    temperature=0.7,
    seed=0,
) -> tuple[list[dict], list[dict]]:
    """Have every model write on every prompt; return (text records, failures), in this order.

    words: the length asked for, where a prompt has no `words` of its own. temperature: for models
    whose registry entry sets none itself. A reply without text or with an error is a failure: it is
    no text, and it is not asked for again.
    """
    check_whole("samples", samples, 1)
    check_whole("words", words, 1)
    check_whole("seed", seed, 0)
    check_at_least("temperature", temperature, 0)
    design = list(product(prompts, range(samples), models))
    requests = []
    for prompt, sample, model in design:
        asked = prompt.get("words") or words
        # room for a model that runs over the length; what a cut-off text is compared with
        parameters = {"temperature": temperature, "max_tokens": max(256, 4 * asked)}
        parameters |= model.parameters
        messages = build_writing(prompt["prompt"], asked)
        requests.append(Request(model, messages, parameters, sample, seed, cut_counts=True))
    responses = await client.chat_all(requests, "texts")
    texts = []
    failures = []
    for (prompt, sample, model), request, answered in zip(design, requests, responses, strict=True):
        response = answered.without_thinking()
        record = {
            **text_fields(
                model.id,
                model.display,
                prompt["prompt_id"],
                prompt["prompt"],
                sample,
                response.text,
            ),
            "words_asked": prompt.get("words") or words,
            **fields_of(response, "status", "finish_reason", "usage"),
            "parameters": request.full()[1],
            **fields_of(response, "request_id", "error"),
            **call_fields(request, response),
        }
        (texts if _has_text(response) else failures).append(record)
    return texts, failures


def _has_text(response: Response) -> bool:
    return response.status in ("ok", "length") and bool(response.text.strip())


def mixed_settings(texts: Sequence[Mapping]) -> list[str]:
    """Say for each author whose texts were generated with different settings what differs.

    They are measured as one. Not looked at: the seed, and the length, which answers have in their
    condition.
    """
    of_author = defaultdict(lambda: defaultdict(dict))  # {setting: its values, in order}
    for text in texts:
        settings = {}
        if isinstance(text.get("parameters"), Mapping):
            settings = dict(text["parameters"])
        if isinstance(text.get("messages"), list):
            for message in text["messages"]:
                if message["role"] == "system":
                    settings["system prompt"] = message["content"]
        for name in settings.keys() - {"seed", "max_tokens"}:
            of_author[text["author"]][name][str(settings[name])[:40]] = None
    sentences = []
    for author, settings in of_author.items():
        for name, values in sorted(settings.items()):
            if len(values) > 1:
                sentences.append(
                    f"Texts of {author} differ in their {name} ({', '.join(values)}) and are "
                    "measured as one; to compare them, keep each in a corpus of its own."
                )
    return sentences


def missing_texts(texts: Sequence[Mapping], failures: Sequence[Mapping]) -> list[str]:
    """Say for each author how many requests brought no text, why, and what helps.

    Raises `ProviderError` if all did.
    """
    grouped = defaultdict(list)
    for failure in failures:
        grouped[failure["author"], failure["status"]].append(failure)
    sentences = []
    for (author, status), failed in grouped.items():
        why = status
        remedy = "ask another model, or on other prompts"
        if status == "error":
            why = f"error; the first: {failed[0]['error']}"
            remedy = "run again to make only these calls"
        elif status in UNANSWERED:
            remedy = f'`again = "{status}"` asks once more'
        count = len(failed)
        sentences.append(f"{author} wrote no text for {count} of its requests ({why}): {remedy}.")
    if not texts:
        raise ProviderError(f"No author wrote a text. {' '.join(sentences)}")
    return sentences


# controls


def apply_control(texts: Sequence[dict], control: str) -> list[dict]:
    """Return the text records as the evaluators are to see them; ids, authors and prompts stay.

    truncated: cut to the number of words of the shortest text on the same prompt and sample, so
    that length says nothing.
    """
    if control == "none":
        return list(texts)
    shortest: dict = {}
    for text in texts:
        on = text["prompt_id"], text["sample"]
        shortest[on] = min(shortest.get(on, text["words"]), text["words"])
    cut = []
    for text in texts:
        words = _first(text["text"], shortest[text["prompt_id"], text["sample"]])
        cut.append(text | {"text": words, "words": len(words.split())})
    return cut


def _first(text: str, n: int) -> str:
    """Return the first n words, spaced as written."""
    ends = [match.end() for match in re.finditer(r"\S+", text)]
    return text[: ends[n - 1]] if 0 < n <= len(ends) else text


def leaks(text: str) -> list[str]:
    """Return what in a text names a model, a family, a maker, or says that an AI is writing.

    It is a flag, not a verdict: a text about llamas is flagged too. Names count as they are written
    in the registry (`Gemini`, not `gemini`), so that fewer ordinary words are.
    """
    return [match[0] for pattern in (_names(), _SELF_TALK) for match in pattern.finditer(text)]


@cache
def _names() -> re.Pattern[str]:
    names = set()
    for model in registry().values():
        if model.provider.name != "sim":
            names |= {model.display, *model.names, model.developer}
            names |= {model.family.title(), model.family.upper()}
    rare = [name for name in names if name and name.casefold() not in _ORDINARY]
    patterns = sorted(map(re.escape, rare), key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(patterns)})\b")


# implicit recognition: how likely is each text under each model's weights?


async def collect_likelihoods(
    client: Client,
    models: Sequence[Model],
    texts: Sequence[dict],
    show_prompt: bool = True,
) -> list[dict]:
    """Return one row per candidate and text: its log-likelihood in nats.

    It is null where a token's is missing. show_prompt: False puts `ANY_PROMPT` in the place of the
    writing prompt, since a chat needs a turn to answer; the length that was asked for stays.
    """
    check_flag("show_prompt", show_prompt)
    design = list(product(models, texts))
    requests = []
    for model, text in design:
        asked = text if show_prompt else text | {"prompt": ANY_PROMPT}
        messages = [*build_request(asked), {"role": "assistant", "content": text["text"]}]
        requests.append(Request(model, messages, {"likelihood": model.provider.likelihood}))
    responses = await client.chat_all(requests, "likelihoods")
    rows = []
    for (model, text), response in zip(design, responses, strict=True):
        logprobs = [logprob for _, logprob, *_ in response.logprobs or ()]
        row = {
            **{name: text[name] for name in ("text_id", "prompt_id", "sample", "author")},
            "candidate": model.id,
            "show_prompt": show_prompt,
            "logprob": math.fsum(logprobs) if logprobs else None,
            "tokens": len(logprobs) or None,
            "characters": len(text["text"]),
        }
        rows.append(row | fields_of(response, "status", "error", "served_model", "served_by"))
    return rows


def implicit_predictions(likelihoods: pd.DataFrame) -> pd.DataFrame:
    """Return prediction records of the task `exact_model` per text, candidate and score.

    likelihoods: rows of `collect_likelihoods`. `condition` names the score; the likelihood of
    another model is there for texts that it did not write. A text without the
    likelihood of a candidate is left out. Raises `InputError` where none is left, and for a single
    candidate.
    """
    if likelihoods.duplicated(["text_id", "candidate"]).any():
        rule = "A text is twice under a candidate"
        raise InputError(f"{rule}; measure those with and without the prompt apart.")
    wide = likelihoods.pivot_table("logprob", "text_id", "candidate", sort=False, dropna=False)
    wide = wide.astype(float).dropna()
    if wide.empty or len(wide.columns) < 2:
        rule = "No text has a likelihood under each of two candidates or more"
        raise InputError(f"{rule}; ask more `models`.")
    by_text = likelihoods.drop_duplicates("text_id").set_index("text_id").loc[wide.index]
    logprobs = wide.to_numpy()
    length = by_text["characters"].to_numpy()
    tables = []
    for place, candidate in enumerate(wide.columns):
        own = logprobs[:, place]
        others = np.delete(logprobs, place, axis=1)
        oracle = own - logsumexp(others, axis=1) + np.log(others.shape[1])
        scores = {ORACLE: oracle / length, OWN: own / length}
        for rival, of_rival in zip(wide.columns, logprobs.T, strict=True):
            third_authors = {*by_text["author"]} - {candidate, rival}
            if rival != candidate and third_authors:
                by_rival = np.where(by_text["author"] == rival, np.nan, of_rival)
                scores[LIKELIHOOD_OF + rival] = by_rival / length
        scores[LENGTH] = _by_length(by_text, candidate)
        for name, score in scores.items():
            rows = by_text[["prompt_id", "sample"]].assign(
                true_model=by_text["author"],
                evaluator_model=candidate,
                task_type="exact_model",
                score=expit(score),
                predicted_model=wide.columns[logprobs.argmax(1)],
                status="ok",
                condition=f"reading={name}",
            )
            tables.append(rows[~np.isnan(score)].reset_index())
    return pd.concat(tables, ignore_index=True)


def _by_length(texts: pd.DataFrame, author: str) -> np.ndarray:
    """Return scores that rise, or fall, with the length, as it tells the author's texts better."""
    is_own = texts["author"] == author
    pairs = texts[is_own].merge(texts[~is_own], on="prompt_id", suffixes=("", "_other"))
    longer = np.sign(pairs["characters"] - pairs["characters_other"]).sum()
    score = texts["characters"].to_numpy() / texts["characters"].max()
    return score if longer >= 0 else -score
