"""The one place where the golden reference touches the package: after a move, only what is imported here changes.

`make.py` writes the reference by these functions, `test_golden.py` reads it by them.
"""

import ast
import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import matplotlib.figure
import matplotlib.pyplot
import nbformat
import pandas as pd
from click.testing import CliRunner
from written_files import run_notebook

from selfeval import DATA, ROOT, models, stats, sweep
from selfeval.asking.client import Client
from selfeval.asking.recordings import canonical, key_of
from selfeval.asking.request import Response, is_computed
from selfeval.asking.sharing import host_ledger
from selfeval.asking.store import Store
from selfeval.cli import main
from selfeval.figures import results
from selfeval.figures.rows import renamed
from selfeval.identity import EvalRunner
from selfeval.identity.report import lasting
from selfeval.identity.run import rescore
from selfeval.models import display_names
from selfeval.records import read_jsonl, read_predictions, read_texts, write_csv
from selfeval.roleplay.transcripts import read_conversations
from selfeval.stats.jury import jury_table

__all__ = [
    "ROOT",
    "lasting",
    "read_conversations",
    "read_jsonl",
    "read_predictions",
    "read_texts",
    "renamed",
    "run_notebook",
    "write_csv",
]

NOTEBOOKS = ROOT / "notebooks"
DIGITS = 16  # of a key, which has 64: enough to tell a hundred thousand apart
MANY = 2_000  # keys of one design; more are frozen as their number and a digest
UNKNOWN = "[[not recorded]]"  # stands for a reply that nobody committed; what follows from it is not frozen
ASKING = re.compile(r"\bawait (?!by_all)|\brunner\.run\(|corpus_file\(")  # what follows the last such cell asks nothing


# requests -------------------------------------------------------------------------------------------------------------


@cache
def recordings() -> dict[str, dict[str, dict]]:
    """Return {file of data/sample: {the key computed from the request: the line}}."""
    found = {}
    for file in sorted((DATA / "sample").glob("*.jsonl")):
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        found[file.name] = {key_of(canonical(row["request"])): row for row in rows}
    return found


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
    # A key that is never sent: whoever asks a hosted model looks for one before.
    wanted = {provider.keys[0]: "none" for provider in models.providers().values() if provider.keys}
    wanted |= {"TQDM_DISABLE": "1"}
    kept = {name: os.environ.get(name) for name in wanted}

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

    os.environ |= wanted
    Client.chat_all = listen
    try:
        yield asked
    finally:
        Client.chat_all = chat_all
        for name, value in kept.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def asked_by(notebook: str, **parameters) -> Asked:
    """Return what a notebook asks with these parameters; its cells are run in this process up to the last that asks."""
    with listening() as asked:
        run_notebook(notebook, until=ASKING, **parameters)
    return asked


def difference(request: dict, asked: dict[str, str]) -> str:
    """Say how a request that was asked differs from the one that is now most like it."""
    before = canonical(request)
    near = max(asked.values(), key=lambda text: alike(text, before) + alike(text[::-1], before[::-1]))
    start = max(0, alike(near, before) - 60)
    return f"now ...{near[start : start + 160]} and before ...{before[start : start + 160]}"


def alike(a: str, b: str) -> int:
    """Return how many characters two texts begin with alike."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


# notebooks and sweeps -------------------------------------------------------------------------------------------------


def code_cells(notebook: str) -> list:
    """Return a notebook's code cells."""
    cells = nbformat.read(NOTEBOOKS / f"{notebook}.ipynb", as_version=4).cells
    return [cell for cell in cells if cell.cell_type == "code"]


def parameters(notebook: str) -> dict:
    """Return {name: default} of a notebook's parameters."""
    [cell] = [cell for cell in code_cells(notebook) if "parameters" in cell.metadata.get("tags", [])]
    found = {}
    for statement in ast.parse(cell.source).body:
        target = statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0]
        found[target.id] = ast.literal_eval(statement.value)
    return found


def runs(sweep_file: Path) -> list[tuple[str, str, dict]]:
    """Return (stage, notebook, parameters) of every run of a sweep file."""
    stages = sweep.load(sweep_file, "/runs").stages
    return [(stage.name, Path(run.notebook).stem, dict(run.parameters)) for stage in stages for run in stage.runs]


# stores and purses ----------------------------------------------------------------------------------------------------


def rows_of(store: Path) -> list[dict]:
    """Return what a store holds, with what was rescued beside it, in key order: {key, request, response}."""
    opened = Store(store)
    for file in store.with_name(f"{store.name}.rescued").glob("*.jsonl"):
        opened.import_file(file)
    rows = [(key, json.loads(request), json.loads(response)) for key, request, response in opened.rows()]
    opened.close()
    return [dict(zip(("key", "request", "response"), row, strict=True)) for row in rows]


def attempts_of(store: Path) -> dict[str, int]:
    """Return how many attempts of a store brought no reply, by outcome."""
    opened = Store(store)
    found = opened.outcomes()
    opened.close()
    return found


def key_of_request(request: dict) -> str:
    """Return the key of a request as an export has it."""
    return key_of(canonical(request))


def rescue(store: Path, row: dict) -> Path:
    """Put a reply beside a store, as version 0.1 did where it could not be written; return the file."""
    file = store.with_name(f"{store.name}.rescued") / "1.jsonl"
    file.parent.mkdir()
    file.write_text(canonical(row) + "\n", encoding="utf-8")
    return file


def spent(purse: str) -> float:
    """Return the dollars that a purse of this host has spent."""
    opened = host_ledger()
    with opened.read() as ledger:
        row = ledger.execute("SELECT spent FROM purses WHERE name = ?", (purse,)).fetchone()
    opened.close()
    return row[0] if row else 0.0


def command(*arguments) -> str:
    """Run the `selfeval` command in this process; return what it printed."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, f"selfeval {arguments}: {result.output} {result.exception!r}"
    return result.output


# results --------------------------------------------------------------------------------------------------------------

RESAMPLES = {"n_resamples": 200, "seed": 0}


def recognition(predictions: pd.DataFrame) -> pd.DataFrame:
    """Return `self_recognition.csv` of prediction records."""
    return stats.recognition_table(predictions, **RESAMPLES)


def contrasts(predictions: pd.DataFrame) -> pd.DataFrame:
    """Return `contrasts.csv` of prediction records."""
    return stats.condition_contrasts(predictions)


def in_general(predictions: pd.DataFrame) -> pd.DataFrame:
    """Return `models_in_general.csv` of prediction records."""
    return stats.models_in_general(predictions)


def identity(records: pd.DataFrame) -> pd.DataFrame:
    """Return the estimates over all conditions, and by family, of identity records."""
    by_family = stats.identity_table(records, by=["model", "family"], **RESAMPLES)
    return pd.concat([stats.identity_table(records, **RESAMPLES), by_family], ignore_index=True)


def survival(records: pd.DataFrame) -> pd.DataFrame:
    """Return what lasts under pressure, of identity records."""
    return lasting(records, **RESAMPLES)


def rescored(records: list[dict]) -> list[dict]:
    """Return identity records scored anew from their raw replies."""
    return rescore(records)


def published(model: str, repeats: int) -> dict:
    """Return the result object of a model under the published configuration, as the command writes it."""
    return dict(EvalRunner("identity/published.json").run(model, repeats=repeats))


def jury(records: pd.DataFrame) -> pd.DataFrame:
    """Return the estimates of `jury.csv` of verdicts."""
    return jury_table(records, **RESAMPLES)


def existence(records: pd.DataFrame) -> pd.DataFrame:
    """Return `existence.csv` of existence records."""
    return stats.existence_table(records)


def committed_sets(folder: str) -> dict[str, dict[str, pd.DataFrame]]:
    """Return {name of a set: its tables} of a folder below data/."""
    return {one.name: one.tables for one in results.find(folder)}


def recognition_set(folder: Path, predictions: list, corpus: str) -> dict[str, Path]:
    """Make the set of a recognition folder below results/ from its records again; return {table: file}.

    The bootstrap's rows are left out: its 10,000 resamples take a minute, and nbval has them.
    """
    records = read_predictions(predictions)
    table = stats.recognition_table(records, n_resamples=1, seed=0)
    names = display_names([*records["evaluator_model"].unique(), *records["true_model"].unique()])
    tables = {"recognition": table, "counts": stats.confusion(records), "roc": stats.roc_points(records, table)}
    made = results.save(folder, "recognition", records, tables | {"contrasts": contrasts(records)}, {}, {}, names)
    return {file.stem: file for file in made.glob("*.csv")}


@contextlib.contextmanager
def undrawn() -> Iterator[None]:
    """Leave figures undrawn: the reference has none."""

    def savefig(figure, file, **options):
        with contextlib.nullcontext(file) if hasattr(file, "write") else Path(file).open("wb") as out:
            out.write(b"not drawn")

    drawn, matplotlib.figure.Figure.savefig = matplotlib.figure.Figure.savefig, savefig
    try:
        yield
    finally:
        matplotlib.figure.Figure.savefig = drawn
