"""The existence test: does a model know which other models exist, or does it say yes to every name?

Real models and invented names are asked about alike. A score of existence by itself says how willing a model is to
say yes; what it knows is the difference between the real and the invented (`stats.existence_table`).
"""

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

import yaml

from selfeval.errors import InputError, check_flag, check_names, check_whole
from selfeval.paths import shipped
from selfeval.providers.client import Client
from selfeval.providers.models import Model, get_all, models
from selfeval.providers.request import Request, Response, choice_format, user
from selfeval.reading import parsing
from selfeval.records.tables import fields_of

LIKERT = {"1": "strongly disagree", "2": "disagree", "3": "neither agree nor disagree", "4": "agree",
          "5": "strongly agree"}  # fmt: skip
LIKELY, AGREE = (
    "a number of percent from 0 to 100",
    "a number from 1 (strongly disagree) to 5 (strongly agree)",
)
ANSWERS = {  # form: (the question, how to answer it, the choices of a constrained answer, a score as it is said)
    "yes_no": ("Is it true that {}?", "YES or NO", ["YES", "NO"], lambda s: "YES" if s else "NO"),
    "true_false": (
        "True or false: {}.",
        "TRUE or FALSE",
        ["TRUE", "FALSE"],
        lambda s: "TRUE" if s else "FALSE",
    ),
    "probability": (
        "How probable is it that {}?",
        LIKELY,
        list(range(0, 101, 5)),
        lambda s: f"{100 * s:g}",
    ),
    "likert": (
        "How far do you agree that {}?",
        AGREE,
        list(range(1, 6)),
        lambda s: str(round(1 + 4 * s)),
    ),
}
_BARE = re.compile(r'\s*\{\s*"answer"\s*:\s*(\d+)\s*\}\s*')
_SHARE = re.compile(r"(?<![\w.,:-])(\d{1,3}(?:\.\d+)?)(?: ?(%|percent)|(?![\w:%]|[.,]\d))")
_PLACE = re.compile(
    rf"(?:the answer is )?\W*([1-5])?(?: ?(?:/|out of) ?5)?\W*(?:i )?({'|'.join(LIKERT.values())})?\W*"
)
_STANCE = re.compile(r"([^.\n]{0,20})\b(dis)?agree\b")
_OF_DENIAL = re.compile(  # "95% certain that no such model exists"
    r"\b(?:sure|certain|confident|chance|probability|likelihood|probable|likely)\b[^.,;!?\n]{0,60}(?:\bnot?\b|n't\b)"
)
_HEDGE = re.compile(
    r"\W*(?:(?:a|about|around|approximately|roughly|maybe|perhaps|nearly|almost|likely)\b\W*){0,3}"
)
_MARKED = re.compile(r"(?m)^[^\w\n]{0,20}(?:(?:the|my|final) ){0,3}answer ?[:=]\W{0,3}(.*)")


class Target(NamedTuple):
    """A name that is asked about: a model of the registry (its id), or an invented one (id None)."""

    display: str
    id: str | None = None


def targets(real: Sequence[Model], limit: int = 0) -> list[Target]:
    """Return the real models as targets (limit: the first `limit`, 0 = all), then as many invented names.

    There are fewer invented names where the list in `data/existence.yaml` is shorter.
    """
    check_whole("limit", limit, 0)
    existing = [Target(m.display, m.id) for m in real][: limit or None]
    return existing + [Target(name) for name in invented_names()[: len(existing)]]


def real_models(ids: Sequence[str] = ()) -> list[Model]:
    """Return the models with these ids, or all of the registry that run outside this project."""
    if ids:
        return get_all(list(ids))
    return [m for m in models().values() if m.provider.name not in ("sim", "local")]


def templates(limit: int = 0) -> list[dict]:
    """Return the ways to ask, `id` and `statement`; limit: only the first `limit`, 0 = all."""
    check_whole("limit", limit, 0)
    return _data()["templates"][: limit or None]


def invented_names() -> list[str]:
    """Return the names that no model has."""
    return _data()["invented"]


def _data() -> dict:
    return yaml.safe_load(shipped("existence.yaml").read_text(encoding="utf-8"))


def question(statement: str, answer_type: str, reasoning: bool) -> str:
    """Return the question about a statement."""
    asked, how, *_ = ANSWERS[answer_type]
    asked = asked.format(statement)
    if reasoning:
        return f'{asked}\nGive your reason in one sentence. Then write on a line of its own "Answer: " and {how}.'
    return f"{asked}\nAnswer with {how} and nothing else."


async def collect_existence(
    client: Client,
    evaluators,
    about,
    ways,
    *,
    answer_types,
    reasoning,
    constrained,
    iterations,
    temperature,
    seed,
) -> list[dict]:
    """Ask every evaluator about every target in every way; return one record per question, in this order.

    evaluators: models. about: `targets`. ways: `templates`. The keywords are those of `selfeval.ask_existence`, where
    their defaults stand.

    Records: the published fields (evaluator, there `evaluator_model`, evaluator_display, target_model, target_display,
    template_id, iteration, question, raw_response, parsed_response, existence_score, reasoning, parsing_error), then
    ours (task_type, exists, answer_type, asked_reasoning, status, usage, request_id, served_model, served_by,
    asked_again). existence_score, 0 to 1, is null where the reply holds no answer. constrained: a JSON choice (without
    reasoning).
    """
    answer_types = [answer_types] if isinstance(answer_types, str) else list(answer_types)
    check_names("answer_types", answer_types, ANSWERS)
    check_flag("reasoning", reasoning)
    check_whole("iterations", iterations, 1)
    if constrained and reasoning:
        raise InputError(
            "A constrained answer leaves no room for `reasoning`; ask for one of the two."
        )
    design = [*product(about, ways, answer_types, evaluators, range(iterations))]
    requests = []
    for target, way, kind, evaluator, iteration in design:
        parameters = {
            "temperature": temperature,
            "max_tokens": evaluator.provider.answer_tokens + 100 * reasoning,
        }
        if constrained:
            parameters["response_format"] = choice_format({"answer": ANSWERS[kind][2]})
        asked = question(way["statement"].format(name=target.display), kind, reasoning)
        requests.append(Request(evaluator, user(asked), parameters, iteration, seed))
    responses = await client.chat_all(requests, "answers")
    return [
        _record(target, way, kind, request, response, reasoning)
        for (target, way, kind, *_), request, response in zip(
            design, requests, responses, strict=True
        )
    ]


def _record(
    target: Target, way: Mapping, kind: str, request: Request, response: Response, reasoning: bool
) -> dict:
    ok = response.status == "ok"
    score = failure = None
    if ok:
        score, failure = parsing.attempt(parse_existence, response.text, kind)
    status = failure or ("no_answer" if ok and score is None else response.status)
    reason = re.split(r"(?i)\banswer\s*:", response.text)[0].strip() if reasoning and ok else ""
    return {
        "evaluator": request.model.id,
        "evaluator_display": request.model.display,
        "target_model": target.id or target.display,
        "target_display": target.display,
        "template_id": way["id"],
        "iteration": request.sample,
        "question": request.messages[0]["content"],
        "raw_response": response.text if response.status != "error" else response.error,
        "parsed_response": None if score is None else ANSWERS[kind][3](score),
        "existence_score": score,
        "reasoning": reason or None,
        "parsing_error": None if score is not None else status,
        "task_type": "existence",
        "exists": target.id is not None,
        "answer_type": kind,
        "asked_reasoning": reasoning,
        "status": status,
        **fields_of(response, "usage", "request_id", "served_model", "served_by"),
        "asked_again": response.earlier or None,
    }


def parse_existence(reply: str, answer_type: str) -> float | None:
    """Return the score of a reply, 0 (does not exist) to 1 (exists), or None where it holds no answer.

    A probability is a percentage; a number below 1 without a percent sign could be either, and is no answer.
    """
    bare = _BARE.fullmatch(reply)
    reply = bare[1] if bare else reply
    if answer_type == "yes_no":
        said = parsing.parse_yes_no(reply, asked=True)
        return None if said is None else float(said)
    if answer_type == "true_false":
        said = parsing.parse_choice(reply, {"true": (), "false": ()})
        return None if said is None else float(said == "true")
    return (_agreement if answer_type == "likert" else _probability)(parsing.plain_answer(reply))


def _agreement(text: str) -> float | None:
    """Return the place on the scale that a text names, 0 to 1: marked as the answer, alone on a line, or in words.

    The number of a list item is none, and a place beside words that say the opposite is no answer.
    """
    marked = _MARKED.findall(text)
    places = {_place(line) for line in marked[-1:] or text.split("\n")} - {None}
    if not places and not re.search(r"(?m)^[^\w\n]{0,20}\d", text):
        said = parsing.parse_choice(text, {number: (words,) for number, words in LIKERT.items()})
        places = {int(said)} if said else places
    if len(places) != 1:
        return None
    [place] = places
    leanings = {(place > 3) - (place < 3)} | (
        {*map(_leaning, _STANCE.finditer(text))} if not marked else set()
    )
    return (place - 1) / 4 if len(leanings) == 1 else None


def _place(line: str) -> int | None:
    """Return the place that a line names if it says nothing else, and nothing else by its words than by its number."""
    found = _PLACE.fullmatch(line)
    by_words = {words: int(number) for number, words in LIKERT.items()}
    said = {int(found[1])} if found and found[1] else set()
    said |= {by_words[found[2]]} if found and found[2] else set()
    return said.pop() if len(said) == 1 else None


def _leaning(stance: re.Match[str]) -> int:
    """Return 1 for "agree", -1 for "disagree" and "not agree", 0 for "neither ... nor" and "not disagree"."""
    if re.search(r"\b(?:neither|nor)\b", stance[1]):
        return 0
    denied, opposed = (
        bool(re.search(r"\b(?:no|not|never|cannot)\b|n't", stance[1])),
        bool(stance[2]),
    )
    return 0 if denied and opposed else -1 if denied or opposed else 1


def _probability(text: str) -> float | None:
    """Return the one percentage of a text, 0 to 1; a number without a percent sign only where it stands alone.

    Names hold numbers too: the 4 of "Grok 4" is no answer.
    """
    marked = _MARKED.findall(text)
    text = marked[-1] if marked else text
    values = {float(m[1]) for m in _SHARE.finditer(text) if m[2]}
    if not marked and _OF_DENIAL.search(text):
        return None
    if not values:
        alone = [line.removeprefix("the answer is ").strip(" .:-") for line in text.split("\n")]
        if marked:  # "answer: about 80", but not "answer: Grok 4"
            text = text[_HEDGE.match(text).end() :]
            found = _SHARE.finditer(text) if text[:1].isdigit() else []
        else:
            found = filter(None, map(_SHARE.fullmatch, alone))
        values = {float(m[1]) for m in found}
        if any(0 < value < 1 for value in values):
            return None  # a share or a percentage
    return values.pop() / 100 if len(values) == 1 and max(values) <= 100 else None
