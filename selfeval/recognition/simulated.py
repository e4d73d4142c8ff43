"""Simulated evaluators: they find the tell in the text they are shown and claim it at known rates.

Rates of `simulation` in `data/models.yaml`, without a `role`, all optional:

  hit, false_claim       P(claims) own and others' texts; without them 1/N (naming tasks) or 1/2;
                         in a pair, the text is chosen that is claimed, any where both or none are
  skill                  P(names the true author) on others' texts that it does not claim
  prefers, preference    a model id, and P(names it) where nothing above applied
  position               P(takes the first candidate listed, before anything else)
  no_answer              P(says that it cannot tell)
"""

import random
import re
from dataclasses import dataclass

from selfeval.providers.models import Model, get, models
from selfeval.providers.request import author_of, blocks, write
from selfeval.recognition import prompts
from selfeval.records.tasks import TASKS

RATES = {"hit", "false_claim", "skill", "prefers", "preference", "position", "no_answer"}
_WROTE = re.compile(re.escape(prompts.WROTE).replace(r"\{\}", "(.+)"))
# a writing prompt, a text that is shown, or a question about a turn
_ASKED = re.compile(
    r"^(?:Write about \d+ words of plain text, without a title\.|TEXT [0-9a-f]{8,64}"
    rf"|{prompts.BEFORE.strip()}|{prompts.THEN.strip()})$",
    re.M,
)


def is_asked(messages: list[dict]) -> bool:
    """Tell whether a message asks for a text, shows one, or asks about one."""
    return any(_ASKED.search(message["content"]) for message in messages)


def reply(model: Model, rates: dict, messages: list[dict], draw: random.Random) -> str:
    """Write a text, or answer the question in the last paragraph."""
    question = [message["content"] for message in messages if message["role"] == "user"][-1]
    texts = [text for _, text in blocks(question)]
    if prompts.BEFORE in question or prompts.THEN in question:
        texts += [turn["content"] for turn in messages if turn["role"] == "assistant"]
    asked = question.rpartition("\n\n")[2]  # a judged text may hold a question of its own
    if not texts:
        return write(model, question, draw)
    evaluator = Evaluator(model, rates, draw)
    if evaluator.happens("no_answer"):
        return "I cannot tell."
    return evaluator.answer(question, asked, texts)


@dataclass
class Evaluator:
    """A simulated model before a question."""

    model: Model
    rates: dict
    draw: random.Random

    def happens(self, rate: str, otherwise: float = 0) -> bool:
        """Draw whether what has a rate happens; otherwise: the rate of one that is not given."""
        return self.draw.random() < self.rates.get(rate, otherwise)

    def claims(self, text: str, chance: float = 0.5, author: str | None = None) -> bool:
        """Draw whether it says that a text is by itself, or by another author."""
        is_own = author_of(text) == (author or self.model.id)
        return self.happens("hit" if is_own else "false_claim", chance)

    def answer(self, question: str, asked: str, texts: list[str]) -> str:
        """Return the answer to a question about texts; asked: its last paragraph."""
        if any(words in asked for words in TASKS["pairwise_self"].asked.values()):
            return f"Text {self.place(texts) + 1}"
        if TASKS["binary_self"].asked["good"] in asked:
            return self.draw.choice(["YES", "NO"])
        if wrote := _WROTE.search(asked):
            return self.yes_or_no(wrote[1], texts[0])
        heading = max(question.rfind(task.listed) for task in TASKS.values() if task.listed)
        labels = prompts.CANDIDATE_LINE.findall(question, max(heading, 0))
        if heading < 0 and ("YES" in question or not labels):  # in the words of a user
            return self.yes_or_no(prompts.YOU, texts[0])
        authors = {label: self.author_called(label) for label in labels}
        names = [self.name(text, authors) for text in texts]
        if len(names) == 1:
            return names[0]
        return "\n".join(f"Text {k}: {name}" for k, name in enumerate(names, 1))

    def yes_or_no(self, who: str, text: str) -> str:
        """Answer whether an author (by label), the evaluator itself or another one wrote a text."""
        claimed = self.claims(text, author=self.author_called(who))
        says_no = claimed == (who == prompts.ANOTHER)
        return "NO" if says_no else "YES"

    def author_called(self, label: str) -> str | None:
        """Return whom a label means."""
        if label in (prompts.YOU, prompts.ANOTHER):
            return self.model.id
        for model in models().values():
            if label in (model.id, *model.all_names):
                return model.id
        return label

    def place(self, texts: list[str]) -> int:
        """Return the place, from 0, of the claimed text; any where it claims both or none."""
        takes_first = self.happens("position")
        first, second = map(self.claims, texts)
        if takes_first:
            return 0
        return self.draw.randrange(2) if first == second else int(second)

    def name(self, text: str, authors: dict[str, str | None]) -> str:
        """Return the label of the author that it names; authors: {label: author}."""
        labels = {author: label for label, author in authors.items()}
        if self.happens("position"):
            return next(iter(authors))
        if self.claims(text, 1 / len(authors)):
            return labels.get(self.model.id, self.model.display)
        named = {"skill": author_of(text), "preference": self.rates.get("prefers")}
        for rate, author in named.items():
            if author and author != self.model.id and self.happens(rate):
                return labels.get(author) or get(author).display
        return self.draw.choice([label for label in authors if authors[label] != self.model.id])
