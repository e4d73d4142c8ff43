"""Simulated evaluators: they find the tell in the text they are shown and claim the text with known rates.

`simulation` in `data/models.yaml`, without a `role`, all optional:

  hit, false_claim       P(claims) own and others' texts; without them 1/N (naming tasks) or 1/2; in a pair, the text is
                         chosen that is claimed, any where both or none are
  skill                  P(names the true author) on others' texts that it does not claim
  prefers, preference    a model id, and P(names it) where nothing above applied
  position               P(takes the first candidate listed, before anything else)
  no_answer              P(says that it cannot tell)
"""

import random
import re

from selfeval.providers.models import Model, get, models
from selfeval.providers.request import ROLES, author_of, blocks, write
from selfeval.recognition import prompts as recognition_prompts

KNOWN = {"hit", "false_claim", "skill", "prefers", "preference", "position", "no_answer"}
_INTRODUCED = re.compile(recognition_prompts.INTRODUCED.format("(.+)"))
_WROTE = re.compile(re.escape(recognition_prompts.WROTE).replace(r"\{\}", "(.+)"))


def reply(model: Model, rates: dict, messages: list[dict], draw: random.Random) -> str:
    """Write a text, or answer the question that stands in the last paragraph; a judged text may hold its own."""
    question = [message["content"] for message in messages if message["role"] == "user"][-1]
    shown, asked = blocks(question), question.rpartition("\n\n")[2]
    if recognition_prompts.BEFORE in question or recognition_prompts.THEN in question:
        shown += [("", message["content"]) for message in messages if message["role"] == "assistant"]
    if not shown:
        return write(model, question, draw)
    if draw.random() < rates.get("no_answer", 0):
        return "I cannot tell."
    introduced = {m[1]: text for title, text in shown if (m := _INTRODUCED.fullmatch(title))}
    texts = [text for title, text in shown if not _INTRODUCED.fullmatch(title)]
    if recognition_prompts.AUTHORED in asked or recognition_prompts.BETTER in asked:
        place = _place(model, rates, texts, draw)
        answer, mine = recognition_prompts.PAIR[place], place == 0
    elif recognition_prompts.GOOD in asked:
        answer = draw.choice(["YES", "NO"])
    elif wrote := _WROTE.search(asked):
        own = wrote[1] in (recognition_prompts.YOU, recognition_prompts.ANOTHER)
        mine = _claims(model, rates, texts[0], draw, 0.5, "" if own else _author_called(wrote[1], introduced))
        answer = "YES" if mine == (wrote[1] != recognition_prompts.ANOTHER) else "NO"
    else:
        heading = max(question.rfind(recognition_prompts.CANDIDATES), question.rfind(recognition_prompts.LINEUP))
        after = question[max(heading, 0) :]  # a question of the user's has no heading
        listed = {
            label: _author_called(label, introduced) for label in recognition_prompts.CANDIDATE_LINE.findall(after)
        }
        if heading < 0 and ("YES" in question or not listed):
            return "YES" if _claims(model, rates, texts[0], draw, 0.5) else "NO"
        names = [_name(model, rates, text, draw, listed) for text in texts]
        mine = listed.get(names[0]) == model.id
        lines = [f"Text {k}: {name}" for k, name in enumerate(names, 1)]
        answer = names[0] if len(texts) == 1 else "\n".join(lines)
    if recognition_prompts.LIKELIHOOD.partition("{")[0] in asked:
        answer += f"\n{draw.randint(14, 20) * 5 if mine else draw.randint(0, 6) * 5}"
    return answer


def _author_called(label: str, introduced: dict[str, str]) -> str:
    """Return who a label stands for; anonymous authors are known by their introductions."""
    by_name = {name: m.id for m in models().values() for name in (m.id, *m.all_names)}
    return author_of(introduced[label]) if label in introduced else by_name.get(label, label)


def _claims(model: Model, rates: dict, text: str, draw: random.Random, chance: float, who: str = "") -> bool:
    """Decide whether it claims a text for itself, or for who else."""
    own = author_of(text) == (who or model.id)
    return draw.random() < rates.get("hit" if own else "false_claim", chance)


def _place(model: Model, rates: dict, texts: list[str], draw: random.Random) -> int:
    """Return the place, from 0, of the text that it claims; any where it claims both or none."""
    first = draw.random() < rates.get("position", 0)
    claimed = [_claims(model, rates, text, draw, 0.5) for text in texts]
    return 0 if first else claimed.index(True) if sum(claimed) == 1 else draw.randrange(2)


def _name(model: Model, rates: dict, text: str, draw: random.Random, listed: dict[str, str]) -> str:
    """Return the label of the author that it names; listed: {label: author}."""
    labels, by_author = list(listed), {author: label for label, author in listed.items()}
    if draw.random() < rates.get("position", 0):
        return labels[0]
    if _claims(model, rates, text, draw, 1 / len(labels)):
        return by_author.get(model.id, model.display)
    author, prefers = author_of(text), rates.get("prefers")
    for other, probability in ((author, "skill"), (prefers, "preference")):
        if other and other != model.id and draw.random() < rates.get(probability, 0):
            return by_author.get(other) or get(other).display
    return draw.choice([label for label in labels if listed[label] != model.id])


ROLES["recognition"] = reply, KNOWN
