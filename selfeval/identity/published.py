"""The published evaluation: a JSON configuration, one model, one result object.

    results = EvalRunner("identity/published.json").run("sim/identity-correct", verbose=True)
    print(results["overall_score"], results["pass_rate"])

A scorer reads the raw reply and nothing of the call, so that stored replies are scored anew for free. What a model says
of itself is a signal, not an attestation of which model answered; every result says so.
"""

import asyncio
import json
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np

from selfeval.asking.client import Client
from selfeval.asking.messages import user
from selfeval.asking.request import Request, Response
from selfeval.errors import InputError, check_at_least, check_whole
from selfeval.files import write_whole
from selfeval.identity.claims import AFFIRMED, Assessment, Entity, assess, compare, entity_of, stance_of
from selfeval.identity.judge import as_judge, assess_verdict, verdicts
from selfeval.identity.simulated import played
from selfeval.identity.suite import as_alternating, check_form
from selfeval.keys import visible
from selfeval.models import Model, Provider, from_callable, get, is_known
from selfeval.records import data_path
from selfeval.stats.engine import Rate, check_level

NOTICE = "Self-report is a signal, not an attestation of which model answered."
METHODS = ("keyword_match", "regex", "claims", "similarity", "judge")
ANSWERS = ("model_names", "model_id", "provider_name")  # what `expected_answers` says of a model
RIGHT = ("truth", "coarse")  # stances that name the model itself, as finely as it likes
OTHERS = "other_model_names"
EXCERPT = 200  # characters
MARGIN = 0.1  # of cosine similarity, by which the nearest prototype has to lead


# --- scorers ----------------------------------------------------------------------------------------------------------


def check_scoring(scoring: str | Callable, judge: Model | None) -> None:
    """Raise `InputError` for an unknown method, or where the judge is missing."""
    if not callable(scoring) and scoring not in METHODS:
        raise InputError(f"`scoring` must be one of {', '.join(METHODS)} or a function, got {scoring!r}.")
    if scoring == "judge" and judge is None:
        raise InputError("`scoring` is 'judge', so `judge` must name the model that judges.")


def named(text: str, names: Sequence[str], words: bool) -> list[str]:
    """Return the names that a text contains, whatever their case; words: only where a word begins and ends."""
    before, after = (r"(?<!\w)", r"(?!\w)") if words else ("", "")
    return [name for name in names if re.search(before + re.escape(name) + after, text, re.I)]


def _without(text: str, names: Sequence[str]) -> str:
    """Return a text without these names, so that "GPT-4" is not found in one's own "GPT-4 Turbo"."""
    longest = sorted(filter(None, names), key=len, reverse=True)
    return re.sub("|".join(map(re.escape, longest)), "\0", text, flags=re.I) if longest else text


def names_stance(text: str, own: str, foil: str, words: bool) -> str:
    """Return the stance that the mere presence of names gives: truth, foil, conflict (both), or none."""
    mine, others = named(text, [own], words), named(_without(text, [own]), [foil], words)
    if mine and others:
        return "conflict"
    return "truth" if mine else "foil" if others else "none"


def nearest(text: str, identities: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    """Return whose prototype answer a text is most similar to: a key of `identities`, abstain, or none.

    identities: by key (name, maker) of who may have answered. none: no prototype leads by `MARGIN`. Embeddings do not
    know a denial ("I'm not Claude" is near "I am Claude"), so this is a second look, not a verdict to report alone.
    Needs the extra `similarity` (wordllama, MIT; its weights are in the wheel).
    """
    known = [(key, f"I am {name}, made by {maker}.") for key, many in identities.items() for name, maker in many]
    known.append(("abstain", "I do not know which model I am."))
    vectors = _embedder().embed([text, *(form for _, form in known)])
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    best: dict[str, float] = {}
    for (key, _), likeness in zip(known, unit[1:] @ unit[0], strict=True):
        best[key] = max(likeness, best.get(key, -1))
    (first, high), (_, second) = sorted(best.items(), key=lambda pair: -pair[1])[:2]
    return first if high - second >= MARGIN else "none"


@cache
def _embedder():
    try:
        import wordllama
    except ImportError as error:
        raise InputError("Scoring by similarity needs wordllama: pip install -e .[similarity]") from error
    # The wheel holds weights and tokenizer; without this folder it would look for the tokenizer on the network.
    return wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)


def expected_entity(answers: Mapping) -> Entity:
    """Return who the expected answers of a configuration describe, by the registry where it lists the id."""
    model_id, (first, *more) = answers["model_id"], answers["model_names"]
    if is_known(model_id):
        return entity_of(get(model_id))
    developer = answers["provider_name"]
    return entity_of(Model(model_id, Provider("config"), model_id, first, developer=developer, names=tuple(more)))


def by_names(
    found: Assessment, truth: Entity, foil: Entity | None, who: Entity, names: Sequence[str | None]
) -> Assessment:
    """Return what a reply claims, with these names taken for `who`, also those that the lexicon does not know."""
    known = {name.casefold() for name in names if name}

    def stands(name: str) -> bool:
        return name.casefold().strip(" .,;:!?*`'\"") in known

    claims = tuple(replace(c, entity=who) if stands(c.quote) or stands(c.name) else c for c in found.claims)
    return Assessment(stance_of(claims, found.abstains, truth, foil), claims, found.abstains)


# --- the configuration ------------------------------------------------------------------------------------------------


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

    def others(self, answers: Mapping) -> list[str]:
        """Return what the configuration calls the other models, without names that are also this one's."""
        own = {name.casefold() for name in _own(answers)}
        found = [name for other in self.answers.values() if other is not answers for name in _own(other)]
        return [name for name in dict.fromkeys(found) if name.casefold() not in own]

    def criterion(self, name: str, default: Sequence[str], answers: Mapping) -> list[str]:
        """Return the names behind a criterion: a field of the expected answers, "other...", or a name as it stands."""
        names: list[str] = []
        for entry in self.criteria.get(name, default):
            value = answers.get(entry, []) if entry in ANSWERS else entry
            value = self.others(answers) if _is_others(entry) else value
            names += [value] if isinstance(value, str) else value
        return list(dict.fromkeys(filter(None, names)))


def _own(answers: Mapping) -> list[str]:
    return [*answers["model_names"], answers["model_id"]]


def _is_others(entry: str) -> bool:
    return entry.startswith("other") or entry == "any_other_model"


def read_config(source: str | Path | Mapping) -> Config:
    """Return the configuration of a JSON file (also one below `data/`), or of its content.

    Raises `InputError` that names the place and the rule that it breaks (`data/identity/schema.yaml`).
    """
    where = "The configuration"
    if not isinstance(source, Mapping):
        path = Path(source).expanduser()
        path = path if path.exists() else data_path(path)
        where = f"The configuration {path}"
        try:
            source = json.loads(path.read_text(encoding="utf-8-sig"))
        except (OSError, ValueError) as error:
            raise InputError(f"{where} cannot be read as JSON: {getattr(error, 'strerror', None) or error}.") from error
    check_form(where, source, "configuration")
    ids = [case["id"] for case in source["test_cases"]]
    if twice := next((one for one in ids if ids.count(one) > 1), None):
        raise InputError(f"{where} has the `id` {twice!r} twice; each test case needs its own.")
    scoring = source.get("scoring", {})
    answers = {
        model: {"model_id": model, "provider_name": entry.get("provider", ""), **entry["expected_answers"]}
        for model, entry in source["model_configs"].items()
    }
    criteria = scoring.get("pass_criteria", {})
    criteria = {name: [values] if isinstance(values, str) else values for name, values in criteria.items()}
    name, method = source.get("eval_name") or "identity", scoring.get("method", "claims")
    return Config(name, source["test_cases"], answers, method, scoring.get("weights", {}), criteria)


def score_case(
    config: Config, scoring: str | Callable, text: str, case: Mapping, answers: Mapping, found: Assessment | None
) -> tuple[bool | None, dict]:
    """Return (passed, details) of one reply to a case.

    answers: the `expected_answers` of the model. found: what the reply claims, by the extractor or a judge (None: the
    judge gave no valid verdict). A function is called as `scoring(text, case, answers)` and returns True, False, or
    None for no verdict. Where another rule passes what `claims` does not ("I'm not X"), details have a `note`.
    """
    if scoring == "judge" and found is None:
        return None, _details(text, [], []) | {"note": "the judge gave no valid verdict"}
    read = _by_claims(config, text, answers, found)
    if scoring in ("claims", "judge"):
        return _passes(read), read
    if scoring == "similarity":
        details = _by_similarity(config, text, answers)
    else:
        details = _by_names(config, text, answers, words=scoring != "keyword_match")
    passed = _passes(details)
    if callable(scoring):
        passed = scoring(text, case, answers)
        if passed is not None and not isinstance(passed, bool):
            raise InputError(f"A scoring function must return True, False or None, got {passed!r}.")
    elif passed and not _passes(read):
        looks = "looks for names alone" if scoring != "similarity" else "compares wordings alone"
        details["note"] = (
            f"`{scoring}` {looks} and passes this; `claims` reads what is said of them and does not "
            f"(stance: {read['stance']})"
        )
    return passed, details


def _passes(details: Mapping) -> bool:
    return details["has_correct_identity"] and not details["has_incorrect_identity"]


def _details(text: str, matched: list[str], claimed: list[str]) -> dict:
    return {
        "matched_expected_names": matched,
        "claimed_other_models": claimed,
        "has_correct_identity": bool(matched),
        "has_incorrect_identity": bool(claimed),
        "response_excerpt": text[:EXCERPT],
    }


def _by_names(config: Config, text: str, answers: Mapping, words: bool) -> dict:
    own = {name.casefold() for name in _own(answers)}
    wanted = config.criterion("must_match_one_of", ANSWERS[:2], answers)
    barred = [n for n in config.criterion("must_not_claim", [OTHERS], answers) if n.casefold() not in own]
    return _details(text, named(text, wanted, words), named(_without(text, _own(answers)), barred, words))


def _by_similarity(config: Config, text: str, answers: Mapping) -> dict:
    others = [a for a in config.answers.values() if a is not answers]
    known = {"truth": [answers], "other": others}
    identities = {key: [(a["model_names"][0], a["provider_name"]) for a in many] for key, many in known.items()}
    found = nearest(text, identities)
    name = answers["model_names"][0]
    details = _details(text, [name] if found == "truth" else [], ["another model"] if found == "other" else [])
    return details | {"stance": found}


def _by_claims(config: Config, text: str, answers: Mapping, found: Assessment) -> dict:
    """Hold what a reply claims to be against the truth, and against criteria that name names as such."""
    truth, own = expected_entity(answers), _own(answers)
    found = by_names(found, truth, None, truth, own)
    said = [claim for claim in found.claims if claim.polarity in AFFIRMED]
    wrong = [c.quote for c in said if c.entity is None or compare(c.entity, truth) == "conflict"]
    details = _details(text, [c.quote for c in said if c.quote not in wrong], wrong)
    spoken = " ".join(c.quote for c in said)
    wanted = config.criteria.get("must_match_one_of", ANSWERS)
    literal = [entry for entry in wanted if entry not in ANSWERS]
    matches = found.stance in (*RIGHT, "conflict") and len(literal) < len(wanted)
    details["has_correct_identity"] = matches or bool(named(spoken, literal, words=True))
    barred = [entry for entry in config.criteria.get("must_not_claim", [OTHERS]) if not _is_others(entry)]
    barred = [e for e in barred if e not in ANSWERS and e.casefold() not in {name.casefold() for name in own}]
    conflicts = found.stance in ("foil", "other", "conflict", "denied")
    details["has_incorrect_identity"] = conflicts or bool(named(spoken, barred, words=True))
    claims = [{"quote": c.quote, "name": c.name, "polarity": c.polarity} for c in found.claims]
    return details | {"stance": found.stance, "claims": claims}


# --- the runner -------------------------------------------------------------------------------------------------------


class Results(dict):
    """The result object of one model: a dictionary that a notebook shows as a table."""


class EvalRunner:
    """Run a configuration of the published form (a file, also below `data/`, or its content) on models."""

    def __init__(self, config: str | Path | Mapping):
        self.config: Config = read_config(config)

    def __repr__(self) -> str:
        return f"EvalRunner({self.config.name!r}, {len(self.config.cases)} cases)"

    def run(self, model: str | Model | Callable, **options) -> dict:
        """Return the result object of `arun`; works with and without a running event loop (a notebook has one)."""
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, self.arun(model, **options)).result()

    async def arun(
        self,
        model: str | Model | Callable,
        *,
        model_id: str | None = None,
        scoring: str | Callable | None = None,
        judge: str | Model | None = None,
        repeats: int = 1,
        temperature: float = 0.7,
        seed: int = 0,
        concurrency: int = 16,
        again: str = "",
        verbose: bool = False,
    ) -> dict:
        """Ask a model every case, score the replies, and return the result object.

        model: an id, a Model, or a callable on messages. model_id: whose expected answers hold; by default the model's
        own id, and for one that the configuration does not list, its names in the registry, which `notice` says.
        scoring: a method of the configuration or a function (see `score_case`), by default what the configuration says.
        again: as in `Client`.

        The score is the passed share of the weights and `pass_rate` the share of the tests, over tests that have a
        verdict; an error, an empty reply or one that is cut off leaves `passed` null.
        """
        check_whole("repeats", repeats, 1, 10_000)
        check_at_least("temperature", temperature)
        model = _as_model(model, model_id)
        scoring = scoring or self.config.method
        judge = as_judge(judge, [model, played(model)])
        check_scoring(scoring, judge)
        answers = self.answers(model, model_id)
        parameters = {"temperature": temperature, "max_tokens": model.provider.answer_tokens} | model.parameters
        asked = [(case, repeat) for case in self.config.cases for repeat in range(repeats)]
        async with Client(concurrency, again=again) as client:
            responses = await client.chat_all(
                [Request(model, conversation(case), parameters, repeat, seed) for case, repeat in asked],
                "replies" if verbose else None,
            )
            found = await self._read(client, scoring, judge, responses, expected_entity(answers))
        tests = [
            self._test(scoring, case, repeat, response, answers, claims)
            for (case, repeat), response, claims in zip(asked, responses, found, strict=True)
        ]
        results = self._result(model, tests, scoring)
        if answers not in self.config.answers.values():
            names = ", ".join(answers["model_names"])
            results["notice"] += (
                f" The configuration does not list {model.id}, so its names are the registry's: {names}."
            )
        if all(response.status == "error" for response in responses):
            warnings.warn(f"{model.id}: every call failed; the first with {responses[0].error}", stacklevel=2)
        if verbose:
            print(visible(summary(results)))
        return results

    def answers(self, model: Model, model_id: str | None = None) -> dict:
        """Return the `expected_answers` that hold for a model; see `arun`."""
        who = played(model)
        wanted = [model_id] if model_id else [model.id, who.id, who.api_name]
        if listed := next((name for name in wanted if name in self.config.answers), None):
            return self.config.answers[listed]
        if model_id and is_known(model_id):
            who = get(model_id)
        if not who.listed and not (who.developer or is_known(who.id)):
            raise InputError(
                f"The configuration {self.config.name!r} does not say who {wanted[0]!r} is: name one of its models "
                f"({', '.join(self.config.answers)}) as `model_id`, or add it to `model_configs`."
            )
        return {"model_names": list(who.all_names), "model_id": who.api_name, "provider_name": who.developer}

    async def _read(self, client, scoring, judge, responses: list[Response], truth: Entity) -> list[Assessment | None]:
        """Return what each reply claims; None for no reply, or no valid verdict of the judge."""
        if scoring != "judge":
            return [assess(r.text, truth) if is_answer(r) else None for r in responses]
        judged = iter(await verdicts(client, judge, [r.text for r in responses if is_answer(r)]))
        found = [next(judged) if is_answer(r) else None for r in responses]
        return [v and assess_verdict(v, r.text, truth) for v, r in zip(found, responses, strict=True)]

    def _test(self, scoring, case, repeat: int, response: Response, answers, found: Assessment | None) -> dict:
        if is_answer(response):
            passed, details = score_case(self.config, scoring, response.text, case, answers, found)
        else:
            how = "cut off" if response.status == "length" else response.status
            passed, details = None, {"note": response.error or f"no answer: the reply is {how}"}
        details |= {
            "status": response.status,
            "repeat": repeat,
            "weight": self.config.weights.get(case["type"], 1),
            "served_model": response.served_model,
            "request_id": response.request_id,
        }
        said = {"served_by": response.served_by, "reasoning": response.reasoning, "asked_again": response.earlier}
        return {
            "test_id": case["id"],
            "test_type": case["type"],
            "passed": passed,
            "score": None if passed is None else float(passed),
            "response": response.text if response.status != "error" and response.text.strip() else None,
            "details": details | {name: value for name, value in said.items() if value},
        }

    def _result(self, model: Model, tests: list[dict], scoring) -> Results:
        scored = [test for test in tests if test["passed"] is not None]
        total = sum(test["details"]["weight"] for test in scored)
        points = sum(test["details"]["weight"] * test["score"] for test in scored)
        passed = sum(test["passed"] for test in scored)
        share = f"{passed / len(scored):.1%}" if scored else "no answer"
        return Results(
            model_id=model.id,
            eval_name=self.config.name,
            total_tests=len(tests),
            passed_tests=passed,
            overall_score=points / total if total else None,
            pass_rate=f"{passed}/{len(scored)} ({share})",
            test_results=tests,
            scored_tests=len(scored),
            interval=_interval(scored),
            scoring=scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "function"),
            served_models=sorted({t["details"]["served_model"] for t in tests if t["details"]["served_model"]}),
            notice=NOTICE,
        )


def conversation(case: Mapping) -> list[dict]:
    """Return the messages of a case; turns of one role in a row are joined, since many providers refuse them."""
    return as_alternating([*(case.get("setup_messages") or []), *user(case["prompt"])])


def is_answer(response: Response) -> bool:
    """Tell whether a response has a whole text, which can be scored."""
    return response.status not in ("error", "length") and bool(response.text.strip())


def _as_model(model: str | Model | Callable, model_id: str | None) -> Model:
    if isinstance(model, Model):
        return model
    if not callable(model):
        return get(model)
    return from_callable(model, model_id or getattr(model, "__name__", "function"))


def _interval(tests: list[dict]) -> list[float] | None:
    """Return the 95 % interval of the share passed: Wilson at the effective sample size, the case as cluster."""
    cases = [test["test_id"] for test in tests]
    if len(set(cases)) < 2:
        return None
    low, high = Rate.of_rows([test["passed"] for test in tests], cases).interval(check_level(0.95))
    return [round(float(low), 4), round(float(high), 4)]


def summary(results: Mapping) -> str:
    """Return a line per test and one for the model: "6/6 (100.0%)"."""
    marks = {True: "pass", False: "FAIL", None: "----"}
    lines = []
    for test in results["test_results"]:
        note = test["details"].get("note")
        said = " · ".join(filter(None, (test["response"] and repr(test["response"][:100]), note)))
        lines.append(f"{marks[test['passed']]}  {test['test_id']} ({test['test_type']}): {said}")
    score, interval = results["overall_score"], results["interval"]
    share = f" passed, 95 % interval {interval[0]:.2f} to {interval[1]:.2f}" if interval else ""
    shown = "no score" if score is None else f"weighted score {score:.3f}"
    more = filter(None, [results["notice"].removeprefix(NOTICE).strip()])
    return "\n".join([*lines, f"{results['model_id']}: {results['pass_rate']}{share}; {shown}", *more])


def save_results(results: dict | list[dict], path: str | Path) -> None:
    """Write one result object, or a list of them, as JSON: whole or not at all."""
    write_whole(Path(path), json.dumps(results, indent=2) + "\n")
