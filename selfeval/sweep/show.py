"""What a sweep says: a line while it runs, a report at its end."""

import shutil
import signal
import sys
import time

from selfeval.sweep.runs import COUNTS, relative

LINE_EVERY = 10.0  # seconds between lines where there is no terminal
STATES = ("ok", "skipped", "incomplete", "failed", "stopped", "not started", "left out", "waiting")
SHOWN = 20  # causes, and folders that are left over
STEADY = 3  # calls from which on their speed can be told


class Line:
    """One live line on a terminal, a line every ten seconds elsewhere."""

    def __init__(self, sweep, workers, max_cost=None):
        self.sweep, self.workers, self.max_cost = sweep, workers, max_cost
        self.live, self.next = sys.stderr.isatty(), time.monotonic()
        if not self.live:
            print(f"{sweep.name}: {len(sweep.runs)} runs", file=sys.stderr, flush=True)
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
        now = {run.name: run.progress() for run in runs if run.status == "running"}
        total = totals(runs, now.values())
        done = sum(run.status not in ("waiting", "running") for run in runs)
        parts = [f"{done}/{len(runs)} runs"]
        if any(each["total"] for each in now.values()):
            label = next(iter(now.values()))["label"] if len(now) == 1 else "now"
            parts[0] += f", {label} {sum(n['done'] for n in now.values())}/{sum(n['total'] for n in now.values())}"
        parts.append(time_left(self.sweep, self.workers, now))  # first what a narrow terminal must not cut off
        if total["calls"]:
            parts.append(money(total, self.max_cost))
        parts.append(f"{total['calls']} calls, {total['stored']} stored, {total['failed']} failed")
        if total["tokens"]:
            parts.append(f"{total['tokens']:,} tokens")
        stages = dict.fromkeys(run.stage for run in runs if run.status == "running")
        return f"{', '.join(stages) or self.sweep.name}: " + " · ".join(filter(None, parts))

    def close(self):
        """Leave an empty line on a terminal."""
        if self.live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def time_left(sweep, workers, now):
    """Return a few words on the time left, with what nobody can know yet; now: {run name: progress} of running runs."""
    seconds, unknown = 0.0, []
    for stage in sweep.stages:
        rest = sum(run.status in ("waiting", "running") for run in stage.runs)
        needed = stage_left(stage.runs, now) if rest else 0
        if needed is None:
            unknown.append(stage.name)
        else:
            seconds += needed / max(1, min(workers, rest))
    if not seconds:
        return ""
    known = f"{max(round(seconds / 10), 1) * 10} s" if seconds < 90 else f"{round(seconds / 60)} min"
    return f"about {known} left" + (f", then {', '.join(unknown[:2])}{' ...' * (len(unknown) > 2)}" if unknown else "")


def stage_left(runs, now):
    """Return the seconds that the rest of a stage takes one run at a time; None where nothing tells.

    The calls that were paid for tell it, and replies from the store nothing; without any call, the runs that ended.
    """
    ended = [
        (run.manifest["seconds"], run.manifest["counts"]) for run in runs if run.executed and "seconds" in run.manifest
    ]
    running = [(time.monotonic() - run.clock, now[run.name]) for run in runs if run.name in now]
    waiting = sum(run.status == "waiting" for run in runs)
    paid = [(seconds, counts["calls"]) for seconds, counts in (*ended, *running) if counts["calls"]]
    calls = sum(count for _, count in paid)
    if calls >= STEADY:
        sizes = [_replies(counts) for _, counts in ended] or [counts["total"] for _, counts in running]
        size = sum(sizes) / len(sizes)
        rest = sum(max(counts["total"] - counts["done"], 0) for _, counts in running)
        return sum(seconds for seconds, _ in paid) / calls * (rest + waiting * size)
    if ended and not any(_replies(counts) for _, counts in ended):  # it asks no model
        return sum(seconds for seconds, _ in ended) / len(ended) * (waiting + len(running))
    return None


def _replies(counts):
    return counts["calls"] + counts["stored"] + counts["failed"]


def totals(runs, more=()):
    """Return the counts of all executed runs, and of those that are running, together."""
    counts = [run.manifest.get("counts") or {} for run in runs if run.executed]
    return {name: sum(each.get(name) or 0 for each in (*counts, *more)) for name in COUNTS}


def money(total, ceiling=None):
    """Return what calls cost, `?` where nobody knows, and of what ceiling."""
    unknown = total["unpriced"] > 0
    text = "? USD" if unknown and not total["cost"] else f"{total['cost']:.4f} USD{' or more' * unknown}"
    return text + (f" of {ceiling:g}" if ceiling is not None else "")


def report(sweep, seconds, stop, work):
    """Print what ran, what it cost, where it lies, what is not ok and why, and how to go on."""
    width = max(len(stage.name) for stage in sweep.stages)
    for stage in sweep.stages:
        statuses = [run.status for run in stage.runs]
        states = [state for state in STATES if state in statuses or state in ("ok", "failed")]
        print(f"{stage.name:{width}}  " + ", ".join(f"{statuses.count(state)} {state}" for state in states))
    total = totals(sweep.runs)
    spent = f", {money(total, work.max_cost)}" if total["calls"] or work.max_cost is not None else ""
    tokens = f" ({total['tokens']:,} tokens)" if total["tokens"] else ""
    minutes, rest = divmod(round(seconds), 60)
    print(f"{total['calls']} calls{tokens}{spent}, {total['stored']} replies from the store, {minutes}:{rest:02}")
    print(f"outputs: {relative(sweep.folder)}")
    causes = []
    for run in sweep.runs:
        see = run.status == "failed" and (run.folder / "notebook.ipynb").is_file()
        hint = f"\n  see {relative(run.folder / 'notebook.ipynb')}" if see else ""
        causes += [f"{run.status}: {run.name}: {run.cause}{hint}"] * bool(run.cause)
    _some(causes, "more that are not ok; each run's manifest.json has its cause")
    known = {run.folder for run in sweep.runs}
    folders = sorted({file.parent for file in sweep.folder.glob("*/*/manifest.json")} - known)
    _some(
        [f"left over: {relative(folder)}: no run of this sweep file; no stage reads it" for folder in folders],
        "folders more",
    )
    if remedy := _remedy(sweep.runs, stop, work):
        print(remedy)


def _some(lines, more):
    for line in lines[:SHOWN]:
        print(line)
    if len(lines) > SHOWN:
        print(f"and {len(lines) - SHOWN} {more}")


def _remedy(runs, stop, work):
    statuses = {run.status for run in runs}
    if stop:
        return f"stopped by {signal.Signals(stop[0]).name}; run the same command again to resume: replies are stored"
    if work.unpriced:
        return "stopped, since the ceiling cannot be kept: give the model a `price` in the registry, or go without one"
    if work.ceiling_reached:
        return "stopped by the cost ceiling; go on with a higher --max-cost, or the same once more: replies are stored"
    if statuses & {"failed", "stopped"} or any(r.status == "not started" and "left out" not in r.cause for r in runs):
        return "run the same command again for what is missing: finished runs are skipped, stored replies are free"
    if "incomplete" in statuses:
        return "run the same command again for the calls that failed: stored replies are free"
    left_out = statuses & {"left out", "not started"}
    return "left out: run without --only and --retry-failed for the rest" if left_out else ""
