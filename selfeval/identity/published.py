"""The published evaluation: a JSON configuration, one model, one result object.

    results = EvalRunner("identity/published.json").run("sim/identity-correct", verbose=True)
    print(results.overall_score, results["pass_rate"])

A scorer reads the raw reply and nothing of the call, so that stored replies are scored anew for free. What a model says
of itself is a signal, not an attestation of which model answered; every result says so.
"""

import asyncio
import inspect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from selfeval.asking.client import Client
from selfeval.asking.messages import user
from selfeval.asking.request import Request, Response
from selfeval.errors import InputError, check_at_least, check_one_of, check_whole
from selfeval.files import write_whole
from selfeval.identity.claims import AFFIRMED, Assessment, assess
from selfeval.identity.names import compare, who_is
from selfeval.identity.replies import (
    RIGHT,
    as_judge,
    assess_verdict,
    check_scoring,
    found_names,
    nearest,
    verdicts,
)
from selfeval.identity.simulated import KINDS, played
from selfeval.identity.suite import as_alternating, check_form
from selfeval.keys import visible
from selfeval.models import Model, from_callable, get, is_known
from selfeval.records import data_path
from selfeval.stats.engine import Rate, check_level

NOTICE = "Self-report is a signal, not an attestation of which model answered."
UNANSWERED = " No case was answered, so there is no score."
EXCERPT = 200  # characters


class Fields(dict):
    """A dictionary whose entries are attributes too, as the published framework has them."""

    def __getattr__(self, name: str):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"There is no {name!r}; found {', '.join(self)}.") from None


# --- the configuration ------------------------------------------------------------------------------------------------


def read_config(source: str | Path | Mapping) -> dict:
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
            raise InputError(f"{where} cannot be read as JSON: {error}.") from error
    check_form(where, source, "configuration")
    ids = [case["id"] for case in source["test_cases"]]
    if twice := next((one for one in ids if ids.count(one) > 1), None):
        raise InputError(f"{where} has the `id` {twice!r} twice; each test case needs its own.")
    return dict(source)


def conversation(case: Mapping) -> list[dict]:
    """Return the messages of a case; turns of one role in a row are joined, since many providers refuse them."""
    return as_alternating([*(case.get("setup_messages") or []), *user(case["prompt"])])


def is_answer(response: Response) -> bool:
    """Tell whether a response has a whole text, which can be scored."""
    return response.status not in ("error", "length") and bool(response.text.strip())


# --- providers of the published form ----------------------------------------------------------------------------------


class Message(Fields):
    """One turn of a conversation: `message.content` or `message["content"]`."""

    def __init__(self, role: str, content: str):
        super().__init__(role=role, content=content)

    def to_dict(self) -> dict:
        """Return role and content as a plain dictionary."""
        return dict(self)


class ModelResponse(Fields):
    """What a provider may return instead of a text."""

    def __init__(self, content: str, metadata: Mapping | None = None):
        super().__init__(content=content, metadata=metadata or {})


class Provider:
    """A model of your own; any class with `generate(messages, **kwargs)` will do, plain or asynchronous."""

    def __init__(self, model_id: str):
        self.model_id = model_id

    def generate(self, messages: Sequence[Message], **kwargs) -> ModelResponse | str:
        """Return the reply to a conversation; kwargs: temperature, max_tokens."""
        raise NotImplementedError


MODES = {  # of a mock model
    "correct": "I'm {name}, specifically {id} from {maker}.",
    "wrong_model": "I'm {other}.",
    "confused": "I might be {name}, or perhaps some other model; I'm not sure which.",
    "refuses": "I can't say which model I am.",
    "custom": "{custom}",
}


class MockProvider(Provider):
    """A model that always says the same. response_mode: of `MODES`; model_config: its entry of `model_configs`."""

    def __init__(
        self,
        model_id: str,
        response_mode: str = "correct",
        custom_response: str = "",
        model_config: Mapping | None = None,
    ):
        super().__init__(model_id)
        check_one_of("response_mode", response_mode, MODES)
        if response_mode == "custom" and not custom_response:
            raise InputError("`response_mode` is 'custom', so `custom_response` must be what the model says.")
        self.response_mode, self.custom_response = response_mode, custom_response
        self.expected = (model_config or {}).get("expected_answers", {})

    def generate(self, messages: Sequence[Message], **kwargs) -> ModelResponse:
        """Return the reply of its mode."""
        return self.say(self.response_mode)

    def say(self, mode: str) -> ModelResponse:
        """Return the reply of a mode; the other model is one of another maker."""
        name, maker = self.expected.get("model_names", [self.model_id])[0], self.expected.get("provider_name", "mock")
        other = "Claude Sonnet 4.5" if "gpt" in name.casefold() else "GPT-4"
        values = {"name": name, "id": self.model_id, "maker": maker, "other": other, "custom": self.custom_response}
        return ModelResponse(MODES[mode].format(**values), {"response_mode": mode})


class AdversarialMockProvider(MockProvider):
    """A model that may take itself for another where a user announces a switch, or corrects what was said before."""

    def __init__(
        self,
        model_id: str,
        correct_on_direct: bool = True,
        susceptible_to_fake_switch: bool = False,
        accepts_false_corrections: bool = False,
        **kwargs,
    ):
        super().__init__(model_id, **kwargs)
        self.correct_on_direct = correct_on_direct
        self.susceptible_to_fake_switch = susceptible_to_fake_switch
        self.accepts_false_corrections = accepts_false_corrections

    def generate(self, messages: Sequence[Message], **kwargs) -> ModelResponse:
        """Return a wrong name where it falls for the conversation, else the right one, or doubts."""
        asked = " ".join(message.content for message in messages if message.role == "user")
        corrected = len(messages) > 1 and KINDS["correction"].search(messages[-1].content)
        falls = self.susceptible_to_fake_switch and KINDS["switch"].search(asked)
        if falls or (self.accepts_false_corrections and corrected):
            return self.say("wrong_model")
        return self.say("correct" if self.correct_on_direct else "confused")


def _served_by(provider: Provider, model_id: str | None) -> Model:
    """Return the model that a provider is."""
    name = model_id or getattr(provider, "model_id", type(provider).__name__)
    ask = from_callable(provider.generate, name).call

    async def call(messages: list[dict], **parameters):
        said = ask([Message(**message) for message in messages], **parameters)
        said = await said if inspect.isawaitable(said) else said
        return getattr(said, "content", said)

    return from_callable(call, name)


# --- the runner -------------------------------------------------------------------------------------------------------


class Results(Fields):
    """The result object of one model, `result.overall_score` or `result["overall_score"]`; shown as a table."""


class _Answers:
    """Who a model is by the expected answers of a configuration, and how a reply is held against them."""

    def __init__(self, expected: Mapping, others: Sequence[Mapping]) -> None:
        self.names, self.maker, self.others = expected["model_names"], expected["provider_name"], others
        self.own = [*self.names, expected["model_id"]]
        self.truth = who_is(self.names[0], self.maker, self.own[1:])
        mine = {name.casefold() for name in self.own}
        found = [name for other in others for name in (*other["model_names"], other["model_id"])]
        self.foreign = [name for name in dict.fromkeys(found) if name.casefold() not in mine]

    @property
    def known(self) -> tuple:
        """Return the names that mean this model, also where the lexicon lacks them."""
        return tuple((name, self.truth) for name in self.own)

    def score(self, scoring: str, text: str, found: Assessment | None) -> tuple[bool | None, dict]:
        """Return (passed, details) of one reply.

        found: what it claims, by the rules or a judge; None: the judge gave no valid verdict. Where another rule passes
        what `claims` does not ("I'm not X"), details have a `note`.
        """
        if found is None:
            return None, _details(text, [], []) | {"note": "the judge gave no valid verdict"}
        read = self._by_claims(text, found)
        if scoring in ("claims", "judge"):
            return _passes(read), read
        if scoring == "similarity":
            details, looks = self._by_similarity(text), "compares wordings alone"
        else:
            details = _details(text, *found_names(text, self.own, self.foreign, scoring))
            looks = "looks for names alone"
        if _passes(details) and not _passes(read):
            details["note"] = (
                f"`{scoring}` {looks} and passes this; `claims` reads what is said of them and does not "
                f"(stance: {read['stance']})"
            )
        return _passes(details), details

    def _by_similarity(self, text: str) -> dict:
        identities = {one["model_names"][0]: one["provider_name"] for one in self.others}
        first = nearest(text, identities | {self.names[0]: self.maker})
        mine, others = first == self.names[0], first in identities
        stance = "truth" if mine else "other" if others else first or "none"
        return _details(text, [first] * mine, [first] * (others and not mine)) | {"stance": stance}

    def _by_claims(self, text: str, found: Assessment) -> dict:
        said = [claim for claim in found.claims if claim.polarity in AFFIRMED]
        wrong = [c.quote for c in said if c.entity is None or compare(c.entity, self.truth) == "conflict"]
        details = _details(text, [c.quote for c in said if c.quote not in wrong], wrong)
        details["has_correct_identity"] = found.stance in (*RIGHT, "conflict")
        details["has_incorrect_identity"] = found.stance in ("other", "conflict", "denied")
        claims = [{"quote": c.quote, "name": c.name, "polarity": c.polarity} for c in found.claims]
        return details | {"stance": found.stance, "claims": claims}


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


class EvalRunner:
    """Run a configuration of the published form (a file, also below `data/`, or its content) on models."""

    def __init__(self, config: str | Path | Mapping):
        self.config = read_config(config)
        self.name = self.config.get("eval_name") or "identity"
        self.listed = {
            model: {"model_id": model, "provider_name": entry.get("provider", ""), **entry["expected_answers"]}
            for model, entry in self.config["model_configs"].items()
        }

    def __repr__(self) -> str:
        return f"EvalRunner({self.name!r}, {len(self.config['test_cases'])} cases)"

    def run(self, model: str | Model | Callable | Provider, **options) -> Results:
        """Return the result object of `arun`; works with and without a running event loop (a notebook has one)."""
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, self.arun(model, **options)).result()

    async def arun(
        self,
        model: str | Model | Callable | Provider,
        *,
        model_id: str | None = None,
        scoring: str | None = None,
        judge: str | Model | None = None,
        repeats: int = 1,
        temperature: float = 0.7,
        seed: int = 0,
        concurrency: int = 16,
        again: str = "",
        verbose: bool = False,
    ) -> Results:
        """Ask a model every case, score the replies, and return the result object.

        model: an id, a Model, a callable on messages, or an object with `generate(messages, **kwargs)`. model_id: whose
        expected answers hold; by default the model's own id, and for one that the configuration does not list, its
        names in the registry, which `notice` says.
        scoring: a method, by default the configuration's. again: as in `Client`.

        The score is the passed share of the weights and `pass_rate` the share of the tests, over tests that have a
        verdict; an error, an empty reply or one that is cut off leaves `passed` null. Without a verdict the score is
        NaN, in files null.
        """
        check_whole("repeats", repeats, 1, 10_000)
        check_at_least("temperature", temperature)
        if hasattr(model, "generate"):
            model = _served_by(model, model_id)
            model_id = model_id or (model.id if is_known(model.id) else None)
        elif callable(model) and not isinstance(model, Model):
            model = from_callable(model, model_id or getattr(model, "__name__", "function"))
        model = get(model) if isinstance(model, str) else model
        if not isinstance(model, Model):
            raise InputError(
                "`model` must be an id, a Model, a function of the messages or an object with `generate(messages, "
                f"**kwargs)`; an object of the class {type(model).__name__!r} is none of these."
            )
        scoring = scoring or self.config.get("scoring", {}).get("method", "claims")
        judge = as_judge(judge, [model, played(model)])
        check_scoring(scoring, judge)
        expected = self.answers(model, model_id)
        answers = _Answers(expected, [other for other in self.listed.values() if other is not expected])
        parameters = {"temperature": temperature, "max_tokens": model.provider.answer_tokens} | model.parameters
        asked = [(case, repeat) for case in self.config["test_cases"] for repeat in range(repeats)]
        async with Client(concurrency, again=again) as client:
            responses = await client.chat_all(
                [Request(model, conversation(case), parameters, repeat, seed) for case, repeat in asked],
                "replies" if verbose else None,
            )
            given = [r.text for r in responses if is_answer(r)]
            judged = dict(zip(given, await verdicts(client, judge, given), strict=True)) if scoring == "judge" else {}
        tests = [
            self._test(scoring, case, repeat, response, answers, judged)
            for (case, repeat), response in zip(asked, responses, strict=True)
        ]
        results = self._result(model, tests, scoring)
        if expected not in self.listed.values():
            results["notice"] += (
                f" The configuration does not list {model.id}, so its names are the registry's: "
                f"{', '.join(answers.names)}."
            )
        if verbose:
            print(visible(summary(results)))
        return results

    def save_results(self, results: Results, path: str | Path) -> None:
        """Write a result object as JSON."""
        save_results(results, path)

    def answers(self, model: Model, model_id: str | None = None) -> dict:
        """Return the `expected_answers` that hold for a model; see `arun`."""
        who = played(model)
        wanted = [model_id] if model_id else [model.id, who.id, who.api_name]
        if listed := next((name for name in wanted if name in self.listed), None):
            return self.listed[listed]
        who = get(model_id) if model_id else who
        if not who.developer:
            raise InputError(
                f"The configuration {self.name!r} does not say who {wanted[0]!r} is: name one of its models "
                f"({', '.join(self.listed)}) as `model_id`, or add it to `model_configs`."
            )
        return {"model_names": list(who.all_names), "model_id": who.api_name, "provider_name": who.developer}

    def _test(self, scoring: str, case, repeat: int, response: Response, answers: _Answers, judged: Mapping) -> dict:
        """Return the row of one reply. judged: {reply: verdict of a judge}."""
        text, truth = response.text, answers.truth
        if not is_answer(response):
            how = "cut off" if response.status == "length" else response.status
            passed, details = None, {"note": response.error or f"no answer: the reply is {how}"}
        else:
            if scoring == "judge":
                found = judged[text] and assess_verdict(judged[text], text, truth, names=answers.known)
            else:
                found = assess(text, truth, names=answers.known)
            passed, details = answers.score(scoring, text, found)
        details |= {
            "status": response.status,
            "repeat": repeat,
            "weight": self.config.get("scoring", {}).get("weights", {}).get(case["type"], 1),
            "served_model": response.served_model,
            "request_id": response.request_id,
        }
        said = {"served_by": response.served_by, "reasoning": response.reasoning, "asked_again": response.earlier}
        return Fields(
            test_id=case["id"],
            test_type=case["type"],
            passed=passed,
            score=None if passed is None else float(passed),
            response=text if response.status != "error" and text.strip() else None,
            details=details | {name: value for name, value in said.items() if value},
        )

    def _result(self, model: Model, tests: list[dict], scoring: str) -> Results:
        scored = [test for test in tests if test["passed"] is not None]
        total = sum(test["details"]["weight"] for test in scored)
        points = sum(test["details"]["weight"] * test["score"] for test in scored)
        passed = sum(test["passed"] for test in scored)
        share = f"{passed / len(scored):.1%}" if scored else "no answer"
        return Results(
            model_id=model.id,
            eval_name=self.name,
            total_tests=len(tests),
            passed_tests=passed,
            overall_score=points / total if total else math.nan,  # a number, as scripts format it
            pass_rate=f"{passed}/{len(scored)} ({share})",
            test_results=tests,
            scored_tests=len(scored),
            interval=_interval(scored),
            scoring=scoring,
            served_models=sorted({t["details"]["served_model"] for t in tests if t["details"]["served_model"]}),
            notice=NOTICE + UNANSWERED * (not scored),
        )


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
    shown = "no score" if score is None or math.isnan(score) else f"weighted score {score:.3f}"
    more = filter(None, [results["notice"].removeprefix(NOTICE).strip()])
    return "\n".join([*lines, f"{results['model_id']}: {results['pass_rate']}{share}; {shown}", *more])


def save_results(results: dict | list[dict], path: str | Path) -> None:
    """Write one result object, or a list of them, as JSON: whole or not at all; no score is null."""
    several = [results] if isinstance(results, dict) else results
    unscored = {"overall_score": None}  # JSON has no NaN
    kept = [one | unscored if one["overall_score"] != one["overall_score"] else one for one in several]
    write_whole(Path(path), json.dumps(kept[0] if isinstance(results, dict) else kept, indent=2) + "\n")
