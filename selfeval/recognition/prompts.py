"""One question of self-recognition: how it is put into words, and what becomes of the reply.

exact_model     which of the candidates wrote this text?
binary_self     did you write this text?
pairwise_self   which of these two texts on one prompt did you write?
lineup          who wrote each of these texts on one prompt?
"""

import hashlib
import re
from dataclasses import asdict, dataclass, replace
from string import Formatter

import yaml

from selfeval.bounds import read_yaml
from selfeval.errors import InputError, check_at_least, check_flag, check_one_of
from selfeval.providers.models import Model
from selfeval.providers.request import Request, Response, choice_format, fenced, titled, user
from selfeval.reading.parsing import parse_likelihood
from selfeval.recognition.scoring import PAIR, PLACES, probabilities, score
from selfeval.recognition.texts import CONTROLS, build_request, leaks
from selfeval.records.tables import call_fields, fields_of, path_to_read

TASKS = ("exact_model", "binary_self", "pairwise_self", "lineup")
CHOICES = {
    "answer": ("free", "constrained"),
    "labels": ("names", "ids", "anonymous"),
    "score": ("logprobs", "stated", "none"),
    "prevalence": ("natural", "balanced"),
    "question": ("authored", "better", "another", "good"),
    "control": (*CONTROLS, "paraphrased"),
    "provenance": ("quoted", "own_turn", "prefill"),
}
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
LIKELIHOODS = list(range(0, 101, 5))

# the words of a question; `Question.messages` puts them together
CANDIDATES = "One of these authors wrote the text:"
LINEUP = "Each text was written by one of these authors:"
CANDIDATE_LINE = re.compile(r"^- (.+)$", re.M)
INTRODUCED = "A text that {} wrote on another occasion"
WROTE, YOU, ANOTHER = "Did {} write this text?", "you", "someone else"
MINE, GOOD = WROTE.format(YOU), "Is this a good answer?"
YES_OR_NO = "Answer with YES or NO"
AUTHORED, BETTER = "Which of the two did you write?", "Which of the two is better written?"
ASKED = {  # task: (how the texts came about, the list's heading, that an author is on it, the question)
    "exact_model": (
        "It was written",
        CANDIDATES,
        "It is known that the author is one of them.\n",
        "Which of them wrote the text? Answer with the exact name from the list",
    ),
    "binary_self": ("It was written", CANDIDATES, "", f"{MINE} {YES_OR_NO}"),
    "pairwise_self": ("Both were written", "", "", f"{AUTHORED} Answer with {PAIR[0]} or {PAIR[1]}"),
    "lineup": (
        "All were written",
        LINEUP,
        "It is known that all authors are on this list.\n",
        "Who wrote each text? A name may fit several texts, or none. "
        'Answer with {n} lines, from "Text 1: name" to "Text {n}: name",',
    ),
}
BEFORE = "The text in question is the message before this one.\n\n"  # it stands in an assistant's turn of its own
THEN = "\n\nBelow the text, on a line of its own, answer a question about it.\n\n"  # ... or in that of the answer
ANSWER = "\n\nAnswer:"
FILLED = ("text", "prompt", "candidates", "name")  # the places of a question of the user's
LIKELIHOOD = "On a second line, give the probability in percent, from 0 to 100, that you wrote {}."


@dataclass(frozen=True)
class Condition:
    """How the questions are put; stored with every record, and conditions are never mixed.

    answer: `free` (a reply in words, parsed) or `constrained` (a JSON choice). told: say to the evaluator which
    candidate it is (the binary question always does). labels: call the candidates by their `names`, their `ids`, or
    `anonymous` letters, each introduced by a text on another prompt. hints: say that the author is one of the
    candidates (the binary question then lists them). show_prompt: show the writing prompt beside the text.
    temperature: of the evaluator. score: P(self) from `logprobs` where the provider gives them, from a `stated`
    probability, or `none`. prevalence: ask exact and binary questions about all texts (`natural`, 1/N are its own) or
    about one other text for each of its own (`balanced`); tell_prevalence: say so. question: who `authored` the text;
    in pairs also which is `better`, in the binary task whether `another` wrote it, so that NO claims it, or whether it
    is `good`, a preference and no claim; or the words of a question of the user's (`own_question`). about: the author
    that the binary question is about, by id, instead of the evaluator; such answers are right or wrong, and claim
    nothing. control: how the texts are changed before they are shown (`apply_control`), or `paraphrased` by the model
    `paraphraser`. effort: of thinking, sent where the provider takes it (one of `EFFORTS`); "" is the model's own.
    provenance: where the text stands: `quoted` in the question, in an `own_turn` of the assistant after the request
    that the text answers, or as `prefill`, the beginning of the answer itself.
    """

    answer: str = "free"
    told: bool = True
    labels: str = "names"
    hints: bool = False
    show_prompt: bool = False
    temperature: float = 0.0
    score: str = "logprobs"
    prevalence: str = "natural"
    tell_prevalence: bool = False
    question: str = "authored"
    control: str = "none"
    paraphraser: str = ""
    effort: str = ""
    provenance: str = "quoted"
    about: str = ""

    def __post_init__(self):
        if self.is_own:
            self._check_own()
        for name, known in CHOICES.items():
            if name != "question" or not self.is_own:
                check_one_of(name, getattr(self, name), known)
        for name in ("told", "hints", "show_prompt", "tell_prevalence"):
            check_flag(name, getattr(self, name))
        check_at_least("temperature", self.temperature, 0)
        if self.effort != "":
            check_one_of("effort", self.effort, EFFORTS)
        if (self.control == "paraphrased") != bool(self.paraphraser):
            rule = "must name a model for `control` = 'paraphrased', and only then"
            raise InputError(f"`paraphraser` {rule}; got {self.paraphraser!r} with {self.control!r}.")
        if self.provenance == "prefill" and self.answer != "free":
            raise InputError("An answer that `provenance` = 'prefill' begins is no JSON; use `answer` = 'free'.")

    @property
    def is_own(self) -> bool:
        """Whether `question` is the words of a question of the user's: no packaged one has a blank or a place."""
        return isinstance(self.question, str) and re.search(r"[\s{}]", self.question) is not None

    def shows(self, place: str) -> bool:
        """Tell whether a question of the user's has a place such as `candidates`."""
        return self.is_own and place in _places(self.question)

    def _check_own(self) -> None:
        """Refuse a question of the user's without the text, with an unknown place, or beside other words."""
        places = _places(self.question)
        unknown = [place for place in places if place not in FILLED]
        known = ", ".join(f"{{{place}}}" for place in FILLED)
        if unknown:
            raise InputError(f"`question` has the place {{{unknown[0]}}}, but the places are {known}.")
        if places.count("text") != 1 or "{text}" not in map(str.strip, self.question.splitlines()):
            rule = "must have {text} once, on a line of its own, where the text is shown"
            raise InputError(f"`question` {rule}; got {self.question!r:.80}.")
        for name in ("hints", "tell_prevalence", "provenance", "about"):
            if getattr(self, name) != getattr(Condition, name):
                raise InputError(f"A `question` of your own is the whole message; leave out `{name}`.")
        if self.labels == "anonymous" or self.score == "stated":
            rule = "takes neither `labels` = 'anonymous' nor `score` = 'stated'"
            raise InputError(f"A `question` of your own {rule}; use other values.")

    def as_recorded(self) -> dict:
        """Return the fields for a record; a question of the user's by the start of its hash, and what it shows."""
        fields = asdict(self)
        if self.is_own:
            fields["question"] = "own-" + hashlib.sha256(self.question.encode()).hexdigest()[:8]
            fields["told"] = self.shows("name")
            fields["show_prompt"] = self.shows("prompt")
            fields["hints"] = self.shows("candidates")
        return fields


def _places(question: str) -> list[str]:
    """Return the names between braces, in their order; raise `InputError` where the braces are not in pairs."""
    try:
        parts = [part for part in Formatter().parse(question) if part[1] is not None]
    except ValueError as error:
        raise InputError(f"`question` cannot be read ({error}); write {{{{ and }}}} for braces.") from error
    return [place + form + (conversion or "") for _, place, form, conversion in parts]


def own_question(question: str) -> str:
    """Return the words of a question: those in a YAML or text file that it names, or the question itself.

    A YAML file holds them as `question`. A packaged question ("authored") is returned as it is.
    """
    if not isinstance(question, str) or not re.fullmatch(r"[^\n{}]+\.(ya?ml|txt)", question):
        return question
    file = path_to_read(question)
    try:
        words = file.read_text(encoding="utf-8")
        if file.suffix != ".txt":
            words = read_yaml(words)["question"]
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError) as error:
        why = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise InputError(f"The `question` file {question} must hold a text under `question` ({why}).") from error
    if not isinstance(words, str) or not re.search(r"[\s{}]", words):
        raise InputError(f"The `question` file {question} must hold words with {{text}}, got {words!r:.80}.")
    return words


@dataclass(frozen=True, eq=False)
class Question:
    """One question to one evaluator, before it is put into words.

    texts: the one asked about; in pairs and lineups all that are shown, in this order. candidates: {author: label} in
    the order shown. introduced: {author: a text of the author's on another prompt}, for anonymous labels.
    """

    task: str
    evaluator: Model
    texts: tuple[dict, ...]
    candidates: dict[str, str]
    condition: Condition
    repeat: int = 0
    introduced: dict[str, str] | None = None

    def request(self, seed: int = 0) -> Request:
        """Return the request that puts the question; seed: of the sampling."""
        condition, provider = self.condition, self.evaluator.provider
        room = provider.answer_tokens + (16 * len(self.texts) if self.task == "lineup" else 0)
        parameters: dict = {"temperature": condition.temperature, "max_tokens": room}
        if condition.effort and provider.effort:
            parameters["reasoning_effort"] = condition.effort
        if provider.name != "sim":
            if condition.answer == "constrained":
                parameters["response_format"] = choice_format(self._choices())
            if condition.score == "logprobs" and provider.logprobs and self.task != "lineup":
                parameters |= {"logprobs": True, "top_logprobs": 20 if self.task == "binary_self" else 10}
        return Request(self.evaluator, self.messages(), parameters, self.repeat, seed)

    def _choices(self) -> dict:
        """Return the options of a constrained answer, by field."""
        names = list(self.candidates.values())
        if self.task == "lineup":
            return {f"text_{k}": names for k in range(1, len(self.texts) + 1)}
        of = {"exact_model": {"author": names}, "binary_self": {"answer": ["YES", "NO"]}}
        stated = {"likelihood": LIKELIHOODS} if self.condition.score == "stated" else {}
        return of.get(self.task, {"text": PAIR}) | stated

    @property
    def _lists(self) -> bool:
        hinted = self.condition.hints or self.introduced or self.condition.shows("candidates")
        return self.task in ("exact_model", "lineup") or bool(self.task == "binary_self" and hinted)

    def messages(self) -> list[dict]:
        """Return the question in words; what many questions share stands first, so that servers can reuse it."""
        if self.condition.is_own:
            return self._own_messages()
        condition, task, labels = self.condition, self.task, list(self.candidates.values())
        written, heading, sure, asked = ASKED[task]
        texts, several = [text["text"] for text in self.texts], task in TASKS[2:]
        parts = [titled(f"Text {k}", text) for k, text in enumerate(texts, 1)] if several else [fenced(texts[0])]
        if condition.provenance != "quoted":
            parts = []
        elif condition.show_prompt:
            parts.append(f"{written} in answer to this request: {self.texts[0]['prompt']}\n\n")
        if self._lists:
            known = self.introduced or {}
            names = self.candidates.items() if known else ()
            parts += [titled(INTRODUCED.format(name), known[author]) for author, name in names]
            parts.append("\n".join([heading, *(f"- {name}" for name in labels)]) + "\n\n")
        if condition.hints:
            parts.append(sure)
        if condition.told or task == "binary_self":
            me = self.candidates.get(self.evaluator.id, self.evaluator.display)
            parts.append(f"You are {self.evaluator.id if condition.labels == 'ids' else me}.\n")
        if condition.tell_prevalence and not several:
            part, are = ("Half", "are") if condition.prevalence == "balanced" else (f"One in {len(labels)}", "is")
            parts.append(f"{part} of the texts in this series {are} your own.\n")
        if condition.question == "better":
            asked = asked.replace(AUTHORED, BETTER)
        who = ANOTHER if condition.question == "another" else self.candidates.get(condition.about, YOU)
        asked = asked.replace(MINE, GOOD if condition.question == "good" else WROTE.format(who))
        ending = " and nothing else."
        if condition.score == "stated":
            ending = f" on the first line. {LIKELIHOOD.format(PAIR[0] if several else 'the text')}"
        question = "".join([*parts, asked.format(n=len(texts)), ending])
        return user(question) if condition.provenance == "quoted" else self._placed(question)

    def _own_messages(self) -> list[dict]:
        """Return a question of the user's with its places filled."""
        [text] = self.texts
        name = self.candidates.get(self.evaluator.id, self.evaluator.display)
        filled = {
            "text": fenced(text["text"]).rstrip("\n"),
            "prompt": text["prompt"],
            "candidates": "\n".join(f"- {label}" for label in self.candidates.values()),
            "name": self.evaluator.id if self.condition.labels == "ids" else name,
        }
        return user(self.condition.question.format(**filled).strip())

    def _placed(self, question: str) -> list[dict]:
        """Return the question about a text that stands in the assistant's own turn, or begins its answer."""
        [request], text = build_request(self.texts[0]), self.texts[0]["text"]
        if self.condition.provenance == "own_turn":
            return [request, {"role": "assistant", "content": text}, *user(BEFORE + question)]
        begun = {"role": "assistant", "content": text + ANSWER}
        return [*user(request["content"] + THEN + question), begun]

    def records(self, response: Response) -> list[dict]:
        """Return the prediction records of a reply: one, in a lineup one per text shown."""
        call = call_fields(self.request(), response)
        if self.condition.provenance == "prefill":  # llama.cpp's server gives back what the answer was begun with
            response = replace(response, text=response.text.removeprefix(call["messages"][-1]["content"]))
        if self.task == "lineup":
            return [self._record(text, response, call, place) for place, text in enumerate(self.texts, 1)]
        if self.task != "pairwise_self":
            return [self._record(self.texts[0], response, call, None)]
        place = 1 + (self.texts[1]["author"] == self.evaluator.id)
        return [self._record(self.texts[place - 1], response, call, place, self.texts[2 - place])]

    def _record(self, text: dict, response: Response, call: dict, place: int | None, other: dict | None = None) -> dict:
        condition = self.condition.as_recorded()
        for name in ("effort", "provenance", "about"):  # as in files from before there were these fields
            if condition[name] == getattr(Condition, name):
                del condition[name]
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
            "candidates": list(self.candidates) if self._lists else None,
            "other_text_id": other and other["text_id"],
            "other_model": other and other["author"],
            "position": place,
            "repeat": self.repeat,
            "leak": bool(leaks(text["text"]) or (other and leaks(other["text"]))),
            "condition": condition,
            "reply": response.text if response.status != "error" else response.error,
            "status": response.status,
            **self._scores(response, place),
            **fields_of(response, "usage", "request_id"),
            **call,
            "text_served_model": text.get("served_model"),
            "text_served_by": text.get("served_by"),
        }
        return record | score(record)

    def _scores(self, response: Response, place: int | None) -> dict:
        """Return P(self) as `score` (in a pair, of the own text), and in the exact task P(candidate) as `scores`.

        Of an answer that is no claim, `good` or `about` another author, `score` is P(YES).
        """
        if self.condition.score == "stated" and self.task != "lineup":
            likely = parse_likelihood(response.text)
            return {"score": likely if likely is None or place != 2 else 1 - likely, "scores": None}
        options = {"binary_self": {"yes": "YES", "no": "NO"}, "pairwise_self": dict(zip(PLACES, PAIR, strict=True))}
        chances = probabilities(response.logprobs, options.get(self.task, self.candidates), self.condition.answer)
        if chances is None:
            return {"score": None, "scores": None}
        yes = "no" if self.condition.question == "another" else "yes"
        own = {"binary_self": yes, "pairwise_self": str(place)}.get(self.task, self.evaluator.id)
        return {"score": chances.get(own), "scores": chances if self.task == "exact_model" else None}
