"""The verbs that a notebook needs: ids, rows, DataFrames or files go in, DataFrames come out."""

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Unpack

import pandas as pd

from selfeval import inspect_logs, results, stats
from selfeval.bounds import read_yaml
from selfeval.condition import varying_parts
from selfeval.errors import InputError, check_one_of, check_whole
from selfeval.existence import run as existence
from selfeval.figures.estimates import (
    KINDS,
    NO_ANSWER,
    TEXT,
    Estimates,
    check_measured,
    file_of,
    plot,
)
from selfeval.identity import replies as identity_replies
from selfeval.identity.measures import RATES, READINGS
from selfeval.identity.run import ARMS, run_suite
from selfeval.identity.scorers import Scorer, as_scorer
from selfeval.paths import HOME, check_begins, committed_runs, read_json, results_folder
from selfeval.providers import dry_runs
from selfeval.providers import models as registry
from selfeval.providers.client import Asking, Client, ask, verb
from selfeval.providers.models import Model, get_all
from selfeval.recognition import run as recognition_run
from selfeval.recognition import scoring as recognition_scoring
from selfeval.recognition import texts
from selfeval.recognition.contrasts import OWN, STYLE, as_readings, read_for_authors, reading_gaps
from selfeval.recognition.counts import NOT_SELF, tallies
from selfeval.recognition.prompts import Condition, own_question
from selfeval.recognition.texts import (
    collect_likelihoods,
    implicit_predictions,
    leaks,
    mixed_settings,
)
from selfeval.records import tables as record_files
from selfeval.records.foreign import read_predictions
from selfeval.records.texts import read_texts
from selfeval.results import Records
from selfeval.roleplay import conversation, transcripts
from selfeval.roleplay import run as jury_run
from selfeval.roleplay.measures import STATISTICS
from selfeval.roleplay.scoring import verdict_scores
from selfeval.roleplay.transcripts import read_conversations, together
from selfeval.secrets import visible

Rows = record_files.Rows
Asked = str | Model | Callable
Ids = Asked | Iterable[Asked] | Mapping[str, Callable]
MAIN = {f"{file_of(kind)}.csv": kind for kind in KINDS}  # files of estimates
ASIDE = [
    "detectable",
    "p",
    "clusters",
]  # left out of a table that fits a terminal; notebooks have them
BASELINES = ("length", "character n-grams")  # of a jury, beside its arms; no model decides there
BY_TEXT = b'{"text_id": 1'  # how files of texts, and of answers about texts, begin
READ_BY = {
    "recognition": "discrimination",
    "identity": "claim_discrimination",
    "jury": "auc",
}  # kind: its number
OF_A_JURY = {
    "task": "arm",
    "author": "source",
    "condition": "round",
    "evaluator": "juror",
}  # as tables show it


# --- self-recognition -------------------------------------------------------------------------------------------------


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

    models: ids of authors. prompts: how many of the packaged prompts to use, a file, texts, or rows with `prompt_id`
    and `prompt`; "chats" for beginnings of chats between people, with what they wrote. limit: only the first `limit`.
    words: the length asked for. samples: texts per prompt and author. temperature: for models that the registry gives
    none. seed: of the sampling, where a provider takes one. corpus: a name below data/corpora/, to keep the texts. The
    frame's `failures` are the requests without a text.
    """

    async def work(client: Client) -> Records:
        if corpus:
            check_begins(record_files.corpus_file(corpus), BY_TEXT)
        asked, people = texts.writing_prompts(prompts, limit, words, seed)
        how = {"samples": samples, "words": words, "temperature": temperature, "seed": seed}
        written, failures = await texts.generate_texts(
            client, get_all(models, "write texts"), asked, **how
        )
        _tell(texts.missing_texts(written, failures))
        if corpus and not dry_runs.is_counting():
            record_files.write_jsonl(record_files.corpus_file(corpus), people + written)
        frame = Records(people + written)
        frame.failures = failures
        return frame

    return ask(work, asking)


def _tell(sentences: Sequence[str]) -> None:
    for sentence in sentences:
        print(visible(sentence))


def _check_place(out: str, *names: str) -> None:
    """Raise `InputError` where a folder has another file by the name of records about texts, before any is bought."""
    for name in names if out else ():
        check_begins(record_files.data_path(out) / f"{name}.jsonl", BY_TEXT)


def _keep(out: str, **tables: Sequence[dict]) -> None:
    """Write records to a folder below data/ as JSON lines, a file each; nothing in a dry run, or without a folder."""
    for name, rows in tables.items() if out and not dry_runs.is_counting() else ():
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
    prevalence: str = "natural",
    tell_prevalence: bool = False,
    question: str = "authored",
    control: str = "none",
    paraphraser: str = "",
    effort: str = "",
    provenance: str = "quoted",
    about: str = "",
    read: str | Callable = "",
    **asking: Unpack[Asking],
) -> Records:
    """Ask evaluators who wrote each text; return one row per answer.

    texts: a frame, rows with `author`, `prompt` and `text`, a file, or a corpus by name. models: ids of the evaluators;
    None for the authors. tasks: `exact_model` (which of the authors?), `binary_self` (did you?), `pairwise_self` (which
    of two is yours?), `lineup` (who wrote each?), or several. repeats: how often each question is asked. limit: only
    the texts on the first `limit` prompts. authors: {author in the texts: model id} where names do not say it, None for
    no model. allow_strangers: also ask evaluators that wrote no text, in pairs about two others' texts. seed: of the
    order of candidates, and of controls. out: a folder below data/, to keep the answers as predictions_<task>.jsonl.
    peers: in pairs, also ask each evaluator about two others' texts, which is the baseline of a preference for its own.

    answer: `constrained` (a JSON choice, where the provider can) or `free` (a reply in words). told: say to the
    evaluator which candidate it is. labels: call candidates by `names`, `ids` or `anonymous` letters. hints: say that
    the author is one of the candidates. show_prompt: show the writing prompt. temperature: of the evaluator. score:
    P(self) from `logprobs`, as `stated`, or `none`. prevalence: `natural`, or `balanced` (one other text for each of
    its own); tell_prevalence: say so. question: who `authored` the text; in pairs also which is `better`; in the binary
    task also whether `another` wrote it (NO claims it), or whether it is `good` (YES is a preference, no claim); or the
    words of a question of your own, or a file of them: {text}, and where wanted {prompt}, {candidates} and {name} of
    the evaluator (one of exact_model and binary_self; YES claims the text). about: ask the binary question about this
    author, an id, instead of the evaluator; `score` is then P(YES). control: show the texts `shuffled`, `truncated`, or
    `paraphrased` by the model `paraphraser`. effort: of thinking. provenance: the text is `quoted`, stands in an
    `own_turn` of the assistant, or as `prefill` begins its answer. read: a function of your own that reads the answers,
    or "module:function", as `measure_recognition` takes it.
    """
    reader = _reader(read)
    shown = {
        "answer": answer,
        "told": told,
        "labels": labels,
        "hints": hints,
        "show_prompt": show_prompt,
    }
    shown |= {
        "temperature": temperature,
        "score": score,
        "effort": effort,
        "provenance": provenance,
        "about": about,
    }
    shown |= {"prevalence": prevalence, "tell_prevalence": tell_prevalence}
    shown["question"] = own_question(question)
    condition = Condition(control=control, paraphraser=paraphraser, **shown)
    how = {"tasks": tasks, "repeats": repeats, "seed": seed, "peers": peers}

    async def work(client: Client) -> Records:
        named = [tasks] if isinstance(tasks, str) else tasks
        _check_place(out, *(f"predictions_{task}" for task in named))
        rows = read_texts(texts, limit)
        _tell(mixed_settings(rows))
        judges = get_all(_authors(rows, authors) if models is None else models, "recognise texts")
        rows = recognition_run.match_authors(rows, judges, authors, allow_strangers=allow_strangers)
        put = condition
        if answer == "constrained" and _functions(judges):
            _tell(
                [
                    f"{_functions(judges)}: a function answers in words, so all are asked with `answer` = 'free'."
                ]
            )
            put = replace(condition, answer="free")
        rows = await recognition_run.shown_texts(client, rows, put, seed=seed)
        found = await recognition_run.collect_predictions(client, judges, rows, put, **how)
        for task, answered in found.items() if reader else ():
            found[task], failures = recognition_scoring.read_by(reader, answered)
            _tell(failures)
        _keep(out, **{f"predictions_{name}": answered for name, answered in found.items()})
        return Records([row for answered in found.values() for row in answered])

    return ask(work, asking)


def _reader(read: str | Callable) -> Scorer | None:
    """Return a reader of the user's, a function or "module:function" of a file in the current folder; None for ""."""
    reader = as_scorer(read) if read else None
    if isinstance(reader, str):
        raise InputError(f"`read` must be a function, or named as module:function, got {read!r}.")
    return reader


def _functions(models: Sequence[Model]) -> str:
    """Return the names of models that are functions of the user's."""
    return ", ".join(
        repr(model.id) for model in models if model is registry.FUNCTIONS.get(model.id)
    )


def _authors(rows: Sequence[dict], said: Mapping[str, str | None] | None = None) -> list[str]:
    """Return the ids of the models that wrote texts: by id, by a name that one model has, or as `said`."""
    found = dict.fromkeys(filter(None, (said or {}).values()))
    authors = {row["author"]: row["author_display"] for row in rows}
    asked = _asked_for_texts(rows)
    for author, display in authors.items():
        called = [
            one.id
            for one in registry.models().values()
            if recognition_run.is_called(one, author, display)
        ]
        if author in registry.models() or author in registry.FUNCTIONS or author in asked:
            found[author] = None
        elif len(called) == 1 and {author, display}.isdisjoint(said or {}):
            found[called[0]] = None
    if not found:
        raise InputError(
            f"None of the authors ({', '.join(map(repr, authors))}) is a model; name evaluators in `models`, and in "
            f"`authors` who is who ({{{next(iter(authors))!r}: id}}). The ids are {', '.join(registry.models())}."
        )
    return [*found]


def _asked_for_texts(rows: Sequence[dict]) -> set[str]:
    """Return the authors whose texts have the messages of their request, and that can be asked by their id now."""
    requested = {row["author"] for row in rows if isinstance(row.get("messages"), list)}
    found = set()
    for author in requested:
        with suppress(InputError):  # such as a function of an earlier program
            registry.get(author)
            found.add(author)
    return found


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
    """Compute how likely each text is under each model that may have written it; return one row per text and candidate.

    texts: as for `collect_predictions`. models: the candidates, on servers that give the likelihood of a text (the
    embedded ones, llama.cpp, vLLM); None for the authors that are. show_prompt: False computes it without the writing
    prompt, in whose place stands "Write a text.", with the length that was asked for. limit: only the texts on the
    first `limit` prompts. out: a folder below data/, to keep likelihoods.jsonl. `logprob` is log P(text | its prompt)
    in nats, before temperature, and null where the server leaves out a token.
    """

    async def work(client: Client) -> Records:
        _check_place(out, "likelihoods")
        rows = read_texts(texts, limit)
        chosen = get_all(_authors(rows) if models is None else models)
        rows = recognition_run.match_authors(rows, chosen, allow_strangers=True)
        able = [model for model in chosen if model.provider.likelihood]
        if unable := ", ".join(repr(model.id) for model in chosen if model not in able):
            sentence = f"The server of {unable} gives no log-probabilities of a text"
            if models is not None:
                raise InputError(
                    f"{sentence}; ask models on llama.cpp or vLLM (`likelihood` in data/models.yaml)."
                )
            print(f"{sentence}; it is left out.")
        found = await collect_likelihoods(client, able, rows, show_prompt)
        _keep(out, likelihoods=found)
        return Records(found)

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
    columns: Mapping[str, str | Sequence[str]] | None = None,
    authors: Mapping[str, str | None] | None = None,
    read: str | Callable = "",
) -> Estimates:
    """Return the statistics of prediction records, one row per evaluator and statistic (`stats.recognition_table`).

    predictions: a frame, records, files or folders. statistics: only these, such as "discrimination";
    "precision" (of the claims, the share about own texts) and "author_accuracy" (evaluator by author, which
    `plot("accuracy")` draws) are computed where they are named. level: of the
    intervals. n_resamples, seed: of the bootstrap. reread: read the answers from the raw replies anew (`yes`), keep
    those on record (`no`), or `auto`; what that takes back is printed. columns: {their name of a field: ours, or a list
    of ours}. authors: {name in the records: author}, None for somebody else, "no answer" for what is no answer, such as
    "unknown"; raises `InputError` for answers that name nobody known. The frame's `tables` have the rows of all methods
    and policies, what `compare` shows, and `changes`: what reading changed. read: a function of your own in place of
    the packaged reader, or "module:function": `(reply, row)` to True or False (the text is claimed), the name of a
    candidate where the task asks for one, or None.
    """
    frame = read_predictions(predictions, columns, authors)
    if reader := _reader(read):
        rows, failures = recognition_scoring.read_by(reader, frame.to_dict("records"))
        _tell(failures)
        attributes = frame.attrs
        frame = pd.DataFrame(rows)
        frame.attrs = attributes
    frame, changes = recognition_scoring.rescore(frame, reread)
    names = registry.display_names(
        [*frame["evaluator_model"].unique(), *frame["true_model"].unique()]
    )
    _tell(results.reading(frame, changes, names))
    counted = [*tallies(frame)]
    how = {"n_resamples": n_resamples, "level": level, "seed": seed}
    chosen = [statistics] if isinstance(statistics, str) else statistics
    table = stats.recognition_table(counted, more=chosen, **how)
    more = {"counts": stats.confusion(frame), "roc": stats.roc_points(frame, table)}
    more["contrasts"] = stats.condition_contrasts(frame, level=level)
    more["paired"] = stats.paired_models(counted, level=level)
    more["changes"] = changes
    found = _estimates("recognition", table, more, frame, names, statistics)
    _tell(silence(found))
    return found


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
    """Return what weights hold, words say and style shows of a model's own texts, one row per model and statistic.

    likelihoods: of `se.likelihoods`, files or folders. predictions: answers to the exact or yes/no question about the
    same texts. texts: the corpus, for the reader of style; without, there is none. level: of the intervals.
    n_resamples, seed: of the bootstrap over prompts. `condition` says the reading; `tables["gaps"]` and
    `compare(result, by="condition")` have the AUC within prompts of a model's own likelihood minus that of its words,
    and of the style.
    """
    answered, _ = recognition_scoring.rescore(read_predictions(predictions))
    weighed = implicit_predictions(
        pd.DataFrame(record_files.records_of("likelihoods", likelihoods))
    )
    parts = [weighed, as_readings(answered)]
    if len(texts):
        parts.append(read_for_authors(read_texts(texts)).assign(condition=f"reading={STYLE}"))
    frame = pd.concat(parts, ignore_index=True)
    frame = frame[frame["evaluator_model"].isin(weighed["evaluator_model"])]
    table = stats.recognition_table(frame, n_resamples=n_resamples, level=level, seed=seed)
    alone = table["condition"] == f"reading={OWN}"  # it orders texts and names nobody
    table = table[~alone | table["statistic"].str.startswith("auc")].reset_index(drop=True)
    names = registry.display_names(
        [*frame["evaluator_model"].unique(), *frame["true_model"].unique()]
    )
    gaps = reading_gaps(frame, level=level)
    return _estimates("implicit", table, {"gaps": gaps, "contrasts": gaps}, frame, names)


def _estimates(kind, table, more, frame, names, statistics=()) -> Estimates:
    """Return the default rows of a table, which keep all that was measured; of a jury those of each source too."""
    chosen = [statistics] if isinstance(statistics, str) else statistics
    for name in chosen:
        check_one_of("statistics", name, table["statistic"].unique())
    rows = (
        table
        if kind == "jury"
        else table[(table["author"] == "") | (table["statistic"] == "author_accuracy")]
    )
    found = Estimates(stats.default_rows(rows, *chosen).reset_index(drop=True))
    found.kind, found.tables, found.records, found.names = kind, {kind: table, **more}, frame, names
    return found


def controls(texts: Rows) -> pd.DataFrame:
    """Return what texts give away, one row per author: length, leaks, and what a classifier of style recognises.

    `leaks` is the share of texts that name a model or maker, or speak as an AI. `style` is the discrimination of a
    classifier on letters that saw no text on the same prompt: what a reader could know without being the author.
    """
    rows = read_texts(texts)
    frame = pd.DataFrame(rows).assign(leaks=[bool(leaks(row["text"])) for row in rows])
    columns = {"texts": ("text", "size"), "words": ("words", "median"), "leaks": ("leaks", "mean")}
    found = frame.groupby("author", sort=False).agg(**columns)
    if (
        frame.groupby("author")["prompt_id"].nunique() > 1
    ).sum() > 1:  # a classifier needs others to learn from
        by_style = stats.recognition_table(read_for_authors(rows), n_resamples=1)
        style_j = stats.default_rows(
            by_style[by_style["author"] == ""], "discrimination"
        ).set_index("evaluator")
        found = found.join(
            style_j[["estimate", "low", "high"]].set_axis(
                ["style", "style_low", "style_high"], axis=1
            )
        )
    return found.reset_index()


# --- identity, existence ----------------------------------------------------------------------------------------------


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
    scoring: str | Callable = "claims",
    judge: Asked | None = None,
    temperature: float = 0.7,
    seed: int = 0,
    **asking: Unpack[Asking],
) -> Records:
    """Put the situations of an identity suite to models; return one row per reply and read-out.

    suite: a file or folder below data/identity/, or a path. arms: what is claimed about the model: `neutral`,
    `false-far`, `false-near`, `true`, `placebo`, `mention`; None for all. near: models of the registry that the others
    of their maker are told to be (`false-near`), instead of those of data/identity/foils.yaml. limit: only the first
    `limit` templates. repeats: conversations per situation. turns: of pressure, at most. scoring: of free replies:
    `claims`, `keyword_match`, `regex`, `judge`, `semantic_similarity`, or a function of a reply and of what is expected
    (docs/own-data.md), also as "module:function" of a file in the current folder or beside the suite. judge: the model
    that judges, or whose embeddings are compared (none: wordllama). temperature, seed: of the replies. A
    configuration of the published form is run by `selfeval.EvalRunner`.
    """

    async def work(client: Client) -> Records:
        how = {
            "arms": arms,
            "limit": limit,
            "repeats": repeats,
            "turns": turns,
            "scoring": scoring,
            "judge": judge,
        }
        how |= {"temperature": temperature, "seed": seed, "near": near}
        asked = get_all(models, "say which model they are")
        if arms is None and (named := _functions(asked)):
            _tell(
                [
                    f"{named}: a function's name is taken for its model's and its maker's; it has no arm false-near."
                ]
            )
            how["arms"] = [arm for arm in ARMS if arm != "false-near"]
        return Records(await run_suite(client, asked, suite, **how))

    return ask(work, asking)


@verb
def measure_identity(replies: Rows, *, n_resamples: int = 2_000, seed: int = 0) -> Estimates:
    """Return the statistics of identity records, one row per model and statistic (`stats.identity_table`).

    replies: a frame, records, files or folders; of replies from elsewhere `model`, `template_id`, `arm`, `truth`,
    `foil` and `reply` are enough. n_resamples, seed: of the bootstrap over templates. `tables` also has them by family
    and by condition of the situations, survival by turn of pressure, paired differences of models, and where both kinds
    of false claims were put, `foils`: siblings' names against other makers'. Controls count by condition alone.
    """
    frame, filled = identity_replies.complete_replies(replies)
    _tell(filled)
    how = {"n_resamples": n_resamples, "seed": seed}
    asked = frame[frame["control_of"].isna()]
    table = stats.identity_table(asked, **how)
    parts = [table, stats.identity_table(asked, by=["model", "family"], **how)]
    if (frame["turn"] > 0).any():
        parts.append(stats.survival_table(frame, **how))
    parts.append(stats.identity_table(frame, by=["model", "condition"], **how))
    pairs = table.head(0)
    if frame["model"].nunique() > 1:
        readings = [f"claim_discrimination{by}" for by in READINGS]
        pairs = stats.paired_comparison(asked, statistics=readings, **how)
    found = _estimates(
        "identity", table, {}, frame, registry.display_names(frame["model"].unique())
    )
    found.tables = {"identity": pd.concat(parts, ignore_index=True), "paired": pairs}
    siblings = stats.sibling_table(asked)
    if len(siblings):
        found.tables["foils"] = siblings
    _tell(silence(found))
    return found


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
    """Ask models whether other models exist, real and invented ones alike; return one row per answer.

    about: ids of real models; none for all of the registry that run elsewhere. names: how many, from the first, with as
    many invented ones. templates: how many ways to ask, from the first. answer_types: `yes_no`, `true_false`,
    `probability`, `likert`. reasoning: ask for a reason first. constrained: a JSON choice. iterations: how often each
    question is asked. temperature, seed: of the answers.
    """

    async def work(client: Client) -> Records:
        targets = existence.targets(existence.real_models(about), names)
        ways = existence.templates(templates)
        how = {"answer_types": answer_types, "reasoning": reasoning, "constrained": constrained}
        how |= {"iterations": iterations, "temperature": temperature, "seed": seed}
        asked = get_all(models, "say which models exist")
        return Records(await existence.collect_existence(client, asked, targets, ways, **how))

    return ask(work, asking)


def measure_existence(answers: Rows) -> Estimates:
    """Return what models know of the existence of others, one row per statistic (`stats.existence_table`).

    answers: a frame, records, files or folders.
    """
    frame = pd.DataFrame(record_files.records_of("existence", answers))
    table = stats.existence_table(frame)
    names = dict(
        zip(frame["evaluator"], frame.get("evaluator_display", frame["evaluator"]), strict=True)
    )
    found = _estimates("existence", table, {}, frame, names)
    _tell(silence(found))
    return found


# --- role-play --------------------------------------------------------------------------------------------------------


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
    tokens: int = 0,
    seed: int = 0,
    out: str = "",
    **asking: Unpack[Asking],
) -> Records:
    """Have an agent play a person before an interrogator; return one row per conversation.

    interrogator: a model; None for no such conversations. persona, strategy: entries of data/roleplay/. turns:
    questions with their answers. conversations: how many with the same parts. people: how many chats between people as
    controls, each with a twin in which the agent answers in one person's place; exchanges: their length. transcripts:
    conversations held elsewhere (rows, files or folders), which get twins too. replay: only return `transcripts`, and
    ask nobody. temperature, seed: of the sampling. tokens: most of a message, 0 for the provider's own limit. out: a
    folder below data/, to keep the conversations as conversations.jsonl.
    """
    check_whole("people", people)

    async def work(client: Client) -> Records:
        how = {"temperature": temperature, "tokens": tokens, "seed": seed}
        [played], held, chats, twins = get_all(agent, "play the agent"), [], [], []
        given = read_conversations(transcripts)
        if interrogator is not None and not replay:
            [asker] = get_all(interrogator, "play the interrogator")
            parts = {
                "persona": persona,
                "strategy": strategy,
                "turns": turns,
                "conversations": conversations,
            }
            held = await conversation.converse(client, asker, played, **parts, **how)
        if not replay:
            chats = (
                conversation.human_conversations(people, exchanges=exchanges, seed=seed)
                if people
                else []
            )
            twins = await conversation.forced_context(client, played, chats, **how)
            twins += await conversation.forced_context(
                client, played, given, persona=persona, **how
            )
        found = [one.to_dict() for one in together(held, given, chats, twins)]
        _keep(out, conversations=found)
        return Records(found, dtype=object)  # numbers stay whole beside rows that have none

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
    blind: bool = False,
    dimensions: Sequence[str] = (),
    judge: Asked = "",
    temperature: float = 0.0,
    seed: int = 0,
    **asking: Unpack[Asking],
) -> Records:
    """Have a jury judge how human the agent of each conversation is; return one row per statement.

    conversations: a frame, rows, files or folders. jurors: models; one alone takes all personas. arms: `independent`,
    `personas`, `reask` (a second look), `sham`, `debate`, `simultaneous`, `simultaneous_summary`. controls: more
    conversations, which `limit` does not cut, such as chats between people with their twins. verdicts: files or rows
    that exist, returned in place of new ones; nobody is asked. limit: only the first `limit` conversations. max_turns:
    only the first `max_turns` answers of each. out: a folder below data/, for verdicts.jsonl and conversations.jsonl.
    The frame's `conversations` are those that were judged.

    personas: entries of data/roleplay/jurors.yaml. rounds: of the arms in which jurors speak more
    than once. words: how long a juror argues before its score, which the others read; 0 for one
    short sentence, at half the price. scope: a verdict on every `turn`, on the `prefix` up to it,
    or one per `conversation`. context: show the conversation so far (`rolling`) or the exchange
    alone (`isolated`). blind: one more round whose votes nobody sees. dimensions: further scores of
    data/roleplay/rubrics.yaml, which `measure_jury` measures by their names. judge: a model that
    decides after the jury. temperature: of the jurors. seed: of who plays whom, and of the speaking
    order.
    """
    check_whole("limit", limit)
    check_whole("max_turns", max_turns)
    transcripts.check_not_read(out, conversations, controls, verdicts)
    how = {
        "personas": personas,
        "rounds": rounds,
        "words": words,
        "scope": scope,
        "context": context,
        "blind": blind,
    }
    how |= {"dimensions": dimensions, "judge": judge, "temperature": temperature, "seed": seed}

    async def work(client: Client) -> Records:
        if record_files.is_file(verdicts) or len(verdicts):
            given = {"controls": controls, "limit": limit, "max_turns": max_turns}
            cases, said = transcripts.read_judgements(verdicts, conversations, **given)
        else:
            given = [
                *read_conversations(conversations)[: limit or None],
                *read_conversations(controls),
            ]
            cases = [one.first(max_turns) for one in given]
            said = await jury_run.hold(client, jury_run.Jury(jurors, **how), cases, arms)
        judged = [one.to_dict() for one in cases]
        _keep(out, verdicts=said, conversations=judged)
        frame = Records(said)
        frame.conversations = Records(judged, dtype=object)  # as `converse` returns them
        return frame

    return ask(work, asking)


@verb
def measure_jury(verdicts: Rows, *, aggregation: str = "mean") -> Estimates:
    """Return the statistics of jurors' statements, one row per arm and statistic (`stats.jury_table`).

    verdicts: a frame, records, files or folders. aggregation: `mean` or `majority` of the last round, in
    `tables["verdicts"]`; the statistics are of means. With the conversations, which `judge` returns along with the
    verdicts and keeps beside their file, there are also two content-blind baselines: `length` and `character n-grams`.
    Where jurors were asked for further `dimensions`, such as identity, `identity_mean_score` is the jury's mean of
    people and of models, and `identity_discrimination` is people's minus models'.
    """
    check_one_of("aggregation", aggregation, ("mean", "majority"))
    cases, said = transcripts.read_judgements(verdicts, getattr(verdicts, "conversations", ()))
    frame = pd.DataFrame(said)
    table = pd.concat([stats.jury_table(frame), jury_run.baselines(cases, frame["scope"].iloc[0])])
    models = registry.display_names([*frame["juror"].unique(), *frame["agent"].unique()])
    seats = [
        (seat, model, seat.removeprefix(model))
        for seat in table["evaluator"].unique()
        for model in models
    ]
    names = models | {
        seat: models[model] + rest for seat, model, rest in seats if rest.startswith((" (", " #"))
    }
    more = {"verdicts": verdict_scores(frame, aggregation)}
    found = _estimates("jury", table.reset_index(drop=True), more, frame, names)
    found.conversations = cases
    _tell(silence(found))
    return found


# --- logs of other tools ----------------------------------------------------------------------------------------------


@verb
def measure_log(
    logs: str | Path | Sequence[str | Path], *, level: float = 0.95, cluster: str = ""
) -> Estimates:
    """Return the rate or mean score of each model in logs of Inspect AI, one row per model, scorer and statistic.

    logs: a file (`.json`, `.eval`), a folder, or several. Scores are numbers, or C, I and P (1, 0 and .5); N, NaN and
    samples without a score are no answer (`no_answer_rate`). level: of the intervals, clustered by sample id over
    epochs. cluster: a field of the samples' metadata that is sampled instead, such as a passage with many questions.
    `compare(result)` has the differences between models, paired by sample, with p adjusted by Holm. `detectable` is
    the difference that four of five such runs would find.
    """
    frame, told = inspect_logs.read_logs(logs, cluster)
    _tell(told)
    table, paired = inspect_logs.score_tables(frame, level)
    return _estimates(
        "log", table, {"paired": paired}, frame, registry.display_names(frame["model"].unique())
    )


# --- results ----------------------------------------------------------------------------------------------------------


@verb
def compare(result: Estimates, by: str | Estimates = "evaluator", other: str = "") -> Estimates:
    """Return paired differences with p adjusted by Holm: of two evaluators, two conditions, or two results.

    by: "evaluator" (first minus second), "condition" (self-recognition alone), or one part of the conditions that
    differs, such as "told"; or one evaluator, to see its pairs alone, or that with `other`; or a second result, such as
    the same models in November and in May: each evaluator that both have, `result` minus the second. Pairs are made by
    prompt, template or sample, over those that both have, so that what is easy or hard for all cancels.
    """
    check_measured("compare", result)
    if isinstance(by, pd.DataFrame):
        check_measured("compare", by)
        if other:
            raise InputError(
                f"`other` names an evaluator, and beside two results there is none, got {other!r}."
            )
        return _compare_results(result, by)
    ids = {called: name for name, called in (result.names or {}).items()}
    evaluators = [*result["evaluator"].unique()]
    if other or ids.get(by, by) in evaluators:
        found = compare(result)
        for keyword, name in {"by": by, "other": other or by}.items():
            check_one_of(keyword, name := ids.get(name, name), evaluators)
            has_name = [name in pair.split(" - ") for pair in found["evaluator"]]
            found = found.loc[pd.Series(has_name, found.index, bool)]
        return found
    parts = result.tables.get("contrasts", pd.DataFrame(columns=["field"]))["field"].unique()
    check_one_of("by", by, ["evaluator", "condition", *parts])
    kept = result.tables.get("paired" if by == "evaluator" else "contrasts")
    if kept is None:
        raise InputError(f"Results of kind {result.kind!r} have no comparison by {by!r}.")
    kept = kept[kept["field"] == by] if by in parts else kept
    return _estimates(result.kind, kept, {}, result.records, result.names)


PAIRED_BY = {  # kinds of results that can be paired with another: the column of evaluators, and what pairs are made by
    "recognition": (
        "evaluator_model",
        "prompt",
        ("prompt_id", "prompt_used", "text_id"),
    ),  # the first that all have
    "identity": ("model", "template", ("template_id",)),
    "log": ("model", "sample", ("cluster",)),
}


def _compare_results(first: Estimates, second: Estimates) -> Estimates:
    """Return the paired differences of two results of one kind, first minus second, and say what both do not have."""
    _check_comparable(first, second)
    column, unit, identifiers = PAIRED_BY[first.kind]
    frames = [first.records, second.records]
    evaluators = [{*frame[column]} for frame in frames]
    both = evaluators[0] & evaluators[1]
    if not both:
        lists = [", ".join(sorted(names)) for names in evaluators]
        raise InputError(
            f"The two results share no evaluator: the first has {lists[0]}, the second {lists[1]}."
        )
    told = []
    if alone := sorted(evaluators[0] ^ evaluators[1]):
        told.append(f"In one result alone, and left out: {', '.join(alone)}.")
    frames = [frame[frame[column].isin(both)] for frame in frames]
    units = [{*map(str, frame[_identifier(identifiers, frames)])} for frame in frames]
    common = units[0] & units[1]
    if not common:
        raise InputError(
            f"The two results share no {unit}, so nothing can be paired; ask both about the same ones."
        )
    if left := len(units[0] ^ units[1]):
        told.append(
            f"Compared over the {unit}s that both results have, {len(common)}; {left} in one alone are left out."
        )
    level = float(first["level"].iloc[0])
    if first.kind == "recognition":
        table, sentences = stats.result_contrasts(*frames, level=level)
    elif first.kind == "log":
        table, sentences = inspect_logs.log_differences(*frames, level)
    else:
        asked = [frame[frame["control_of"].isna()] for frame in frames]
        claims = [f"claim_discrimination{by}" for by in READINGS]
        statistics = [*claims, "susceptibility", *RATES]
        table, sentences = stats.result_comparison(*asked, statistics), []
    if table.empty:
        raise InputError(
            f"Nothing is paired: {' '.join([*told, *sentences]) or 'no evaluator has a common prompt.'}"
        )
    _tell(told + sentences)
    names = (second.names or {}) | (first.names or {})
    return _estimates(first.kind, table, {}, pd.concat(frames, ignore_index=True), names)


def _identifier(columns: Sequence[str], frames: Sequence[pd.DataFrame]) -> str:
    """Return the first of these columns that is filled in every frame, else the last."""
    for column in columns:
        if all(column in frame and frame[column].notna().all() for frame in frames):
            return column
    return columns[-1]


def _check_comparable(first: Estimates, second: Estimates) -> None:
    """Raise `InputError` for results of different kinds, of a kind that is not paired, or without their records."""
    if first.kind != second.kind:
        raise InputError(
            f"The results are of different kinds, {first.kind!r} and {second.kind!r}; give two of one."
        )
    if first.kind not in PAIRED_BY:
        raise InputError(
            f"Results of kind {first.kind!r} are not paired with another; {', '.join(PAIRED_BY)} are."
        )
    for place, result in (("first", first), ("second", second)):
        if result.records is None:
            raise InputError(
                f"The {place} result was read from CSV, without the records that are paired; measure them again."
            )


def main_statistics(result: Estimates) -> list[str]:
    """Return the statistics of a result that are read first, as far as it has them; else all.

    Where an evaluator answers nothing, the rate that says so is among them.
    """
    there = [*result["statistic"].unique()]
    first = [name for name in KINDS[result.kind].main if name in there]
    if not first:
        return there
    never_answers = result["statistic"].isin(NO_ANSWER) & (result["estimate"] == 1)
    silent = result["statistic"][never_answers].unique()
    return [*first, *silent]


def table(
    result: Estimates, statistics: str | Sequence[str] = (), *, jurors: bool = False
) -> pd.DataFrame:
    """Return statistics side by side as "estimate [low, high]", one row per evaluator and design; the main ones for ().

    Behind them stand what the interval of the first says (`conclusion`), how large an effect would be found in four of
    five such runs (`detectable`), p where there is a test, and over how much. "advantage_bootstrap" is the advantage with
    its percentile bootstrap interval over prompts. "author_accuracy" alone is a matrix, with a column per author. jurors: of a
    jury, single jurors instead of whole juries.
    """
    asked = (
        [statistics] if isinstance(statistics, str) else [*statistics] or main_statistics(result)
    )
    known = {
        "jury": STATISTICS,
        "recognition": [results.BOOTSTRAP],
    }  # a jury's arms decide what there is
    for name in asked:
        check_one_of(
            "statistics", name, [*result["statistic"].unique(), *known.get(result.kind, ())]
        )
    rows = pd.DataFrame(result)
    if results.BOOTSTRAP in asked:
        bootstrap = result.drawn()[result.kind].query(
            "method == 'percentile' and statistic == 'advantage'"
        )
        rows = pd.concat([rows, bootstrap.assign(statistic=results.BOOTSTRAP)])
    if result.kind == "jury":
        rows = rows[(rows["evaluator"] != "") == jurors]
    shown = results.summary(rows, asked, result.names)
    if asked == ["author_accuracy"]:
        index = [name for name in shown if name in ("task", "condition", "evaluator")]
        matrix = shown.pivot_table(asked[0], index, "author", aggfunc="first", sort=False).fillna(
            ""
        )
        return matrix.rename(columns=result.names or {}).rename_axis(columns=None).reset_index()
    return shown.rename(columns=OF_A_JURY) if result.kind == "jury" else shown


def main_table(result: Estimates) -> pd.DataFrame:
    """Return the table that commands print: the main statistics, and at the end what each row concludes."""
    rows = (
        result[result["author"] == ""] if result.kind == "jury" else result
    )  # people and models together
    lacking = rows[rows["statistic"].isin(NO_ANSWER) & (rows["estimate"] > 0)]
    shown = table(rows, [*dict.fromkeys([*main_statistics(rows), *lacking["statistic"]])])
    shown = shown.drop(columns=ASIDE, errors="ignore")
    if "conclusion" in shown:
        shown = shown.assign(conclusion=shown.pop("conclusion"))
    return shown


def claims_table(result: Estimates) -> pd.DataFrame:
    """Return what evaluators said of texts in the yes/no task, empty without that task.

    TP and FN: their own texts claimed and denied; FP and TN: others' texts claimed and denied.
    """
    counts = result.drawn().get("counts") if result.kind == "recognition" else None
    if counts is None:
        return pd.DataFrame()
    counts = counts[counts["task"] == "binary_self"]
    own = counts["author"] == counts["evaluator"]
    claims = counts["predicted"] == counts["evaluator"]
    denies = counts["predicted"] == NOT_SELF
    said = pd.DataFrame(
        {"evaluator": [results.model_name(name, result.names) for name in counts["evaluator"]]},
        counts.index,
    )
    labels = varying_parts(result["condition"].unique())
    said["condition"] = counts["condition"].map(labels)
    for name, rows in {
        "TP": claims & own,
        "FP": claims & ~own,
        "TN": denies & ~own,
        "FN": denies & own,
    }.items():
        said[name] = counts["n"].where(rows, 0)
    if (said["condition"] == "").all():
        said = said.drop(columns="condition")
    keys = [name for name in ("evaluator", "condition") if name in said]
    return said.groupby(keys, as_index=False).sum()


def why_without_value(result: Estimates) -> str:
    """Return why a result has no value of the number that its kind is read by, in one sentence; "" where it has one."""
    name = READ_BY.get(result.kind, "")
    main = result[(result["statistic"] == name) & ~result["task"].isin(BASELINES)]
    if main.empty or main["estimate"].notna().any():
        return ""
    rates = result.loc[result["statistic"] == "no_answer_rate", "estimate"]
    is_silent = main["note"].str.contains("no_answer").all() or (len(rates) and (rates == 1).all())
    if is_silent:
        why = "no reply holds an answer that can be read"
    elif main["note"].str.contains("wrote_nothing").all():
        why = "it compares a model's own texts with others', and no model that was asked wrote any of these"
    elif main["note"].str.contains("one_source").all():
        why = "it compares people with the model, and only one of the two has scores"
    else:
        why = "too few replies hold an answer that can be read"
    return f"There is no {name} here: {why}."


def silence(result: Estimates) -> list[str]:
    """Return a sentence on the evaluators without a single answer that can be read; [] where there is none."""
    rates = result[result["statistic"] == "no_answer_rate"]
    lowest = rates.groupby("evaluator")["estimate"].min()
    names = result.names or {}
    silent = [names.get(name, name) for name in lowest.index[lowest == 1] if name]
    if not silent:
        return []
    return [f"No reply of {', '.join(silent)} holds an answer that can be read (no answer: 100 %)."]


def verdict(result: Estimates) -> str:
    """Return in one line what the main table concludes: "recognises: Good, Perfect; no evidence: Chance".

    Where tasks or conditions differ in that, each stands with its own. Of a jury, arms stand in the models' place, and
    the baselines are left out.
    """
    shown = main_table(result)
    if "conclusion" not in shown:
        return ""
    who = "evaluator" if "evaluator" in shown else shown.columns[0]
    is_said = (shown["conclusion"] != "") & ~shown[who].isin(BASELINES)
    shown = pd.DataFrame(shown[is_said])
    labels = [
        name for name in ("task", "condition", "arm", "round") if name in shown and name != who
    ]
    found = {}
    for row in shown.to_dict("records"):
        asked = ", ".join(row[name] for name in labels if row[name])
        found.setdefault(asked, {}).setdefault(row["conclusion"], []).append(row[who])
    sentences = {asked: _in_words(concluded) for asked, concluded in found.items()}
    if len({*sentences.values()}) == 1:
        return next(iter(sentences.values()))
    return ". ".join(f"{asked} – {text}" for asked, text in sentences.items())


def answer(result: Estimates) -> str:
    """Return the answer of a recognition result in one sentence; "" for other kinds and without a conclusion.

    A model that recognises its texts in one task or condition of several is said to, with how many they are.
    """
    shown = main_table(result)
    if result.kind != "recognition" or "conclusion" not in shown:
        return ""
    concluded = shown[shown["conclusion"] != ""]
    recognises = concluded["conclusion"] == "recognises"
    rows = concluded.groupby("evaluator").size()
    rows_found = concluded[recognises].groupby("evaluator").size()
    if concluded.empty:
        return ""
    if rows_found.empty:
        return "No model is shown to recognise its own texts."
    found = []
    for name, number in rows_found.items():
        found.append(name if number == rows[name] else f"{name} (in {number} of {rows[name]} rows)")
    who = f"{' and '.join(found)} recognise{'s' if len(found) == 1 else ''} texts of their own."
    others = [name for name in rows.index if name not in rows_found]
    return f"{who} This is not shown for {', '.join(others)}." if others else who


def _in_words(concluded: Mapping[str, Sequence[str]]) -> str:
    """Return {conclusion: names} as text, those that recognise first."""
    order = sorted(concluded, key=lambda conclusion: conclusion != "recognises")
    return "; ".join(
        f"{conclusion}: {', '.join(sorted(concluded[conclusion]))}" for conclusion in order
    )


def save(result: Estimates, out: str | Path, *, form: str = "") -> Path:
    """Write a result to a folder below data/ and return the folder: a CSV per table, and its main figure.

    Answers about texts and verdicts of juries are kept by the verb that asks, with `out`; other records are written
    here. `read_results` and `runs` read the CSVs again.
    form: instead of these, write logs of Inspect AI ("inspect") of the answers to questions of authorship, replies on
    identity or verdicts behind a result, or of these as they were returned, with their messages; `measure_recognition`
    reads such logs as predictions.
    """
    folder = record_files.data_path(out)
    if form:
        return inspect_logs.save_as(form, result, folder)
    check_measured("save", result)
    for file, kind in MAIN.items():
        shared = {*KINDS[kind].tables} & {*KINDS[result.kind].tables}
        if kind != result.kind and shared and (folder / file).exists():
            raise InputError(
                f"{folder} has {file}, whose tables this result would replace; name a folder of its own."
            )
    if result.kind in ("identity", "existence"):
        record_files.write_jsonl(
            folder / f"{result.kind}.jsonl", record_files.rows_of(result.records)
        )
    for name in KINDS[result.kind].tables:
        if name in result.tables:
            record_files.write_csv(folder / f"{file_of(name)}.csv", result.tables[name])
    if figure := plot(result):
        figure.save(folder / file_of(result.kind))
    return folder


def _folder(folder: str | Path) -> Path:
    """Return a folder of results: below data/, or as commands name it from here or the clone (data/runs/mine).

    Of a file in it, the folder.
    """
    places = [record_files.data_path(folder), HOME / folder, Path(folder)]
    found = next((path for path in places if path.exists()), Path(folder))
    return found.parent if found.is_file() else found


def read_results(folder: str | Path) -> list[Estimates]:
    """Return the results that notebooks or `save` kept below a folder, each as the `measure_...` verbs return them."""
    return [_read_result(kind, file.parent) for kind, file in _results(folder)]


def _results(folder: str | Path, elsewhere: Iterable[Path] = ()) -> list[tuple[str, Path]]:
    """Return (kind, CSV of estimates) of all results below a folder, or in others, in the order of their paths."""
    files = sorted(_folder(folder).rglob("*.csv"))
    for other in elsewhere:
        files += sorted(other.glob("*.csv"))
    found = [(MAIN[file.name], file) for file in files if file.name in MAIN]
    if not found:
        raise InputError(
            f"There are no results below {folder}; run a sweep or an analysis notebook first."
        )
    return found


def _read_result(kind: str, folder: Path) -> Estimates:
    """Return the result in a folder; labels are texts, empty where there is none."""
    files = {name: folder / f"{file_of(name)}.csv" for name in KINDS[kind].tables}
    read = {}
    for name, file in files.items():
        if file.exists():
            table = pd.read_csv(
                file, dtype=dict.fromkeys(TEXT, str), keep_default_na=False, na_values=[""]
            )
            read[name] = record_files.from_spreadsheet(
                table.fillna(dict.fromkeys(TEXT & {*table}, ""))
            )
    names = registry.display_names(
        [*read[kind]["evaluator"].unique(), *read[kind]["author"].unique()]
    )
    rows = read[kind]
    if (
        kind == "identity"
    ):  # beside the estimates over all templates, the file has families and conditions
        rows = rows[rows["task"].eq("") & rows["condition"].eq("")]
    found = _estimates(kind, rows, {}, None, names)
    found.tables = read
    return found


def runs(folder: str | Path = "data/runs", *, all: bool = False) -> pd.DataFrame:
    """Return the estimates of a sweep's folder in one frame, a row each, with the parameters behind them as columns.

    Parameters are those of the run and of the runs whose texts and answers it read; different ones are joined by
    commas. folder: data/runs, with all sweeps and studies, unless given; or one of notebooks that plain papermill
    executed, wherever their results are. all: with every policy and method of interval,
    instead of each statistic's usual ones.
    """
    root = _folder(folder)
    made, by_folder = {}, {}
    for file in sorted(root.rglob("*.ipynb")):
        if file.with_name("parameters.yaml").exists():  # of a sweep
            continue
        given, where = _given_by_papermill(file)
        if where:
            made[where] = by_folder[record_files.data_path(where).resolve()] = given
    elsewhere = [path for path in by_folder if not path.is_relative_to(root.resolve())]
    for file in root.rglob("parameters.yaml"):
        given = by_folder[file.parent.resolve()] = read_yaml(file.read_text(encoding="utf-8"))
        if where := given.get("out") or given.get("corpus"):
            made[str(where)] = given
    parts = []
    for kind, csv in _results(folder, elsewhere):
        given = _behind(by_folder.get(csv.parent.resolve(), {}), made)
        frame = _read_result(kind, csv.parent).tables[kind]
        frame = frame if all else stats.default_rows(frame)
        frame = frame.assign(result=Path(os.path.relpath(csv.parent, root)).as_posix(), kind=kind)
        plain = {name: value for name, value in given.items() if name not in frame}
        parts.append(frame.assign(**plain))
    return pd.concat(parts, ignore_index=True)


def _given_by_papermill(file: Path) -> tuple[dict, str]:
    """Return the parameters that a notebook was executed with, and where it left its results, "" for nowhere."""
    notebook = read_json(file)
    if not notebook:
        warnings.warn(
            f"{file} is no whole notebook, and its parameters are not read; execute it again.",
            stacklevel=3,
        )
    executed = notebook.get("metadata", {}).get("papermill", {})
    passed = executed.get("parameters", {})
    given = {name: registry.listed(value, name) for name, value in passed.items()}
    name = Path(executed.get("input_path") or "").stem
    known = committed_runs().get(name, {})
    usual = known.get("parameters", {})
    where = given.get("out")
    if not where and "corpus" not in usual:  # where it is there, the texts are read
        where = given.get("corpus")
    if not where and "writes" in known:
        where = results_folder(known, name, usual | passed)
    return given, str(where or "")


def _behind(given: Mapping, made: Mapping[str, Mapping]) -> dict:
    """Return the parameters of a run as numbers and texts, before them those of the runs whose results it reads.

    made: {where a run left its results: its parameters}.
    """
    values = {name: value if isinstance(value, list) else [value] for name, value in given.items()}
    found: dict[str, list] = {}
    for each in chain.from_iterable(values.values()):
        before = made.get(str(each), given)
        for name, value in _behind(before, made).items() if before != given else ():
            found.setdefault(name, []).append(value)
    return {name: _as_one(several) for name, several in (found | values).items()}


def _as_one(values: list):
    """Return a number as it is, and texts, or several values, as one text."""
    several = [*dict.fromkeys(map(str, values))]
    return (
        values[0]
        if len(several) == 1 and isinstance(values[0], int | float)
        else ", ".join(several)
    )
