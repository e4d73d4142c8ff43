"""`--dry-run`: what a sweep would execute, and what its calls would take, without a call and without a file in data/.

The runs are decided as `execute` decides them. Then the notebooks that ask models are executed as planning (see
`selfeval.asking.dryrun`) on a shadow of data/ in a temporary folder, where `SELFEVAL_DATA` leads: stored replies are
read, stand-ins take the place of the others, so that the calls of later stages are counted on texts that do not exist
yet. Every request counts once, as it is bought once.
"""

import contextlib
import json
import re
import shutil
import tempfile
from pathlib import Path

from selfeval import models
from selfeval.asking.dryrun import price, read_calls
from selfeval.asking.store import place
from selfeval.figures.cards import columns
from selfeval.paths import DATA, ROOT
from selfeval.sweep.execute import Work, choose
from selfeval.sweep.show import Line

ASKS = re.compile(
    r"\b(Client|EvalRunner|await|asyncio)\b|\b(generate_texts|collect_predictions|ask_\w+|converse|judge|likelihoods)\("
)
HEAD = ("MODEL", "STORED", "TO BUY", "TOKENS IN", "TOKENS OUT", "USD")
LARGEST_COPY = 1_000_000  # bytes of a file; larger ones are linked, and replaced as a whole where they are written
APART = ("runs", "store", "report")  # of data/


def dry_run(read, sweep, workers, launcher, only=(), max_cost=None, confirm=None):
    """Print what `execute.run` would do and what it would take; return 0, 1 where that cannot be told for a run.

    confirm: called with the number of replies to buy, where there are any and all is told.
    """
    chosen = choose(sweep, only)
    for run in sweep.runs:
        sweep.decide(run, chosen)
        run.status = "to do" if run.status == "waiting" else run.status
        print(f"{run.status:11}  {run.name}{f'  ({run.cause or run.reason})' * bool(run.cause or run.reason)}")
    with tempfile.TemporaryDirectory(prefix="selfeval-plan-") as name:
        base = Path(name).resolve()
        planned = shadow(read, sweep, base)
        with contextlib.closing(launcher()) as launch:
            Work(planned, launch, {run.name for run in planned.runs}, workers).execute([], Line(planned))
        calls = read_calls(base)
    to_buy, status = report(sweep, planned, calls, max_cost)
    if confirm and to_buy and not status:
        confirm(to_buy)
    return status


def shadow(read, sweep, base):
    """Return the sweep of the runs to look through, on a shadow of data/ in the folder `base`; read: its file anew."""
    data, wanted = base / "data", to_plan(sweep)
    (base / "tmp").mkdir()
    for each in sorted(DATA.iterdir()) if wanted and DATA.is_dir() else ():
        if each.name not in APART:
            _mirror(each, data / each.name)
    keys = [key for provider in models.providers().values() for key in provider.keys]
    variables = dict.fromkeys((*keys, "SELFEVAL_MAX_COST"), "") | {
        "SELFEVAL_PLAN": str(base),
        "SELFEVAL_DATA": str(data),
    }
    variables |= {"TMPDIR": str(base / "tmp"), "SELFEVAL_STORE": str(place(None))}
    planned = read(_place(sweep.folder, base))
    planned.versions = sweep.versions
    for stage, real in zip(planned.stages, sweep.stages, strict=True):
        for run, other in zip(stage.runs, real.runs, strict=True):
            if run.name not in wanted:
                _mirror(other.folder, run.folder)  # for what reads it
            run.parameters = {name: _inside(value, base) for name, value in run.parameters.items()}
            run.variables |= variables
        stage.runs = [run for run in stage.runs if run.name in wanted]
    return planned


def to_plan(sweep):
    """Return the names of the runs to look through: those to do that ask models, and those to do that these read."""
    wanted = set()
    for run in reversed(sweep.runs):
        cells = json.loads(run.notebook.read_text("utf-8"))["cells"]
        asks = any(ASKS.search("".join(cell["source"])) for cell in cells if cell["cell_type"] == "code")
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


def pinned(model):
    """Tell whether one endpoint serves a model: any provider's own, or the one that OpenRouter is told."""
    routing = model.parameters.get("provider")
    routing = routing if isinstance(routing, dict) else {}
    ordered = len(routing.get("order") or ()) == 1 and routing.get("allow_fallbacks") is False
    return model.provider.name != models.DEFAULT_PROVIDER or len(routing.get("only") or ()) == 1 or ordered


def report(sweep, planned, calls, max_cost=None):
    """Print the calls and what they take per model; return how many are to buy, and the exit status."""
    to_do = sum(run.status == "to do" for run in sweep.runs)
    print(f"\n{to_do} of {len(sweep.runs)} runs are to do; ", end="")
    to_buy = print_calls(calls, max_cost)
    broken = [run for run in planned.runs if run.status not in ("ok", "incomplete")]
    for run in broken:
        print(f"at least: {run.name} could not be looked through to its end: {run.cause}")
    return to_buy, int(bool(broken))


def print_calls(calls, max_cost=None):
    """Print what is stored, what would be bought, and what that takes per model; return the number of calls."""
    asked = {name: models.get(name) for name in sorted(calls)}
    prices = {name: price(model, calls[name]) for name, model in asked.items()}
    sums = {part: sum(count[part] for count in calls.values()) for part in ("stored", "buy")}
    print(f"{sums['stored']} replies are stored, {sums['buy']} to buy")
    if not calls:
        return 0
    cost = [sum(each[i] for each in prices.values() if each) for i in (0, 1)]
    for part in ("prompt", "reply"):
        sums[part] = [sum(count[part][i] for count in calls.values()) for i in (0, 1)]
    rows = [_row(name, calls[name], _span(prices[name], "{:.4f}")) for name in asked]
    rows.append(_row("all", sums, _span(cost, "{:.4f}") + " and ?" * (None in prices.values())))
    print(columns([HEAD, *rows]))
    bought = [model for name, model in asked.items() if calls[name]["buy"]]
    _print_notes(bought)
    if max_cost is not None and (unpriced := [model.id for model in bought if prices[model.id] is None]):
        print(f"not ready: {', '.join(unpriced)} has no `price`, which --max-cost needs where none is reported")
    if max_cost is not None and cost[1] > max_cost:
        print(f"up to ${cost[1]:.4f}: the ceiling of ${max_cost:g} may stop it before its end")
    return sums["buy"]


def _print_notes(bought):
    """Print what the figures leave out, and which of the models any endpoint may serve."""
    thinking = ", ".join(model.id for model in bought if model.reasoning)
    without = f", without the thinking of {thinking}" * bool(thinking)
    print(f"low: replies as long as is typical{without}; high: as long as their limits allow. Nothing was bought.")
    if free := ", ".join(model.id for model in bought if not pinned(model)):
        print(
            f"not pinned: OpenRouter may have {free} served by any endpoint; `parameters: {{provider: {{only: "
            "[NAME], allow_fallbacks: false}}` in the registry pins a model to one"
        )


def _row(name, count, cost):
    return (name, count["stored"], count["buy"], _span(count["prompt"]), _span(count["reply"]), cost)


def _span(span, form="{:,}"):
    low, high = map(form.format, span) if span else ("?", "?")
    return low if low == high else f"{low}-{high}"
