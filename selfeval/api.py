"""The verbs that a notebook needs: ids, rows, DataFrames or files go in, DataFrames come out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import pandas as pd

from selfeval import inspect_logs, results, stats
from selfeval.errors import InputError, check_one_of, check_whole
from selfeval.estimates.summaries import silence
from selfeval.existence import run as existence
from selfeval.figures.estimates import Estimates, estimates_of
from selfeval.identity import replies as identity_replies
from selfeval.identity.measures import READINGS
from selfeval.identity.run import ARMS, run_suite
from selfeval.identity.scorers import Scorer, as_scorer
from selfeval.paths import check_begins
from selfeval.providers import dry_runs
from selfeval.providers import models as registry
from selfeval.providers.client import Asking, Client, ask, verb
from selfeval.providers.models import Model, get_all
from selfeval.recognition import run as recognition_run
from selfeval.recognition import scoring as recognition_scoring
from selfeval.recognition import texts
from selfeval.recognition.contrasts import OWN, STYLE, as_readings, read_for_authors, reading_gaps
from selfeval.recognition.counts import tallies
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
from selfeval.roleplay.scoring import verdict_scores
from selfeval.roleplay.transcripts import read_conversations, together
from selfeval.secrets import tell

Rows = record_files.Rows
Asked = str | Model | Callable
Ids = Asked | Iterable[Asked] | Mapping[str, Callable]
BY_TEXT = b'{"text_id": 1'  # how files of texts, and of answers about texts, begin


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
        tell(texts.missing_texts(written, failures))
        if corpus and not dry_runs.is_counting():
            record_files.write_jsonl(record_files.corpus_file(corpus), people + written)
        frame = Records(people + written)
        frame.failures = failures
        return frame

    return ask(work, asking)


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
        tell(mixed_settings(rows))
        judges = get_all(_authors(rows, authors) if models is None else models, "recognise texts")
        rows = recognition_run.match_authors(rows, judges, authors, allow_strangers=allow_strangers)
        put = condition
        if answer == "constrained" and _functions(judges):
            tell(
                [
                    f"{_functions(judges)}: a function answers in words, so all are asked with `answer` = 'free'."
                ]
            )
            put = replace(condition, answer="free")
        rows = await recognition_run.shown_texts(client, rows, put, seed=seed)
        found = await recognition_run.collect_predictions(client, judges, rows, put, **how)
        for task, answered in found.items() if reader else ():
            found[task], failures = recognition_scoring.read_by(reader, answered)
            tell(failures)
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
        tell(failures)
        attributes = frame.attrs
        frame = pd.DataFrame(rows)
        frame.attrs = attributes
    frame, changes = recognition_scoring.rescore(frame, reread)
    names = registry.display_names(
        [*frame["evaluator_model"].unique(), *frame["true_model"].unique()]
    )
    tell(results.reading(frame, changes, names))
    counted = [*tallies(frame)]
    how = {"n_resamples": n_resamples, "level": level, "seed": seed}
    chosen = [statistics] if isinstance(statistics, str) else statistics
    table = stats.recognition_table(counted, more=chosen, **how)
    more = {"counts": stats.confusion(frame), "roc": stats.roc_points(frame, table)}
    more["contrasts"] = stats.condition_contrasts(frame, level=level)
    more["paired"] = stats.paired_models(counted, level=level)
    more["changes"] = changes
    found = estimates_of("recognition", table, more, frame, names, statistics)
    tell(silence(found))
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
    return estimates_of("implicit", table, {"gaps": gaps, "contrasts": gaps}, frame, names)


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
            tell(
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
    tell(filled)
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
    found = estimates_of(
        "identity", table, {}, frame, registry.display_names(frame["model"].unique())
    )
    found.tables = {"identity": pd.concat(parts, ignore_index=True), "paired": pairs}
    siblings = stats.sibling_table(asked)
    if len(siblings):
        found.tables["foils"] = siblings
    tell(silence(found))
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
    found = estimates_of("existence", table, {}, frame, names)
    tell(silence(found))
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
    found = estimates_of("jury", table.reset_index(drop=True), more, frame, names)
    found.conversations = cases
    tell(silence(found))
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
    tell(told)
    table, paired = inspect_logs.score_tables(frame, level)
    return estimates_of(
        "log", table, {"paired": paired}, frame, registry.display_names(frame["model"].unique())
    )
