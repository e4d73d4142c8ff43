"""What a sweep is made of: stages, each of them executions of one notebook."""

from dataclasses import dataclass, field
from pathlib import Path

SETTLED = ("ok", "incomplete", "skipped", "failed", "stopped", "not started", "left out")
USABLE = ("ok", "incomplete", "skipped")  # what later stages may run on


@dataclass
class Run:
    """One execution of one notebook.

    status: `waiting` for earlier stages or a place, `running`, and at the end `ok`, `incomplete` (its outputs are
    there, but calls failed, which are null answers), `failed`, `stopped` (by a signal or the cost ceiling), `skipped`
    (ok before, and nothing has changed), `not started` (what it needs failed, or the sweep had come to its end), or
    `left out` (to do, but not asked for by --only or --retry-failed).
    """

    stage: str
    notebook: Path
    folder: Path
    parameters: dict  # as the notebook gets them
    key: str  # hash of the parameters, the same wherever the outputs lie
    needs: tuple[str, ...] = ()  # the stages that it waits for
    seeds: dict = field(default_factory=dict)  # given, or as they stand in the notebook
    variables: dict = field(default_factory=dict)  # for its environment
    status: str = "waiting"
    reason: str = ""  # why it is to be executed
    cause: str = ""  # why it is not ok
    manifest: dict = field(default_factory=dict)
    clock: float = 0.0

    @property
    def name(self):
        """Return the stage and the folder's name."""
        return f"{self.stage}/{self.folder.name}"

    @property
    def ended(self):
        """Tell whether it was executed now, so that its manifest counts what it did."""
        return self.status in ("ok", "incomplete", "failed", "stopped")


@dataclass
class Stage:
    """The runs of one notebook."""

    name: str
    runs: list[Run]


@dataclass
class Sweep:
    """The stages of a sweep file, in order, and the folder of their outputs."""

    name: str
    folder: Path
    stages: list[Stage]

    @property
    def runs(self):
        """Return the runs of all stages in order."""
        return [run for stage in self.stages for run in stage.runs]
