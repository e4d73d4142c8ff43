"""What a sweep says: a line while it runs, a report at its end."""

import shutil
import signal
import sys
import time
from pathlib import Path

from selfeval.sweep.runs import COUNTS, relative

LINE_EVERY = 10.0  # seconds between lines where there is no terminal
STATES = ("ok", "skipped", "incomplete", "failed", "stopped", "not started", "left out", "waiting")


class Line:
    """One live line on a terminal, a line every ten seconds elsewhere."""

    def __init__(self, sweep, max_cost=None):
        self.sweep, self.max_cost = sweep, max_cost
        self.live, self.next = sys.stderr.isatty(), time.monotonic()
        if not self.live:
            self._print(f"{sweep.name}: {len(sweep.runs)} runs")
            self.next += LINE_EVERY

    def show(self):
        """Print the line if it is time."""
        if time.monotonic() >= self.next:
            self.next = time.monotonic() + (0.5 if self.live else LINE_EVERY)
            self._print(self.text())

    def _print(self, text):
        if self.live:
            text = "\r\x1b[K" + text[: shutil.get_terminal_size().columns - 1]
        print(text, end="" if self.live else "\n", file=sys.stderr, flush=True)

    def text(self):
        """Return the line."""
        runs = [run for run in self.sweep.runs if run.status != "left out"]
        now = [run.progress() for run in runs if run.status == "running"]
        total = totals(runs, now)
        done = sum(run.status not in ("waiting", "running") for run in runs)
        replies = [sum(each[name] for each in now) for name in ("done", "total")]
        stages = dict.fromkeys(run.stage for run in runs if run.status == "running")
        where = (
            f"{', '.join(stages) or self.sweep.name}: {done}/{len(runs)} runs, now {replies[0]}/{replies[1]} replies"
        )
        counts = f"{total['calls']} calls, {total['stored']} stored, {total['failed']} failed"
        return f"{where} · {money(total, self.max_cost)} · {counts}"  # first what a narrow terminal must not cut off

    def close(self):
        """Leave an empty line on a terminal."""
        if self.live:
            self._print("")


def totals(runs, more=()):
    """Return the counts of all executed runs, and of those that are running, together."""
    counts = [run.manifest.get("counts") or {} for run in runs if run.executed]
    return {name: sum(each.get(name) or 0 for each in (*counts, *more)) for name in COUNTS}


def money(total, ceiling=None):
    """Return what calls cost, `?` where nobody knows, and of what ceiling."""
    unknown = total["unpriced"] > 0
    text = "? USD" if unknown and not total["cost"] else f"{total['cost']:.4f} USD{' or more' * unknown}"
    return text + (f" of {ceiling:g}" if ceiling is not None else "")


MAIN = ("advantage", "claims", "arms", "discrimination", "coverage")  # figures, the one that says most first


def main_figure(files):
    """Return the picture among these files that answers their question, None where there is none."""
    pictures = sorted(file for file in files if file.suffix == ".png")

    def rank(file):
        return [*(not file.name.startswith(kind) for kind in MAIN), "exact_model" not in file.name]

    return min(pictures, key=rank, default=None)


def report(sweep, seconds, stop, work, pointers=True):
    """Print what ran, what it cost, where it lies, what is not ok and why, and how to go on.

    pointers: also name the main figure, and the command that writes pages.
    """
    width = max(len(stage.name) for stage in sweep.stages)
    for stage in sweep.stages:
        statuses = [run.status for run in stage.runs]
        states = [state for state in STATES if state in statuses or state in ("ok", "failed")]
        print(f"{stage.name:{width}}  " + ", ".join(f"{statuses.count(state)} {state}" for state in states))
    total = totals(sweep.runs)
    minutes, rest = divmod(round(seconds), 60)
    bought = f"{total['calls']} calls ({total['tokens']:,} tokens), {money(total, work.max_cost)}"
    computed = f"{total['simulated']} simulated replies, " * bool(total["simulated"])
    print(f"{bought}, {computed}{total['stored']} replies from the store, {minutes}:{rest:02}")
    print(f"outputs: {relative(sweep.folder)}")
    for run in (run for run in sweep.runs if run.cause):
        print(f"{run.status}: {run.name}: {run.cause}")
        if run.status == "failed" and (run.folder / "notebook.ipynb").is_file():
            print(f"  see {relative(run.folder / 'notebook.ipynb')}")
    if remedy := _remedy(sweep.runs, stop, work):
        print(remedy)
    if not pointers:
        return
    files = [run.folder / name for run in sweep.runs for name in run.manifest.get("outputs") or ()]
    figure = main_figure(files + [Path(name) for run in sweep.runs for name in run.manifest.get("written") or ()])
    seen = f"{relative(figure)} has the main figure; " if figure else ""
    print(f"{seen}selfeval report {relative(sweep.folder)} writes pages with all figures, estimates and records")


def _remedy(runs, stop, work):
    statuses = {run.status for run in runs}
    if stop:
        return f"stopped by {signal.Signals(stop[0]).name}; run the same command again to resume: replies are stored"
    if work.halted:
        return "stopped by the cost ceiling: raise --max-cost, or give the model a `price` where the cause asks for one"
    if statuses & {"failed", "stopped", "incomplete"}:
        return "run the same command again for what is missing: finished runs are skipped, stored replies are free"
    return "left out: run without --only for the rest" if "left out" in statuses else ""
