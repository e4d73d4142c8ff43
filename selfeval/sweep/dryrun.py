"""`--dry-run`: what a sweep would execute, and what its calls would take, without a call and without a file in data/.

Notebooks that ask models are executed as planning (see `selfeval.asking.dryrun`) on a shadow of data/ in a temporary
folder, where `SELFEVAL_DATA` leads: stored replies are read, stand-ins take the place of the others, so that the calls
of later stages are counted on texts that do not exist yet. Every request counts once, as it is bought once.
"""

import re
import shutil
import tempfile
from pathlib import Path

import pandas as pd

from selfeval import models
from selfeval.asking.dryrun import prices
from selfeval.asking.store import place
from selfeval.paths import DATA, ROOT
from selfeval.sweep.execute import work
from selfeval.sweep.runs import code_cells

ASKS = re.compile(
    r"\b(Client|EvalRunner|await|asyncio)\b|\b(generate_texts|collect_predictions|ask_\w+|converse|judge|likelihoods)\("
)
LARGEST_COPY = 1_000_000  # bytes of a file; larger ones are linked, and replaced as a whole where they are written
APART = ("runs", "store", "report")  # of data/


def count(sweep, read, local, chosen, confirm=None) -> int:
    """Print what would be done and what it would take; return 0, or 1 where that cannot be told for a run.

    read: reads the sweep file anew, for another folder. local: what makes a `Submit`. confirm: called with the number
    of replies to buy, where there are any and all is told.
    """
    for run in sweep.runs:
        run.status = "to do" if sweep.is_to_do(run, chosen) else run.status
        print(f"{run.status:11}  {run.name}{f'  ({run.cause})' if run.cause else ''}")
    with tempfile.TemporaryDirectory(prefix="selfeval-plan-") as name:
        base = Path(name).resolve()
        planned, variables = shadow(sweep, read, base)
        with local(variables=variables) as submit:
            work(planned, submit, {run.name for run in planned.runs}, tell=lambda *_, **__: None)
        rows = prices(base)
    to_do = sum(run.status == "to do" for run in sweep.runs)
    print(f"\n{to_do} of {len(sweep.runs)} runs are to do; ", end="")
    to_buy, broken = print_calls(rows), [run for run in planned.runs if run.status != "ok"]
    for run in broken:
        print(f"at least: {run.name} could not be looked through to its end: {run.cause}")
    if confirm and to_buy and not broken:
        confirm(to_buy)
    return int(bool(broken))


def shadow(sweep, read, base):
    """Return the runs to look through, on a shadow of data/ in a folder, and the variables of their kernels."""
    wanted = to_plan(sweep)
    (base / "tmp").mkdir()
    for each in sorted(DATA.iterdir()) if wanted and DATA.is_dir() else ():
        if each.name not in APART:
            _mirror(each, base / "data" / each.name)
    planned = read(_place(sweep.folder, base))
    for stage, real in zip(planned.stages, sweep.stages, strict=True):
        for run, other in zip(stage.runs, real.runs, strict=True):
            if run.name not in wanted:
                _mirror(other.folder, run.folder)  # for what reads it
            run.parameters = {name: _inside(value, base) for name, value in run.parameters.items()}
        stage.runs = [run for run in stage.runs if run.name in wanted]
    variables = dict.fromkeys((key for provider in models.providers().values() for key in provider.keys), "")
    variables |= {"SELFEVAL_PLAN": str(base), "SELFEVAL_DATA": str(base / "data"), "SELFEVAL_MAX_COST": ""}
    return planned, variables | {"TMPDIR": str(base / "tmp"), "SELFEVAL_STORE": str(place(None))}


def to_plan(sweep):
    """Return the names of the runs to look through: those to do that ask models, and those to do that these read."""
    wanted = set()
    for run in reversed(sweep.runs):
        asks = any(map(ASKS.search, code_cells(run.notebook)))
        if run.status == "to do" and (run.stage in wanted or asks):
            wanted |= {run.name, *run.needs}
    return wanted


def _inside(value, base):
    """Return a parameter with every whole path of a file or folder led below `base`, where it is seen as it is."""
    if isinstance(value, list):
        return [_inside(each, base) for each in value]
    path = Path(value).expanduser() if isinstance(value, str) and value[:1] in ("/", "~") else Path()
    if len(path.parts) < 3 or path.is_relative_to(base) or any(p.is_relative_to(path) for p in (ROOT, Path.home())):
        return value
    _mirror(path, _place(path, base))
    return str(_place(path, base))


def _place(path, base):
    """Return where a whole path is seen below `base`."""
    inside = path.is_relative_to(DATA)
    return base / "data" / path.relative_to(DATA) if inside else base / "files" / path.relative_to(path.anchor)


def _mirror(path, target):
    """Make a file, or all of a folder, appear at another place; what is written there leaves the original alone."""
    for file in path.rglob("*") if path.is_dir() else [path]:
        there = target / file.relative_to(path)
        if file.is_file() and not there.exists():
            there.parent.mkdir(parents=True, exist_ok=True)
            there.symlink_to(file) if file.stat().st_size > LARGEST_COPY else shutil.copyfile(file, there)


def print_calls(counted) -> int:
    """Print per model what is stored, what would be bought and what that takes; return the number of calls to buy.

    counted: what `selfeval.asking.dryrun.prices` returns.
    """
    frame = pd.DataFrame(counted).rename(columns=lambda name: name.replace("_tokens", ""))
    stored, to_buy = (int(frame[name].sum()) if len(frame) else 0 for name in ("stored", "to_buy"))
    print(f"{stored} replies are stored, {to_buy} to buy")
    if len(frame):
        low, high = (frame[f"usd_{end}"].astype(float).sum() for end in ("low", "high"))
        print(frame.to_string(index=False, na_rep="?", float_format="{:.4f}".format))
        print(
            f"{low:.4f} USD where replies are as long as is typical, {high:.4f} where they are as long as limits allow"
        )
    return to_buy
