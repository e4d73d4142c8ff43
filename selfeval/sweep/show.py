"""What a sweep says: a line while it runs, a report at its end."""

import shutil
import signal
import sys
import time

from selfeval.sweep import todo
from selfeval.sweep.left import time_left
from selfeval.sweep.manifest import COUNTS, progress, relative

LINE_EVERY = 10.0  # seconds between lines where there is no terminal
STATES = ("ok", "skipped", "incomplete", "failed", "stopped", "not started", "left out", "waiting")
SHOWN = 20  # causes, and folders that are left over


class Line:
    """One live line on a terminal, a line every ten seconds elsewhere."""

    def __init__(self, sweep, workers, budget):
        self.sweep, self.workers, self.budget = sweep, workers, budget
        self.live, self.next = sys.stderr.isatty(), time.monotonic()
        if not self.live:
            done = sum(run.status == "skipped" for run in sweep.runs)
            skipped = f", {done} done before" if done else ""
            print(f"{sweep.name}: {len(sweep.runs)} runs{skipped}", file=sys.stderr, flush=True)
            self.next += LINE_EVERY

    def show(self):
        """Print the line if it is time."""
        if time.monotonic() < self.next:
            return
        self.next = time.monotonic() + (0.5 if self.live else LINE_EVERY)
        text = self.text()
        if self.live:
            text = "\r\x1b[K" + text[: shutil.get_terminal_size().columns - 1]
        print(text, end="" if self.live else "\n", file=sys.stderr, flush=True)

    def text(self):
        """Return the line."""
        runs = [run for run in self.sweep.runs if run.status != "left out"]
        now = {run.name: progress(run) for run in runs if run.status == "running"}
        total = totals(runs, now.values())
        done = sum(run.status not in ("waiting", "running") for run in runs)
        parts = [f"{done}/{len(runs)} runs"]
        if any(each["total"] for each in now.values()):
            label = next(iter(now.values()))["label"] if len(now) == 1 else "now"
            parts[0] += f", {label} {sum(n['done'] for n in now.values())}/{sum(n['total'] for n in now.values())}"
        parts.append(time_left(self.sweep, self.workers, now))  # first what a narrow terminal must not cut off
        if total["calls"]:
            parts.append(money(total, self.budget.ceiling))
        parts.append(f"{total['calls']} calls, {total['stored']} stored, {total['failed']} failed")
        if total["tokens"]:
            parts.append(f"{total['tokens']:,} tokens")
        stages = dict.fromkeys(run.stage for run in runs if run.status == "running")
        return f"{', '.join(stages) or self.sweep.name}: " + " · ".join(filter(None, parts))

    def close(self):
        """Leave an empty line on a terminal."""
        if self.live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def totals(runs, more=()):
    """Return the counts of all executed runs, and of those that are running, together."""
    counts = [run.manifest.get("counts") or {} for run in runs if run.ended]
    return {name: sum(each.get(name) or 0 for each in (*counts, *more)) for name in COUNTS}


def money(total, ceiling=None):
    """Return what calls cost, `?` where nobody knows, and of what ceiling."""
    unknown = total["unpriced"] > 0
    text = "? USD" if unknown and not total["cost"] else f"{total['cost']:.4f} USD{' or more' * unknown}"
    return text + (f" of {ceiling:g}" if ceiling is not None else "")


def report(sweep, seconds, stop, budget):
    """Print what ran, what it cost, where it lies, what is not ok and why, and how to go on."""
    width = max(len(stage.name) for stage in sweep.stages)
    for stage in sweep.stages:
        statuses = [run.status for run in stage.runs]
        states = [state for state in STATES if state in statuses or state in ("ok", "failed")]
        print(f"{stage.name:{width}}  " + ", ".join(f"{statuses.count(state)} {state}" for state in states))
    total = totals(sweep.runs)
    spent = f", {money(total, budget.ceiling)}" if total["calls"] or budget.ceiling is not None else ""
    tokens = f" ({total['tokens']:,} tokens)" if total["tokens"] else ""
    print(f"{total['calls']} calls{tokens}{spent}, {total['stored']} replies from the store, {duration(seconds)}")
    print(f"outputs: {relative(sweep.folder)}")
    _causes([run for run in sweep.runs if run.cause])
    _left_over(sweep)
    remedy = _remedy(sweep.runs, stop, budget)
    if remedy:
        print(remedy)


def _causes(runs):
    for run in runs[:SHOWN]:
        print(f"{run.status}: {run.name}: {run.cause}")
        if run.status == "failed" and (run.folder / "notebook.ipynb").is_file():
            print(f"  see {relative(run.folder / 'notebook.ipynb')}")
    if len(runs) > SHOWN:
        print(f"and {len(runs) - SHOWN} more that are not ok; each run's manifest.json has its cause")


def _left_over(sweep):
    folders = todo.left_over(sweep)
    for folder in folders[:SHOWN]:
        print(f"left over: {relative(folder)}: no run of this sweep file; no stage reads it")
    if len(folders) > SHOWN:
        print(f"left over: {len(folders) - SHOWN} folders more")


def _remedy(runs, stop, budget):
    statuses = {run.status for run in runs}
    if stop:
        return f"stopped by {signal.Signals(stop[0]).name}; run the same command again to resume: replies are stored"
    if budget.unpriced:
        return "stopped, since the ceiling cannot be kept: give the model a `price` in the registry, or go without one"
    if budget.reached:
        return "stopped by the cost ceiling; go on with a higher --max-cost, or the same once more: replies are stored"
    waiting = [run for run in runs if run.status == "not started"]
    if statuses & {"failed", "stopped"} or any("left out" not in run.cause for run in waiting):
        return "run the same command again for what is missing: finished runs are skipped, stored replies are free"
    if "incomplete" in statuses:
        return "run the same command again for the calls that failed: stored replies are free"
    return (
        "left out: run without --only and --retry-failed for the rest" if statuses & {"left out", "not started"} else ""
    )


def duration(seconds):
    """Return seconds as m:ss or h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
