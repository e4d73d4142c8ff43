"""Strangers: servers that lead elsewhere, other users of this host, files of others, and what is too large."""

import contextlib
import gzip
import io
import itertools
import json
import lzma
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import zipfile

import pytest
from aiohttp import web
from conftest import KEY
from fake_server import FakeServer, completion
from sweep_files import check, make_notebook, write
from test_client import ask, questions
from written_files import run_command

from selfeval import DATA, ROOT, bounds, sweep
from selfeval.errors import InputError, ProviderError, StoreError
from selfeval.paths import write_whole
from selfeval.providers import embedded
from selfeval.providers.addresses import is_here
from selfeval.providers.models import get
from selfeval.providers.store import Store
from selfeval.records.texts import read_texts

# where keys and prompts go ------------------------------------------------------------------------


class Redirecting(FakeServer):
    """Sends every request on to an address: `reply` is (status, address)."""

    async def _handle(self, request):
        self.ledger.append(await request.text())
        status, address = self.reply
        return web.Response(status=status, headers={"Location": address})


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_an_api_that_redirects_is_a_failure_that_names_the_new_address(status, store, registry):
    with FakeServer() as other, Redirecting((status, f"{other.url}/chat/completions")) as first:
        registry(f"providers: {{mine: {{base_url: '{first.url}'}}}}")
        [reply], _ = ask(store, questions(get("mine:m"), 1))
    assert reply.status == "error" and other.url in reply.error
    assert len(first.ledger) == 1 and other.ledger == []


@pytest.mark.parametrize("name", ["http_proxy", "all_proxy"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_no_proxy_stands_before_a_server_of_this_machine(host, name, store, registry, monkeypatch):
    with FakeServer() as proxy, FakeServer() as own:
        monkeypatch.setenv(name, proxy.url.removesuffix("/v1"))
        monkeypatch.setenv("MY_KEY", KEY)
        address = own.url.replace("127.0.0.1", host)
        registry(f"providers: {{mine: {{base_url: '{address}', keys: [MY_KEY]}}}}")
        [reply], _ = ask(store, questions(get("mine:m"), 1))
    assert reply.status == "ok" and len(own.ledger) == 1 and proxy.ledger == []


@pytest.mark.parametrize(("host", "is_own"), [
    ("localhost", True), ("LOCALHOST.", True), ("ollama.localhost", True), ("127.9.9.9", True), ("[::1]", True),
    ("0.0.0.0", True), ("notlocalhost", False), ("localhost.example.org", False), ("gpu01", False), ("10.0.0.7", False),
    ("[::ffff:127.0.0.1]", True), ("[::ffff:10.0.0.7]", False),
])  # fmt: skip
def test_names_below_localhost_and_all_loopback_numbers_are_this_machine(host, is_own):
    assert is_here(f"http://{host}:11434/v1") is is_own


FAR = [
    "http://models.example.org/v1",
    "http://8.8.8.8/v1",
    "http://[2606:4700::1111]:8000/v1",
    "http://[2002:808:808::1]/v1",
]
NEAR = [
    "http://127.1.2.3:8000/v1", "http://gpu01:8000/v1", "http://10.0.0.7/v1", "http://100.64.1.2/v1",
    "https://models.example.org/v1", "http://[fd00::7]/v1", "http://[::ffff:10.0.0.7]/v1",
]  # fmt: skip


def needed(address, registry, more=""):
    """Return what a call to an address with a key still needs."""
    registry(f"providers: {{mine: {{base_url: '{address}', keys: [MY_KEY]{more}}}}}")
    try:
        embedded.require(get("mine:m"))
    except ProviderError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("address", FAR)
def test_a_key_goes_to_a_far_host_by_plain_http_only_where_the_entry_says_so(address, registry, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    sentence = needed(address, registry)
    assert f"to {address} as plain text" in sentence and "`plain_http: true`" in sentence
    assert KEY not in sentence
    assert needed(address, registry, ", plain_http: true") == ""


def test_a_password_in_an_address_is_a_key_too(registry):
    registry("providers: {mine: {base_url: 'http://me:hunter22@models.example.org/v1'}}")
    with pytest.raises(ProviderError, match=r"to http://models\.example\.org/v1 as plain text"):
        embedded.require(get("mine:m"))


@pytest.mark.parametrize(("name", "is_sent"), [("token@", True), ("me:hunter22@", True), ("", False)])
def test_a_port_in_an_address_is_no_password_and_a_bare_token_is_one(name, is_sent, registry):
    registry(f"providers: {{mine: {{base_url: 'http://{name}models.example.org:8000/v1/@mine'}}}}")
    with pytest.raises(ProviderError, match="as plain text") if is_sent else contextlib.nullcontext():
        embedded.require(get("mine:m"))


@pytest.mark.parametrize("address", NEAR)
def test_a_server_of_ones_own_network_takes_a_key_by_plain_http(address, registry, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    assert needed(address, registry) == ""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder to import an installed package from, as a wheel leaves it."""
    folder = tmp_path_factory.mktemp("site")
    no_bytecode = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "selfeval", folder / "selfeval", ignore=no_bytecode)
    (folder / "selfeval" / "data").symlink_to(DATA)
    return folder


LED = """from selfeval import models
openai = models.providers()["openai"]
print(openai.url, openai.read_key(), models.registry_files()[1:])"""


def test_of_the_env_file_of_a_working_folder_keys_alone_are_taken(installed, tmp_path):
    lines = [f"OPENAI_API_KEY={KEY}", "OPENAI_BASE_URL=http://127.0.0.1:9/v1", "SELFEVAL_MODELS=theirs.yaml"]
    (tmp_path / ".env").write_text("\n".join([*lines, "HTTPS_PROXY=http://127.0.0.1:9", "DEBUG"]))
    names = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "SELFEVAL_MODELS")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    environment["PYTHONPATH"] = str(installed)
    command = [sys.executable, "-c", LED]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    (tmp_path / ".env").unlink()  # nothing that tests write keeps a key
    assert run.stdout.split() == ["https://api.openai.com/v1", KEY, "()"], run.stderr


def test_an_installed_package_writes_to_the_working_folder_and_reads_there_before_its_own(installed, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "prompts.jsonl").touch()
    code = """from selfeval.records.tables import data_path, path_to_read
print(data_path("identity"), path_to_read("models.yaml"), path_to_read("prompts.jsonl"))"""
    environment = {name: value for name, value in os.environ.items() if name != "SELFEVAL_DATA"}
    environment["PYTHONPATH"] = str(installed)
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    own = tmp_path / "data"
    places = [own / "identity", installed / "selfeval" / "data" / "models.yaml", own / "prompts.jsonl"]
    assert run.stdout.split() == [str(place) for place in places], run.stderr


# what is too large --------------------------------------------------------------------------------


class Large(FakeServer):
    """Answers with the bytes `reply`."""

    packing = "identity"

    async def _handle(self, request):
        self.ledger.append(await request.read())
        return web.Response(
            body=self.reply, content_type="application/json", headers={"Content-Encoding": self.packing}
        )


class Packed(Large):
    """Answers with the bytes `reply` as gzip's."""

    packing = "gzip"


SPACES = b" " * 21_000_000


@pytest.mark.parametrize(("kind", "body"), [
    (Large, SPACES), (Packed, gzip.compress(SPACES)), (Packed, gzip.compress(20 * SPACES, 1)),
])  # fmt: skip
def test_an_answer_of_more_than_20_mb_is_not_read_and_costs_one_attempt(kind, body, store, registry):
    with kind(body) as fake:
        registry(f"providers: {{mine: {{base_url: '{fake.url}'}}}}")
        [reply], _ = ask(store, questions(get("mine:m"), 1))
    assert "the answer has more than 20 MB, the most that is read" in reply.error
    assert len(fake.ledger) == 1


def test_a_packed_answer_is_read(store, registry):
    body = gzip.compress(json.dumps(completion({"model": "m", "messages": []}, "4")).encode())
    with Packed(body) as fake:
        registry(f"providers: {{mine: {{base_url: '{fake.url}'}}}}")
        [reply], _ = ask(store, questions(get("mine:m"), 1))
    assert reply.text == "4"


@pytest.mark.parametrize("name", ["texts.jsonl", "texts.csv"])
def test_a_line_of_more_than_50_mb_is_refused(name, tmp_path):
    (tmp_path / name).write_bytes(b"{" + b"a" * 51_000_000)
    with pytest.raises(InputError, match="has a line of more than 50 MB, the longest that is read"):
        read_texts(tmp_path / name)


def test_a_recorded_reply_of_more_than_50_mb_is_refused(store, tmp_path):
    (tmp_path / "theirs.jsonl").write_bytes(b"a" * 51_000_000)
    with pytest.raises(InputError, match="has a line of more than 50 MB"):
        store.import_file(tmp_path / "theirs.jsonl")


def zipped(content):
    """Return a zip archive of one part, as .xlsx and .eval are."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", content)
    return file.getvalue()


PACKERS = {"a.jsonl.gz": gzip.compress, "a.csv.gz": gzip.compress, "a.jsonl.xz": lzma.compress, "a.xlsx": zipped}


@pytest.mark.parametrize("name", PACKERS)
def test_a_packed_file_that_unpacks_to_too_much_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.setattr(bounds, "UNPACKED", 1_000_000)
    (tmp_path / name).write_bytes(PACKERS[name](b'{"a": 1}\n' * 300_000))
    with pytest.raises(InputError, match="unpacks to more than 1 MB, the most for its size"):
        read_texts(tmp_path / name)


@pytest.mark.parametrize(("size", "most"), [(10, 100_000_000), (500_000, 100_000_000), (1_000_000, 200_000_000)])
def test_what_a_file_may_unpack_to_grows_with_its_size_from_what_any_may(size, most, tmp_path):
    (tmp_path / "a.jsonl.xz").write_bytes(b"x" * size)
    assert bounds.most_unpacked(tmp_path / "a.jsonl.xz") == most


def test_recorded_replies_that_unpack_to_too_much_are_refused(store, tmp_path, monkeypatch):
    monkeypatch.setattr(bounds, "UNPACKED", 1_000_000)
    (tmp_path / "a.jsonl.xz").write_bytes(lzma.compress(b" " * 3_000_000))
    with pytest.raises(InputError, match="unpacks to more than 1 MB"):
        store.import_file(tmp_path / "a.jsonl.xz")


BOMB = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
BOMB += [f"{new}: &{new} [{', '.join(f'*{old}' for _ in range(10))}]" for old, new in itertools.pairwise("abcdefghi")]
TOO_MANY = r"more than 100,000 values, with its aliases \(\*name\) written out"


def test_yaml_whose_aliases_make_too_many_values_is_refused(registry, tmp_path):
    registry("\n".join(BOMB))
    with pytest.raises(InputError, match=TOO_MANY):
        get("openai:m")
    registry("models: []")
    assert re.search(TOO_MANY, check(tmp_path, "\n".join([*BOMB, "name: x", "stages: [*i]"])))
    assert re.search(TOO_MANY, check(tmp_path, "a: &a [*a]"))


def test_aliases_that_are_few_values_are_read(tmp_path):
    make_notebook(tmp_path / "one.ipynb", "1")
    (tmp_path / "sweep.yaml").write_text(
        "name: x\nvariables: {a: &a [1, 2]}\nstages: [{notebook: one, grid: {limit: *a, seed: *a}}]"
    )
    assert len(sweep.load(tmp_path / "sweep.yaml", tmp_path / "out").runs) == 4


def test_a_grid_of_too_many_runs_is_refused_before_they_are_listed(tmp_path):
    make_notebook(tmp_path / "one.ipynb", "1")
    hundred = [*range(100)]
    grid = {"limit": hundred, "temperature": hundred, "seed": hundred, "name": hundred}
    stage = json.dumps({"notebook": "one", "grid": grid})
    sentence = check(tmp_path, f"name: x\nstages: [{stage}]")
    assert "makes 100,000,000 runs, more than 10,000" in sentence


# other users of this host -------------------------------------------------------------------------


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def usual_mask():
    """The mask that most hosts have, by which new files can be read by everybody."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_stores_logs_and_reports_are_this_users_alone(tmp_path, usual_mask, monkeypatch):
    store, runs, report = (tmp_path / name for name in ("replies/store.sqlite", "runs", "report"))
    monkeypatch.setenv("SELFEVAL_STORE", str(store))
    make_notebook(tmp_path / "one.ipynb", STORING)
    assert sweep.run_file(write(tmp_path, {"notebook": "one"}), out=runs) == 0
    run_command("report", runs, "--out", report)
    assert {mode(folder) for folder in (store.parent, runs, report)} == {0o700}
    [log] = runs.rglob("log.txt")
    assert {mode(file) for file in (store, log)} == {0o600}


STORING = """from selfeval.providers.store import Store
store = Store()
list(store.rows())
store.close()"""


# files of others ----------------------------------------------------------------------------------

MOVED = {
    "{openai: {base_url: 'http://127.0.0.1:9/v1', hosted: true}}": [
        "asks `openai` at http://127.0.0.1:9/v1 and not at https://api.openai.com/v1"
    ],
    "{cheap: {base_url: 'https://cheap.example.org/v1', keys: [GEMINI_API_KEY]}}": [
        "sends the key of GEMINI_API_KEY to https://cheap.example.org/v1"
    ],
    "{cheap: {base_url: 'https://cheap.example.org/v1', keys: [CHEAP_KEY]}}": [],
    "{openai: {base_url: 'https://api.openai.com/v1', keys: [OPENAI_API_KEY], hosted: true}}": [],
}


@pytest.mark.parametrize("providers", MOVED)
def test_a_registry_that_leads_a_key_or_a_provider_elsewhere_is_said_once(providers, registry, capsys):
    path = registry(f"providers: {providers}")
    get("openai:m")
    get("openai:n")
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        f"The registry {path} {what}; use it only if that is meant (docs/strangers.md)." for what in MOVED[providers]
    ]


STATEMENTS = {
    "trigger": "CREATE TRIGGER theirs AFTER INSERT ON replies BEGIN DELETE FROM replies; END",
    "view": "CREATE VIEW theirs AS SELECT * FROM replies",
}


@pytest.mark.parametrize("kind", STATEMENTS)
def test_a_store_that_would_run_something_is_refused(kind, tmp_path):
    theirs = Store(tmp_path / "theirs.sqlite")
    assert list(theirs.rows()) == []
    theirs.close()
    with contextlib.closing(sqlite3.connect(theirs.path)) as file:
        file.execute(STATEMENTS[kind])
    with pytest.raises(StoreError, match=f"it has the {kind} 'theirs', and no store has one"):
        list(theirs.rows())


def test_a_view_in_the_place_of_the_replies_is_refused(tmp_path):
    path = tmp_path / "theirs.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.execute("CREATE VIEW replies AS SELECT 1 AS key, 2 AS request, 3 AS response, 4 AS created")
    with pytest.raises(StoreError, match="it has the view 'replies'"):
        list(Store(path).rows())


def test_what_is_written_goes_through_no_link_that_somebody_put_there(tmp_path):
    victim = tmp_path / "victim.txt"
    victim.write_text("evaluator,author\nprecious")
    (tmp_path / f"out.csv.{os.getpid()}.part").symlink_to(victim)
    (tmp_path / "out.csv").symlink_to(victim)
    write_whole(tmp_path / "out.csv", "evaluator,author\n1,2\n")
    assert victim.read_text() == "evaluator,author\nprecious"
    assert (tmp_path / "out.csv").read_text() == "evaluator,author\n1,2\n" and not (tmp_path / "out.csv").is_symlink()
