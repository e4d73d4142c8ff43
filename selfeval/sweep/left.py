"""How long a sweep still takes, from the calls that it has paid for: replies from the store say nothing about it."""

import time

STEADY = 3  # calls from which on their speed can be told


def time_left(sweep, workers, now):
    """Return a few words on the time left, with what nobody can know yet; now: {run name: progress} of running runs."""
    seconds, unknown = 0.0, []
    for stage in sweep.stages:
        rest = [run for run in stage.runs if run.status in ("waiting", "running")]
        if not rest:
            continue
        needed = stage_left(stage.runs, now)
        if needed is None:
            unknown.append(stage.name)
        else:
            seconds += needed / min(workers, len(rest))
    if not seconds:
        return ""
    known = f"about {_rounded(seconds)} left"
    return known + (f", then {', '.join(unknown[:2])}{' ...' * (len(unknown) > 2)}" if unknown else "")


def stage_left(runs, now):
    """Return the seconds that the rest of a stage takes one run at a time; None where nothing tells."""
    ended = [
        (run.manifest["seconds"], run.manifest["counts"]) for run in runs if run.ended and "seconds" in run.manifest
    ]
    running = [(time.monotonic() - run.clock, now[run.name]) for run in runs if run.name in now]
    waiting = sum(run.status == "waiting" for run in runs)
    paid = [(seconds, counts["calls"]) for seconds, counts in (*ended, *running) if counts["calls"]]
    calls = sum(count for _, count in paid)
    if calls >= STEADY:
        per_call = sum(seconds for seconds, _ in paid) / calls
        sizes = [_replies(counts) for _, counts in ended]
        size = sum(sizes) / len(sizes) if sizes else max(_expected(counts) for _, counts in running)
        rest = sum(max(_expected(counts), size) - _replies(counts) for _, counts in running)
        return per_call * (max(rest, 0) + waiting * size)
    if ended and not any(_replies(counts) for _, counts in ended):  # it asks no model
        mean = sum(seconds for seconds, _ in ended) / len(ended)
        return sum(max(mean - seconds, 0) for seconds, _ in running) + waiting * mean
    return None


def _replies(counts):
    return counts["calls"] + counts["stored"] + counts["failed"]


def _expected(counts):
    return _replies(counts) + max(counts["total"] - counts["done"], 0)


def _rounded(seconds):
    """Return a time without a precision that it does not have."""
    if seconds < 90:
        return f"{max(round(seconds / 10), 1) * 10} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{seconds / 3600:.1f} h"
