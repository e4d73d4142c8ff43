"""`--dry-run`: what a sweep would execute, and what its calls would take, without a call and without a file in data/.

The runs are decided as `execute` decides them. Then the notebooks that ask models are executed as planning (see
`selfeval.asking.dryrun`) in a temporary folder: stored replies are read, stand-ins take the place of the others, so
that the calls of later stages are counted on texts that do not exist yet. Every request counts once, as it is bought
once.
"""

import contextlib
import json
import re
import tempfile
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from selfeval import models
from selfeval.asking.request import is_computed, require
from selfeval.errors import SelfevalError, check_whole
from selfeval.figures.cards import columns
from selfeval.sweep import manifest, todo
from selfeval.sweep.execute import Work, execute, signals
from selfeval.sweep.launch import LocalProcesses
from selfeval.sweep.parameters import declared_parameters
from selfeval.sweep.runs import USABLE, Stage, Sweep
from selfeval.sweep.show import Line

ASKS = re.compile(r"\b(Client|EvalRunner|await|asyncio|openai|anthropic|httpx2?|requests|subprocess)\b|^\s*!", re.M)
HEAD = ("MODEL", "STORED", "TO BUY", "TOKENS IN", "TOKENS OUT", "USD")
RESAMPLES = 20  # of a bootstrap over stand-ins, whose intervals nobody reads
STARTUP = "import selfeval  # with its guard, before anything that a notebook does\n"


def dry_run(sweep, workers=2, launcher=LocalProcesses, only=(), retry_failed=False, max_cost=None):
    """Print what `execute.run` would do and what it would take; return 0, 1 where that cannot be told for a run."""
    check_whole("workers", workers, 1)
    decide(sweep, todo.choose(sweep, only, retry_failed))
    for run in sweep.runs:
        print(f"{run.status:11}  {run.name}{f'  ({run.cause or run.reason})' * bool(run.cause or run.reason)}")
    asking = to_plan(sweep)
    with tempfile.TemporaryDirectory(prefix="selfeval-plan-") as name, signals() as stop:
        base = Path(name)
        planned = plan(sweep, asking, base, workers, launcher, stop) if asking else Sweep(sweep.name, base, [])
        if stop:
            print("stopped before all runs were looked through; nothing was bought or written")
            return 128 + stop[0]
        calls = read_calls(base / "calls")
    return report(sweep, planned, calls, max_cost)


def decide(sweep, chosen):
    """Set every run's status: `to do`, `skipped`, `left out` or `not started`; nothing is written."""
    versions, before = manifest.versions(), {}
    for stage in sweep.stages:
        for run in stage.runs:
            earlier = {name: before[name] for name in run.needs}
            todo.prepare(run, versions, {name: todo.digest_of(runs) for name, runs in earlier.items()})
            needed = [each for runs in earlier.values() for each in runs]
            lost = next((each for each in needed if each.status not in (*USABLE, "to do")), None)
            if run.status == "skipped":
                continue
            if run.name not in chosen:
                run.status = "left out"
            elif lost:
                run.status, run.cause = "not started", f"{lost.name} is {lost.status} and to do"
            else:
                run.status = "to do"
                if run.reason == todo.OTHERS:
                    run.reason = "what it reads is to be made"
        before[stage.name] = stage.runs


def to_plan(sweep):
    """Return the names of the runs to look through: those to do that ask models, and those to do that these read."""
    wanted = set()
    for stage in reversed(sweep.stages):
        for run in stage.runs:
            if run.status == "to do" and (stage.name in wanted or asks(run.notebook)):
                wanted |= {run.name, *run.needs}
    return wanted


def asks(notebook):
    """Tell whether a notebook may ask models; one that only computes names nothing that could."""
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    return any(ASKS.search("".join(cell["source"])) for cell in cells if cell["cell_type"] == "code")


def plan(sweep, wanted, base, workers, launcher, stop):
    """Execute runs as planning in the folder `base`; return them as they ended."""
    startup = base / "ipython" / "profile_default" / "startup"
    for made in (startup, base / "tmp", base / "calls", base / "runs"):
        made.mkdir(parents=True)
    (startup / "00-plan.py").write_text(STARTUP)
    variables = {"SELFEVAL_PLAN": str(base), "TMPDIR": str(base / "tmp"), "IPYTHONDIR": str(base / "ipython")}
    variables |= {"PYTHONDONTWRITEBYTECODE": "1", "SELFEVAL_BUDGET": ""}
    stages = []
    for stage in sweep.stages:
        runs = [run for run in stage.runs if run.name in wanted]
        for run in runs:  # what an older run left there is not what this one writes
            (base / "files" / run.folder.relative_to(run.folder.anchor)).mkdir(parents=True)
        stages.append(Stage(stage.name, [_as_plan(run, base, variables) for run in runs]))
    planned = Sweep(sweep.name, base / "runs", stages)
    with (base / "lock").open("w") as held, contextlib.closing(launcher(held.fileno())) as launch:
        work = Work(planned, launch, {run.name for run in planned.runs})
        execute(work, workers, stop, _Line(planned, workers, work.budget))
    return planned


def _as_plan(run, base, variables):
    folder = base / "runs" / run.stage / run.folder.name
    fewer = (
        {"n_resamples": RESAMPLES} if "n_resamples" in declared_parameters(run.notebook) else {}
    )  # no call needs them
    new = {"status": "waiting", "reason": "", "cause": "", "manifest": {}}
    return replace(run, folder=folder, parameters=run.parameters | fewer, variables=run.variables | variables, **new)


class _Line(Line):
    """How many notebooks have been looked through."""

    def text(self):
        """Return the line."""
        runs = self.sweep.runs
        done = sum(run.status not in ("waiting", "running") for run in runs)
        return f"dry run: {done}/{len(runs)} notebooks looked through"


def read_calls(folder):
    """Return {model id: {"stored", "buy", "prompt" and "reply" as [low, high]}}; equal requests count once."""
    requests = {}
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text("utf-8").splitlines():
            request = json.loads(line)
            if not request["stored"] or request["key"] not in requests:  # stored, and to be asked again by another
                requests[request["key"]] = request
    counted = defaultdict(lambda: {"stored": 0, "buy": 0, "prompt": [0, 0], "reply": [0, 0]})
    for request in requests.values():
        count = counted[request["model"]]
        count["stored" if request["stored"] else "buy"] += 1
        for part in ("prompt", "reply"):
            count[part] = [a + b for a, b in zip(count[part], request.get(part, (0, 0)), strict=True)]
    return dict(counted)


def price(model, count):
    """Return what a model's calls cost as (low, high) US dollars; None where nobody knows."""
    if is_computed(model) or model.provider.embedded or not count["buy"]:
        return 0.0, 0.0
    if model.price is None:
        return None
    inside, outside = model.price["input"] / 1e6, model.price["output"] / 1e6
    return tuple(count["prompt"][i] * inside + count["reply"][i] * outside for i in (0, 1))


def pinned(model):
    """Tell whether one endpoint serves a model: any provider's own, or the one that OpenRouter is told."""
    if model.provider.name != models.DEFAULT_PROVIDER:
        return True
    routing = model.parameters.get("provider")
    routing = routing if isinstance(routing, dict) else {}
    ordered = len(routing.get("order") or ()) == 1 and routing.get("allow_fallbacks") is False
    return len(routing.get("only") or ()) == 1 or ordered


def report(sweep, planned, calls, max_cost=None):
    """Print the calls and what they take per model; return the exit status."""
    rows, low, high, unknown, unready = [HEAD], 0.0, 0.0, False, []
    for name in sorted(calls):
        model, count = models.get(name), calls[name]
        cost = price(model, count)
        unknown = unknown or cost is None
        if cost is None and max_cost is not None and count["buy"]:
            unready.append(f"{name} has no `price`: --max-cost is kept only where its provider says what a reply cost")
        low, high = (low + cost[0], high + cost[1]) if cost else (low, high)
        rows.append((name, count["stored"], count["buy"], _span(*count["prompt"]), _span(*count["reply"]), _usd(cost)))
        try:
            require(model)
        except SelfevalError as error:
            unready += [str(error)] if count["buy"] else []
    stored, buy = (sum(count[part] for count in calls.values()) for part in ("stored", "buy"))
    if len(rows) != 2:
        total = f"{_usd((low, high))} and ?" if unknown else _usd((low, high))
        inside, outside = ((_sum(calls, part, 0), _sum(calls, part, 1)) for part in ("prompt", "reply"))
        rows.append(("all", stored, buy, _span(*inside), _span(*outside), total))
    statuses = [run.status for run in sweep.runs]
    computed = sum(run.manifest.get("counts", {}).get("simulated", 0) for run in planned.runs)
    simulated = f" ({computed} more are simulated)" if computed else ""
    print(f"\n{statuses.count('to do')} of {len(statuses)} runs are to do; ", end="")
    print(f"{stored} replies are stored, {buy} to buy{simulated}")
    if calls:
        print(columns(rows))
        asked = [models.get(name) for name in sorted(calls) if calls[name]["buy"]]
        thinking = ", ".join(model.id for model in asked if model.reasoning)
        without = f", without the thinking of {thinking}" * bool(thinking)
        print(f"low: replies as long as is typical{without}; high: as long as their limits allow. Nothing was bought.")
        if free := ", ".join(model.id for model in asked if not pinned(model)):
            print(
                f"not pinned: OpenRouter may have {free} served by any endpoint; `parameters: {{provider: {{only: "
                "[NAME], allow_fallbacks: false}}` in the registry pins a model to one"
            )
    if max_cost is not None and high > max_cost:
        print(f"up to ${high:.4f}: the ceiling of ${max_cost:g} may stop it before its end")
    for text in dict.fromkeys(unready):
        print(f"not ready: {text}")
    broken = [run for run in planned.runs if run.status not in ("ok", "incomplete")]
    for run in broken:
        print(f"at least: {run.name} could not be looked through to its end: {run.cause}")
    return int(bool(broken))


def _sum(calls, part, i):
    return sum(count[part][i] for count in calls.values())


def _span(low, high):
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"


def _usd(cost):
    return "?" if cost is None else f"{cost[0]:.4f}" if cost[0] == cost[1] else f"{cost[0]:.4f}-{cost[1]:.4f}"
