"""Runs that measure as one what was made in different ways."""

import json
from collections.abc import Mapping, Sequence

from selfeval.sweep.file import TARGETS, Sweep
from selfeval.sweep.runs import Run

# Parameters whose values results keep apart: each evaluator has rows of its own, and so has each condition.
APART = (
    "models",
    "tasks",
    "answer",
    "told",
    "labels",
    "provenance",
    "question",
    "condition",
    "show_prompt",
    "words",
)


def pooled_runs(sweep: Sweep) -> list[str]:
    """Return a sentence for each run that reads others as one although a parameter behind them differs."""
    made = {}
    for run in sweep.runs:
        target = TARGETS.get(run.notebook.stem, "out")
        made |= dict.fromkeys((str(run.folder), str(run.parameters.get(target, ""))), run)
    made.pop("", None)
    sentences = []
    for run in sweep.runs:
        for value in run.parameters.values():
            read = [made[place] for place in _places(value) if place in made]
            designs = {}
            for other in read:
                behind = _parameters_behind(other, made)
                kept_apart = {name: behind.pop(name, None) for name in APART}
                designs.setdefault(json.dumps(kept_apart, default=str), []).append((other, behind))
            for same in designs.values():
                if differing := _differing([behind for _, behind in same]):
                    names = ", ".join(other.name for other, _ in same)
                    sentences.append(
                        f"{run.name} measures as one what differs in {differing}: {names}. To compare them, give each "
                        "a run of its own (docs/sweeps.md, One curve)."
                    )
    return sentences


def _places(value) -> list[str]:
    """Return what a parameter may name: itself, or the parts of a list; {path: what tells it apart} is no matter."""
    parts = value if isinstance(value, list) else [value]
    return [str(part) for part in parts if not isinstance(part, dict)]


def _parameters_behind(run: Run, made: Mapping[str, Run]) -> dict:
    """Return the parameters of a run and of those that it reads, but for the places themselves."""
    found, own = {}, {}
    for name, value in run.parameters.items():
        before = [
            made[place] for place in _places(value) if place in made and made[place] is not run
        ]
        for other in before:
            found |= _parameters_behind(other, made)
        if not before and name not in ("out", TARGETS.get(run.notebook.stem)):
            own[name] = value
    return found | own


def _differing(several: Sequence[Mapping]) -> str:
    """Return the parameters in which some differ, with their values: "temperature (0.0, 1.0)"."""
    parts = []
    for name in dict.fromkeys(name for each in several for name in each):
        values = [
            *dict.fromkeys(json.dumps(each.get(name, "default"), default=str) for each in several)
        ]
        if len(values) > 1:
            parts.append(f"{name} ({', '.join(values)})")
    return " and ".join(parts)
