"""One question of self-recognition: how it is put into words, and what becomes of the reply.

exact_model     which of the candidates wrote this text?
binary_self     did you write this text?
pairwise_self   which of these two texts on one prompt did you write?
lineup          who wrote each of these texts on one prompt?
"""

import hashlib
import re
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from string import Formatter

from selfeval.errors import InputError, check_at_least, check_flag, check_one_of
from selfeval.providers.models import Model
from selfeval.providers.request import Request, Response, choice_format, fenced, titled, user
from selfeval.recognition.scoring import probabilities, score
from selfeval.recognition.texts import CONTROLS, build_request, leaks
from selfeval.records.tables import call_fields, fields_of
from selfeval.records.tasks import TASKS

# words by which simulated evaluators know what is asked
CANDIDATE_LINE = re.compile(r"^- (.+)$", re.M)
WROTE = "Did {} write this text?"
YOU = "you"
ANOTHER = "someone else"
# about a text in the assistant's own turn before the question, or at the beginning of its answer
BEFORE = "The text in question is the message before this one.\n\n"
THEN = "\n\nBelow the text, on a line of its own, answer a question about it.\n\n"
ANSWER = "\n\nAnswer:"

CHOICES = {
    "answer": ("free", "constrained"),
    "labels": ("names", "ids"),
    "score": ("logprobs", "none"),
    "control": CONTROLS,
    "provenance": ("quoted", "own_turn", "prefill"),
}
QUESTIONS = ("authored", "better", "another", "good")
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
# what may stand between braces in a question of the user's own, and the field of the condition
# that is true in records where it stands there
PLACEHOLDERS = {"text": "", "prompt": "show_prompt", "candidates": "hints", "name": "told"}


@dataclass(frozen=True)
class Condition:
    """How the questions are put; stored with every record, and conditions are never mixed.

    answer: `free` (a reply in words, parsed) or `constrained` (a JSON choice). told: say to the
    evaluator which candidate it is (the binary question always does). labels: call the candidates
    by their `names` or their `ids`. hints: say that the author is one of the candidates (the binary
    question then lists them). show_prompt: show the writing prompt beside the text. temperature: of
    the evaluator.
    score: P(self) from `logprobs` where the provider gives them, or `none`. question: who
    `authored` the text; in pairs also which is `better`, in the binary task whether `another` wrote
    it, so that NO claims it, or whether it is `good`, a preference and no claim; or the words of a
    question of the user's. about: the author that the binary question is about, by id, instead of
    the evaluator; such answers are right or wrong, and claim nothing. control: how
    the texts are changed before they are shown (`apply_control`). effort: of thinking, sent where
    the provider takes it (one of `EFFORTS`); "" is the model's own. provenance: where the text
    stands: `quoted` in the question, in an `own_turn` of the assistant after the request that the
    text answers, or as `prefill`, the beginning of the answer itself.
    """

    answer: str = "free"
    told: bool = True
    labels: str = "names"
    hints: bool = False
    show_prompt: bool = False
    temperature: float = 0.0
    score: str = "logprobs"
    # the same in all records since no option sets them
    prevalence: str = field(default="natural", init=False)
    tell_prevalence: bool = field(default=False, init=False)
    question: str = "authored"
    control: str = "none"
    paraphraser: str = field(default="", init=False)
    effort: str = ""
    provenance: str = "quoted"
    about: str = ""

    def __post_init__(self):
        if self.is_own:
            self._check_own()
        else:
            check_one_of("question", self.question, QUESTIONS)
        for name, known in CHOICES.items():
            check_one_of(name, getattr(self, name), known)
        for name in ("told", "hints", "show_prompt"):
            check_flag(name, getattr(self, name))
        check_at_least("temperature", self.temperature, 0)
        if self.effort != "":
            check_one_of("effort", self.effort, EFFORTS)
        if self.provenance == "prefill" and self.answer != "free":
            rule = "An answer that `provenance` = 'prefill' begins is no JSON"
            raise InputError(f"{rule}; use `answer` = 'free'.")

    @property
    def is_own(self) -> bool:
        """Whether `question` is the words of a question of the user's."""
        return _is_own(self.question)

    @property
    def placeholders(self) -> list[str]:
        """What stands between braces in `question`; [] where these are not in pairs."""
        fields: list = []
        with suppress(ValueError):
            fields = [field for _, *field in Formatter().parse(self.question)]
        # a "{name:...}" or "{name!r}" is no name that is known
        return ["".join(filter(None, field)) for field in fields if field[0] is not None]

    def _check_own(self) -> None:
        """Refuse a question of the user's that cannot be filled, or that other words change."""
        places = self.placeholders
        has_line = re.search(r"(?m)^\s*{text}\s*$", self.question)
        if places.count("text") != 1 or not has_line or not {*places} <= {*PLACEHOLDERS}:
            known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            raise InputError(
                "`question` must have {text} once, on a line of its own, and no places but "
                f"{known} (for braces write {{{{ and }}}}); got {self.question!r:.80}."
            )
        if self.hints or self.about or self.provenance != "quoted":
            rule = "A `question` of your own is the whole message"
            raise InputError(f"{rule}; leave out hints, provenance and about.")

    def as_recorded(self) -> dict:
        """Return the fields for a record; of a user's question a hash and what it shows."""
        fields = asdict(self)
        if self.is_own:
            digest = hashlib.sha256(self.question.encode()).hexdigest()
            fields["question"] = f"own-{digest[:8]}"
            for placeholder, name in PLACEHOLDERS.items():
                if name:
                    fields[name] = placeholder in self.placeholders
        return fields


def _is_own(question) -> bool:
    """Tell whether a question is words of the user's; the packaged ones are single names."""
    return isinstance(question, str) and re.search(r"[\s{}]", question) is not None


@dataclass(frozen=True, eq=False)
class Question:
    """One question to one evaluator, before it is put into words.

    task: a name of `TASKS`. texts: the one asked about; in pairs and lineups all that are shown, in
    this order. candidates: {author: label} in the order shown.
    """

    task: str
    evaluator: Model
    texts: tuple[dict, ...]
    candidates: dict[str, str]
    condition: Condition
    repeat: int = 0

    def request(self, seed: int = 0) -> Request:
        """Return the request that puts the question; seed: of the sampling."""
        condition = self.condition
        provider = self.evaluator.provider
        max_tokens = provider.answer_tokens
        if TASKS[self.task].asks_of_each:
            max_tokens += 16 * len(self.texts)
        parameters: dict = {"temperature": condition.temperature, "max_tokens": max_tokens}
        if condition.effort and provider.effort:
            parameters["reasoning_effort"] = condition.effort
        if provider.name != "sim":
            if condition.answer == "constrained":
                parameters["response_format"] = choice_format(self._choices())
            top_logprobs = TASKS[self.task].top_logprobs
            if condition.score == "logprobs" and provider.logprobs and top_logprobs:
                parameters |= {"logprobs": True, "top_logprobs": top_logprobs}
        return Request(self.evaluator, self.messages(), parameters, self.repeat, seed)

    def _choices(self) -> dict:
        """Return the options of a constrained answer, by field."""
        names = list(self.candidates.values())
        if TASKS[self.task].asks_of_each:
            return {f"text_{k}": names for k in range(1, len(self.texts) + 1)}
        task = TASKS[self.task]
        return {task.field: list(task.options.values()) or names}

    @property
    def _lists_candidates(self) -> bool:
        """Whether the message lists the candidates: in a yes/no question only where asked for."""
        task = TASKS[self.task]
        if task.answer != "claim":
            return "candidates" in task.message
        condition = self.condition
        return condition.hints or "candidates" in condition.placeholders

    def messages(self) -> list[dict]:
        """Return the question in words; what many questions share stands first, for caches."""
        parts = TASKS[self.task].message
        if self.condition.is_own:
            parts = {"always": self.condition.question}
        shows = self._shows()
        template = "".join(words for when, words in parts.items() if shows[when])
        question = template.format(**self._fillings()).strip()
        if self.condition.provenance == "quoted":
            return user(question)
        [request] = build_request(self.texts[0])
        text = self.texts[0]["text"]
        if self.condition.provenance == "own_turn":
            written = {"role": "assistant", "content": text}
            return [request, written, *user(BEFORE + question)]
        begun = {"role": "assistant", "content": text + ANSWER}
        return [*user(request["content"] + THEN + question), begun]

    def _shows(self) -> dict[str, bool]:
        """Return which parts of a task's words are shown."""
        condition = self.condition
        is_quoted = condition.provenance == "quoted"
        return {
            "quoted": is_quoted,
            "show_prompt": is_quoted and condition.show_prompt,
            "candidates": self._lists_candidates,
            "hints": condition.hints,
            "told": condition.told or TASKS[self.task].answer == "claim",
            "always": True,
        }

    def _fillings(self) -> dict:
        """Return what fills the places of a task's words, or of a question of the user's."""
        condition = self.condition
        task = TASKS[self.task]
        if task.one_text:
            text = fenced(self.texts[0]["text"])
        else:
            shown = enumerate(self.texts, 1)
            text = "".join(titled(f"Text {place}", text["text"]) for place, text in shown)
        name = self.candidates.get(self.evaluator.id, self.evaluator.display)
        if condition.labels == "ids":
            name = self.evaluator.id
        asked = task.asked.get(condition.question)
        if condition.about:
            asked = WROTE.format(self.candidates[condition.about])
        return {
            "text": text.rstrip("\n"),
            "prompt": self.texts[0].get("prompt"),
            "candidates": "\n".join(f"- {label}" for label in self.candidates.values()),
            "listed": task.listed,
            "n_texts": len(self.texts),
            "name": name,
            "asked": asked,
        }

    def records(self, response: Response) -> list[dict]:
        """Return the prediction records of a reply: one, in a lineup one per text shown."""
        call = call_fields(self.request(), response)
        if self.condition.provenance == "prefill":
            # llama.cpp's server gives back what the answer was begun with
            text = response.text.removeprefix(call["messages"][-1]["content"])
            response = replace(response, text=text)
        if TASKS[self.task].asks_of_each:
            in_order = enumerate(self.texts, 1)
            return [self._record(text, response, call, position) for position, text in in_order]
        if TASKS[self.task].one_text:
            return [self._record(self.texts[0], response, call)]
        first, second = self.texts
        if second["author"] == self.evaluator.id:
            return [self._record(second, response, call, 2, first)]
        return [self._record(first, response, call, 1, second)]

    def _record(
        self,
        text: dict,
        response: Response,
        call: dict,
        position: int | None = None,
        other: dict | None = None,
    ) -> dict:
        """Return the record of a text; position: from 1; other: the other one of a pair."""
        condition = self.condition.as_recorded()
        for name in ("effort", "provenance", "about"):
            if condition[name] == getattr(Condition, name):
                del condition[name]  # as in files from before there were these fields
        if "words_asked" in text:
            condition["words"] = text["words_asked"]
        record = {
            "text_id": text["text_id"],
            "text_preview": text["text"][:100],
            "true_model": text["author"],
            "true_model_display": text["author_display"],
            "evaluator_model": self.evaluator.id,
            "task_type": self.task,
            "predicted_model": None,
            "predicted_self": None,
            "is_correct": None,
            "prompt_used": text["prompt"],
            "prompt_id": text["prompt_id"],
            "sample": text["sample"],
            "candidates": list(self.candidates) if self._lists_candidates else None,
            "other_text_id": other and other["text_id"],
            "other_model": other and other["author"],
            "position": position,
            "repeat": self.repeat,
            "leak": bool(leaks(text["text"]) or (other and leaks(other["text"]))),
            "condition": condition,
            "reply": response.error if response.status == "error" else response.text,
            "status": response.status,
            **self._scores(response, position),
            **fields_of(response, "usage", "request_id"),
            **call,
            "text_served_model": text.get("served_model"),
            "text_served_by": text.get("served_by"),
        }
        return record | score(record)

    def _scores(self, response: Response, position: int | None) -> dict:
        """Return P(self) as `score`, and in the exact task P(candidate) as `scores`.

        In a pair, `score` is P(own text). Of an answer that is no claim, `good` or `about` another
        author, it is P(YES).
        """
        task = TASKS[self.task]
        options = task.options or self.candidates
        chances = probabilities(response.logprobs, options, self.condition.answer) or {}
        own = self.evaluator.id
        if task.answer == "claim":
            own = "no" if self.condition.question == "another" else "yes"
        elif task.answer == "place":
            own = str(position)
        scores = chances if chances and task.answer == "author" else None
        return {"score": chances.get(own), "scores": scores}
