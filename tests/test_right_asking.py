"""Who is asked, where and when: authors by name, providers of one's own, absent servers, pauses, prices, keys."""

import asyncio
import hashlib
import socket
import time

import openai  # noqa: F401  its import takes half a second, which is no part of a pause
import pandas as pd
import pytest
from conftest import AT_ONCE
from fake_server import ANSWERS, RATE, FakeServer
from sweep_files import make_notebook, write
from test_client import ask, questions
from written_files import run_notebook

from selfeval import sweep
from selfeval.asking.client import Client, gather
from selfeval.asking.messages import user
from selfeval.errors import InputError
from selfeval.keys import redact
from selfeval.models import from_callable, get, get_all, providers
from selfeval.recognition.design import design, match_authors
from selfeval.recognition.questions import Condition
from selfeval.records import read_jsonl, read_texts

# authors --------------------------------------------------------------------------------------------------------------


def texts_of(*authors, prompts=2):
    """Return a text of every author on every prompt; an author is a name, or (name, display name)."""
    pairs = [author if isinstance(author, tuple) else (author, author) for author in authors]
    return [
        {
            "text_id": 10 * prompt + k, "prompt_id": f"p{prompt}", "prompt": f"Write about thing {prompt}.",
            "sample": 0, "author": name, "author_display": display, "text": f"{prompt} of {k}.", "words": 3,
        }
        for prompt in range(prompts)
        for k, (name, display) in enumerate(pairs)
    ]  # fmt: skip


def matched(names, evaluators, **said):
    """Return the authors of the first prompt's texts after they were matched."""
    texts = match_authors(texts_of(*names), get_all(evaluators), **said)
    return [text["author"] for text in texts if text["prompt_id"] == "p0"]


def refused(names, evaluators, **said):
    """Return the sentence that says why these cannot be matched."""
    with pytest.raises(InputError) as caught:
        matched(names, evaluators, **said)
    return str(caught.value)


def test_a_table_with_display_names_counts_an_evaluators_own_texts_as_its_own(tmp_path, registry, monkeypatch):
    """It was told that it is GPT-4.1, said yes to the texts of GPT-4.1, and each yes was a false claim."""
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "store.sqlite"))
    rows = [(author, f"prompt {k}", f"{author} on {k}.") for author in ("GPT-4.1", "Ann") for k in range(3)]
    pd.DataFrame(rows, columns=["author", "prompt", "text"]).to_csv(tmp_path / "texts.csv", index=False)
    asked = {"evaluators": "openai/gpt-4.1", "corpus": str(tmp_path / "texts.csv"), "answer": "free", "score": "none"}
    with FakeServer(reply=lambda body: "YES" if "YES" in said(body) else "GPT-4.1") as server:
        registry(f"providers: {{openrouter: {{base_url: '{server.url}'}}}}")
        run_notebook("02_collect_predictions", **asked, out=str(tmp_path))
        bodies = [entry["body"] for entry in server.ledger]
    assert len(bodies) == 12 and all("You are GPT-4.1." in body["messages"][0]["content"] for body in bodies)
    for task in ("exact_model", "binary_self"):
        records = read_jsonl(tmp_path / f"predictions_{task}.jsonl")
        assert [(r["true_model"], r["predicted_self"], r["is_correct"]) for r in records] == (
            [("openai/gpt-4.1", True, True)] * 3 + [("Ann", True, False)] * 3
        )


def said(body):
    return body["messages"][-1]["content"]


@pytest.mark.parametrize(
    "author, evaluator",
    [
        ("openai/gpt-4.1", "openai/gpt-4.1"),
        ("GPT-4.1", "openai/gpt-4.1"),
        ("gpt 4.1", "openai/gpt-4.1"),
        ("claude-sonnet-4", "anthropic/claude-sonnet-4"),
        ("kimi-k2-instruct", "moonshotai/kimi-k2"),  # another name of the registry
        (("m1", "GPT-4.1"), "openai/gpt-4.1"),
        ("openai/gpt-4.1", "openai:gpt-4.1"),  # the same model of another provider
        ("GPT-4.1", "openai:gpt-4.1"),
    ],
)
def test_an_author_is_the_evaluator_that_is_called_so(author, evaluator):
    assert matched([author, "Ann"], [evaluator]) == [evaluator, "Ann"]


def test_authors_are_said_by_hand_by_name_or_by_display_name():
    authors = [("m1", "Mystery one"), "m2", "human"]
    ids = ["openai/gpt-4.1", "x-ai/grok-4"]
    assert matched(authors, ids, authors={"Mystery one": ids[1], "m2": ids[0]}) == [ids[1], ids[0], "human"]
    assert matched(["GPT-4.1", "b"], ids[:1], authors={"b": ids[0]}) == ["GPT-4.1", ids[0]]
    mine = from_callable(lambda messages, **_: "NO", "mine/f")
    assert matched(["a", "b"], [mine], authors={"b": "mine/f"}) == ["a", "mine/f"]
    assert "`authors` names 'm3', but the authors of the corpus are 'm1', 'm2', 'human'." in refused(
        authors, ids, authors={"m3": ids[0]}
    )
    assert "Unknown model 'gtp'" in refused(authors, ids, authors={"m2": "gtp"})
    assert "must be of the form {'GPT-4.1': 'openai/gpt-4.1'}, got 'm2'" in refused(authors, ids, authors="m2")


def test_a_name_of_two_is_an_error(registry):
    twins = ["openai/gpt-4.1", "openai:gpt-4.1"]
    assert refused(["GPT-4.1", "Ann"], twins) == (
        "The author 'GPT-4.1' of the corpus is called like 'openai/gpt-4.1', 'openai:gpt-4.1'; say in `authors` who is "
        "who."
    )
    assert refused(["GPT-4.1", "gpt-4.1", "Ann"], twins[:1]) == (
        "The authors 'GPT-4.1', 'gpt-4.1' of the corpus are called like 'openai/gpt-4.1'; say in `authors` who is who."
    )
    registry("models: [{id: my/variant, display: GPT-4.1 (terse), names: [GPT-4.1]}]")
    both = ["openai/gpt-4.1", "my/variant"]  # a variant may answer to the name of its base, and is not its base
    assert matched(["openai/gpt-4.1", "my/variant"], both) == both
    assert "'my/variant' wrote no text" in refused(["openai/gpt-4.1", "Ann"], ["my/variant"])


@pytest.mark.parametrize("how", [{}, {"control": "paraphrased", "paraphraser": "openai:m"}, {"tasks": "pairwise_self"}])
def test_an_evaluator_that_wrote_nothing_stops_before_the_first_call(tmp_path, server, monkeypatch, how):
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "store.sqlite"))
    fake = server()
    rows = [(author, f"prompt {k}", f"{author} on {k}.") for author in ("Ann", "GPT-4") for k in range(2)]
    pd.DataFrame(rows, columns=["author", "prompt", "text"]).to_csv(tmp_path / "texts.csv", index=False)
    asked = {"evaluators": ["openai:gpt-4o"], "corpus": str(tmp_path / "texts.csv"), "answer": "free", **how}
    with pytest.raises(InputError) as caught:
        run_notebook("02_collect_predictions", **asked, out=str(tmp_path))
    assert str(caught.value) == (
        "'openai:gpt-4o' wrote no text of the corpus, whose authors are 'Ann', 'GPT-4'; say in `authors` who is who "
        "({author: 'openai:gpt-4o'}), leave it out, or set `allow_strangers` to ask it about others' texts alone."
    )
    assert fake.ledger == []
    if not how:
        run_notebook("02_collect_predictions", **asked, allow_strangers=True, out=str(tmp_path))
        records = read_jsonl(tmp_path / "predictions_binary_self.jsonl")
        assert [record["true_model"] for record in records] == ["Ann", "Ann", "GPT-4", "GPT-4"]


def test_a_stranger_that_is_called_like_an_author_is_not_asked(registry):
    """Also without `match_authors`, and where strangers are allowed."""
    for authors in (["GPT-4.1", "Ann"], ["openai/gpt-4.1", "Ann"], [("m1", "GPT-4.1"), "Ann"]):
        with pytest.raises(InputError, match=r"'openai:gpt-4.1' is called 'GPT-4.1', like an author of the corpus"):
            design([get("openai:gpt-4.1")], texts_of(*authors), Condition())


def test_what_is_asked_about_a_corpus_of_ids_is_what_it_was():
    """The keys of the requests of `02_collect_predictions` as committed, and of people's texts beside models'."""
    local = get_all(["local/smollm2-135m", "local/smollm2-135m-hot", "local/smollm2-135m-captain"])
    texts = match_authors(read_texts("sample"), local, {})
    assert texts == read_texts("sample")
    keys = [question.request().key for question in design(local, texts, Condition(answer="constrained"))]
    assert (
        hashlib.sha256("".join(keys).encode()).hexdigest()
        == "c98355db4c3d6a49026d1f48904dd92ad2fbc983bb038486f06be4ae94ba3c38"
    )
    mixed = texts_of("sim/good", ("human", "human"), "sim/first")
    assert match_authors(mixed, get_all(["sim/good", "sim/first"])) == mixed


def test_a_sweep_says_who_wrote_what(tmp_path):
    by_hand = {"evaluators": ["openai/gpt-4.1"], "authors": {"GPT 4.1 (May)": "openai/gpt-4.1"}}
    path = write(tmp_path, {"notebook": "02_collect_predictions", "parameters": by_hand})
    [run] = sweep.load(path, tmp_path / "out").runs
    assert run.parameters["authors"] == by_hand["authors"]


# endpoints ------------------------------------------------------------------------------------------------------------


def test_a_provider_of_ones_own_holds_for_listed_models_too(store, server, registry, monkeypatch):
    """The key went to the original host, though the user's own file says another."""
    original = server()  # where OPENAI_BASE_URL points to
    with FakeServer() as own:
        registry(f"providers: {{openai: {{base_url: '{own.url}', keys: [OUR_KEY]}}}}")
        monkeypatch.setenv("OUR_KEY", "our-own-key-123")
        for model in ("gpt-4-turbo", "openai:gpt-4-turbo", "openai:other"):  # listed, listed, not listed
            [response], _ = ask(store, questions(get(model), 1, top_p=0.5 + len(model) / 100))
            assert response.status == "ok" and get(model).provider is providers()["openai"]
        assert original.ledger == []
        assert [entry["headers"]["Authorization"] for entry in own.ledger] == ["Bearer our-own-key-123"] * 3
    monkeypatch.delenv("SELFEVAL_MODELS")
    ask(store, questions(get("gpt-4-turbo"), 1))
    assert len(original.ledger) == 1


@pytest.mark.parametrize("own, most", [("", 100), (", concurrency: 7", 7)])
def test_as_many_calls_are_in_flight_as_were_asked_for(store, server, registry, own, most):
    flying = seen = 0

    def reply(body):
        nonlocal flying
        flying -= 1
        return "x"

    def arrived(i, body):
        nonlocal flying, seen
        flying += 1
        seen = max(seen, flying)
        fake.latency = 0.0 if i < 20 else 1.0  # of those that arrive after it

    fake = server(reply=reply, faults=arrived)
    registry(f"providers: {{mine: {{base_url: '{fake.url}'{own}}}}}")
    _, tally = ask(store, questions(get("mine:m"), 30 if own else 150), concurrency=100)
    assert seen == most and tally.failed == 0


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


@pytest.mark.parametrize(
    "name, asks, remedy",
    [
        ("ollama", "Is Ollama running?", "set OLLAMA_BASE_URL to where it is"),
        ("vllm", "Is vLLM running?", "set VLLM_BASE_URL to where it is"),
        ("llamacpp", "Is the llama.cpp server running?", "set LLAMACPP_BASE_URL to where it is"),
        ("mine", "Is `mine` running?", "correct its `base_url` in the registry"),
    ],
)
def test_a_server_of_this_machine_that_is_not_there_is_said_at_once(
    store, registry, monkeypatch, counted, name, asks, remedy
):
    """Each of several models took 8 to 15 s and three calls before."""
    port = free_port()
    registry(f"providers: {{mine: {{base_url: 'http://localhost:{port}/v1'}}}}")
    monkeypatch.setenv(f"{name.upper()}_BASE_URL", f"http://127.0.0.1:{port}/v1/")
    started = time.monotonic()
    responses, tally = ask(store, [*questions(get(f"{name}:m"), 30), *questions(get(f"{name}:n"), 30)])
    seconds = time.monotonic() - started
    counted(refused=round(seconds, 2))
    assert seconds < AT_ONCE and tally.failed == 60
    host = "localhost" if name == "mine" else "127.0.0.1"
    where = f"connection refused: {asks} Nothing answers at http://{host}:{port}/v1; start it, or {remedy}"
    assert {response.error for response in responses} <= {where, f"{where} (after 1 attempt)"}
    assert store.outcomes() == {"fatal": 2}  # one attempt for each model


def test_a_remote_server_that_refuses_is_tried_again(store, registry, monkeypatch):
    port, found = free_port(), socket.getaddrinfo
    here = lambda host, *more, **options: found("127.0.0.1" if host == "far.example" else host, *more, **options)  # noqa: E731
    monkeypatch.setattr(socket, "getaddrinfo", here)
    registry(f"providers: {{mine: {{base_url: 'http://far.example:{port}/v1', deadline: 2}}}}")
    [response], _ = ask(store, questions(get("mine:m"), 1))
    assert response.status == "error" and response.error.startswith("connection failed: ")
    assert store.outcomes()["transient"] >= 2


# pauses ---------------------------------------------------------------------------------------------------------------


def reset_at(at):
    """Return OpenRouter's answer that says in its body when the limit ends, in milliseconds since the epoch."""
    headers = {"X-RateLimit-Limit": "20", "X-RateLimit-Reset": str(round(1000 * at))}
    return 429, {"error": {**RATE["error"], "metadata": {"headers": headers}}}, None


def test_a_pause_that_a_provider_asks_for_is_kept_in_each_of_its_forms(store, registry, monkeypatch):
    """Two seconds, where our own first pause is at most 1.5 s after a rate limit and 0.5 s after another fault."""
    seconds = lambda s: {"Retry-After": str(s)}  # noqa: E731
    overloaded = {"error": {"message": "overloaded"}}
    monkeypatch.setitem(ANSWERS, "503", (503, overloaded, seconds))
    monkeypatch.setitem(ANSWERS, "502", (529, overloaded, seconds))
    monkeypatch.setitem(ANSWERS, "500", (429, RATE, lambda s: {"Retry-After": f"{s}.2"}))
    monkeypatch.setitem(ANSWERS, "400", (*reset_at(time.time() + 3)[:2], None))
    forms = ["429", "429-date", "429-ms", "503", "502", "500", "400"]
    servers = {f"p{k}": FakeServer(faults=[form], retry_after=2) for k, form in enumerate(forms)}
    for fake in servers.values():
        fake.__enter__()
    try:
        own = "\n".join(f"  {name}: {{base_url: '{fake.url}'}}" for name, fake in servers.items())
        registry(f"providers:\n{own}\n")
        monkeypatch.setitem(ANSWERS, "400", reset_at(reset := time.time() + 3))

        async def run():
            async with Client(16, store) as client:
                return await gather(client.chat(get(f"{name}:m"), user("q")) for name in servers)

        responses = asyncio.run(asyncio.wait_for(run(), 60))
    finally:
        for fake in servers.values():
            fake.__exit__()
    assert [(response.status, response.attempts) for response in responses] == [("ok", 2)] * len(forms)
    waited = {}
    for form, fake in zip(forms, servers.values(), strict=True):
        first, second = (entry["time"] for entry in fake.ledger)
        waited[form] = second - first
    assert all(2 - 0.02 <= pause < 2.2 + 1 + AT_ONCE for pause in waited.values()), waited
    assert waited["500"] >= 2.2 - 0.02, "a fraction of a second counts"
    assert servers["p6"].ledger[1]["time"] >= reset - 0.02
    assert store.outcomes() == {"throttled": len(forms)}


# the price before it is paid ------------------------------------------------------------------------------------------

PRICED = """
models:
  - {id: 'openai:a', display: Model A, price: {input: 3.0, output: 50.0}}
  - {id: 'openai:b', display: Model B, price: {input: 50.0, output: 3.0}}
  - {id: 'openai:c', display: Model C}
"""
ASKS = """from selfeval import Client, Request
from selfeval.models import get
from selfeval.asking.messages import choice_format
form = choice_format({"answer": ["YES", "NO"]})
parameters = {"max_tokens": 40, "response_format": form}
texts = [f"{k:04d}" + 296 * "x" for k in [*range(10), 0, 1]]  # two of them twice: bought once
asked = [Request(get(m), [{"role": "user", "content": text}], parameters)
         for m in ("openai:a", "openai:b", "openai:c") for text in texts]
async with Client() as client:
    await client.chat_all(asked, label=None)"""


def test_a_dry_run_counts_calls_tokens_and_dollars(tmp_path, registry, monkeypatch, capsys):
    """10 prompts of 300 letters: 79 to 108 tokens each (a token has 3 to 4 letters); replies of 4 to 40 tokens.

    So A costs 790 * $3 + 40 * $50 to 1,080 * $3 + 400 * $50 a million, B the same the other way round.
    """
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "store" / "store.sqlite"))
    monkeypatch.setenv("OPENAI_API_KEY", "none-is-asked")
    registry(PRICED)
    make_notebook(tmp_path / "asks.ipynb", ASKS, parameters="limit: int = 0\n")
    path = write(tmp_path, {"notebook": "asks"})
    assert sweep.run_file(path, 1, tmp_path / "out", "forked", dry_run=True, max_cost=0.01) == 0
    said = capsys.readouterr().out
    rows = {line.split()[0]: line.split()[1:] for line in said.splitlines() if line.startswith(("openai:", "all "))}
    assert rows == {
        "openai:a": ["0", "10", "790-1,080", "40-400", "0.0044-0.0232"],
        "openai:b": ["0", "10", "790-1,080", "40-400", "0.0396-0.0552"],
        "openai:c": ["0", "10", "790-1,080", "40-400", "?"],
        "all": ["0", "30", "2,370-3,240", "120-1,200", "0.0440-0.0784", "and", "?"],
    }
    assert "0 replies are stored, 30 to buy" in said
    assert "up to $0.0784: the ceiling of $0.01 may stop it before its end" in said
    assert "openai:c has no `price`" in said


# keys -----------------------------------------------------------------------------------------------------------------


def test_a_key_that_was_read_stays_out_of_what_is_said_later(store, registry, monkeypatch):
    """Its variable's name says nothing of a secret, it looks like no known key, and later it is in no variable."""
    key = "-".join(("correct", "horse", "battery", "9"))
    with FakeServer(faults=["401"]) as fake:
        registry(f"providers: {{lab: {{base_url: '{fake.url}', keys: [LAB_LOGIN]}}}}")
        monkeypatch.setenv("LAB_LOGIN", f"{key}\n")
        [response], _ = ask(store, questions(get("lab:m"), 1))
        assert response.error == "HTTP 401: Incorrect API key provided: [key]. (after 1 attempt)"
        assert fake.ledger[0]["headers"]["Authorization"] == f"Bearer {key}"
    monkeypatch.delenv("LAB_LOGIN")
    registry(f"models: [{{id: a/b, display: B, parameters: {key}}}]")
    with pytest.raises(InputError, match=r"models\.a/b\.parameters: .*, got '\[key\]'\.$"):
        get("a/b")
    assert redact(f"refused {key}") == "refused [key]"


def test_a_key_that_is_a_short_word_is_taken_out_of_no_message(registry, monkeypatch):
    registry("providers: {lab: {base_url: 'http://127.0.0.1:1/v1', keys: [LAB_LOGIN]}}")
    monkeypatch.setenv("LAB_LOGIN", "EMPTY")
    assert get("lab:m").provider.key == "EMPTY"
    assert redact("the reply was EMPTY") == "the reply was EMPTY"
