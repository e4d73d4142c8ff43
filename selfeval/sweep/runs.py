"""What a sweep is made of: stages, each of them executions of one notebook."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Run:
    """One execution of one notebook; `status` is ok, skipped, failed or `not started`."""

    stage: str
    notebook: Path
    folder: Path
    parameters: dict  # as the notebook gets them
    key: str  # hash of the parameters, the same wherever the outputs lie
    status: str = "waiting"
    cause: str = ""
    manifest: dict = field(default_factory=dict)
    clock: float = 0.0

    @property
    def name(self):
        return f"{self.stage}/{self.folder.name}"


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
