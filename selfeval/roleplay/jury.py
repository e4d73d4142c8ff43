"""A jury over conversations: independent votes, controls, and debates (ChatEval, arXiv 2308.07201, section 2).

An arm says what a juror sees besides rubric and conversation when it speaks:

  independent           nothing, and it has no persona
  personas              nothing; the private vote before a debate
  reask                 its own earlier statements, and nobody else's
  sham                  its own, and what jurors said in a debate on another conversation
  debate                every statement made so far; jurors speak one by one
  simultaneous          every statement of the rounds before; jurors speak at once
  simultaneous_summary  a running summary of the rounds before

RECORD, one row per call for a statement (JSON lines, `verdicts.jsonl`):
`conversation_id`, `source` (human | model), `turn`, `scope`, `arm`, `role` (juror | summary | judge), `round` (from 1),
`position` (speaking order, from 1), `juror` (model id), `persona` (name or null), `agent` (id of the model judged, or
"human"), `same_family` (bool), `score` (0..1 or null), `status` (ok | no_answer | refusal | filtered | length | empty |
error), `dimensions` ({name: score or null}), `statement` (as the other jurors see it), `reply` (raw), `repaired` (a
second call asked for the score alone), `repair_reply`, `usage`, `cost` (both calls), `latency`, `request_id`,
`served_model`, `error`. Statistics take the rows with `role` = "juror".
"""

from collections.abc import Sequence
from dataclasses import dataclass

from selfeval.client import Client
from selfeval.models import Model
from selfeval.roleplay.transcripts import Conversation

ARMS = ("independent", "personas", "reask", "sham", "debate", "simultaneous", "simultaneous_summary")
SCOPES = ("turn", "prefix", "conversation")


@dataclass(frozen=True)
class Seat:
    """One juror of one verdict: a model in a persona (None: without)."""

    model: Model
    persona: str | None = None


@dataclass(frozen=True)
class Jury:
    """Who judges, and how; one object for all conversations of a run.

    jurors: the models; one alone takes all personas. personas: names in data/roleplay/jurors.yaml. rounds: of the arms
    in which jurors speak more than once. scope: what a verdict is about: the answer of one `turn`, all answers up to a
    turn (`prefix`), or the whole `conversation` once. context: what is shown for a turn: the conversation so far
    (`rolling`) or its exchange alone (`isolated`). blind: a last round whose statements nobody sees. aggregation: `mean`
    or `majority` of the last round. dimensions: further rubrics of data/roleplay/rubrics.yaml. summariser, judge: the
    model that writes summaries (default: the first juror) and the one that decides after the jury (default: none).
    answer: `auto` (JSON where the provider constrains it), `constrained` or `free`. tokens: most tokens of a statement,
    0 = the provider's own. temperature, seed: of the jurors.
    """

    jurors: tuple[Model, ...]
    personas: tuple[str, ...] = ("linguist", "psychologist", "manager")
    rounds: int = 2
    scope: str = "turn"
    context: str = "rolling"
    blind: bool = False
    aggregation: str = "mean"
    dimensions: tuple[str, ...] = ()
    summariser: Model | None = None
    judge: Model | None = None
    answer: str = "auto"
    tokens: int = 0
    temperature: float = 0.0
    seed: int = 0

    def seats(self, arm: str, index: int, turn: int) -> list[Seat]:
        """Return the jurors in speaking order for the index-th conversation's turn (both seeded Latin squares)."""


async def verdict(
    client: Client, jury: Jury, conversation: Conversation, arm: str, *, turn: int = 0, index: int = 0,
    peers: Sequence[dict] = (),
) -> list[dict]:  # fmt: skip
    """Return the records of one verdict, in order of round and position.

    turn: the turn judged, 0 = the last one; the conversation may go on meanwhile, later turns are not looked at. index:
    the conversation's number in the run (from 0), for the Latin squares. peers: records of a debate on another
    conversation, for the arm `sham`. Start it as a task as soon as the turn's answer exists.
    """


async def hold(client: Client, jury: Jury, conversations: Sequence[Conversation], arms: Sequence[str]) -> list[dict]:
    """Return the records of all verdicts of all arms on given conversations, in the order conversation, turn, arm."""


def decide(records: Sequence[dict], aggregation: str = "mean") -> float | None:
    """Return the jury's score of one verdict from its records (last round of the jurors), None without any score."""


def last_round(records: Sequence[dict]) -> list[dict]:
    """Return the jurors' records of a verdict's last round, in speaking order."""


def warnings(jury: Jury, agents: Sequence[str]) -> list[str]:
    """Return sentences about what weakens this jury: one model debating with itself, jurors of an agent's family."""
