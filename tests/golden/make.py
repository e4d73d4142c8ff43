"""What the golden reference asks and computes, and every import of the package that it needs.

`test_golden.py` holds the package to it. `asked_by(NOTEBOOK, **parameters).frozen()` makes a new design of `keys.json`.
The fixtures were made with version 0.1, once: README.md says how.
"""

import contextlib
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

import nbformat  # noqa: E402
import pandas as pd  # noqa: E402
import pytest  # noqa: E402
from written_files import run_notebook  # noqa: E402

from selfeval import DATA, ROOT, stats  # noqa: E402
from selfeval.providers import models  # noqa: E402
from selfeval.providers.client import Client  # noqa: E402
from selfeval.providers.request import Response, canonical, is_computed, key_of  # noqa: E402  # noqa: E402
from selfeval.providers.store import Store  # noqa: E402
from selfeval.records.foreign import read_predictions  # noqa: E402
from selfeval.records.tables import read_jsonl  # noqa: E402

NOTEBOOKS = ROOT / "notebooks"
DIGITS = 16  # of a key, which has 64: enough to tell a hundred thousand apart
MANY = 2_000  # keys of one design; more are frozen as their number and a digest
UNKNOWN = "[[not recorded]]"  # stands for a reply that nobody committed; what follows from it is not frozen
ASKING = re.compile(
    r"\bawait (?!by_all)|\brunner\.run\(|corpus_file\(|se\.(generate_texts|collect_predictions|ask_|converse|judge)"
)  # what follows the last such cell asks nothing


# requests -------------------------------------------------------------------------------------------------------------


@cache
def recordings() -> dict[str, dict[str, dict]]:
    """Return {file of data/sample: {the key computed from the request: the line}}."""
    files = sorted((DATA / "sample").glob("*.jsonl"))
    return {file.name: {key_of(canonical(row["request"])): row for row in read_jsonl(file)} for file in files}


class Asked:
    """What was asked while a notebook ran. requests: {key: identity}; replies: {key: text} of simulated models."""

    def __init__(self):
        self.requests: dict[str, str] = {}
        self.replies: dict[str, str] = {}

    def frozen(self) -> dict:
        """Return what `keys.json` has of a design."""
        keys, example = sorted(key[:DIGITS] for key in self.requests), min(self.requests)
        if len(keys) <= MANY:
            said = {"count": len(keys), "keys": " ".join(keys)}
        else:
            said = {"count": len(keys), "sha256": digest("\n".join(sorted(self.requests))), "first": keys[:3]}
        said["example"] = {"key": example, "request": json.loads(self.requests[example])}
        if self.replies:
            said["simulated_replies"] = digest(json.dumps(sorted(self.replies.items())))
        return said


def digest(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


@contextlib.contextmanager
def listening() -> Iterator[Asked]:
    """Collect what every client asks. Recorded and simulated replies are served; a request that follows from another
    reply is not collected, since nobody committed that reply."""
    known = {key: row["response"] for rows in recordings().values() for key, row in rows.items()}
    unknown, asked, chat_all = {"text": UNKNOWN, "finish_reason": "stop"}, Asked(), Client.chat_all

    async def listen(client, requests, label="replies"):
        for request in requests:
            if UNKNOWN not in request.identity:
                asked.requests[request.key] = request.identity
        served = [request for request in requests if is_computed(request.model)]
        given = dict(zip(map(id, served), await chat_all(client, served, label), strict=True)) if served else {}
        for request in served:
            if UNKNOWN not in request.identity:
                asked.replies[f"{request.key} {request.seed}"] = given[id(request)].text
        return [given.get(id(request)) or Response.from_dict(known.get(request.key, unknown)) for request in requests]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Client, "chat_all", listen)
        for provider in models.providers().values():  # whoever asks a hosted model looks for a key before: never sent
            _ = [patch.setenv(name, "none") for name in provider.keys[:1]]
        yield asked


def asked_by(notebook: str, **parameters) -> Asked:
    """Return what a notebook asks with these parameters; its cells are run in this process up to the last that asks."""
    with listening() as asked:
        run_notebook(notebook, until=ASKING, **parameters)
    return asked


def filled(value, folder: Path):
    """Return parameters with the paths that {here} and {folder} in them stand for."""
    paths = {"{here}": str(HERE), "{folder}": str(folder)}
    text = json.dumps(value)
    for name, path in paths.items():
        text = text.replace(name, path)
    return json.loads(text)


# notebooks, stores ----------------------------------------------------------------------------------------------------


def parameters(notebook: Path) -> dict:
    """Return {name: default} of a notebook's parameters."""
    cells = nbformat.read(notebook, as_version=4).cells
    [cell] = [cell for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    exec(cell.source, {}, found := {})
    return found


def content_of(path: Path) -> tuple[list[dict], dict[str, int]]:
    """Return a store's replies in key order, with what was rescued beside it, and how many attempts failed, and how."""
    with contextlib.closing(Store(path)) as store:
        for file in path.with_name(f"{path.name}.rescued").glob("*.jsonl"):  # as a sentence says when it is opened
            store.import_file(file)
        rows = [{"key": key, "request": json.loads(request), "response": json.loads(response)}
                for key, request, response in store.rows()]  # fmt: skip
        return rows, store.outcomes()


WRITER = "golden:writer"
AUTHORS = ["sim/good", "sim/no-answer", WRITER]
OURS = {"corpus": "{here}/corpora/ours", "evaluators": AUTHORS, "answer": "free", "limit": 3}
SCORED = OURS | {"evaluators": WRITER, "answer": "constrained"}
PREDICTED = {  # folder: what 02_collect_predictions was asked
    "told": OURS | {"tasks": ["exact_model", "binary_self", "pairwise_self", "lineup"], "score": "none"},
    "scored": SCORED,
}  # fmt: skip


PLAYED = (
    "--yes --words 0 --context --max-tokens 2000 --max-turns 2 --concurrency 1 "
    "--role-play-llm-model sim/talker --interrogator-llm-model golden:writer "
    "--jury-llm-models sim/juror-lenient,sim/juror-silent,sim/juror-stern"
).split()


# results --------------------------------------------------------------------------------------------------------------


def result_tables() -> dict[str, pd.DataFrame]:
    """Return {file: table} of every evaluation, computed from the records of the fixtures."""

    def records(*parts: str) -> pd.DataFrame:
        return pd.DataFrame(read_jsonl(HERE.joinpath(*parts)))

    folder, few = HERE / "predictions", {"n_resamples": 200, "seed": 0}
    told = read_predictions([folder / "told", folder / "untold"])
    others = read_predictions(folder / "scored")
    said, tables = records("identity", "identity.jsonl"), stats.identity_table
    found = {
        "self_recognition": stats.recognition_table(told, **few),
        "self_recognition_others": stats.recognition_table(others, **few),
        "contrasts": stats.condition_contrasts(told),
        "identity": pd.concat([tables(said, **few), tables(said, by=["model", "family"], **few)], ignore_index=True),
        "jury": stats.jury_table(records("roleplay", "verdicts.jsonl")),
        "existence": stats.existence_table(records("existence", "existence.jsonl")),
    }
    return {name: numbered(table) for name, table in found.items()}


def numbered(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with its conditions as `1`, `2`, ... in their order: spelled out they are half of a file."""
    legend = {label: str(number) for number, label in enumerate(dict.fromkeys(table["condition"]), 1)}
    return table.assign(condition=table["condition"].map(legend))
