"""Self-recognition: who is asked about which text, and in which order (Bai et al. 2025, arXiv 2510.03399).

`design` lists the questions of a design (`questions.Question`), `collect_predictions` asks them.
"""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence

from selfeval.answers import anonymous
from selfeval.client import Client
from selfeval.controls import changed
from selfeval.errors import InputError, ProviderError, check_whole
from selfeval.models import Model, display_names, get
from selfeval.questions import TASKS, Condition, Question
from selfeval.writing import paraphrase


async def shown_texts(client: Client, texts: Sequence[dict], condition: Condition, *, seed: int = 0) -> list[dict]:
    """Return the texts as the evaluators are to see them under a condition.

    Raises `ProviderError` where a paraphrase is missing: a design without it would not be balanced.
    """
    if condition.control != "paraphrased":
        return changed(texts, condition.control, seed)
    done, failed = await paraphrase(client, texts, get(condition.paraphraser), seed=seed)
    if failed:
        raise ProviderError(
            f"{condition.paraphraser!r} did not rewrite {len(failed)} of {len(texts)} texts (the first: "
            f"{failed[0]['error'] or failed[0]['status']}); run again, or choose another `paraphraser`."
        )
    return done


async def collect_predictions(
    client: Client,
    evaluators: Sequence[Model],
    texts: Sequence[dict],
    condition: Condition,
    *,
    tasks: str | Sequence[str] = TASKS[:2],
    repeats: int = 1,
    seed: int = 0,
) -> dict[str, list[dict]]:
    """Ask every evaluator the questions of a design; return {task: prediction records} in the design's order."""
    questions = design(evaluators, texts, condition, tasks=tasks, repeats=repeats, seed=seed)
    responses = await client.chat_all([question.request(seed) for question in questions], "answers")
    records: dict[str, list[dict]] = {question.task: [] for question in questions}
    for question, response in zip(questions, responses, strict=True):
        records[question.task] += question.records(response)
    return records


def design(
    evaluators: Sequence[Model],
    texts: Sequence[dict],
    condition: Condition,
    *,
    tasks: str | Sequence[str] = TASKS[:2],
    repeats: int = 1,
    seed: int = 0,
) -> list[Question]:
    """Return all questions in the order in which they are asked; those about one text follow one another.

    The candidates are the authors of the texts, in an order that is balanced over the texts (`candidate_orders`) and
    the same for all evaluators. Raises `InputError` for a design that cannot be asked.
    """
    tasks = [tasks] if isinstance(tasks, str) else list(tasks)
    check_whole("seed", seed, 0)
    check_whole("repeats", repeats, 1)
    _check_design(evaluators, texts, tasks, condition)
    labels = candidate_labels(texts, condition)
    orders = candidate_orders(texts, list(labels), seed)
    introductions = _introductions(texts, seed) if condition.labels == "anonymous" else {}
    single, grouped = [t for t in tasks if t in TASKS[:2]], [t for t in tasks if t in TASKS[2:]]

    def ask(task: str, evaluator: Model, shown: Sequence[dict], order: list[str], repeat: int) -> Question:
        letters = anonymous(len(order)) if condition.labels == "anonymous" else None
        candidates = {c: letters[k] if letters else labels[c] for k, c in enumerate(order)}
        return Question(
            task, evaluator, tuple(shown), candidates, condition, repeat, introductions.get(shown[0]["prompt_id"])
        )

    asked = []
    chosen = _balanced(texts, evaluators, seed) if condition.prevalence == "balanced" else None
    for text in texts if single else ():
        asked += [
            ask(task, evaluator, [text], orders[text["text_id"]], repeat)
            for evaluator in evaluators
            if chosen is None or text["text_id"] in chosen[evaluator.id]
            for task in single
            for repeat in range(repeats)
        ]
    for turn, group in enumerate(_by_prompt(texts) if grouped else ()):
        first = orders[group[0]["text_id"]]
        for task in grouped:
            asked += [
                ask(task, evaluator, shown, first, repeat)
                for evaluator in evaluators
                for shown in (_pairs(group, evaluator) if task == "pairwise_self" else [_rotated(group, turn, seed)])
                for repeat in range(repeats)
            ]
    return asked


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
    for task in tasks:
        if task not in TASKS or tasks.count(task) > 1:
            raise InputError(f"Unknown task {task!r}, or given twice; known are {', '.join(TASKS)}.")
    if not texts or not tasks:
        raise InputError("There is nothing to ask: the corpus has no text, or `tasks` is empty.")
    authors = {text["author"] for text in texts}
    if len(authors) < 2:
        raise InputError(f"The corpus has one author, {texts[0]['author']!r}; recognition needs two or more.")
    if condition.labels == "anonymous" and "pairwise_self" in tasks:
        raise InputError("A pair names no author, so `labels` = 'anonymous' has no meaning for the task pairwise_self.")
    if condition.score == "stated" and ("lineup" in tasks or condition.question == "better"):
        raise InputError("`score` = 'stated' asks for P(wrote the text): it fits neither `lineup` nor 'better'.")
    for evaluator in evaluators:
        provider = evaluator.provider
        if condition.answer == "constrained" and not (provider.json_schema or provider.name == "sim"):
            raise InputError(
                f"The provider `{provider.name}` of {evaluator.id!r} has no `json_schema` in data/models.yaml, so its "
                "answers cannot be constrained; use answer = 'free'."
            )
        own = condition.tell_prevalence or condition.prevalence == "balanced" or "pairwise_self" in tasks
        if own and evaluator.id not in authors:
            raise InputError(
                f"{evaluator.id!r} wrote no text of the corpus, so it cannot be asked in pairs or at a stated or "
                "balanced prevalence; leave it out, or ask it `exact_model` and `binary_self` at natural prevalence."
            )


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


def _pairs(group: Sequence[dict], evaluator: Model) -> Iterator[tuple[dict, dict]]:
    """Yield the evaluator's text with each other author's, in both orders."""
    own = [text for text in group if text["author"] == evaluator.id]
    for mine in own:
        for other in group:
            if other["author"] != evaluator.id:
                yield from ((mine, other), (other, mine))


def _rotated(group: Sequence[dict], turn: int, seed: int) -> list[dict]:
    """Return a lineup's texts so that, from prompt to prompt, every author's text goes round all places."""
    order = sorted(group, key=lambda text: text["author"])
    random.Random(seed).shuffle(order)
    start = turn % len(order)
    return order[start:] + order[:start]


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
        raise InputError(
            "Anonymous authors are introduced by a text on another prompt, so two or more prompts need a text of every "
            f"author, and {len(whole)} have one; use labels = 'names', or another corpus."
        )
    following = dict(zip(whole, whole[1:] + whole[:1], strict=True))
    return {prompt: written[following.get(prompt, whole[0])] for prompt in written}
