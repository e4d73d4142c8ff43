"""The verbs that a notebook needs: ids, rows, DataFrames or files go in, DataFrames come out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Unpack

import pandas as pd

from selfeval import results, stats
from selfeval.errors import InputError, ProviderError, check_one_of, check_whole, meant_by
from selfeval.estimates.summaries import silence
from selfeval.existence import run as existence
from selfeval.figures.estimates import Estimates, estimates_of
from selfeval.identity import replies as identity_replies
from selfeval.identity.attack import run_attacks
from selfeval.identity.measures import READINGS
from selfeval.identity.run import ARMS, run_suite
from selfeval.paths import check_begins
from selfeval.providers import dry_runs
from selfeval.providers import models as registry
from selfeval.providers.client import Asking, Client, verb
from selfeval.providers.embedded import require
from selfeval.providers.models import Model, can_choose, get_all, several
from selfeval.recognition import run as recognition_run
from selfeval.recognition import scoring as recognition_scoring
from selfeval.recognition import texts
from selfeval.recognition.contrasts import (
    OWN,
    STYLE,
    as_readings,
    beyond_rivals,
    is_rival,
    read_for_authors,
    reading_gaps,
)
from selfeval.recognition.counts import tallies
from selfeval.recognition.doubts import lengths_differ
from selfeval.recognition.prompts import Condition
from selfeval.recognition.texts import (
    apply_control,
    collect_likelihoods,
    implicit_predictions,
    leaks,
    mixed_settings,
)
from selfeval.records import tables as record_files
from selfeval.records.foreign import read_predictions
from selfeval.records.tables import Rows
from selfeval.records.texts import read_texts
from selfeval.results import Records
from selfeval.roleplay import conversation
from selfeval.roleplay import run as jury_run
from selfeval.roleplay import verdicts as verdict_files
from selfeval.roleplay.measures import baselines
from selfeval.roleplay.scoring import verdict_scores
from selfeval.roleplay.transcripts import read_conversations, together
from selfeval.secrets import tell
from selfeval.simulated import ask

Asked = str | Model | Callable
Ids = Asked | Iterable[Asked] | Mapping[str, Callable]
# how files of texts, and of answers about texts, begin
BY_TEXT = b'{"text_id": 1'
# the usual condition of `collect_predictions`
USUAL = Condition(answer="constrained")


# --- models


@verb
def list_models() -> pd.DataFrame:
    """Return the models of the registry.

    Id, name, provider, price per million tokens, and what it still needs. Those that need nothing
    can be asked now and come first.
    """
    rows = []
    for model in registry.models().values():
        price: Mapping = model.price or {"input": None, "output": None}
        if model.provider.embedded or model.provider.name == "sim":
            price = {"input": 0, "output": 0}
        row = {
            "model": model.id,
            "name": model.display,
            "provider": model.provider.name,
            "usd_input": price["input"],
            "usd_output": price["output"],
            "needs": _needs(model),
        }
        rows.append(row)
    table = pd.DataFrame(rows)
    needs_something = table["needs"] != ""
    return table.loc[needs_something.sort_values(kind="stable").index].reset_index(drop=True)


def _needs(model: Model) -> str:
    """Return what is missing before a model can be asked."""
    try:
        require(registry.get(model))
    except (InputError, ProviderError):
        missing = model.provider.missing_variable
        return f"set {missing}" if missing else "see `selfeval doctor`"
    return ""


# --- self-recognition


@verb
def generate_texts(
    models: Ids,
    prompts: int | Rows = 20,
    *,
    words: int = 60,
    samples: int = 1,
    temperature: float = 0.7,
    seed: int = 0,
    limit: int = 0,
    corpus: str = "",
    **asking: Unpack[Asking],
) -> Records:
    """Have every author write on every prompt; return one row per text.

    models: ids of authors. prompts: how many of the packaged prompts to use, a file, texts, or rows
    with `prompt_id` and `prompt`; "chats" for beginnings of chats between people, with what they
    wrote. limit: only the first `limit`. words: the length asked for. samples: texts per prompt and
    author. temperature: for models that the registry gives none. seed: of the sampling, where a
    provider takes one. corpus: a name below data/corpora/, to keep the texts. The frame's
    `failures` are the requests without a text.
    """

    async def work(client: Client) -> Records:
        if corpus:
            check_begins(record_files.corpus_file(corpus), BY_TEXT)
        asked, by_people = texts.writing_prompts(prompts, limit, words, seed)
        by_models, failures = await texts.generate_texts(
            client,
            get_all(models, "write texts"),
            asked,
            samples=samples,
            words=words,
            temperature=temperature,
            seed=seed,
        )
        tell(texts.missing_texts(by_models, failures))
        rows = by_people + by_models
        if corpus and not dry_runs.is_counting():
            record_files.write_jsonl(record_files.corpus_file(corpus), rows)
        frame = Records(rows)
        frame.failures = failures
        return frame

    return ask(work, asking)


def _check_place(out: str, *names: str) -> None:
    """Refuse a folder where other files have the names of records about texts."""
    if out:
        for name in names:
            check_begins(record_files.data_path(out) / f"{name}.jsonl", BY_TEXT)


def _keep(out: str, **tables: Sequence[dict]) -> None:
    """Write records to a folder below data/, a file each; nothing without one, or in a dry run."""
    if out and not dry_runs.is_counting():
        for name, rows in tables.items():
            record_files.write_jsonl(record_files.data_path(out) / f"{name}.jsonl", rows)


@verb
def collect_predictions(
    texts: Rows,
    models: Ids | None = None,
    *,
    tasks: str | Sequence[str] = ("exact_model", "binary_self"),
    repeats: int = 1,
    seed: int = 0,
    limit: int = 0,
    authors: Mapping[str, str | None] | None = None,
    allow_strangers: bool = False,
    out: str = "",
    peers: bool = False,
    answer: str = "constrained",
    told: bool = True,
    labels: str = "names",
    hints: bool = False,
    show_prompt: bool = False,
    temperature: float = 0.0,
    score: str = "logprobs",
    question: str = "authored",
    control: str = "none",
    effort: str = "",
    provenance: str = "quoted",
    about: str = "",
    condition: Mapping | None = None,
    **asking: Unpack[Asking],
) -> Records:
    """Ask evaluators who wrote each text; return one row per answer.

    texts: a frame, rows with `author`, `prompt` and `text`, a file, or a corpus by name. models:
    ids of the evaluators; None for the authors. tasks: `exact_model` (which of the authors?),
    `binary_self` (did you?), `pairwise_self` (which of two is yours?), `lineup` (who wrote each?),
    or several. repeats: how often each question is asked. limit: only the texts on the first
    `limit` prompts. authors: {author in the texts: model id} where names do not say it, None for no
    model. allow_strangers: also ask evaluators that wrote no text, in pairs about two others'
    texts. seed: of the order of candidates. out: a folder below data/, to keep the answers as
    predictions_<task>.jsonl. peers: in pairs, also ask each evaluator about two others' texts,
    which is the baseline of a preference for its own.

    answer: `constrained` (a JSON choice, where the provider can) or `free` (a reply in words).
    told: say to the evaluator which candidate it is. labels: call candidates by `names` or `ids`.
    hints: say that the author is one of the candidates. show_prompt: show the writing prompt.
    temperature: of the evaluator. score: P(self) from `logprobs`, or `none`. question: who
    `authored` the text; in pairs also which is `better`; in the binary task also whether `another`
    wrote it (NO claims it), or whether it is `good` (YES is a preference, no claim); or the words
    of a question of your own: {text}, and where wanted {prompt}, {candidates} and {name} of the
    evaluator (one of exact_model and binary_self; YES claims the text). about: ask the binary
    question about this author, an id, instead of the evaluator; `score` is then P(YES). control:
    `truncated` shows the texts cut to equal length. effort: of thinking. provenance: the text is
    `quoted`, stands in an `own_turn` of the assistant, or as `prefill` begins its answer.
    condition: all or some of these in one, a mapping such as {"told": False}.
    """
    put = _condition(
        condition,
        answer=answer,
        told=told,
        labels=labels,
        hints=hints,
        show_prompt=show_prompt,
        temperature=temperature,
        score=score,
        question=question,
        control=control,
        effort=effort,
        provenance=provenance,
        about=about,
    )
    names = several(tasks, "tasks")

    async def work(client: Client) -> Records:
        _check_place(out, *(f"predictions_{task}" for task in names))
        rows = read_texts(texts, limit)
        tell(mixed_settings(rows))
        ids = _authors(rows, authors) if models is None else models
        judges = get_all(ids, "recognise texts")
        rows = recognition_run.match_authors(rows, judges, authors, allow_strangers=allow_strangers)
        asked = put
        if put.answer == "constrained" and not can_choose(judges):
            asked = replace(put, answer="free")
        rows = apply_control(rows, asked.control)
        shown = pd.DataFrame(rows)
        tell(lengths_differ(shown["author"], shown["words"]))
        by_task = await recognition_run.collect_predictions(
            client, judges, rows, asked, tasks=tasks, repeats=repeats, seed=seed, peers=peers
        )
        _keep(out, **{f"predictions_{task}": answers for task, answers in by_task.items()})
        return Records(chain.from_iterable(by_task.values()))

    return ask(work, asking)


def _condition(condition, **keywords) -> Condition:
    """Return the condition of the questions, as it is given, or else in keywords.

    Refuses what both say differently.
    """
    parts = condition or {}
    if not isinstance(parts, Mapping):
        kind = "a mapping, such as {'answer': 'free'}"
        raise InputError(f"`condition` must be {kind}, got {condition!r:.80}.")
    for name, value in parts.items():
        if name not in keywords:
            meant = meant_by(name, keywords) or f"; it has {', '.join(keywords)}."
            raise InputError(f"`condition` has no part {name!r}{meant}")
        if keywords[name] not in (value, getattr(USUAL, name)):
            both = f"`{name}` is {keywords[name]!r}, and in `condition` {value!r}"
            raise InputError(f"{both}; give it once.")
    put = keywords | dict(parts)
    return Condition(**put)


def _authors(rows: Sequence[dict], said: Mapping[str, str | None] | None = None) -> list[str]:
    """Return the ids of the models that wrote texts: by id, by one model's name, or as `said`."""
    said = said or {}
    ids = [model for model in said.values() if model]
    displays = {row["author"]: row["author_display"] for row in rows}
    requested = {row["author"] for row in rows if isinstance(row.get("messages"), list)}
    served = {row["author"] for row in rows if row.get("served_model")}
    asked = _askable(requested & served)
    registered = registry.models()
    for author, display in displays.items():
        if author in registered or author in registry.GIVEN or author in asked:
            ids.append(author)
        elif author not in said and display not in said:
            called = [
                model.id
                for model in registered.values()
                if recognition_run.is_called(model, author, display)
            ]
            if len(called) == 1:
                ids += called
            elif author in requested:
                tell([f"{author!r} wrote texts and is not asked; name it in `models` to ask it."])
    if not ids:
        first = next(iter(displays))
        raise InputError(
            f"None of the authors ({', '.join(map(repr, displays))}) is a model; name evaluators "
            f"in `models`, and in `authors` who is who ({{{first!r}: id}}). "
            f"The ids are {', '.join(registered)}."
        )
    return list(dict.fromkeys(ids))


def _askable(served: Iterable[str]) -> set[str]:
    """Return which authors, whose texts a provider served, can be asked by their id now.

    Without `served_model` a text may be by a function of an earlier program, whose name could be
    the id of a paid model.
    """
    can_be_asked = set()
    for author in served:
        with suppress(InputError):  # such as a file that is gone
            registry.get(author)
            can_be_asked.add(author)
    return can_be_asked


@verb
def likelihoods(
    texts: Rows,
    models: Ids | None = None,
    *,
    show_prompt: bool = True,
    limit: int = 0,
    out: str = "",
    **asking: Unpack[Asking],
) -> Records:
    """Compute how likely each text is under each model; return one row per text and candidate.

    texts: as for `collect_predictions`. models: the candidates, on servers that give the likelihood
    of a text (the embedded ones, llama.cpp); None for the authors that are. show_prompt:
    False computes it without the writing prompt, in whose place stands "Write a text.", with the
    length that was asked for. limit: only the texts on the first `limit` prompts. out: a folder
    below data/, to keep likelihoods.jsonl. `logprob` is log P(text | its prompt) in nats, before
    temperature, and null where the server leaves out a token.
    """

    async def work(client: Client) -> Records:
        _check_place(out, "likelihoods")
        rows = read_texts(texts, limit)
        chosen = get_all(_authors(rows) if models is None else models)
        rows = recognition_run.match_authors(rows, chosen, allow_strangers=True)
        able = [model for model in chosen if model.provider.likelihood]
        unable = [model.id for model in chosen if model not in able]
        if unable:
            server = f"The server of {', '.join(map(repr, unable))}"
            sentence = f"{server} gives no log-probabilities of a text"
            if models is not None:
                remedy = "ask models on llama.cpp, such as local/smollm2-135m"
                raise InputError(f"{sentence}; {remedy} (`likelihood` in data/models.yaml).")
            print(f"{sentence}; it is left out.")
        values = await collect_likelihoods(client, able, rows, show_prompt)
        _keep(out, likelihoods=values)
        return Records(values)

    return ask(work, asking)


@verb
def measure_recognition(
    predictions: Rows,
    *,
    statistics: Sequence[str] = (),
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
    reread: str = "auto",
    columns: Mapping[str, str] | None = None,
    authors: Mapping[str, str | None] | None = None,
) -> Estimates:
    """Return the statistics of prediction records, one row per evaluator and statistic.

    The statistics are those of `stats.recognition_table`.

    predictions: a frame, records, files or folders. statistics: only these, such as
    "discrimination". level: of the intervals. n_resamples, seed: of the bootstrap.
    reread: read the answers from the raw replies anew (`yes`), keep those on record (`no`), or
    `auto`; what that takes back is printed.
    columns: {their name of a field: ours}. authors: {name in the records: author}, None for
    somebody else, "no answer" for what is no answer, such as "unknown"; raises `InputError` for
    answers that name nobody known. The frame's `tables` have the rows of all methods and policies,
    what `compare` shows, and `changes`: what reading changed.
    """
    frame = read_predictions(predictions, columns, authors)
    frame, changes = recognition_scoring.rescore(frame, reread)
    names = _names(frame, "evaluator_model", "true_model")
    tell(results.reading(frame, changes, names))
    if isinstance(statistics, str):
        statistics = [statistics]
    counted = list(tallies(frame))
    table = stats.recognition_table(counted, n_resamples=n_resamples, level=level, seed=seed)
    more = {
        "counts": stats.confusion(frame),
        "roc": stats.roc_points(frame, table),
        "contrasts": stats.condition_contrasts(frame, level=level),
        "paired": stats.paired_models(counted, level=level),
        "changes": changes,
    }
    result = estimates_of("recognition", table, more, frame, names, statistics)
    tell(silence(result))
    return result


def _names(frame: pd.DataFrame, *columns: str) -> dict[str, str]:
    """Return the display names of the models in some columns."""
    return registry.display_names(pd.concat([frame[name] for name in columns]).unique())


@verb
def measure_implicit(
    likelihoods: Rows,
    predictions: Rows,
    texts: Rows = (),
    *,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> Estimates:
    """Return what weights hold, words say and style shows of a model's own texts.

    One row per model and statistic.

    likelihoods: of `se.likelihoods`, files or folders. predictions: answers to the exact or yes/no
    question about the same texts. texts: the corpus, for the reader of style; without, there is
    none. level: of the intervals. n_resamples, seed: of the bootstrap over prompts. `condition`
    says the reading; `tables["gaps"]` and `compare(result, by="condition")` have the AUC within
    prompts of a model's own likelihood minus that of its words, of the style, of each other model's
    likelihood and of the length. A model is said to recognise its texts by its likelihood where it
    is above each of the last two.
    """
    answered, _ = recognition_scoring.rescore(read_predictions(predictions))
    records = record_files.records_of("likelihoods", likelihoods)
    weighed = implicit_predictions(pd.DataFrame(records))
    parts = [weighed, as_readings(answered)]
    if record_files.is_given(texts):
        by_style = read_for_authors(read_texts(texts))
        parts.append(by_style.assign(condition=f"reading={STYLE}"))
    frame = pd.concat(parts, ignore_index=True)
    frame = frame[frame["evaluator_model"].isin(weighed["evaluator_model"])]
    table = stats.recognition_table(frame, n_resamples=n_resamples, level=level, seed=seed)
    reading = table["condition"].str.removeprefix("reading=")
    orders_only = reading.map(is_rival) | (reading == OWN)  # it names nobody
    is_auc = table["statistic"].isin(["auc", "auc_within_prompt"])
    table = table[~orders_only | is_auc].reset_index(drop=True)
    gaps = reading_gaps(frame, level=level)
    table = beyond_rivals(table, gaps)
    names = _names(frame, "evaluator_model", "true_model")
    return estimates_of("implicit", table, {"gaps": gaps, "contrasts": gaps}, frame, names)


def controls(texts: Rows) -> pd.DataFrame:
    """Return what texts give away, one row per author: length, leaks, and style.

    `leaks` is the share of texts that name a model or maker, or speak as an AI. `style` is the
    discrimination of a classifier on letters that saw no text on the same prompt: what a reader
    could know without being the author.
    """
    rows = read_texts(texts)
    frame = pd.DataFrame(rows)
    frame["leaks"] = [bool(leaks(row["text"])) for row in rows]
    by_author = frame.groupby("author", sort=False)
    table = by_author.agg(
        texts=("text", "size"), words=("words", "median"), leaks=("leaks", "mean")
    )
    has_other_prompts = by_author["prompt_id"].nunique() > 1
    if has_other_prompts.sum() > 1:  # what a classifier needs to learn from
        by_style = stats.recognition_table(read_for_authors(rows), n_resamples=1)
        by_style = by_style[by_style["author"] == ""]
        style = stats.default_rows(by_style, "discrimination").set_index("evaluator")
        style = style[["estimate", "low", "high"]]
        table = table.join(style.set_axis(["style", "style_low", "style_high"], axis=1))
    return table.reset_index()


# --- identity, existence


@verb
def ask_identity(
    models: Ids,
    suite: str | Path = "suite",
    *,
    arms: Sequence[str] | None = None,
    near: Sequence[str | Model] = (),
    limit: int = 0,
    repeats: int = 1,
    turns: int | None = None,
    scoring: str = "claims",
    judge: Asked | None = None,
    temperature: float = 0.7,
    seed: int = 0,
    attacker: Asked | None = None,
    strategies: Sequence[str] | None = None,
    **asking: Unpack[Asking],
) -> Records:
    """Put the situations of an identity suite to models; return one row per reply and read-out.

    suite: a file or folder below data/identity/, or a path. arms: what is claimed about the model:
    `neutral`, `false-far`, `false-near`, `true`, `placebo`, `mention`; None for all. near: models
    of the registry that the others of their maker are told to be (`false-near`), instead of those
    of data/identity/foils.yaml. limit: only the first `limit` templates. repeats: conversations per
    situation. turns: of pressure, at most. scoring: of free replies: `claims`, `keyword_match`,
    `regex` or `judge`. judge: the model that judges. temperature, seed: of the replies. attacker: a
    model that, instead of a suite, sees each conversation and writes its next message, for `turns`
    (6) messages; limit: then of openings.
    strategies: what it tries, of data/identity/attack.yaml, None for all; `no pressure`, the
    control, is always among them. A configuration of the published form is run by
    `selfeval.EvalRunner`.
    """

    async def work(client: Client) -> Records:
        asked = get_all(models, "say which model they are")
        chosen = arms
        functions = [
            repr(model.id) for model in asked if model.call and model.developer == model.id
        ]
        if functions and arms is None:
            rule = "a function's name is taken for its model's and its maker's"
            tell([f"{', '.join(functions)}: {rule}; it has no arm false-near."])
            chosen = [arm for arm in ARMS if arm != "false-near"]
        how: Any = {
            "limit": limit,
            "repeats": repeats,
            "turns": turns,
            "scoring": scoring,
            "judge": judge,
            "temperature": temperature,
            "seed": seed,
        }
        if attacker is None:
            records = await run_suite(client, asked, suite, arms=chosen, near=near, **how)
        else:
            [against] = get_all(attacker, "attack")
            records = await run_attacks(client, asked, against, strategies=strategies, **how)
        return Records(records)

    return ask(work, asking)


@verb
def measure_identity(replies: Rows, *, n_resamples: int = 2_000, seed: int = 0) -> Estimates:
    """Return the statistics of identity records, one row per model and statistic.

    The statistics are those of `stats.identity_table`.

    replies: those of `ask_identity`: a frame, records, files or folders. n_resamples, seed: of the
    bootstrap over templates. `tables` also has them by family and by condition of the situations,
    survival by turn of pressure, paired differences of models, and where both kinds of false claims
    were put, `foils`: siblings' names against other makers'. Where an attacker wrote the messages,
    `attack` has how long each model kept its name, by strategy. Controls count by condition alone.
    """
    frame = identity_replies.read_replies(replies)
    bootstrap: Any = {"n_resamples": n_resamples, "seed": seed}
    asked = frame[frame["control_of"].isna()]
    table = stats.identity_table(asked, **bootstrap)
    parts = [table, stats.identity_table(asked, by=["model", "family"], **bootstrap)]
    scripted = frame[frame["strategy"].isna()]
    if (scripted["turn"] > 0).any():
        parts.append(stats.survival_table(scripted, **bootstrap))
    parts.append(stats.identity_table(frame, by=["model", "condition"], **bootstrap))
    pairs = table.head(0)
    if frame["model"].nunique() > 1:
        claims = [f"claim_discrimination{reading}" for reading in READINGS]
        pairs = stats.paired_comparison(asked, statistics=claims, **bootstrap)
    result = estimates_of("identity", table, {}, frame, _names(frame, "model"))
    result.tables = {"identity": pd.concat(parts, ignore_index=True), "paired": pairs}
    if frame["strategy"].notna().any():
        result.tables["attack"] = stats.attack_table(frame, **bootstrap)
    siblings = stats.sibling_table(asked)
    if len(siblings):
        result.tables["foils"] = siblings
    tell(silence(result))
    return result


@verb
def ask_existence(
    models: Ids,
    about: Sequence[str] = (),
    *,
    names: int = 0,
    templates: int = 0,
    answer_types: str | Sequence[str] = ("yes_no", "true_false", "probability", "likert"),
    reasoning: bool = False,
    constrained: bool = False,
    iterations: int = 1,
    temperature: float = 0.0,
    seed: int = 0,
    **asking: Unpack[Asking],
) -> Records:
    """Ask models whether other models, real and invented ones, exist; return one row per answer.

    about: ids of real models; none for all of the registry that run elsewhere. names: how many,
    from the first, with as many invented ones. templates: how many ways to ask, from the first.
    answer_types: `yes_no`, `true_false`, `probability`, `likert`. reasoning: ask for a reason
    first. constrained: a JSON choice. iterations: how often each question is asked. temperature,
    seed: of the answers.
    """

    async def work(client: Client) -> Records:
        targets = existence.targets(existence.real_models(about), names)
        ways = existence.templates(templates)
        asked = get_all(models, "say which models exist")
        records = await existence.collect_existence(
            client,
            asked,
            targets,
            ways,
            answer_types=answer_types,
            reasoning=reasoning,
            constrained=constrained and can_choose(asked),
            iterations=iterations,
            temperature=temperature,
            seed=seed,
        )
        return Records(records)

    return ask(work, asking)


def measure_existence(answers: Rows) -> Estimates:
    """Return what models know of the existence of others, one row per statistic.

    The statistics are those of `stats.existence_table`. answers: a frame, records, files or
    folders.
    """
    frame = pd.DataFrame(record_files.records_of("existence", answers))
    table = stats.existence_table(frame)
    displays = frame.get("evaluator_display", frame["evaluator"])
    names = dict(zip(frame["evaluator"], displays, strict=True))
    result = estimates_of("existence", table, {}, frame, names)
    tell(silence(result))
    return result


# --- role-play


@verb
def converse(
    agent: Asked,
    interrogator: Asked | None = None,
    *,
    persona: str = "support",
    strategy: str = "probing",
    turns: int = 3,
    conversations: int = 1,
    people: int = 0,
    exchanges: int = 2,
    transcripts: Rows = (),
    replay: bool = False,
    temperature: float = 0.7,
    tokens: int | None = 0,
    seed: int = 0,
    out: str = "",
    **asking: Unpack[Asking],
) -> Records:
    """Have an agent play a person before an interrogator; return one row per conversation.

    interrogator: a model; None for no such conversations. persona, strategy: entries of
    data/roleplay/. turns: questions with their answers. conversations: how many with the same
    parts. people: how many chats between people as controls, each with a twin in which the agent
    answers in one person's place; exchanges: their length. transcripts: conversations held
    elsewhere (rows, files or folders), which get twins too. replay: only return `transcripts`, and
    ask nobody. temperature, seed: of the sampling. tokens: most of a message, 0 for the
    `answer_tokens` of the provider's entry in the registry, None for no limit of ours. out: a
    folder below data/, to keep the conversations as conversations.jsonl.
    """
    check_whole("people", people)
    sampling: Any = {"temperature": temperature, "tokens": tokens, "seed": seed}

    async def work(client: Client) -> Records:
        [played] = get_all(agent, "play the agent")
        elsewhere = read_conversations(transcripts)
        held = []
        chats = []
        controls = []
        if interrogator is not None and not replay:
            [asker] = get_all(interrogator, "play the interrogator")
            held = await conversation.converse(
                client,
                asker,
                played,
                persona=persona,
                strategy=strategy,
                turns=turns,
                conversations=conversations,
                **sampling,
            )
        if not replay:
            if people:
                chats = conversation.human_conversations(people, exchanges=exchanges, seed=seed)
            controls = await conversation.forced_context(client, played, chats, **sampling)
            controls += await conversation.forced_context(
                client, played, elsewhere, persona=persona, **sampling
            )
        rows = [talk.to_dict() for talk in together(held, elsewhere, chats, controls)]
        _keep(out, conversations=rows)
        return Records(rows, dtype=object)  # numbers stay whole beside rows that have none

    return ask(work, asking)


@verb
def judge(
    conversations: Rows,
    jurors: Ids,
    arms: str | Sequence[str] = ("independent", "debate"),
    *,
    controls: Rows = (),
    verdicts: Rows = (),
    limit: int = 0,
    max_turns: int = 0,
    out: str = "",
    personas: Sequence[str] = jury_run.PUBLISHED,
    rounds: int = 2,
    words: int = 60,
    scope: str = "turn",
    context: str = "rolling",
    temperature: float = 0.0,
    seed: int = 0,
    **asking: Unpack[Asking],
) -> Records:
    """Have a jury judge how human the agent of each conversation is; return one row per statement.

    conversations: a frame, rows, files or folders. jurors: models; one alone takes all personas.
    arms: `independent`, `personas`, `reask` (a second look), `sham`, `debate`. controls: more
    conversations, which `limit` does not cut, such as chats between people with their twins.
    verdicts: files or rows that exist, returned in place of new ones; nobody is asked. limit: only
    the first `limit` conversations. max_turns: only the first `max_turns` answers of each. out: a
    folder below data/, for verdicts.jsonl and conversations.jsonl. The frame's `conversations` are
    those that were judged.

    personas: entries of data/roleplay/jurors.yaml. rounds: of the arms in which jurors speak more
    than once. words: how long a juror argues before its score, which the others read; 0 for one
    short sentence, at half the price. scope: a verdict on every `turn`, or one per `conversation`.
    context: show the conversation so far (`rolling`) or the exchange alone (`isolated`).
    temperature: of the jurors. seed: of who plays whom, and of the speaking order.
    """
    check_whole("limit", limit)
    check_whole("max_turns", max_turns)
    verdict_files.check_not_read(out, conversations, controls, verdicts)
    if record_files.is_given(verdicts) and (limit or max_turns):
        rule = "`limit` and `max_turns` choose what is judged, and `verdicts` are already there"
        raise InputError(f"{rule}; give the rows of `verdicts` that you mean.")

    async def work(client: Client) -> Records:
        if record_files.is_given(verdicts):
            talks, statements = verdict_files.read_judgements(verdicts, conversations, controls)
        else:
            talks = read_conversations(conversations)[: limit or None]
            talks += read_conversations(controls)
            talks = [talk.first(max_turns) for talk in talks]
            jury = jury_run.Jury(
                jurors,
                personas=personas,
                rounds=rounds,
                words=words,
                scope=scope,
                context=context,
                temperature=temperature,
                seed=seed,
            )
            statements = await jury_run.hold(client, jury, talks, arms)
        judged = [talk.to_dict() for talk in talks]
        _keep(out, verdicts=statements, conversations=judged)
        frame = Records(statements)
        frame.conversations = Records(judged, dtype=object)  # as `converse` returns them
        return frame

    return ask(work, asking)


@verb
def measure_jury(verdicts: Rows, *, aggregation: str = "mean") -> Estimates:
    """Return the statistics of jurors' statements, one row per arm and statistic.

    The statistics are those of `stats.jury_table`. verdicts: a frame, records, files or folders.
    aggregation: `mean` or `majority` of the last round, in `tables["verdicts"]`; the statistics are
    of means. With the conversations, which `judge` returns along with the verdicts and keeps beside
    their file, there are also two content-blind baselines: `length` and `character n-grams`.
    Conversations of the same words are one.
    """
    check_one_of("aggregation", aggregation, ("mean", "majority"))
    with_them = getattr(verdicts, "conversations", ())
    talks, statements = verdict_files.read_judgements(verdicts, with_them)
    frame = pd.DataFrame(statements)
    by_surface = baselines(talks, frame["scope"].iloc[0])
    words = frame["conversation_id"].map({talk.conversation_id: talk.words for talk in talks})
    table = stats.jury_table(frame.assign(words=words))
    table = pd.concat([table, by_surface], ignore_index=True)
    names = _names(frame, "juror", "agent")
    names |= _seat_names(table["evaluator"].unique(), names)
    more = {"verdicts": verdict_scores(frame, aggregation)}
    result = estimates_of("jury", table, more, frame, names)
    result.conversations = talks
    tell(silence(result))
    return result


def _seat_names(seats: Iterable[str], names: Mapping[str, str]) -> dict[str, str]:
    """Return the display names of jurors that are a model with a persona, or one of several."""
    displays = {}
    for seat in seats:
        for model, display in names.items():
            if seat.startswith((f"{model} (", f"{model} #")):
                displays[seat] = display + seat.removeprefix(model)
    return displays
