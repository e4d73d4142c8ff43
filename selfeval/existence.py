"""The existence test: does a model know which other models exist, or does it say yes to every name?

Real models and invented names are asked about alike. A score of existence by itself says how willing a model is to
say yes; what it knows is the difference between the real and the invented (`stats.existence_table`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import yaml

from selfeval import DATA, scoring
from selfeval.client import Client, Request
from selfeval.errors import InputError, check_flag, check_one_of, check_whole
from selfeval.models import Model, get_all, models
from selfeval.prompts import choice_format, user
from selfeval.providers import Response

LIKERT = {"1": "strongly disagree", "2": "disagree", "3": "neither agree nor disagree", "4": "agree",
          "5": "strongly agree"}  # fmt: skip
ANSWERS = {
    "yes_no": ("Is it true that {}?", "YES or NO"),
    "true_false": ("True or false: {}.", "TRUE or FALSE"),
    "probability": ("How probable is it that {}?", "a number of percent from 0 to 100"),
    "likert": ("How far do you agree that {}?", "a number from 1 (strongly disagree) to 5 (strongly agree)"),
}
OPTIONS = {
    "yes_no": ["YES", "NO"],
    "true_false": ["TRUE", "FALSE"],
    "probability": list(range(0, 101, 5)),
    "likert": list(range(1, 6)),
}
_BARE = re.compile(r'\s*\{\s*"answer"\s*:\s*(\d+)\s*\}\s*')
_NUMBER = re.compile(
    r"(?<![\w.,-])(\d{1,3}(?:\.\d{1,6})?)(?! ?(?:%|percent))(?![\w.]*\d)|(\d{1,3}(?:\.\d{1,6})?) ?(?:%|percent)"
)


@dataclass(frozen=True)
class Target:
    """A name that is asked about: a model of the registry (its id), or an invented one (id None)."""

    display: str
    id: str | None = None


def targets(real: Sequence[Model], limit: int = 0) -> list[Target]:
    """Return the real models as targets (limit: the first so many, 0 = all), then as many invented names.

    There are fewer invented names where the list in `data/existence.yaml` is shorter.
    """
    check_whole("limit", limit, 0)
    if not real:
        raise InputError("The existence test needs at least one real model to ask about, got none.")
    existing = [Target(m.display, m.id) for m in real][: limit or None]
    taken = {name.casefold() for m in models().values() for name in m.all_names}
    invented = [Target(name) for name in _data()["invented"] if name.casefold() not in taken]
    return existing + invented[: len(existing)]


def real_models(ids: Sequence[str] = ()) -> list[Model]:
    """Return the models with these ids, or all of the registry that run outside this project."""
    if ids:
        return get_all(list(ids))
    return [m for m in models().values() if m.provider.name not in ("sim", "local")]


def templates(limit: int = 0) -> list[dict]:
    """Return the ways to ask, `id` and `statement`; limit: only the first so many, 0 = all."""
    check_whole("limit", limit, 0)
    return _data()["templates"][: limit or None]


def _data() -> dict:
    return yaml.safe_load((DATA / "existence.yaml").read_text(encoding="utf-8"))


def question(statement: str, answer_type: str, reasoning: bool) -> str:
    """Return the question about a statement."""
    asked, how = ANSWERS[answer_type]
    asked = asked.format(statement)
    if reasoning:
        return f'{asked}\nGive your reason in one sentence. Then write on a line of its own "Answer: " and {how}.'
    return f"{asked}\nAnswer with {how} and nothing else."


async def collect_existence(
    client: Client,
    evaluators: Sequence[Model],
    about: Sequence[Target],
    ways: Sequence[dict],
    *,
    answer_types: str | Sequence[str] = tuple(ANSWERS),
    reasoning: bool = False,
    constrained: bool = False,
    iterations: int = 1,
    temperature: float = 0.0,
    seed: int = 0,
) -> list[dict]:
    """Ask every evaluator about every target in every way; return one record per question, in this order.

    Records: the published fields (evaluator, evaluator_display, target_model, target_display, template_id, iteration,
    question, raw_response, parsed_response, existence_score, reasoning, parsing_error), then ours (task_type, exists,
    answer_type, asked_reasoning, status, usage, request_id). existence_score, 0 to 1, is null where the reply holds no
    answer. constrained: a JSON choice (without reasoning).
    """
    answer_types = [answer_types] if isinstance(answer_types, str) else list(answer_types)
    for name in answer_types:
        check_one_of("answer_types", name, ANSWERS)
    check_flag("reasoning", reasoning)
    check_whole("iterations", iterations, 1)
    if constrained and reasoning:
        raise InputError("A constrained answer leaves no room for `reasoning`; ask for one of the two.")
    design = [
        (evaluator, target, way, kind, iteration)
        for target in about
        for way in ways
        for kind in answer_types
        for evaluator in evaluators
        for iteration in range(iterations)
    ]
    asked = [
        question(way["statement"].format(name=target.display), kind, reasoning) for _, target, way, kind, _ in design
    ]
    requests = []
    for (evaluator, _, _, kind, iteration), text in zip(design, asked, strict=True):
        room = evaluator.provider.answer_tokens + (100 if reasoning else 0)
        parameters = {"temperature": temperature, "max_tokens": room}
        if constrained:
            parameters["response_format"] = choice_format({"answer": OPTIONS[kind]})
        requests.append(Request(evaluator, user(text), parameters, iteration, seed))
    responses = await client.chat_all(requests, "answers")
    return [_record(*row) for row in zip(design, asked, responses, [reasoning] * len(design), strict=True)]


def _record(design: tuple, asked: str, response: Response, reasoning: bool) -> dict:
    evaluator, target, way, kind, iteration = design
    score = parse_existence(response.text, kind) if response.status == "ok" else None
    status = "no_answer" if response.status == "ok" and score is None else response.status
    return {
        "evaluator": evaluator.id,
        "evaluator_display": evaluator.display,
        "target_model": target.id or target.display,
        "target_display": target.display,
        "template_id": way["id"],
        "iteration": iteration,
        "question": asked,
        "raw_response": response.text if response.status != "error" else response.error,
        "parsed_response": _as_said(score, kind),
        "existence_score": score,
        "reasoning": _reason(response.text) if reasoning and response.status == "ok" else None,
        "parsing_error": None if score is not None else status,
        "task_type": "existence",
        "exists": target.id is not None,
        "answer_type": kind,
        "asked_reasoning": reasoning,
        "status": status,
        "usage": response.usage,
        "request_id": response.request_id,
    }


def parse_existence(reply: str, answer_type: str) -> float | None:
    """Return the score of a reply, 0 (does not exist) to 1 (exists), or None where it holds no answer.

    A probability is a percentage; a number below 1 without a percent sign could be either, and is no answer.
    """
    bare = _BARE.fullmatch(reply)
    reply = bare[1] if bare else reply
    if answer_type == "yes_no":
        said = scoring.parse_yes_no(reply)
        return None if said is None else float(said)
    if answer_type == "true_false":
        said = scoring.parse_choice(reply, {"true": (), "false": ()})
        return None if said is None else float(said == "true")
    if answer_type == "likert":
        said = scoring.parse_choice(reply, {k: (v,) for k, v in LIKERT.items()})
        return None if said is None else (int(said) - 1) / 4
    return _percentage(reply)


def _percentage(reply: str) -> float | None:
    text = _after_answer(scoring.normalise(reply))
    found = {(float(m[1] or m[2]), bool(m[2])) for m in _NUMBER.finditer(text)}
    if len(found) != 1:
        return None
    [(value, marked)] = found
    return value / 100 if value <= 100 and (marked or value == 0 or value >= 1) else None


def _after_answer(text: str) -> str:
    """Return what follows the last "answer:", or the whole text."""
    return re.split(r"\banswer\W{1,4}", text)[-1]


def _reason(reply: str) -> str | None:
    before = re.split(r"(?i)\banswer\s*:", reply)[0].strip()
    return before or None


def _as_said(score: float | None, kind: str) -> str | None:
    if score is None:
        return None
    if kind == "likert":
        return str(round(1 + 4 * score))
    if kind == "probability":
        return f"{100 * score:g}"
    return {"yes_no": ("NO", "YES"), "true_false": ("FALSE", "TRUE")}[kind][int(score)]
