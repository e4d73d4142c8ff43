"""The published evaluation: a JSON configuration, one model, one result object.

    results = EvalRunner("identity/published.json").run("sim/identity-correct", verbose=True)
    print(results["overall_score"], results["pass_rate"])

What a model says of itself is a signal, not an attestation of which model answered; every result says so.
"""

import asyncio
import json
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from selfeval.asking.client import Client
from selfeval.asking.messages import user
from selfeval.asking.request import Request, Response
from selfeval.errors import InputError, check_at_least, check_whole
from selfeval.files import write_whole
from selfeval.identity.claims import Assessment, assess
from selfeval.identity.config import Config, read_config
from selfeval.identity.judge import as_judge, assess_verdict, verdicts
from selfeval.identity.scorers import check_scoring, expected_entity, score_case
from selfeval.identity.simulated import played
from selfeval.identity.suite import as_alternating
from selfeval.keys import visible
from selfeval.models import Model, from_callable, get, is_known
from selfeval.stats.intervals import Rate, check_level

NOTICE = "Self-report is a signal, not an attestation of which model answered."


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
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.arun(model, **options))
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
        scoring: a method of the configuration or a function (see `scorers.score_case`), by default what the
        configuration says. again: as in `Client`.

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
            found = await self._read(client, scoring, judge, responses, answers)
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
        for name in wanted:
            if name in self.config.answers:
                return self.config.answers[name]
        if model_id and is_known(model_id):
            who = get(model_id)
        if not who.listed and not (who.developer or is_known(who.id)):
            raise InputError(
                f"The configuration {self.config.name!r} does not say who {wanted[0]!r} is: name one of its models "
                f"({', '.join(self.config.answers)}) as `model_id`, or add it to `model_configs`."
            )
        return {"model_names": list(who.all_names), "model_id": who.api_name, "provider_name": who.developer}

    async def _read(self, client, scoring, judge, responses: list[Response], answers) -> list[Assessment | None]:
        """Return what each reply claims; None for no reply, or no valid verdict of the judge."""
        truth = expected_entity(answers)
        if scoring != "judge":
            return [assess(r.text, truth) if is_answer(r) else None for r in responses]
        given = [r.text for r in responses if is_answer(r)]
        judged = iter(await verdicts(client, judge, given))
        found = [next(judged) if is_answer(r) else None for r in responses]
        return [v and assess_verdict(v, r.text, truth) for v, r in zip(found, responses, strict=True)]

    def _test(self, scoring, case, repeat: int, response: Response, answers, found: Assessment | None) -> dict:
        if is_answer(response):
            passed, details = score_case(self.config, scoring, response.text, case, answers, found)
        else:
            how = "cut off" if response.status == "length" else response.status
            passed, details = None, {"note": response.error or f"no answer: the reply is {how}"}
        said = {"served_by": response.served_by, "reasoning": response.reasoning, "asked_again": response.earlier}
        return {
            "test_id": case["id"],
            "test_type": case["type"],
            "passed": passed,
            "score": None if passed is None else float(passed),
            "response": response.text if response.status != "error" and response.text.strip() else None,
            "details": details
            | {
                "status": response.status,
                "repeat": repeat,
                "weight": self.config.weight(case),
                "served_model": response.served_model,
                "request_id": response.request_id,
            }
            | {name: value for name, value in said.items() if value},
        }

    def _result(self, model: Model, tests: list[dict], scoring) -> Results:
        scored = [test for test in tests if test["passed"] is not None]
        total = sum(test["details"]["weight"] for test in scored)
        points = sum(test["details"]["weight"] * test["score"] for test in scored)
        passed = sum(test["passed"] for test in scored)
        share = f"{passed / len(scored):.1%}" if scored else "no answer"
        return Results(
            {
                "model_id": model.id,
                "eval_name": self.config.name,
                "total_tests": len(tests),
                "passed_tests": passed,
                "overall_score": points / total if total else None,
                "pass_rate": f"{passed}/{len(scored)} ({share})",
                "test_results": tests,
                "scored_tests": len(scored),
                "interval": _interval(scored),
                "scoring": scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "function"),
                "served_models": sorted({t["details"]["served_model"] for t in tests if t["details"]["served_model"]}),
                "notice": NOTICE,
            }
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
