"""What a sweep says: a line while it runs, a report at its end."""

import shutil
import signal
import sys
import time
from pathlib import Path

from selfeval.sweep.manifest import COUNTERS, progress

LINE_EVERY = 10.0  # seconds between lines where there is no terminal


class Line:
    """One live line on a terminal, a line every ten seconds elsewhere."""

    def __init__(self, stage):
        self.stage, self.live, self.began = stage, sys.stderr.isatty(), time.monotonic()
        self.skipped = sum(run.status == "skipped" for run in stage.runs)
        self.next = 0.0
        if not self.live:
            done = f", {self.skipped} done before" if self.skipped else ""
            print(f"{stage.name}: {len(stage.runs)} runs{done}", file=sys.stderr, flush=True)
            self.next = self.began + LINE_EVERY

    def show(self, running):
        """Print the line anew where it is time."""
        if time.monotonic() < self.next:
            return
        self.next = time.monotonic() + (0.5 if self.live else LINE_EVERY)
        text = self.text(running)
        if self.live:
            text = "\r\x1b[K" + text[: shutil.get_terminal_size().columns - 1]
        print(text, end="" if self.live else "\n", file=sys.stderr, flush=True)

    def text(self, running):
        """Return runs done, calls made and time left."""
        now = [progress(run) for run in running]
        ended = [run.manifest["counts"] for run in self.stage.runs if run.status in ("ok", "failed")]
        total = {key: sum(each[key] for each in (*now, *ended)) for key in COUNTERS}
        parts = [f"{self.stage.name}: {len(ended) + self.skipped}/{len(self.stage.runs)} runs"]
        if any(each["total"] for each in now):
            label = f" {now[0]['label']}" if len(now) == 1 else ""
            parts.append(f"now{label} {sum(each['done'] for each in now)}/{sum(each['total'] for each in now)}")
        parts.append(f"{total['calls']} calls, {total['stored']} stored, {total['failed']} failed")
        share = len(ended) + sum(min(each["done"] / each["total"], 1) for each in now if each["total"])
        if share:
            rest = (len(self.stage.runs) - self.skipped - share) / share * (time.monotonic() - self.began)
            parts.append(f"about {_duration(rest)} left in this stage")
        return " · ".join(parts)

    def close(self):
        """Remove the live line."""
        if self.live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def report(sweep, seconds, stop):
    """Print what ran, what it cost, where it lies, and what failed why."""
    runs = [run for stage in sweep.stages for run in stage.runs]
    width = max(len(stage.name) for stage in sweep.stages)
    for stage in sweep.stages:
        statuses = [run.status for run in stage.runs]
        states = [
            s for s in ("ok", "skipped", "failed", "not started", "waiting") if s in statuses or s in ("ok", "failed")
        ]
        print(f"{stage.name:{width}}  " + ", ".join(f"{statuses.count(state)} {state}" for state in states))
    counts = [run.manifest["counts"] for run in runs if run.status in ("ok", "failed")]
    total = {key: sum(each[key] for each in counts) for key in COUNTERS}
    cost = sum(each["cost"] or 0 for each in counts)
    money = f", {cost:.4f} USD" if cost else ""
    print(f"{total['calls']} calls{money}, {total['stored']} replies from the store, {_duration(seconds)}")
    print(f"outputs: {relative(sweep.folder)}")
    for run in runs:
        if run.cause:
            print(f"{run.status}: {run.name}: {run.cause}")
            if run.status == "failed" and (run.folder / "notebook.ipynb").is_file():
                print(f"  see {relative(run.folder / 'notebook.ipynb')}")
    if stop:
        print(f"stopped by {signal.Signals(stop[0]).name}; run the same command again to resume: replies are stored")
    elif any(run.cause for run in runs):
        print("run the same command again for what is missing: finished runs are skipped, stored replies are free")


def _duration(seconds):
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def relative(path):
    """Return a path from the working directory where it lies below it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
