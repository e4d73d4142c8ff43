"""Keys stay out of every file."""

import json

import pytest
from conftest import KEY, holding
from fake_server import FakeServer
from sweep_files import make_notebook
from test_cli import selfeval

from selfeval.providers import models
from selfeval.secrets import redact, values

SHAPED = {  # by their beginnings; in pieces, so that the repository holds none
    "sk-": "or-v1-" + "0a1b" * 16,
    "pk_": "live_" + "a1B2" * 6,
    "AIza": "Sy" + "D-9t" * 9,
    "hf_": "aBcD" * 8,
    "ghp_": "a1B2" * 9,
    "github_pat_": "11A_" * 20,
    "glpat-": "a1-B" * 5,
    "xoxb-": "1234-" * 4 + "abc",
    "gsk_": "a1B2" * 13,
    "xai-": "a1B2" * 20,
    "nvapi-": "a1_B" * 15,
    "AKIA": "A1B2" * 4,
    "eyJ": ".".join(("0eXAiOiJKV1Q", "ey" + "JzdWIiOiIxMjM0", "a1B2" * 8)),
    "Bearer": " " + "a1B2" * 8,
    "-----BEGIN": " RSA PRIVATE KEY-----",
}
INNOCENT = """sk-container-id-1 {color: black} .sk-estimator-doc-link risk-averse-1234567890-models
task-12345678901234567 the Bearer of good news AIza hf_hub_download xoxo AKIA-like -----BEGIN PUBLIC KEY-----
sk-... sk-your-key-here
task_sk-123 mask-1234567890123456789 whisk-0123456789abcdef012345 Bearer abcdefghijklmnopqrstuvwxyz eyJhbGciOi"""


@pytest.mark.parametrize(("begin", "rest"), SHAPED.items(), ids=SHAPED)
def test_every_shape_is_taken_out(begin, rest):
    assert redact(f"used {begin}{rest}") == "used [key]"


def test_what_only_looks_like_a_key_is_left_alone():
    assert redact(INNOCENT) == INNOCENT


@pytest.mark.parametrize(("key", "shown"), [("abcd123", "abcd123"), ("abcd1234", "[key]"), ("abcd12345", "[key]")])
def test_a_key_of_eight_letters_is_taken_out_and_a_shorter_one_stands_in_every_file(key, shown, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    assert redact(f"sent {key}, refused") == f"sent {shown}, refused"


def test_what_of_the_environment_is_a_key(monkeypatch):
    own = "-".join(("only", "letters"))  # in pieces: this file is searched too
    said = {"OPENAI_API_KEY": own, "MY_TOKEN": " t0ken-value ", "SHORT_KEY": "abc1", "KEY": "notebook"}
    said |= {"PROXY": "http://me:p@ssword@127.0.0.1:1/v1", "MONKEY": "banana-12345"}
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    assert models.providers()["openai"].read_key() == own
    found = {"OPENAI_API_KEY": own, "MY_TOKEN": "t0ken-value", "PROXY (password)": "p@ssword"}
    assert {name: value for name, value in values().items() if name in said or "(" in name} == found
    assert redact(f"{own}, t0ken-value, abc1", shapes=False) == "[key], [key], abc1"
    monkeypatch.setenv("LONGER_TOKEN", "t0ken-value-and-more")
    assert redact("t0ken-value-and-more", shapes=False) == "[key]"


# keeping out ----------------------------------------------------------------------------------------------------------

LEAKS = """
import asyncio, os, subprocess
from selfeval.providers.client import Client
from selfeval.providers.models import get
get_ipython().run_line_magic("xmode", "Verbose")
"""
ASK = """
async def run():
    async with Client(2) as client:
        return await client.chat(get("openai:m"), [{"role": "user", "content": "q"}])
print(await run())
"""
SHOW = "print(dict(os.environ)); os.environ"
FAIL = """
def broken(headers, environment):
    raise ValueError(f"refused {headers}")
broken({"Authorization": "Bearer " + get("openai:m").provider.read_key()}, dict(os.environ))
"""


def test_no_file_of_a_run_holds_the_key_that_the_environment_holds(tmp_path, monkeypatch):
    """A cell prints the environment, another fails with the key in its locals and its message, the server echoes it."""
    make_notebook(tmp_path / "leaky.ipynb", LEAKS, ASK, SHOW, FAIL)
    (tmp_path / "sweep.yaml").write_text(json.dumps({"name": "leaky", "stages": [{"notebook": "leaky"}]}))
    with FakeServer(faults=["401"]) as server:
        environment = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY, "PYTHONFAULTHANDLER": "1"}
        environment |= {"SELFEVAL_STORE": str(tmp_path / "store.sqlite"), "OTHER_SECRET": f"other-{KEY[::-1]}"}
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        result = selfeval("sweep", tmp_path / "sweep.yaml", "--out", tmp_path / "runs")
    (tmp_path / "said.txt").write_text(result.output)
    assert result.exit_code == 1 and "ValueError: refused" in result.output
    [notebook] = (tmp_path / "runs").rglob("notebook.ipynb")
    text = notebook.read_text()
    assert "Incorrect API key provided: [key]" in text and "ValueError" in text and "OTHER_SECRET" in text
    assert server.ledger[0]["headers"]["Authorization"].endswith(KEY)
    assert len([*tmp_path.rglob("*")]) > 6
    assert holding(KEY, tmp_path) == holding(f"other-{KEY[::-1]}", tmp_path) == []
