"""Strangers: servers that lead elsewhere, other users of this host, files of others, and what is too large."""

import os
import shutil
import subprocess
import sys

import pytest
from aiohttp import web
from conftest import KEY
from fake_server import FakeServer
from test_client import ask, questions

from selfeval import DATA, ROOT
from selfeval.asking import local
from selfeval.errors import ProviderError
from selfeval.models import get

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


FAR = ["http://models.example.org/v1", "http://8.8.8.8/v1", "http://[2606:4700::1111]:8000/v1"]
NEAR = ["http://127.1.2.3:8000/v1", "http://gpu01:8000/v1", "http://10.0.0.7/v1", "https://models.example.org/v1"]


def needed(address, registry, more=""):
    """Return what a call to an address with a key still needs."""
    registry(f"providers: {{mine: {{base_url: '{address}', keys: [MY_KEY]{more}}}}}")
    try:
        local.require(get("mine:m"))
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
        local.require(get("mine:m"))


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
print(openai.url, openai.key, models.registry_files()[1:])"""


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
    assert "OPENAI_BASE_URL, SELFEVAL_MODELS of " in run.stderr and "set it in the environment" in run.stderr
