"""Every keyword of every verb changes what is asked, returned, printed or written.

The keywords are read from the signatures, so that a new one without an entry here fails; so does one
that changes nothing. An entry is what the keyword is set to, or (what has to stand beside it, what it is set to).
"""

import contextlib
import hashlib
import inspect
import io
import json
import re
from types import SimpleNamespace

import pandas as pd
import pytest
from fake_server import FakeServer, default_reply, instance
from matplotlib.figure import Figure

import selfeval as se
from selfeval.errors import BudgetError, InputError, SelfevalError
from selfeval.identity.names import Entity
from selfeval.providers.client import Asking

CAN = "json_schema: true, logprobs: true, seeded: true, prefill: true, effort: true, likelihood: grammar"
AT = "base_url: 'http://127.0.0.1:8080/v1', base_url_env: LLAMACPP_BASE_URL"
REGISTRY = f"providers:\n  everything: {{{AT}, {CAN}}}\nmodels:\n" + "".join(
    f"  - {{id: my/{name}, provider: everything, model: {name}, display: {display}, family: {display}, "
    f"developer: {display}, price: {{input: 1000, output: 1000}}}}\n"
    for name, display in {"a": "Anna", "b": "Bert", "c": "Cora", "d": "Dora"}.items()
)
APART = ["condition", "parameters", "latency", "request_id", "scope", "context", "model", "suite"]  # not what came out


class Server(FakeServer):
    """A server that answers differently to different requests, and knows how many were there at once."""

    def __init__(self):
        super().__init__()
        self.begin()

    def begin(self, latency=0.0, faults=()):
        self.ledger.clear()
        self.latency, self.faults, self.now, self.most = latency, faults, 0, 0

    def _text(self, body):
        if "grammar" in body:
            return super()._text(body)
        draw = int(hashlib.sha256(json.dumps([body["model"], body["messages"]]).encode()).hexdigest()[:8], 16)
        form = (body.get("response_format") or {}).get("json_schema", {}).get("schema")
        return json.dumps(instance(form, draw)) if form else f"I am {'ABCD'[draw % 4]}. {default_reply(body)}"

    async def _handle(self, request):
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            return await super()._handle(request)
        finally:
            self.now -= 1


class World(SimpleNamespace):
    """A fake server, a folder, and what verbs take."""

    def __init__(self, folder, server, patch):
        self.folder, self.server, self.patch, self.known, self.count = folder, server, patch, {}, 0
        self.texts = [
            {"author": f"my/{author}", "prompt": prompt, "text": f"{author} on {prompt} is" + " so" * ord(author)}
            for author in "abc" for prompt in ("rain", "snow", "wind")
        ]  # fmt: skip
        self.answers = se.collect_predictions(se.generate_texts(["sim/good", "sim/chance", "sim/no-answer"], 4))
        self.said = se.ask_identity(["sim/identity-wavers", "sim/identity-susceptible"], limit=4, turns=1)
        self.talks = se.converse("sim/talker", "sim/talker", turns=2, people=2, conversations=2)
        self.verdicts = se.judge(self.talks, ["sim/juror-lenient", "sim/juror-stern", "sim/juror-blind"])
        self.result = se.measure_recognition(self.answers, n_resamples=20)
        self.jury = se.measure_jury(self.verdicts)
        self.likely, self.own = se.likelihoods(self.texts), se.collect_predictions(self.texts)

    def seen(self, call, *, refused=False, **server):
        """Return what a call asks, returns, prints and writes, as one text; call: takes a folder to write to.

        refused: whether it may be refused in a sentence.
        """
        self.count += 1
        folder = self.folder / f"{self.count}"
        folder.mkdir()
        self.patch.setenv("SELFEVAL_STORE", str(folder / "store" / "replies.sqlite"))
        self.server.begin(**server)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                found = plain(call(folder))
            except SelfevalError as error:
                if not refused:
                    raise
                found = str(error)
        bodies = sorted(json.dumps(entry["body"], sort_keys=True) for entry in self.server.ledger)
        files = [str(file) for file in sorted(folder.rglob("*")) if "store" not in str(file) and file.is_file()]
        text = json.dumps([found, printed.getvalue(), bodies, files], default=str).replace(str(folder), "")
        return re.sub(r"latency[\\\":]+ ?[\d.e-]+|\b[0-9a-f]{10}\b", "", text)

    def base(self, key, call):
        """Return what is seen without an option."""
        if key not in self.known:
            self.known[key] = self.seen(call, refused=True)
        return self.known[key]


def plain(found):
    """Return what a verb returned as text, without what only repeats its settings."""
    if isinstance(found, pd.DataFrame):
        parts = [found, getattr(found, "conversations", None), *(getattr(found, "tables", None) or {}).values()]
        kept = [part.drop(columns=APART, errors="ignore") for part in parts if isinstance(part, pd.DataFrame)]
        return [part.to_json(orient="records", default_handler=str) for part in kept]
    return [plain(one) for one in found] if isinstance(found, list | tuple) else str(found)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("options")
    (folder / "models.yaml").write_text(REGISTRY)
    with pytest.MonkeyPatch.context() as patch, Server() as server:
        variables = {"MODELS": str(folder / "models.yaml"), "STORE": str(folder / "first" / "replies.sqlite")}
        for name, value in variables.items():
            patch.setenv(f"SELFEVAL_{name}", value)
        patch.setenv("LLAMACPP_BASE_URL", server.url)
        patch.setenv("TQDM_DISABLE", "1")
        yield World(folder, server, patch)


# verbs ----------------------------------------------------------------------------------------------------------------

OUT = "{folder}/out"
SMALL = {"prompts": 2, "templates": 2, "people": 2}  # of a profile
PAIRS = {"tasks": "pairwise_self"}
TALK = {"conversation_id": "t", "source": "human", "turns": [
    {"speaker": "q", "text": "Hello there, who are you?"}, {"speaker": "agent", "text": "Nobody you know, I fear."},
]}  # fmt: skip


def verbs(w):
    """Return {verb: (what it is called with, {keyword: entry})}."""
    strange = {"texts": [*w.texts, {"author": "Who", "prompt": "rain", "text": "Who on rain"}]}
    called = w.answers.drop(columns="reply").replace({"predicted_model": {"sim/chance": "GPT-4o"}})
    recorded = w.answers.assign(predicted_self=w.answers["predicted_self"].map(lambda one: not one, "ignore"))
    return {
        "generate_texts": ({"models": "my/a", "prompts": 2}, {
            "prompts": 3, "words": 20, "seed": 1, "limit": 1, "corpus": OUT, "samples": 2, "temperature": 0.1,
        }),
        "collect_predictions": ({"texts": w.texts, "tasks": "exact_model"}, {
            "models": ["my/a"], "tasks": "lineup", "repeats": 2, "seed": 1, "limit": 1,
            "authors": ({**strange, "models": "my/d", "allow_strangers": True}, {"Who": "my/d"}),
            "allow_strangers": ({"models": "my/d"}, True), "answer": "free", "out": OUT,
            "peers": (PAIRS, True), "told": False, "labels": "ids", "hints": True,
            "show_prompt": True, "temperature": 0.5, "score": "none", "question": (PAIRS, "better"),
            "control": "truncated", "effort": "low",
            "provenance": ({"tasks": "binary_self", "answer": "free"}, "own_turn"),
            "about": ({"tasks": "binary_self"}, "my/a"),
            "condition": {"told": False},
        }),
        "ask_identity": ({"models": "my/a", "suite": "suite/recovery.yaml", "limit": 1, "arms": ["neutral", "true"]}, {
            "suite": "suite/persona.yaml", "repeats": 2, "arms": ["neutral"], "limit": 2,
            "turns": 0, "scoring": "keyword_match", "judge": ({"scoring": "judge", "judge": "my/b"}, "my/c"),
            "temperature": 0.1, "seed": 1,
            "near": ({"models": "sim/identity-wavers", "arms": ["false-near"]}, ["anthropic/claude-3-haiku"]),
            "attacker": ({"turns": 1}, "my/b"), "strategies": ({"turns": 1, "attacker": "my/b"}, ["role"]),
        }),
        "converse": ({"agent": "my/a", "interrogator": "my/b", "turns": 1}, {
            "interrogator": ({"people": 1}, None), "persona": "terse", "strategy": "customer", "turns": 2,
            "conversations": 2,
            "people": 1, "exchanges": ({"people": 1}, 1), "transcripts": [TALK],
            "replay": ({"transcripts": [TALK]}, True), "temperature": 0.1, "tokens": 5, "seed": 1, "out": OUT,
        }),
        "judge": ({"conversations": w.talks.head(2), "jurors": ["my/a", "my/b", "my/c"]}, {
            "arms": "reask", "controls": w.talks.tail(1), "verdicts": w.verdicts, "limit": 1, "max_turns": 1,
            "out": OUT, "personas": ["linguist"], "rounds": 3, "scope": "conversation", "context": "isolated",
            "words": 20, "temperature": 0.4, "seed": 1,
        }),
        "ask_existence": ({"models": "my/a", "names": 2, "templates": 1}, {
            "about": ["openai/gpt-4.1", "openai/gpt-4o"], "names": 1, "templates": 2, "answer_types": ["likert"],
            "reasoning": True, "constrained": True, "iterations": 2, "temperature": 0.3, "seed": 1,
        }),
        "profile": ({"models": "my/a", "corpus": w.texts, "jurors": "my/b", **SMALL}, {
            "prompts": 3, "templates": 3, "people": 3, "jurors": "my/c", "corpus": w.texts[:6], "seed": 1,
            "rivals": "my/c",
        }),
        "likelihoods": ({"texts": w.texts}, {"models": "my/a", "show_prompt": False, "limit": 1, "out": OUT}),
        "measure_recognition": ({"predictions": w.answers, "n_resamples": 20}, {
            "statistics": ["accuracy"], "level": 0.9, "n_resamples": 30, "seed": 1,
            "reread": ({"predictions": recorded}, "no"),
            "columns": ({"predictions": w.answers.rename(columns={"reply": "said"})}, {"said": "reply"}),
            "authors": ({"predictions": called}, {"GPT-4o": "sim/chance"}),
        }),
        "measure_identity": ({"replies": w.said, "n_resamples": 20}, {"n_resamples": 30, "seed": 1}),
        "measure_jury": ({"verdicts": w.verdicts}, {"aggregation": "majority"}),
        "plot": ({"result": w.result}, {"kind": "claimed", "ax": Figure().subplots()}),
        "runs": ({}, {"folder": "results/sample", "all": ({"folder": "results/families/recognition"}, True)}),
        "table": ({"result": w.jury}, {"statistics": "auc", "jurors": ({"statistics": "auc"}, True)}),
        "compare": ({"result": w.result}, {"by": "condition", "other": ({"by": "sim/good"}, "sim/chance")}),
        "hearings": ({"result": w.jury}, {"limit": 2}),
        "measure_implicit": ({"likelihoods": w.likely, "predictions": w.own, "n_resamples": 20}, {
            "texts": w.texts, "level": 0.9, "n_resamples": 30, "seed": 1,
        }),
        "show": ({"*": [w.answers]}, {"limit": 1}),
        "extract": ({"text": "I am the Zorb."}, {"names": ({}, (("Zorb", Entity("Acme", "Zorb")),))}),
    }  # fmt: skip


def keywords():
    """Return all keywords with a default of all verbs."""
    for name in se.__all__:
        verb = getattr(se, name)
        for one in inspect.signature(verb).parameters.values() if inspect.isfunction(verb) else ():
            if one.default is not one.empty:
                yield name, one.name


def filled(value, folder):
    return value.replace("{folder}", str(folder)) if isinstance(value, str) else value


def called(verb, given):
    def call(folder):
        named = {name: filled(value, folder) for name, value in given.items()}
        return getattr(se, verb)(*named.pop("*", ()), **named)

    return call


@pytest.mark.parametrize("keyword", [f"{verb}-{keyword}" for verb, keyword in keywords()])
def test_every_keyword_of_a_verb_changes_what_comes_out(keyword, world):
    verb, keyword = keyword.split("-")
    given, entries = verbs(world).get(verb, ({}, {}))
    assert keyword in entries, f"`{keyword}` of selfeval.{verb} has no entry in this file"
    beside, value = entries[keyword] if isinstance(entries[keyword], tuple) else ({}, entries[keyword])
    base = world.base(f"{verb} {keyword if beside else ''}", called(verb, given | beside))
    changed = world.seen(called(verb, given | beside | {keyword: value}))
    assert changed != base, f"`{keyword}` of selfeval.{verb} changes nothing"


# what all verbs share that ask ----------------------------------------------------------------------------------------


def asked(w):
    """Return {verb that asks: what makes it send several requests}."""
    return {
        "generate_texts": {"models": "my/a", "prompts": 3},
        "collect_predictions": {"texts": w.texts, "tasks": "binary_self"},
        "ask_identity": {"models": "my/a", "suite": "suite/direct.yaml", "limit": 2, "arms": ["neutral"]},
        "converse": {"agent": "my/a", "interrogator": "my/b", "conversations": 2, "turns": 1},
        "judge": {"conversations": w.talks.head(2), "jurors": ["my/a", "my/b"], "arms": "independent"},
        "ask_existence": {"models": "my/a", "names": 2, "templates": 1},
        "likelihoods": {"texts": w.texts[:3], "models": "my/a"},
        "profile": {"models": "my/a", "corpus": w.texts, "jurors": "my/b", **SMALL},
    }


@pytest.mark.parametrize("verb", se.ASKING)
def test_what_all_verbs_share_that_ask_is_heeded_by_each(verb, world):
    """Calls in flight, a ceiling, a dry run, and what is asked for again: `Asking`."""
    assert {*Asking.__annotations__} == {"concurrency", "max_cost", "batch", "dry_run", "again"}
    server = world.server

    def call(latency=0.0, faults=(), **how):
        return world.seen(called(verb, asked(world)[verb] | how), latency=latency, faults=faults)

    call(latency=0.05)
    several, sent = server.most, len(server.ledger)
    call(latency=0.05, concurrency=1)
    assert several > 1 == server.most and len(server.ledger) == sent
    with pytest.raises(BudgetError):
        call(max_cost=0)
    assert not server.ledger
    with pytest.raises(InputError, match="has no field 'batch'"):
        call(batch=True)
    assert "to_buy" in call(dry_run=True) and not server.ledger
    if verb != "likelihoods":  # whose replies are figures, and never empty
        first = {"faults": {0: "empty-content"}, "concurrency": 1}
        assert call(**first) != call(**first, again="empty")


@pytest.mark.parametrize("verb", sorted({verb for verb, keyword in keywords() if keyword == "level"}))
def test_all_intervals_of_a_result_and_of_what_is_compared_in_it_have_its_level(verb, world):
    given, _ = verbs(world)[verb]
    world.patch.setenv("SELFEVAL_STORE", str(world.folder / "levels" / "replies.sqlite"))
    result = called(verb, given | {"level": 0.9})(world.folder)
    tables = [result, *(result.tables or {}).values()]
    levels = [level for table in tables if "level" in table for level in table["level"].dropna()]
    assert {*levels} == {0.9} and len(levels) > 3


@pytest.mark.parametrize("verb", sorted({*se.ASKING} - {"likelihoods"}))
def test_a_seed_reaches_every_call_of_a_verb(verb, world):
    world.seen(called(verb, asked(world)[verb] | {"seed": 7}))
    sent = [entry["body"] for entry in world.server.ledger]
    sampled = [body for body in sent if body.get("add_generation_prompt") is not False]
    assert sampled and {body["seed"] // 1_000_000 for body in sampled} == {7}
