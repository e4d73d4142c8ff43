"""The tasks of self-recognition, as data/recognition.yaml has them."""

import dataclasses
from dataclasses import dataclass

import yaml

from selfeval.paths import shipped


@dataclass(frozen=True)
class Task:
    """A kind of question about texts: its words, and what an answer decides between.

    answer: what a reply holds: the `author` it names, a `claim` (yes or no), or the `place` of one
    of two texts. message: {when a part is shown (`Question._shows`): its words with places
    (`Question._fillings`)}, in their order. asked: {`question` of the condition: the words at the
    place `asked`}. listed: the words above the candidates. one_text: it is about one text, and not
    about all on a prompt. options: {id: how an answer writes it}; none are the candidates. field:
    of a constrained answer. top_logprobs: alternatives of a token to ask for.
    """

    answer: str
    message: dict[str, str]
    asked: dict[str, str] = dataclasses.field(default_factory=dict)
    listed: str = ""
    one_text: bool = True
    options: dict[str, str] = dataclasses.field(default_factory=dict)
    field: str = ""
    top_logprobs: int = 0

    @property
    def asks_of_each(self) -> bool:
        """Whether it asks for the author of each of several texts."""
        return self.answer == "author" and not self.one_text


def _read() -> dict[str, Task]:
    entries = yaml.safe_load(shipped("recognition.yaml").read_text(encoding="utf-8"))
    return {name: Task(**entry) for name, entry in entries.items()}


TASKS = _read()
# tasks by what decides them
NAMING = tuple(name for name, task in TASKS.items() if task.answer == "author")
CLAIMS = tuple(name for name, task in TASKS.items() if task.answer == "claim")
PAIRS = tuple(name for name, task in TASKS.items() if task.answer == "place")
LINEUPS = tuple(name for name, task in TASKS.items() if task.asks_of_each)
