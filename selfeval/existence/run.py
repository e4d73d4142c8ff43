"""The existence test: does a model know which other models exist, or does it say yes to every name?

Real models and invented names are asked about alike. A score of existence by itself says how
willing a model is to say yes; what it knows is the difference between the real and the invented
(`stats.existence_table`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import NamedTuple

import yaml

from selfeval.errors import InputError, check_flag, check_names, check_whole
from selfeval.paths import shipped
from selfeval.providers.client import Client
from selfeval.providers.models import Model, get_all, models, several
from selfeval.providers.request import Request, Response, choice_format, user
from selfeval.reading import parsing
from selfeval.records.tables import fields_of

LIKERT = {
    "1": "strongly disagree",
    "2": "disagree",
    "3": "neither agree nor disagree",
    "4": "agree",
    "5": "strongly agree",
}


@dataclass(frozen=True)
class Form:
    """A form of answer: the question, how to answer it, and the choices of a constrained answer.

    say: returns a score from 0 to 1 as the form says it.
    """

    asks: str
    how: str
    choices: list
    say: Callable[[float], str]


FORMS = {
    "yes_no": Form(
        "Is it true that {}?",
        "YES or NO",
        ["YES", "NO"],
        lambda score: "YES" if score else "NO",
    ),
    "true_false": Form(
        "True or false: {}.",
        "TRUE or FALSE",
        ["TRUE", "FALSE"],
        lambda score: "TRUE" if score else "FALSE",
    ),
    "probability": Form(
        "How probable is it that {}?",
        "a number of percent from 0 to 100",
        list(range(0, 101, 5)),
        lambda score: f"{100 * score:g}",
    ),
    "likert": Form(
        "How far do you agree that {}?",
        "a number from 1 (strongly disagree) to 5 (strongly agree)",
        list(range(1, 6)),
        lambda score: str(round(1 + 4 * score)),
    ),
}
_BARE = re.compile(r'\s*\{\s*"answer"\s*:\s*(\d+)\s*\}\s*')
_SHARE = re.compile(r"(?<![\w.,:-])(\d{1,3}(?:\.\d+)?)(?: ?(%|percent)|(?![\w:%]|[.,]\d))")
_PLACE = re.compile(
    r"(?:the answer is )?\W*([1-5])?(?: ?(?:/|out of) ?5)?\W*(?:i )?"
    rf"({'|'.join(LIKERT.values())})?\W*"
)
_STANCE = re.compile(r"([^.\n]{0,20})\b(dis)?agree\b")
# "95% certain that no such model exists"
_OF_DENIAL = re.compile(
    r"\b(?:sure|certain|confident|chance|probability|likelihood|probable|likely)\b"
    r"[^.,;!?\n]{0,60}(?:\bnot?\b|n't\b)"
)
_HEDGE = re.compile(
    r"(?:the answer is )?"
    r"\W*(?:(?:a|about|around|approximately|roughly|maybe|perhaps|nearly|almost|likely)\b\W*){0,3}"
)
_MARKED = re.compile(r"(?m)^[^\w\n]{0,20}(?:(?:the|my|final) ){0,3}answer ?[:=]\W{0,3}(.*)")


class Target(NamedTuple):
    """A name that is asked about: a model of the registry, or an invented one (id None)."""

    display: str
    id: str | None = None


def targets(real: Sequence[Model], limit: int = 0) -> list[Target]:
    """Return the real models as targets, then as many invented names.

    limit: only the first `limit` models, 0 = all. There are fewer invented names where the list in
    `data/existence.yaml` is shorter.
    """
    check_whole("limit", limit, 0)
    existing = [Target(model.display, model.id) for model in real[: limit or None]]
    invented = [Target(name) for name in invented_names()[: len(existing)]]
    return existing + invented


def real_models(ids: Sequence[str] = ()) -> list[Model]:
    """Return the models with these ids, or all of the registry that run outside this project."""
    if ids:
        return get_all(list(ids))
    return [model for model in models().values() if model.provider.name not in ("sim", "local")]


def templates(limit: int = 0) -> list[dict]:
    """Return the ways to ask, `id` and `statement`; limit: only the first `limit`, 0 = all."""
    check_whole("limit", limit, 0)
    return _data()["templates"][: limit or None]


def invented_names() -> list[str]:
    """Return the names that no model has."""
    return _data()["invented"]


@cache
def _data() -> dict:
    return yaml.safe_load(shipped("existence.yaml").read_text(encoding="utf-8"))


def question(statement: str, answer_type: str, reasoning: bool) -> str:
    """Return the question about a statement."""
    form = FORMS[answer_type]
    asked = form.asks.format(statement)
    if not reasoning:
        return f"{asked}\nAnswer with {form.how} and nothing else."
    return (
        f"{asked}\nGive your reason in one sentence. "
        f'Then write on a line of its own "Answer: " and {form.how}.'
    )


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
    """Ask every evaluator about every target in every way; return one record per question.

    They stand in this order. evaluators: models. about: `targets`. ways: `templates`. The keywords
    are those of `selfeval.ask_existence`, where their defaults stand.

    Records: the published fields (evaluator, there `evaluator_model`, evaluator_display,
    target_model, target_display, template_id, iteration, question, raw_response, parsed_response,
    existence_score, reasoning, parsing_error), then ours (task_type, exists, answer_type,
    asked_reasoning, status, usage, request_id, served_model, served_by, asked_again).
    existence_score, 0 to 1, is null where the reply holds no answer. constrained: a JSON choice
    (without reasoning).
    """
    answer_types = several(answer_types, "answer_types")
    check_names("answer_types", answer_types, FORMS)
    check_flag("reasoning", reasoning)
    check_whole("iterations", iterations, 1)
    if constrained and reasoning:
        raise InputError(
            "A constrained answer leaves no room for `reasoning`; ask for one of the two."
        )
    design = [*product(about, ways, answer_types, evaluators, range(iterations))]
    requests = []
    for target, way, answer_type, evaluator, iteration in design:
        room = evaluator.provider.answer_tokens
        if reasoning:
            room += 100
        parameters: dict = {"temperature": temperature, "max_tokens": room}
        if constrained:
            parameters["response_format"] = choice_format({"answer": FORMS[answer_type].choices})
        statement = way["statement"].format(name=target.display)
        messages = user(question(statement, answer_type, reasoning))
        requests.append(Request(evaluator, messages, parameters, iteration, seed))
    responses = await client.chat_all(requests, "answers")
    records = []
    for (target, way, answer_type, *_), request, response in zip(
        design, requests, responses, strict=True
    ):
        records.append(_record(target, way, answer_type, request, response, reasoning))
    return records


def _record(
    target: Target,
    way: Mapping,
    answer_type: str,
    request: Request,
    response: Response,
    reasoning: bool,
) -> dict:
    """Return the record of one question."""
    status = response.status
    score = parsed = reason = None
    if status == "ok":
        score, failure = parsing.attempt(parse_existence, response.text, answer_type)
        if failure:
            status = failure
        elif score is None:
            status = "no_answer"
        if reasoning:
            reason = re.split(r"(?i)\banswer\s*:", response.text)[0].strip() or None
    if score is not None:
        parsed = FORMS[answer_type].say(score)
    return {
        "evaluator": request.model.id,
        "evaluator_display": request.model.display,
        "target_model": target.id or target.display,
        "target_display": target.display,
        "template_id": way["id"],
        "iteration": request.sample,
        "question": request.messages[0]["content"],
        "raw_response": response.error if response.status == "error" else response.text,
        "parsed_response": parsed,
        "existence_score": score,
        "reasoning": reason,
        "parsing_error": status if score is None else None,
        "task_type": "existence",
        "exists": target.id is not None,
        "answer_type": answer_type,
        "asked_reasoning": reasoning,
        "status": status,
        **fields_of(response, "usage", "request_id", "served_model", "served_by"),
        "asked_again": response.earlier or None,
    }


def parse_existence(reply: str, answer_type: str) -> float | None:
    """Return the score of a reply, 0 (does not exist) to 1 (exists); None without an answer.

    A probability is a percentage; a number below 1 without a percent sign could be either, and is
    no answer.
    """
    bare = _BARE.fullmatch(reply)
    if bare:
        reply = bare[1]
    if answer_type == "yes_no":
        is_yes = parsing.parse_yes_no(reply, asked=True)
        return None if is_yes is None else float(is_yes)
    if answer_type == "true_false":
        choice = parsing.parse_choice(reply, {"true": (), "false": ()})
        return None if choice is None else float(choice == "true")
    text = parsing.plain_answer(reply)
    if answer_type == "likert":
        return _agreement(text)
    return _probability(text)


def _agreement(text: str) -> float | None:
    """Return the place on the scale that a text names, 0 to 1.

    It is marked as the answer, alone on a line, or in words. The number of a list item is none, and
    a place beside words that say the opposite is no answer.
    """
    marked = _MARKED.findall(text)
    lines = marked[-1:] or text.split("\n")
    named = map(_place, lines)
    places = {place for place in named if place is not None}
    if not places and not re.search(r"(?m)^[^\w\n]{0,20}\d", text):
        by_words = {number: (words,) for number, words in LIKERT.items()}
        choice = parsing.parse_choice(text, by_words)
        if choice:
            places = {int(choice)}
    if len(places) != 1:
        return None
    [place] = places
    leanings = set()
    if not marked:
        leanings = {_leaning(stance) for stance in _STANCE.finditer(text)}
    leanings.add((place > 3) - (place < 3))
    return (place - 1) / 4 if len(leanings) == 1 else None


def _place(line: str) -> int | None:
    """Return the place that a line names, if it says nothing else and says it once.

    Its words may say the same as its number.
    """
    match = _PLACE.fullmatch(line)
    if not match:
        return None
    by_number, words = match.groups()
    places = {by_number} if by_number else set()
    places |= {number for number, meaning in LIKERT.items() if meaning == words}
    return int(places.pop()) if len(places) == 1 else None


def _leaning(stance: re.Match[str]) -> int:
    """Return 1 for "agree", -1 for "disagree" and "not agree".

    0 is for "neither ... nor" and "not disagree".
    """
    before, opposed = stance.groups()
    if re.search(r"\b(?:neither|nor)\b", before):
        return 0
    is_denied = bool(re.search(r"\b(?:no|not|never|cannot)\b|n't", before))
    is_opposed = bool(opposed)
    if is_denied and is_opposed:
        return 0
    return -1 if is_denied or is_opposed else 1


def _probability(text: str) -> float | None:
    """Return the one percentage of a text, 0 to 1.

    A number without a percent sign counts only where it stands alone: names hold numbers too, and
    the 4 of "Grok 4" is no answer.
    """
    marked = _MARKED.findall(text)
    if not marked and _OF_DENIAL.search(text):
        return None
    parts = marked[-1:] or text.split("\n")
    values = {float(match[1]) for match in _SHARE.finditer("\n".join(parts)) if match[2]}
    if not values:
        alone = [_SHARE.fullmatch(_HEDGE.sub("", line, count=1).strip(" .:-")) for line in parts]
        values = {float(match[1]) for match in alone if match}
        if any(0 < value < 1 for value in values):
            return None  # a share or a percentage
    if len(values) != 1 or max(values) > 100:
        return None
    return values.pop() / 100
