"""Runs that measure as one what was made in different ways."""

import itertools
import json
from collections.abc import Mapping, Sequence

from selfeval.sweep.file import TARGETS, Sweep
from selfeval.sweep.runs import Run

# Parameters whose values results keep apart: each evaluator has rows of its own, and so has each
# condition.
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
    """Return a sentence for each run that reads as one what differs in a parameter behind it."""
    by_place: dict[str, Run] = {}
    for run in sweep.runs:
        target = TARGETS.get(run.notebook.stem, "out")
        by_place[str(run.folder)] = run
        by_place[str(run.parameters.get(target, ""))] = run
    by_place.pop("", None)
    sentences = []
    for run in sweep.runs:
        for value in run.parameters.values():
            read = [by_place[place] for place in _places(value) if place in by_place]
            for group in _of_one_design(read, by_place):
                differing = _differing([parameters for _, parameters in group])
                if differing:
                    names = ", ".join(other.name for other, _ in group)
                    sentences.append(
                        f"{run.name} measures as one what differs in {differing}: {names}. To "
                        "compare them, give each a run of its own (docs/sweeps.md, One curve)."
                    )
    return sentences


def _of_one_design(runs: Sequence[Run], by_place: Mapping[str, Run]) -> list[list[tuple]]:
    """Return runs in groups that results do not keep apart, each with its other parameters."""
    groups: dict[str, list[tuple]] = {}
    for run in runs:
        parameters = _parameters_behind(run, by_place)
        kept_apart = {name: parameters.pop(name, None) for name in APART}
        design = json.dumps(kept_apart, default=str)
        groups.setdefault(design, []).append((run, parameters))
    return list(groups.values())


def _places(value) -> list[str]:
    """Return what a parameter may name: itself, or the parts of a list.

    {path: what tells it apart} is no matter.
    """
    parts = value if isinstance(value, list) else [value]
    return [str(part) for part in parts if not isinstance(part, dict)]


def _parameters_behind(run: Run, by_place: Mapping[str, Run]) -> dict:
    """Return the parameters of a run and of those that it reads, but for the places themselves."""
    of_others = {}
    own = {}
    for name, value in run.parameters.items():
        others = [by_place[place] for place in _places(value) if place in by_place]
        others = [other for other in others if other is not run]
        for other in others:
            of_others |= _parameters_behind(other, by_place)
        if not others and name not in ("out", TARGETS.get(run.notebook.stem)):
            own[name] = value
    return of_others | own


def _differing(several: Sequence[Mapping]) -> str:
    """Return the parameters in which some differ, with their values: "temperature (0.0, 1.0)"."""
    parts = []
    for name in dict.fromkeys(itertools.chain.from_iterable(several)):
        values = [parameters.get(name, "default") for parameters in several]
        texts = dict.fromkeys(json.dumps(value, default=str) for value in values)
        if len(texts) > 1:
            parts.append(f"{name} ({', '.join(texts)})")
    return " and ".join(parts)
