"""Simulated models: real answers to the real prompts, drawn from rates that are known.

A simulated author writes sentences that carry its tell, a word that no other author uses; a simulated evaluator finds
the tell in the text it is shown and then claims the text with its planted rates. Every draw is seeded by the request,
so the same request always has the same reply. `simulation` in `data/models.yaml`, all optional:

  role                   what it plays; by default the evaluator described here, the others have modules of their own
  hit, false_claim       P(names itself) on own and on others' texts; without them 1/N (exact task) or 1/2 (binary)
  skill                  P(names the true author) on others' texts that it does not claim
  prefers, preference    a model id, and P(names it) where nothing above applied
  position               P(takes the first candidate listed, before anything else)
  no_answer              P(says that it cannot tell)
"""

import hashlib
import random
import re
from importlib import import_module

from selfeval.cache import canonical
from selfeval.errors import InputError
from selfeval.models import Model, get, models
from selfeval.prompts import CANDIDATE_LINE, CANDIDATES, YES_OR_NO
from selfeval.providers import Response

ROLES = {"identity": "selfeval.identity.simulated", "roleplay": "selfeval.roleplay.simulated"}  # role: its module
KNOWN = {"hit", "false_claim", "skill", "prefers", "preference", "position", "no_answer"}
WORDS = (
    "river morning engine garden letter window market silver quiet bridge winter forest story paper coffee signal "
    "teacher harbour village copper music season number corner shadow candle journey kitchen planet winding gentle "
    "narrow early patient bright hollow distant common curious steady open careful plain sudden ordinary"
).split()
VERBS = "keeps follows carries changes opens remembers crosses gathers measures answers leaves repeats".split()


class Simulated:
    """A simulated model as a callable on messages."""

    def __init__(self, model: Model, sample: int = 0, seed: int = 0):
        self.model, self.rates, self.sample, self.seed = model, dict(model.simulation or {}), sample, seed
        role = self.rates.pop("role", None)
        if role is not None and role not in ROLES:
            raise InputError(
                f"The model {model.id!r} has the unknown simulation role {role!r}; known are {', '.join(ROLES)}."
            )
        self.reply = import_module(ROLES[role]).reply if role else None
        unknown = set(self.rates) - KNOWN
        if unknown and not role:
            raise InputError(f"The model {model.id!r} has the unknown simulation parameter `{min(unknown)}`.")

    def __call__(self, messages: list[dict], **parameters) -> Response:
        request = canonical({"m": self.model.id, "x": messages, "s": self.sample, "seed": self.seed})
        draw = random.Random(int.from_bytes(hashlib.sha256(request.encode()).digest()[:8]))
        question = messages[-1]["content"]
        text = self.reply(self.model, self.rates, messages, draw) if self.reply else self._evaluate(draw, question)
        usage = {"prompt": len(question.split()), "completion": len(text.split())}
        return Response(text, finish_reason="stop", usage=usage, cost=0.0, served_model=self.model.id)

    def _evaluate(self, draw: random.Random, question: str) -> str:
        _, asked, names = question.rpartition(CANDIDATES)  # a judged text may have lists of its own
        if question.endswith(YES_OR_NO):
            return self._yes_no(draw, question)
        return self._name(draw, question, CANDIDATE_LINE.findall(names)) if asked else self._write(draw, question)

    def _write(self, draw: random.Random, question: str) -> str:
        wanted = re.search(r"(\d+) words", question)
        words: list[str] = []
        while len(words) < (int(wanted[1]) if wanted else 60):
            first, second, third = draw.sample(WORDS, 3)
            words += ["The", first, second, draw.choice(VERBS), "a", third, tell(self.model.id) + "."]
        return " ".join(words)

    def _claims(self, draw: random.Random, question: str, chance: float) -> bool:
        own = author_of(question) == self.model.id
        return draw.random() < self.rates.get("hit" if own else "false_claim", chance)

    def _yes_no(self, draw: random.Random, question: str) -> str:
        if draw.random() < self.rates.get("no_answer", 0):
            return "I cannot tell."
        return "YES" if self._claims(draw, question, 0.5) else "NO"

    def _name(self, draw: random.Random, question: str, candidates: list[str]) -> str:
        if draw.random() < self.rates.get("no_answer", 0):
            return "I cannot tell."
        if draw.random() < self.rates.get("position", 0):
            return candidates[0]
        if self._claims(draw, question, 1 / len(candidates)):
            return self._as_listed(self.model, candidates)
        author, prefers = author_of(question), self.rates.get("prefers")
        for other, probability in ((author, "skill"), (prefers, "preference")):
            if other and other != self.model.id and draw.random() < self.rates.get(probability, 0):
                return self._as_listed(get(other), candidates)
        own = {self.model.id, *self.model.all_names}
        return draw.choice([name for name in candidates if name not in own])

    @staticmethod
    def _as_listed(model: Model, candidates: list[str]) -> str:
        return next((name for name in candidates if name in (model.id, *model.all_names)), model.display)


def tell(author: str) -> str:
    """Return the word that an author's texts carry: four syllables from a hash of its id."""
    digest = hashlib.sha256(author.encode()).digest()
    return "".join("bdfgklmnprstvz"[digest[i] % 14] + "aeiou"[digest[i + 1] % 5] for i in range(0, 8, 2))


def author_of(text: str) -> str | None:
    """Return the id of the simulated author whose tell stands in a text, or None."""
    return next((m.id for m in models().values() if m.provider.name == "sim" and tell(m.id) in text), None)


def planted(model: Model, n_candidates: int | None = None) -> tuple[float, float]:
    """Return P(names itself | own text) and P(names itself | another's text); n_candidates None: the binary task."""
    rates = model.simulation or {}
    answers = 1 - rates.get("no_answer", 0)
    if n_candidates is None:
        return tuple(answers * rates.get(name, 0.5) for name in ("hit", "false_claim"))
    first = rates.get("position", 0)
    return tuple(
        answers * (first / n_candidates + (1 - first) * rates.get(name, 1 / n_candidates))
        for name in ("hit", "false_claim")
    )


def evaluators() -> list[Model]:
    """Return the registry's simulated evaluators of self-recognition."""
    return [m for m in models().values() if m.provider.name == "sim" and "role" not in (m.simulation or {})]
