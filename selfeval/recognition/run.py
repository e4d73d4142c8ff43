"""Self-recognition: who is asked about which text, and in which order (Bai et al. 2025, arXiv 2510.03399).

`match_authors` says which evaluator wrote which text, `design` lists the questions of a design (`questions.Question`),
`collect_predictions` asks them.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product

from selfeval.errors import InputError, ProviderError, check_flag, check_names, check_whole
from selfeval.providers.client import Client
from selfeval.providers.models import Model, display_names, get
from selfeval.providers.request import is_computed
from selfeval.reading.parsing import name_key
from selfeval.recognition.prompts import TASKS, Condition, Question
from selfeval.recognition.scoring import anonymous
from selfeval.recognition.texts import apply_control, paraphrase


def match_authors(
    texts: Sequence[dict], evaluators: Sequence[Model], authors: Mapping | None = None, *, allow_strangers: bool = False
) -> list[dict]:
    """Return the texts with an evaluator's id as the author of what it wrote.

    An author that is no evaluator's id is the evaluator that is called so: by its id, display name or another name of
    the registry, however they are typed. authors: {author in the corpus: model id}, said by hand; None for none of
    them. allow_strangers: let evaluators pass that wrote no text. Raises `InputError` for one that wrote none, and for
    a name of two.
    """
    check_flag("allow_strangers", allow_strangers)
    displays = {text["author"]: text["author_display"] for text in texts}
    ids = {author: author for author in displays if author in {evaluator.id for evaluator in evaluators}}
    ids |= _by_hand(displays, evaluators, {} if authors is None else authors)
    found: dict[str, str] = {}
    left = [evaluator for evaluator in evaluators if evaluator.id not in ids.values()]
    for author in (author for author in displays if author not in ids):
        called = [evaluator.id for evaluator in left if is_called(evaluator, author, displays[author])]
        rivals = [other for other, model_id in found.items() if called == [model_id]]
        if len(called) > 1 or rivals:
            both = f"{_join([*rivals, author])} of the corpus and {_join(called)} share a name"
            raise InputError(f"{both}; say in `authors` who is who.")
        if called:
            found[author] = called[0]
    ids |= found
    strangers = [evaluator.id for evaluator in evaluators if evaluator.id not in ids.values()]
    if strangers and not allow_strangers:
        raise InputError(
            f"{_join(strangers)} wrote no text of the corpus, whose authors are {_join(displays)}; say in "
            f"`authors` who is who ({{author: {strangers[0]!r}}}), leave it out, or set `allow_strangers` to ask it "
            "about others' texts alone."
        )
    return [text | {"author": ids.get(text["author"], text["author"])} for text in texts]


def _by_hand(
    displays: Mapping[str, str], evaluators: Sequence[Model], said: Mapping[str, str | None]
) -> dict[str, str]:
    """Return {author: model id} of what a user says; an author is called as in the corpus, by id or display name."""
    if not isinstance(said, Mapping):
        raise InputError(f"`authors` must be of the form {{'GPT-4.1': 'openai/gpt-4.1'}}, got {said!r:.80}.")
    own, found = {evaluator.id for evaluator in evaluators}, {}
    for name, model_id in said.items():
        meant = [author for author, display in displays.items() if name in (author, display)]
        if not meant:
            raise InputError(f"`authors` names {name!r}, but the authors of the corpus are {_join(displays)}.")
        known = model_id if model_id is None or model_id in own else get(model_id).id
        found |= {author: known or author for author in meant}
    return found


def is_called(evaluator: Model, author: str, display: str) -> bool:
    """Tell whether an author has a name of an evaluator; one that the registry lists, whether both display the same."""
    registered = display_names([author]).values()
    names = [evaluator.display] if registered else [evaluator.id, *evaluator.all_names]
    return not {*map(name_key, names)}.isdisjoint(map(name_key, [author, display, *registered]))


def _join(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


async def shown_texts(client: Client, texts: Sequence[dict], condition: Condition, *, seed: int = 0) -> list[dict]:
    """Return the texts as the evaluators are to see them under a condition.

    Raises `ProviderError` where a paraphrase is missing: a design without it would not be balanced.
    """
    if condition.control != "paraphrased":
        return apply_control(texts, condition.control, seed)
    done, failed = await paraphrase(client, texts, get(condition.paraphraser), seed)
    if failed:
        why = failed[0]["error"] or failed[0]["status"]
        raise ProviderError(f"`paraphraser` did not rewrite {len(failed)} texts (the first: {why}); run again.")
    return done


async def collect_predictions(
    client: Client, evaluators: Sequence[Model], texts: Sequence[dict], condition: Condition, *, seed: int = 0, **how
) -> dict[str, list[dict]]:
    """Ask every evaluator the questions of a `design`, which takes `how`; return {task: records} in its order."""
    questions = design(evaluators, texts, condition, seed=seed, **how)
    responses = await client.chat_all([question.request(seed) for question in questions], "answers")
    records: dict[str, list[dict]] = {question.task: [] for question in questions}
    for question, response in zip(questions, responses, strict=True):
        records[question.task] += question.records(response)
    return records


def design(
    evaluators: Sequence[Model], texts: Sequence[dict], condition: Condition, *, tasks, repeats=1, seed=0, peers=False
) -> list[Question]:
    """Return all questions in the order in which they are asked; those about one text follow one another.

    The candidates are the authors of the texts, in an order that is balanced over the texts (`candidate_orders`) and
    the same for all evaluators. peers: in pairs, ask about those of two others too, as always of an evaluator that
    wrote no text. Raises `InputError` for a design that cannot be asked.
    """
    tasks = [tasks] if isinstance(tasks, str) else list(tasks)
    check_flag("peers", peers)
    check_whole("seed", seed, 0)
    check_whole("repeats", repeats, 1)
    _check_design(evaluators, texts, tasks, condition)
    labels = candidate_labels(texts, condition)
    orders = candidate_orders(texts, list(labels), seed)
    letters = anonymous(len(labels)) if condition.labels == "anonymous" else None
    introductions = _introductions(texts, seed) if letters else {}

    def candidates(text: dict) -> dict[str, str]:
        order = orders[text["text_id"]]
        return dict(zip(order, letters or map(labels.get, order), strict=True))

    questions = [
        Question(task, evaluator, shown, candidates(text), condition, repeat, introductions.get(text["prompt_id"]))
        for task, evaluator, shown, text in _shown(evaluators, texts, tasks, condition, seed, peers)
        for repeat in range(repeats)
    ]
    asked = {(question.task, question.evaluator.id) for question in questions}
    for evaluator in evaluators if "pairwise_self" in tasks else ():
        if ("pairwise_self", evaluator.id) not in asked:
            raise InputError(f"{evaluator.id!r} shares no prompt with an author, so it has no pair; leave it out.")
    return questions


def _shown(
    evaluators: Sequence[Model], texts: Sequence[dict], tasks: list[str], condition: Condition, seed: int, peers: bool
) -> Iterator[tuple]:
    """Yield (task, evaluator, the texts shown, the text whose order of candidates is shown) in the design's order."""
    chosen = _balanced(texts, evaluators, seed) if condition.prevalence == "balanced" else None
    authors = {text["author"] for text in texts}
    for text in texts:
        for evaluator in evaluators:
            if chosen is None or text["text_id"] in chosen[evaluator.id]:
                for task in tasks:
                    if TASKS[task].one_text:
                        yield task, evaluator, (text,), text
    for turn, group in enumerate(_by_prompt(texts)):
        for task in (task for task in tasks if not TASKS[task].one_text):
            for evaluator in evaluators:
                lineup = [_rotated(group, turn, seed)]
                neutral = peers or evaluator.id not in authors
                for shown in lineup if task == "lineup" else _pairs(group, evaluator, neutral):
                    yield task, evaluator, shown, group[0]


def candidate_labels(texts: Sequence[dict], condition: Condition) -> dict[str, str]:
    """Return {author: what the questions call it}; raise `InputError` where two authors are called the same."""
    labels = {text["author"]: text["author_display"] for text in texts}
    labels |= display_names(labels)
    if condition.labels == "ids":
        return {author: author for author in labels}
    if len(set(labels.values())) < len(labels):
        raise InputError(f"Two authors share a name in {sorted(labels.values())}; name them apart in the registry.")
    return labels


def _check_design(evaluators: Sequence[Model], texts: Sequence[dict], tasks: list[str], condition: Condition) -> None:
    check_names("tasks", tasks, TASKS)
    if not texts or not tasks:
        raise InputError("There is nothing to ask: the corpus has no text, or `tasks` is empty.")
    authors = {text["author"] for text in texts}
    if len(authors) < 2:
        raise InputError(f"The corpus has one author, {texts[0]['author']!r}; recognition needs two or more.")
    if condition.labels == "anonymous" and "pairwise_self" in tasks:
        raise InputError("A pair names no author, so `labels` = 'anonymous' has no meaning for the task pairwise_self.")
    _check_question(authors, tasks, condition)
    if condition.provenance != "quoted" and not all(TASKS[task].one_text for task in tasks):
        raise InputError(f"`provenance` = {condition.provenance!r} is about one text; ask exact_model or binary_self.")
    called = {text["author_display"] for text in texts} | {*display_names(authors).values()}
    for evaluator in evaluators:
        _check_provider(evaluator, condition)
        if evaluator.id not in authors and evaluator.display in called:
            called = f"{evaluator.id!r} is called {evaluator.display!r}, like an author of the corpus that is not it"
            raise InputError(f"{called}; say in `authors` who is who.")
        own = condition.tell_prevalence or condition.prevalence == "balanced"
        if own and evaluator.id not in authors:
            raise InputError(f"{evaluator.id!r} wrote no text of the corpus; ask it at natural prevalence alone.")


def _check_question(authors: set[str], tasks: list[str], condition: Condition) -> None:
    """Refuse a question that no task of the design has, or about somebody who wrote nothing."""
    question, about = condition.question, condition.about
    if condition.is_own:
        if len(tasks) != 1 or not TASKS[tasks[0]].one_text:
            raise InputError(f"A `question` of your own is for exact_model or binary_self alone, got {_join(tasks)}.")
        if tasks == ["exact_model"] and "candidates" not in condition.places:
            raise InputError("A `question` for exact_model must have {candidates}, the names to choose from.")
        return
    task = {"authored": "binary_self" if about else "", "better": "pairwise_self"}.get(question, "binary_self")
    if task and tasks != [task]:
        name, value = ("about", about) if about else ("question", question)
        raise InputError(f"`{name}` = {value!r} is for the task `{task}` alone, got {_join(tasks)}.")
    if about and (about not in authors or question != "authored"):
        rule = f"an author of the corpus ({_join(sorted(authors))}), with `question` = 'authored'"
        raise InputError(f"`about` must be {rule}; got {about!r} with {question!r}.")
    if condition.score == "stated" and ("lineup" in tasks or about or question in ("better", "good")):
        raise InputError("`score` = 'stated', P(wrote it), fits neither `lineup` nor 'better', 'good' or `about`.")


def _check_provider(evaluator: Model, condition: Condition) -> None:
    provider, of = evaluator.provider, f"The provider `{evaluator.provider.name}` of {evaluator.id!r}"
    if condition.answer == "constrained" and not (provider.json_schema or provider.name == "sim"):
        raise InputError(f"{of} has no `json_schema`, so answers cannot be constrained; use answer = 'free'.")
    if condition.provenance == "prefill" and not (provider.prefill or is_computed(evaluator)):
        raise InputError(f"{of} is not known to go on with an answer that was begun; if it is, set `prefill: true`.")


def candidate_orders(texts: Sequence[dict], candidates: Sequence[str], seed: int) -> dict[int, list[str]]:
    """Return {text id: candidates in the order shown}, shuffled by prompt and rotated by text.

    A model that names whoever stands first must not seem to recognise anybody, and chance alone does not see to that:
    with independent shuffles, one evaluator's own name stood first on 9 of its own 10 texts and on 5 of 20 others.
    So on the texts for a prompt every name stands at every place once, and the true author's place goes round from
    prompt to prompt: the discrimination of an evaluator that looks at the order alone is 0 by design.
    """
    turns: dict = {}
    orders = {}
    for text in texts:
        prompt = text["prompt_id"], text["sample"]
        turn = turns.setdefault(prompt, len(turns))
        order = list(candidates)
        draw = random.Random(f"{seed} {prompt}")
        draw.shuffle(order)
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
    """Yield the evaluator's text with each other author's, in both orders; with `neutral` then those of two others."""
    own, others = ([text for text in group if (text["author"] == evaluator.id) == mine] for mine in (True, False))
    for mine, other in product(own, others):
        yield from ((mine, other), (other, mine))
    for one, other in combinations(others, 2) if neutral else ():
        if one["author"] != other["author"]:
            yield from ((one, other), (other, one))


def _rotated(group: Sequence[dict], turn: int, seed: int) -> tuple[dict, ...]:
    """Return a lineup's texts so that, from prompt to prompt, every author's text goes round all places."""
    order = sorted(group, key=lambda text: text["author"])
    random.Random(seed).shuffle(order)
    start = turn % len(order)
    return *order[start:], *order[:start]


def _balanced(texts: Sequence[dict], evaluators: Sequence[Model], seed: int) -> dict[str, set[int]]:
    """Return {evaluator: text ids}: its own texts, and for each another author's on the same prompt, in turn."""
    chosen: dict[str, set[int]] = {evaluator.id: set() for evaluator in evaluators}
    for evaluator in evaluators:
        for turn, group in enumerate(_by_prompt(texts)):
            own = [text for text in group if text["author"] == evaluator.id]
            others = sorted((text for text in group if text["author"] != evaluator.id), key=lambda t: t["author"])
            if own and others:
                chosen[evaluator.id] |= {own[0]["text_id"], others[(turn + seed) % len(others)]["text_id"]}
    return chosen


def _introductions(texts: Sequence[dict], seed: int) -> dict[str, dict[str, str]]:
    """Return {prompt id: {author: the author's text on another prompt, the same for all}}, for anonymous candidates."""
    written: dict[str, dict[str, str]] = defaultdict(dict)
    for text in texts:
        written[text["prompt_id"]].setdefault(text["author"], text["text"])
    everyone = {text["author"] for text in texts}
    whole = [prompt for prompt, by in written.items() if set(by) == everyone]
    random.Random(seed).shuffle(whole)
    if len(whole) < 2:
        rule = f"two or more prompts need a text of every author, and {len(whole)} have one"
        raise InputError(f"To introduce anonymous authors, {rule}; use labels = 'names', or another corpus.")
    following = dict(zip(whole, whole[1:] + whole[:1], strict=True))
    return {prompt: written[following.get(prompt, whole[0])] for prompt in written}
