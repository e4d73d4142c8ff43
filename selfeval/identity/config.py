"""The published framework's configuration: a JSON file of situations, of the models' names, and of how to score."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import yaml

from selfeval import DATA
from selfeval.errors import InputError
from selfeval.records import data_path

ANSWERS = ("model_names", "model_id", "provider_name")  # what `expected_answers` says of a model
METHODS = ("keyword_match", "regex", "claims", "judge")


@dataclass(frozen=True)
class Config:
    """One evaluation: `cases` and `answers` (model id: its expected answers) as the JSON has them.

    method: how replies are scored. weights: of the types of cases, 1 where a type has none. criteria: `pass_criteria`.
    """

    name: str
    cases: list[dict]
    answers: dict[str, dict]
    method: str = "claims"
    weights: dict[str, float] = field(default_factory=dict)
    criteria: dict[str, list[str]] = field(default_factory=dict)

    def weight(self, case: Mapping) -> float:
        """Return what a case counts in the overall score."""
        return self.weights.get(case["type"], 1)

    def others(self, model_id: str | None, names: Sequence[str]) -> list[str]:
        """Return what the configuration calls the other models, without names that are also this one's."""
        own = {name.casefold() for name in names}
        found = [
            name
            for other, answers in self.answers.items()
            if other != model_id
            for name in (*answers["model_names"], answers["model_id"])
        ]
        return [name for name in dict.fromkeys(found) if name.casefold() not in own]


def read_config(source: str | Path | Mapping) -> Config:
    """Return the configuration of a JSON file (also one below `data/`), or of its content.

    Raises `InputError` that names the field that is missing or of the wrong form.
    """
    where = "The configuration"
    if not isinstance(source, Mapping):
        path = Path(source).expanduser()
        where = f"The configuration {path}"
        try:
            path = path if path.exists() else data_path(path)
            where = f"The configuration {path}"
            source = json.loads(path.read_text(encoding="utf-8-sig"))
        except InputError:
            raise
        except (OSError, ValueError) as error:
            raise InputError(f"{where} cannot be read as JSON: {getattr(error, 'strerror', None) or error}.") from error
    if not isinstance(source, Mapping):
        raise InputError(f"{where} must be a JSON object with `test_cases` and `model_configs`.")
    scoring = _field(where, source, "scoring", dict, {})
    method = scoring.get("method", "claims")
    if method not in METHODS:
        raise InputError(f"{where} has the unknown scoring method {method!r}; known are {', '.join(METHODS)}.")
    return Config(
        name=str(source.get("eval_name") or "identity"),
        cases=_cases(where, _field(where, source, "test_cases", list)),
        answers={
            model: _answers(f"{where}, model {model!r},", model, entry)
            for model, entry in _field(where, source, "model_configs", dict).items()
        },
        method=method,
        weights=_weights(where, _field(where, scoring, "weights", dict, {})),
        criteria=_criteria(where, _field(where, scoring, "pass_criteria", dict, {})),
    )


def _field(where: str, entry: Mapping, name: str, kind: type, default=None):
    value = entry.get(name, default)
    if not isinstance(value, kind):
        wanted = {dict: "an object", list: "a list", str: "a text"}[kind]
        raise InputError(f"{where} must have `{name}` as {wanted}, got {value!r}.")
    return value


def _cases(where: str, entries: list) -> list[dict]:
    cases, seen = [], set()
    for number, entry in enumerate(entries, 1):
        at = f"{where}, test case {number},"
        if not isinstance(entry, dict):
            raise InputError(f"{at} must be an object, got {entry!r}.")
        for name in ("id", "prompt", "type"):
            if not _field(at, entry, name, str, "").strip():
                raise InputError(f"{at} must have a non-empty `{name}`.")
        for message in _field(at, entry, "setup_messages", list, []) if entry.get("setup_messages") else []:
            if not isinstance(message, dict) or not all(isinstance(message.get(k), str) for k in ("role", "content")):
                raise InputError(f"{at} has a setup message without `role` and `content`: {message!r}.")
            if message["role"] not in ("system", "user", "assistant"):
                raise InputError(f"{at} has a setup message of the unknown role {message['role']!r}.")
        if entry["id"] in seen:
            raise InputError(f"{at} has the `id` {entry['id']!r} of another one; each needs its own.")
        seen.add(entry["id"])
        cases.append(entry)
    if not cases:
        raise InputError(f"{where} has no test case.")
    return cases


def _answers(where: str, model: str, entry) -> dict:
    if not isinstance(entry, dict):
        raise InputError(f"{where} must be an object, got {entry!r}.")
    answers = _field(where, entry, "expected_answers", dict)
    names = _field(where, answers, "model_names", list)
    if not names or not all(isinstance(name, str) and name.strip() for name in names):
        raise InputError(f"{where} must have `model_names`, a list of at least one name, got {names!r}.")
    return {"model_id": model, "provider_name": entry.get("provider", ""), **answers}


def _weights(where: str, weights: dict) -> dict[str, float]:
    for kind, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not weight >= 0:
            raise InputError(f"{where} has the weight {weight!r} for {kind!r}; it must be a number of at least 0.")
    return weights


def _criteria(where: str, criteria: dict) -> dict[str, list[str]]:
    """Return the criteria as lists; a text alone is a list of one."""
    for name, values in criteria.items():
        if name not in ("must_match_one_of", "must_not_claim"):
            raise InputError(
                f"{where} has the unknown pass criterion `{name}`; known are must_match_one_of, must_not_claim."
            )
        values = [values] if isinstance(values, str) else values
        if not isinstance(values, list) or not all(isinstance(value, str) and value.strip() for value in values):
            raise InputError(f"{where} must have `{name}` as a list of texts, got {values!r}.")
    return {name: [values] if isinstance(values, str) else values for name, values in criteria.items()}


@cache
def readouts() -> dict[str, str]:
    """Return the line that reads out a conversation, by language (`data/identity/readout.yaml`)."""
    return yaml.safe_load((DATA / "identity" / "readout.yaml").read_text(encoding="utf-8"))


def readout(language: str) -> str:
    """Return the line in a language ("de", "de-AT"), or in English where there is none."""
    return readouts().get(language.partition("-")[0].casefold(), readouts()["en"])
