"""Simulated models: real answers to the real prompts, drawn from rates that are known.

A simulated author writes sentences that carry its tell, a word that no other author uses; a simulated evaluator finds
the tell in the text it is shown and then claims the text with its planted rates. Every draw is seeded by the request,
so the same request always has the same reply. `simulation` in `data/models.yaml`, all optional:

  role                   what it plays; by default the evaluator described here, the others have modules of their own
  hit, false_claim       P(claims) own and others' texts; without them 1/N (naming tasks) or 1/2; in a pair, the text is
                         chosen that is claimed, any where both or none are
  skill                  P(names the true author) on others' texts that it does not claim
  prefers, preference    a model id, and P(names it) where nothing above applied
  position               P(takes the first candidate listed, before anything else)
  no_answer              P(says that it cannot tell)
"""

import hashlib
import random
import re
from functools import cache
from importlib import import_module

from selfeval.asking.recordings import canonical
from selfeval.asking.request import Response
from selfeval.errors import InputError
from selfeval.models import Model, get, models
from selfeval.recognition.prompts import (
    AUTHORED,
    BETTER,
    CANDIDATE_LINE,
    CANDIDATES,
    INTRODUCED,
    LIKELIHOOD,
    LINEUP,
    MINE,
    PAIR,
    blocks,
)

ROLES = {"identity": "selfeval.identity.simulated", "roleplay": "selfeval.roleplay.simulated"}  # role: its module
_INTRODUCED = re.compile(INTRODUCED.format("(.+)"))
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
        """Answer the question that stands in the last paragraph; a judged text may hold questions of its own."""
        shown, asked = blocks(question), question.rpartition("\n\n")[2]
        if not shown:
            return self._write(draw, question)
        if draw.random() < self.rates.get("no_answer", 0):
            return "I cannot tell."
        introduced = {m[1]: text for title, text in shown if (m := _INTRODUCED.fullmatch(title))}
        texts = [text for title, text in shown if not _INTRODUCED.fullmatch(title)]
        if AUTHORED in asked or BETTER in asked:
            answer, mine = self._pair(draw, texts)
        elif MINE in asked:
            mine = self._claims(draw, texts[0], 0.5)
            answer = "YES" if mine else "NO"
        else:
            listed = self._listed(question, introduced)
            names = [self._name(draw, text, listed) for text in texts]
            mine = listed.get(names[0]) == self.model.id
            lines = [f"Text {k}: {name}" for k, name in enumerate(names, 1)]
            answer = names[0] if len(texts) == 1 else "\n".join(lines)
        if LIKELIHOOD.partition("{")[0] in asked:
            answer += f"\n{draw.randint(14, 20) * 5 if mine else draw.randint(0, 6) * 5}"
        return answer

    @staticmethod
    def _listed(question: str, introduced: dict[str, str]) -> dict[str, str]:
        """Return {label: author} of the candidates listed; anonymous ones are known by their introductions."""
        after = question[max(question.rfind(CANDIDATES), question.rfind(LINEUP)) :]
        by_name = {name: m.id for m in models().values() for name in (m.id, *m.all_names)}
        return {
            label: author_of(introduced[label]) if label in introduced else by_name.get(label, label)
            for label in CANDIDATE_LINE.findall(after)
        }

    def _write(self, draw: random.Random, question: str) -> str:
        wanted = re.search(r"(\d+) words", question)
        words: list[str] = []
        while len(words) < (int(wanted[1]) if wanted else 60):
            first, second, third = draw.sample(WORDS, 3)
            words += ["The", first, second, draw.choice(VERBS), "a", third, tell(self.model.id) + "."]
        return " ".join(words)

    def _claims(self, draw: random.Random, text: str, chance: float) -> bool:
        own = author_of(text) == self.model.id
        return draw.random() < self.rates.get("hit" if own else "false_claim", chance)

    def _pair(self, draw: random.Random, texts: list[str]) -> tuple[str, bool]:
        """Choose the text that it claims, any where it claims both or none; say whether the first is called its own."""
        first = draw.random() < self.rates.get("position", 0)
        claimed = [self._claims(draw, text, 0.5) for text in texts]
        place = 0 if first else claimed.index(True) if sum(claimed) == 1 else draw.randrange(2)
        return PAIR[place], place == 0

    def _name(self, draw: random.Random, text: str, listed: dict[str, str]) -> str:
        """Return the label of the author that it names; listed: {label: author}."""
        labels, by_author = list(listed), {author: label for label, author in listed.items()}
        if draw.random() < self.rates.get("position", 0):
            return labels[0]
        if self._claims(draw, text, 1 / len(labels)):
            return by_author.get(self.model.id, self.model.display)
        author, prefers = author_of(text), self.rates.get("prefers")
        for other, probability in ((author, "skill"), (prefers, "preference")):
            if other and other != self.model.id and draw.random() < self.rates.get(probability, 0):
                return by_author.get(other) or get(other).display
        return draw.choice([label for label in labels if listed[label] != self.model.id])


@cache
def tell(author: str) -> str:
    """Return the word that an author's texts carry: four syllables from a hash of its id."""
    digest = hashlib.sha256(author.encode()).digest()
    return "".join("bdfgklmnprstvz"[digest[i] % 14] + "aeiou"[digest[i + 1] % 5] for i in range(0, 8, 2))


def author_of(text: str) -> str | None:
    """Return the id of the simulated author whose tell stands in a text, or None."""
    return next((m.id for m in models().values() if m.provider.name == "sim" and tell(m.id) in text), None)


def evaluators() -> list[Model]:
    """Return the registry's simulated evaluators of self-recognition."""
    return [m for m in models().values() if m.provider.name == "sim" and "role" not in (m.simulation or {})]
