"""Self-recognition: who is asked about which text, in which order (Bai et al. 2025, 2510.03399).

`match_authors` says which evaluator wrote which text, `design` lists the questions of a design
(`prompts.Question`), `collect_predictions` asks them.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product

from selfeval.errors import InputError, check_flag, check_names, check_whole
from selfeval.providers.client import Client
from selfeval.providers.models import Model, display_names, get, several
from selfeval.providers.request import is_computed
from selfeval.reading.parsing import name_key
from selfeval.recognition.prompts import Condition, Question
from selfeval.records.tasks import TASKS


def match_authors(
    texts: Sequence[dict],
    evaluators: Sequence[Model],
    authors: Mapping | None = None,
    *,
    allow_strangers: bool = False,
) -> list[dict]:
    """Return the texts with an evaluator's id as the author of what it wrote.

    An author that is no evaluator's id is the evaluator that is called so: by its id, display name
    or another name of the registry, however they are typed. authors: {author in the corpus: model
    id}, said by hand; None for none of them. allow_strangers: let evaluators pass that wrote no
    text. Raises `InputError` for one that wrote none, and for a name of two.
    """
    check_flag("allow_strangers", allow_strangers)
    displays = {text["author"]: text["author_display"] for text in texts}
    evaluator_ids = {evaluator.id for evaluator in evaluators}
    ids = {author: author for author in displays if author in evaluator_ids}
    ids |= _by_hand(displays, evaluator_ids, {} if authors is None else authors)
    left = [evaluator for evaluator in evaluators if evaluator.id not in ids.values()]
    for author, display in displays.items():
        if author in ids:
            continue
        called = [evaluator.id for evaluator in left if is_called(evaluator, author, display)]
        rivals = [other for other, model_id in ids.items() if called == [model_id]]
        if len(called) > 1 or rivals:
            raise InputError(
                f"{_join([*rivals, author])} of the corpus and {_join(called)} share a name; say "
                "in `authors` who is who."
            )
        if called:
            ids[author] = called[0]
    strangers = [evaluator.id for evaluator in left if evaluator.id not in ids.values()]
    if strangers and not allow_strangers:
        raise InputError(
            f"{_join(strangers)} wrote no text of the corpus, whose authors are {_join(displays)}; "
            f"say in `authors` who is who ({{author: {strangers[0]!r}}}), leave it out, or set "
            "`allow_strangers` to ask it about others' texts alone."
        )
    return [text | {"author": ids.get(text["author"], text["author"])} for text in texts]


def _by_hand(
    displays: Mapping[str, str],
    evaluator_ids: set[str],
    said: Mapping[str, str | None],
) -> dict[str, str]:
    """Return {author: model id} of what a user says; authors go by id or display name."""
    if not isinstance(said, Mapping):
        form = "{'GPT-4.1': 'openai/gpt-4.1'}"
        raise InputError(f"`authors` must be of the form {form}, got {said!r:.80}.")
    ids = {}
    for name, model_id in said.items():
        meant = [author for author, display in displays.items() if name in (author, display)]
        if not meant:
            known = f"the authors of the corpus are {_join(displays)}"
            raise InputError(f"`authors` names {name!r}, but {known}.")
        if model_id and model_id not in evaluator_ids:
            model_id = get(model_id).id
        ids |= {author: model_id or author for author in meant}
    return ids


def is_called(evaluator: Model, author: str, display: str) -> bool:
    """Tell whether an author has a name of an evaluator; a registered one, its display name."""
    registered = display_names([author]).values()
    names = [evaluator.display] if registered else [evaluator.id, *evaluator.all_names]
    keys = {name_key(name) for name in names}
    return not keys.isdisjoint(map(name_key, [author, display, *registered]))


def _join(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


async def collect_predictions(
    client: Client,
    evaluators: Sequence[Model],
    texts: Sequence[dict],
    condition: Condition,
    *,
    seed: int = 0,
    **how,
) -> dict[str, list[dict]]:
    """Ask every evaluator the questions of a `design`, which takes `how`; {task: records}."""
    questions = design(evaluators, texts, condition, seed=seed, **how)
    requests = [question.request(seed) for question in questions]
    responses = await client.chat_all(requests, "answers")
    records = defaultdict(list)
    for question, response in zip(questions, responses, strict=True):
        records[question.task] += question.records(response)
    return dict(records)


def design(
    evaluators: Sequence[Model],
    texts: Sequence[dict],
    condition: Condition,
    *,
    tasks,
    repeats=1,
    seed=0,
    peers=False,
) -> list[Question]:
    """Return all questions in the order in which they are asked, those about one text together.

    The candidates are the authors of the texts, in an order that is balanced over the texts
    (`candidate_orders`) and the same for all evaluators. peers: in pairs, ask about those of two
    others too, as always of an evaluator that wrote no text. Raises `InputError` for a design that
    cannot be asked.
    """
    tasks = several(tasks, "tasks")
    check_flag("peers", peers)
    check_whole("seed", seed, 0)
    check_whole("repeats", repeats, 1)
    _check_design(evaluators, texts, tasks, condition)
    labels = candidate_labels(texts, condition)
    orders = candidate_orders(texts, list(labels), seed)
    questions = []
    for task, evaluator, shown, text in _shown(evaluators, texts, tasks, seed, peers):
        order = orders[text["text_id"]]
        candidates = {author: labels[author] for author in order}
        question = Question(task, evaluator, shown, candidates, condition)
        for repeat in range(repeats):
            questions.append(replace(question, repeat=repeat))
    asked = {(question.task, question.evaluator.id) for question in questions}
    for task, evaluator in product(tasks, evaluators):
        if TASKS[task].answer == "place" and (task, evaluator.id) not in asked:
            rule = "shares no prompt with an author, so it has no pair; leave it out"
            raise InputError(f"{evaluator.id!r} {rule}.")
    return questions


def _shown(
    evaluators: Sequence[Model],
    texts: Sequence[dict],
    tasks: list[str],
    seed: int,
    peers: bool,
) -> Iterator[tuple]:
    """Yield (task, evaluator, texts shown, the text whose order of candidates is shown)."""
    of_one_text = [task for task in tasks if TASKS[task].one_text]
    of_a_prompt = [task for task in tasks if not TASKS[task].one_text]
    for text, evaluator, task in product(texts, evaluators, of_one_text):
        yield task, evaluator, (text,), text
    authors = {text["author"] for text in texts}
    for turn, group in enumerate(_by_prompt(texts)):
        for task, evaluator in product(of_a_prompt, evaluators):
            sets: Iterable = [_rotated(group, turn, seed)]
            if TASKS[task].answer == "place":
                sets = _pairs(group, evaluator, peers or evaluator.id not in authors)
            for shown in sets:
                yield task, evaluator, shown, group[0]


def candidate_labels(texts: Sequence[dict], condition: Condition) -> dict[str, str]:
    """Return {author: what the questions call it}; `InputError` where two are called the same."""
    labels = {text["author"]: text["author_display"] for text in texts}
    labels |= display_names(labels)
    if condition.labels == "ids":
        return {author: author for author in labels}
    if len(set(labels.values())) < len(labels):
        names = sorted(labels.values())
        raise InputError(f"Two authors share a name in {names}; name them apart in the registry.")
    return labels


def _check_design(
    evaluators: Sequence[Model],
    texts: Sequence[dict],
    tasks: list[str],
    condition: Condition,
) -> None:
    check_names("tasks", tasks, TASKS)
    if not texts or not tasks:
        raise InputError("There is nothing to ask: the corpus has no text, or `tasks` is empty.")
    authors = {text["author"] for text in texts}
    if len(authors) < 2:
        [author] = authors
        raise InputError(f"The corpus has one author, {author!r}; recognition needs two or more.")
    _check_question(authors, tasks, condition)
    displays = {text["author_display"] for text in texts}
    displays.update(display_names(authors).values())
    for evaluator in evaluators:
        _check_provider(evaluator, condition)
        if evaluator.id not in authors and evaluator.display in displays:
            raise InputError(
                f"{evaluator.id!r} is called {evaluator.display!r}, like an author of the corpus "
                "that is not it; say in `authors` who is who."
            )


def _check_question(authors: set[str], tasks: list[str], condition: Condition) -> None:
    """Refuse a question that no task of the design has, or about somebody who wrote nothing."""
    question = condition.question
    about = condition.about
    asked = [TASKS[task] for task in tasks]
    able = [name for name, task in TASKS.items() if question in task.asked]
    of_one_text = all(task.one_text for task in asked)
    named = any(task.answer == "author" for task in asked)
    is_claim = tasks == ["binary_self"] and question == "authored" and about in authors
    known = _join(sorted(authors))
    rules = {
        "`provenance` is about one text; ask exact_model or binary_self": (
            condition.provenance != "quoted" and not of_one_text
        ),
        "A `question` of your own is for exact_model or binary_self alone": (
            condition.is_own and (len(tasks) > 1 or not of_one_text)
        ),
        "A `question` for exact_model must have {candidates}, the names to choose from": (
            condition.is_own and named and "candidates" not in condition.placeholders
        ),
        f"`question` = {question!r} is for the task `{able[0] if able else ''}` alone": (
            len(able) == 1 and tasks != able
        ),
        f"`about` must be an author of the corpus ({known}), with the task `binary_self` alone and "
        f"`question` = 'authored'; it is {about!r}": about != "" and not is_claim,
    }
    for rule, is_broken in rules.items():
        if is_broken:
            raise InputError(f"{rule}; got tasks {_join(tasks)}.")


def _check_provider(evaluator: Model, condition: Condition) -> None:
    """Refuse an evaluator whose provider cannot be asked so."""
    provider = evaluator.provider
    can_go_on = provider.prefill or is_computed(evaluator)
    if condition.provenance == "prefill" and not can_go_on:
        named = f"The provider `{provider.name}` of {evaluator.id!r}"
        rule = "is not known to go on with an answer that was begun; if it is, set `prefill: true`"
        raise InputError(f"{named} {rule}.")


def candidate_orders(
    texts: Sequence[dict],
    candidates: Sequence[str],
    seed: int,
) -> dict[int, list[str]]:
    """Return {text id: candidates in the order shown}, shuffled by prompt and rotated by text.

    A model that names whoever stands first must not seem to recognise anybody, and chance alone
    does not see to that: with independent shuffles, one evaluator's own name stood first on 9 of
    its own 10 texts and on 5 of 20 others. So on the texts for a prompt every name stands at every
    place once, and the true author's place goes round from prompt to prompt: the discrimination of
    an evaluator that looks at the order alone is 0 by design.
    """
    turns: dict = {}
    orders = {}
    for text in texts:
        prompt = text["prompt_id"], text["sample"]
        turn = turns.setdefault(prompt, len(turns))
        order = list(candidates)
        random.Random(f"{seed} {prompt}").shuffle(order)
        start = (order.index(text["author"]) - turn - seed) % len(order)
        orders[text["text_id"]] = order[start:] + order[:start]
    return orders


def _by_prompt(texts: Sequence[dict]) -> list[list[dict]]:
    """Return the texts that answer the same prompt, sample by sample."""
    groups = defaultdict(list)
    for text in texts:
        groups[text["prompt_id"], text["sample"]].append(text)
    return list(groups.values())


def _pairs(group: Sequence[dict], evaluator: Model, neutral: bool) -> Iterator[tuple[dict, dict]]:
    """Yield the evaluator's text with each other author's, in both orders.

    neutral: then those of two others as well.
    """
    own = [text for text in group if text["author"] == evaluator.id]
    others = [text for text in group if text["author"] != evaluator.id]
    pairs = [*product(own, others)]
    if neutral:
        pairs += combinations(others, 2)
    for one, other in pairs:
        if one["author"] != other["author"]:
            yield one, other
            yield other, one


def _rotated(group: Sequence[dict], turn: int, seed: int) -> tuple[dict, ...]:
    """Return a lineup's texts so that every author's goes round all places, prompt by prompt."""
    order = sorted(group, key=lambda text: text["author"])
    random.Random(seed).shuffle(order)
    start = turn % len(order)
    return *order[start:], *order[:start]
