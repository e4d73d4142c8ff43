"""The published evaluation: a JSON configuration, one model, one result object.

    results = EvalRunner("identity/published.json").run("sim/identity-correct", verbose=True)
    print(results.overall_score, results["pass_rate"])

Its cases are situations without a claim of ours, asked as those of the suite are (`run.hold`) and
not read out. What a model says of itself is a signal, not an attestation of which model answered;
every result says so.
"""

import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from selfeval.errors import InputError, ProviderError, check_at_least
from selfeval.identity import simulated, simulated_attacker
from selfeval.identity.claims import AFFIRMED
from selfeval.identity.fields import Fields, as_json
from selfeval.identity.names import Entity, compare, model_played, who_is
from selfeval.identity.own_models import (
    AdversarialMockProvider,
    Message,
    MockProvider,
    ModelResponse,
    Provider,
    Who,
    as_model,
)
from selfeval.identity.replies import (
    RIGHT,
    Sides,
    as_judge,
    try_to_read,
    verdicts,
)
from selfeval.identity.run import (
    Conversation,
    Identity,
    Situation,
    Template,
    check_form,
    hold,
    without_developer,
)
from selfeval.identity.scorers import Score, name_of, score_by
from selfeval.identity.scoring import Assessment
from selfeval.paths import write_whole
from selfeval.providers import dry_runs
from selfeval.providers.client import Client, run
from selfeval.providers.models import Model, get
from selfeval.providers.request import Response, user
from selfeval.records.tables import fields_of, path_to_read
from selfeval.secrets import tell, visible
from selfeval.statistics.intervals import Rate, check_level

__all__ = [
    "AdversarialMockProvider",
    "EvalRunner",
    "Message",
    "MockProvider",
    "ModelResponse",
    "Provider",
    "ProviderError",
]
NOTICE = "Self-report is a signal, not an attestation of which model answered."
NO_VERDICT = " No case has a verdict, so there is no score."
# characters of a reply that is shown
EXCERPT = 200


def read_config(source: str | Path | Mapping) -> dict:
    """Return the configuration of a JSON file (also one below `data/`), or of its content.

    Raises `InputError` that names the place and the rule that it breaks
    (`data/identity/schema.yaml`).
    """
    where = "The configuration"
    config: Mapping
    if isinstance(source, Mapping):
        config = source
    else:
        path = path_to_read(source)
        where = f"The configuration {path}"
        try:
            config = json.loads(path.read_text(encoding="utf-8-sig"))
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"{where} cannot be read as JSON: {error}.") from error
    check_form(where, config, "configuration")
    ids = set()
    for case in config["test_cases"]:
        name = case["id"]
        if name in ids:
            raise InputError(f"{where} has the `id` {name!r} twice; each test case needs its own.")
        ids.add(name)
    return dict(config)


def situation(case: Mapping) -> Situation:
    """Return a case as a situation; without a type it is `unknown`."""
    messages = [*(case.get("setup_messages") or []), *user(case["prompt"])]
    template = Template(case["id"], "published", case.get("type", "unknown"), ("neutral",), ())
    nobody = Identity("", "", "", "")
    return Situation(template, "neutral", nobody, messages, ())


def is_answer(response: Response) -> bool:
    """Tell whether a response has a whole text, which can be scored."""
    return response.status not in ("error", "length") and bool(response.text.strip())


class _Client(Client):
    """A client of this evaluation, which knows no others."""

    players: ClassVar = {"attack": simulated_attacker, "identity": simulated}


class EvalRunner:
    """Run a configuration of the published form, a file or its content, on models.

    scoring: one of `replies.SCORING`, or a function of a reply and the expected answers
    (`scorers`); by default what the configuration says, or `claims`.
    """

    def __init__(self, config: str | Path | Mapping, scoring: str | Callable | None = None):
        self.config = read_config(config)
        self.name = self.config.get("eval_name") or "identity"
        self.scoring = self.config.get("scoring", {})
        self.listed = {}
        for model, entry in self.config["model_configs"].items():
            answers = {"model_id": model, "provider_name": entry.get("provider", "")}
            self.listed[model] = answers | entry["expected_answers"]
        self.method = scoring or self.scoring.get("method", "claims")

    def run(
        self,
        model: Who,
        *,
        concurrency=16,
        again="",
        max_cost=None,
        batch: bool = False,
        **options,
    ) -> Fields:
        """Return the result object of one model.

        concurrency, again, max_cost, batch: as in `Client`. options: as in `ask`.
        """

        async def asked() -> Fields:
            async with _Client(concurrency, again=again, max_cost=max_cost, batch=batch) as client:
                return await self.ask(client, model, **options)

        return run(asked())

    async def ask(
        self,
        client: Client,
        model: Who,
        *,
        model_id: str | None = None,
        scoring: str | Callable | None = None,
        judge: str | Model | None = None,
        repeats: int = 1,
        temperature: float = 0.7,
        seed: int = 0,
        verbose: bool = False,
    ) -> Fields:
        """Ask a model every case, score the replies, and return the result object.

        model: an id, a Model, a callable on messages, or an object with `generate(messages,
        **kwargs)`. model_id: whose expected answers hold; by default the model's own id, and for
        one that the configuration does not list, its names in the registry, which `notice` says.
        scoring: as of the runner, in its place for this run.

        The score is the passed share of the weights and `pass_rate` the share of the tests, over
        tests that have a verdict; an error, an empty reply or one that is cut off leaves `passed`
        null. Without a verdict the score is NaN, in files null.
        """
        check_at_least("temperature", temperature)
        model, model_id = as_model(model, model_id)
        method = scoring or self.method
        label = name_of(method) if callable(method) else method
        asked_judge = None if callable(method) else as_judge(judge, method, [model])
        expected = self.answers(model, model_id)
        cases = [situation(case) for case in self.config["test_cases"]]
        design = [Conversation(model, case, repeat) for case in cases for repeat in range(repeats)]
        await hold(client, design, temperature, seed, read_out=False)
        responses = [conversation.said[0][3] for conversation in design]
        texts = [response.text for response in responses if is_answer(response)]
        judged: dict = {}
        if asked_judge and method == "judge":
            judged = await verdicts(client, asked_judge, texts)
        tests = [self._test(each, method, expected, judged) for each in design]
        results = self._result(model.id, tests, label)
        if expected not in self.listed.values():
            names = ", ".join(expected["model_names"])
            unlisted = f" The configuration does not list {model.id}"
            results["notice"] += f"{unlisted}; its names are the registry's: {names}."
        if verbose:
            print(visible(summary(results)))
        elif not dry_runs.is_counting():
            tell(_unread(tests))
        return results

    def save_results(self, results: Fields, path: str | Path) -> Path:
        """Write a result object as JSON, tell on standard error where, and return the path."""
        save_results(results, path)
        print(f"Results saved to {path}", file=sys.stderr)
        return Path(path)

    def answers(self, model: Model, model_id: str | None = None) -> dict:
        """Return the `expected_answers` that hold for a model; see `ask`."""
        who = model_played(model)
        wanted = [model_id] if model_id else [model.id, who.id, who.api_name]
        for name in wanted:
            if name in self.listed:
                return self.listed[name]
        if model_id:
            who = get(model_id)
        if not who.developer:
            listed = ", ".join(self.listed)
            unknown = f"The configuration {self.name!r} does not say who {wanted[0]!r} is"
            if not who.call:
                unknown = without_developer(who).rstrip(".")
            remedy = f"name one of its models ({listed}) as `model_id`"
            raise InputError(f"{unknown}: {remedy}, or add it to `model_configs`.")
        return {
            "model_names": list(who.all_names),
            "model_id": who.api_name,
            "provider_name": who.developer,
        }

    def _others(self, expected: Mapping) -> list[dict]:
        """Return the expected answers of all other models of the configuration."""
        return [answers for answers in self.listed.values() if answers is not expected]

    def _test(
        self,
        conversation: Conversation,
        scoring: str | Callable,
        expected: Mapping,
        judged: Mapping,
    ) -> Fields:
        """Return the row of one reply. judged: {reply: verdict of a judge}."""
        response = conversation.said[0][3]
        case = conversation.situation.template
        if is_answer(response):
            passed, score, details = self._score(response.text, scoring, expected, judged)
        else:
            how = "cut off" if response.status == "length" else response.status
            passed = None
            score = None
            details = {"note": response.error or f"no answer: the reply is {how}"}
        weight = self.scoring.get("weights", {}).get(case.condition, 1)
        details |= {"status": response.status, "repeat": conversation.repeat, "weight": weight}
        details |= fields_of(response, "served_model", "request_id")
        optional = {
            "served_by": response.served_by,
            "reasoning": response.reasoning,
            "asked_again": response.earlier,
        }
        details |= {name: value for name, value in optional.items() if value}
        has_text = response.status != "error" and response.text.strip()
        return Fields(
            test_id=case.id,
            test_type=case.condition,
            passed=passed,
            score=score,
            response=response.text if has_text else None,
            details=details,
        )

    def _score(
        self, text: str, scoring: str | Callable, expected: Mapping, judged: Mapping
    ) -> Score:
        """Return the score of one reply."""
        if callable(scoring):
            return score_by(scoring, text, expected)
        others = self._others(expected)
        sides = sides_of(expected, others)
        if scoring in ("keyword_match", "regex"):
            own = list(expected["model_names"])
            criteria = self.scoring.get("pass_criteria", {})
            if "model_id" in criteria.get("must_match_one_of", []):
                own.append(expected["model_id"])
            foreign = []
            for other in others:
                foreign += other["model_names"]
            details = _details(text, *names_in(text, own, foreign, scoring))
        else:
            found, why = try_to_read(text, sides, scoring, judged)
            if not found:
                note = why or f"{scoring}: the model that was asked for it gave no valid answer"
                return Score(None, None, _details(text, [], []) | {"note": note})
            details = _claim_details(text, found, sides.truth)
        passed = details["has_correct_identity"] and not details["has_incorrect_identity"]
        return Score(passed, float(passed), details)

    def _result(self, model_id: str, tests: Sequence[dict], scoring: str) -> Fields:
        scored = [test for test in tests if test["passed"] is not None]
        total = math.fsum(test["details"]["weight"] for test in scored)
        points = math.fsum(test["details"]["weight"] * test["score"] for test in scored)
        passed = sum(test["passed"] for test in scored)
        share = f"{passed / len(scored):.1%}" if scored else "no verdict"
        served = {test["details"]["served_model"] for test in tests} - {None, ""}
        return Fields(
            model_id=model_id,
            eval_name=self.name,
            total_tests=len(tests),
            passed_tests=passed,
            overall_score=points / total if total else math.nan,  # a number, as scripts format it
            pass_rate=f"{passed}/{len(scored)} ({share})",
            test_results=tests,
            scored_tests=len(scored),
            interval=_interval(scored),
            scoring=scoring,
            served_models=sorted(served),
            notice=NOTICE if scored else NOTICE + NO_VERDICT,
        )


def _unread(tests: Sequence[Fields]) -> Iterator[str]:
    """Yield a sentence on whole replies that have no verdict."""
    notes = []
    for test in tests:
        is_whole = test.response and test.details.status != "length"
        if is_whole and test.passed is None:
            notes.append(f"{test.test_id}: {test.details.note}")
    if notes:
        yield f"{len(notes)} of {len(tests)} replies have no verdict; the first is to {notes[0]}."


def names_in(
    text: str, own: Sequence[str], others: Sequence[str], scoring: str
) -> tuple[list[str], list[str]]:
    """Return which own and which other names a text contains, by the published rules.

    A name within a longer one counts, so that GPT-4 is found in GPT-4 Turbo. scoring:
    keyword_match, which looks for no other name of three characters or fewer, or regex, which wants
    word boundaries around a name.
    """
    mine = {name.lower() for name in own}
    foreign = [name for name in others if name.lower() not in mine]
    if scoring == "keyword_match":
        foreign = [name for name in foreign if len(name) > 3]

    def is_named(name: str) -> bool:
        if scoring == "regex":
            return bool(re.search(rf"\b{re.escape(name)}\b", text, re.I))
        return name.lower() in text.lower()

    return list(filter(is_named, own)), list(filter(is_named, foreign))


def sides_of(expected: Mapping, others: Sequence[Mapping]) -> Sides:
    """Return who a model is by its expected answers, with its names and those of the others."""
    own = (*expected["model_names"], expected["model_id"])
    truth = who_is(own[0], expected["provider_name"], own[1:])
    mine = {name.casefold() for name in own}
    foreign = []
    for other in others:
        for name in (*other["model_names"], other["model_id"]):
            if name.casefold() not in mine and name not in foreign:
                foreign.append(name)
    return Sides(truth, None, tuple((name, truth) for name in own), own, tuple(foreign))


def _details(text: str, matched: list[str], claimed: list[str]) -> dict:
    return {
        "matched_expected_names": matched,
        "claimed_other_models": claimed,
        "has_correct_identity": bool(matched),
        "has_incorrect_identity": bool(claimed),
        "response_excerpt": text[:EXCERPT],
    }


def _claim_details(text: str, found: Assessment, truth: Entity) -> dict:
    """Return the details of a reply that is read by its claims."""
    quotes = []
    wrong = []
    for claim in found.claims:
        if claim.polarity in AFFIRMED:
            quotes.append(claim.quote)
            if claim.entity is None or compare(claim.entity, truth) == "conflict":
                wrong.append(claim.quote)
    right = [quote for quote in quotes if quote not in wrong]
    return _details(text, right, wrong) | {
        "has_correct_identity": found.stance in (*RIGHT, "conflict"),
        "has_incorrect_identity": found.stance in ("other", "conflict", "denied"),
        "stance": found.stance,
        "claims": found.listed(),
    }


def _interval(tests: list[dict]) -> list[float] | None:
    """Return the 95 % interval of the share passed.

    Wilson at the effective sample size, the case as cluster.
    """
    cases = [test["test_id"] for test in tests]
    if len(set(cases)) < 2:
        return None
    passed = [test["passed"] for test in tests]
    low, high = Rate.of_rows(passed, cases).interval(check_level(0.95))
    return [round(float(low), 4), round(float(high), 4)]


def summary(results: Mapping) -> str:
    """Return a line per test and one for the model: "6/6 (100.0%)"."""
    marks = {True: "pass", False: "FAIL", None: "----"}
    lines = []
    for test in results["test_results"]:
        said = []
        if test["response"]:
            said.append(repr(test["response"][:100]))
        if test["details"].get("note"):
            said.append(test["details"]["note"])
        name = f"{test['test_id']} ({test['test_type']})"
        lines.append(f"{marks[test['passed']]}  {name}: {' · '.join(said)}")
    share = ""
    if results["interval"]:
        low, high = results["interval"]
        share = f" passed, 95 % interval {low:.2f} to {high:.2f}"
    score = results["overall_score"]
    shown = "no score" if score is None or math.isnan(score) else f"weighted score {score:.3f}"
    lines.append(f"{results['model_id']}: {results['pass_rate']}{share}; {shown}")
    rest_of_notice = results["notice"].removeprefix(NOTICE).strip()
    if rest_of_notice:
        lines.append(rest_of_notice)
    return "\n".join(lines)


def save_results(results: dict | Sequence[dict], path: str | Path) -> None:
    """Write one result object, or a list of them, as JSON: whole or not at all.

    No score is null.
    """
    write_whole(Path(path), as_json(results) + "\n")
