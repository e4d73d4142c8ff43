"""A dry run of a sweep: what would be executed, and what its calls would take."""

import re
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from selfeval import ASKING
from selfeval.paths import DATA
from selfeval.providers import models
from selfeval.providers.dry_runs import inside, mirror, prices, print_calls
from selfeval.providers.store import place
from selfeval.sweep.execute import choose, work
from selfeval.sweep.file import Sweep
from selfeval.sweep.pooled import pooled_runs
from selfeval.sweep.runs import code_cells

ASKS = re.compile(rf"\b(Client|EvalRunner|({'|'.join(ASKING)})\()")

# Notebooks that ask models are executed as planning (see `selfeval.providers.dry_runs`) on a
# shadow of data/ in a temporary folder, where `SELFEVAL_DATA` leads: stored replies are read,
# stand-ins take the place of the others, so that calls of later stages are counted on texts that
# do not exist yet. Every request counts once, as it is bought once. Notebooks that ask nobody are
# left out: an asking one that needs what they write can be looked through when they have run.


def count(
    sweep: Sweep, here: Callable, *, only=(), max_cost=None, confirm: Callable | None = None
) -> int:
    """Print what would be done and what it would take; return 1 where a run cannot be counted.

    here: `threads`. only: patterns of runs. max_cost: not looked at. confirm: called with the
    number of replies to buy, where there are any and all is told.
    """
    chosen = choose(sweep, only)
    for sentence in pooled_runs(sweep):
        print(sentence)
    for run in sweep.runs:
        if sweep.is_ready(run, chosen):
            run.status = "to do"
        cause = f"  ({run.cause})" if run.cause else ""
        print(f"{run.status:11}  {run.name}{cause}")
    with tempfile.TemporaryDirectory(prefix="selfeval-plan-") as name:
        base = Path(name).resolve()
        planned, variables = shadow(sweep, base)
        with here(variables=variables) as submit:
            work(planned, submit, chosen, tell=lambda *_, **__: None)
        rows = prices(base)
    to_do = [run for run in sweep.runs if run.status == "to do"]
    print(f"\n{len(to_do)} of {len(sweep.runs)} runs to do; ", end="")
    to_buy = print_calls(rows)
    broken = [run for run in planned.runs if run.status != "ok"]
    for run in broken:
        print(f"at least: {run.name} could not be counted to its end: {run.cause}")
    if confirm and to_buy and not broken:
        confirm(to_buy)
    return int(bool(broken))


def shadow(sweep: Sweep, base: Path) -> tuple[Sweep, dict[str, str]]:
    """Return the runs to look through, on a shadow of data/, and the variables of their kernels."""
    root = base / "root"  # every file stands below it as it does below /
    planned = Sweep(root)
    for path in DATA.glob("*"):
        if path.name not in ("runs", "store", "report"):
            mirror(path, root)
    for run in sweep.runs:
        asks = any(map(ASKS.search, code_cells(run.notebook)))
        if run.status == "to do" and asks:
            folder = Path(f"{root}{run.folder}")
            parameters = {name: inside(value, root) for name, value in run.parameters.items()}
            # without a key it is never done
            of_shadow = replace(run, folder=folder, parameters=parameters, key="", status="waiting")
            planned.runs.append(of_shadow)
    variables = {
        "SELFEVAL_PLAN": str(base),
        "SELFEVAL_DATA": f"{root}{DATA}",
        "SELFEVAL_MAX_COST": "",
        "SELFEVAL_STORE": str(place(None)),
    }
    for provider in models.providers().values():
        variables |= dict.fromkeys([*provider.keys, *provider.header_variables], "")
    return planned, variables
