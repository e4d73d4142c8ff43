"""What readers of a jury need: verdicts that exist, answers, baselines, costs, tables and sentences."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
from scipy import stats as sps

from selfeval.errors import InputError
from selfeval.figures.frames import Records
from selfeval.figures.tables import dominated, equals, estimate_text, no_interval, side_by_side
from selfeval.records import Rows, are_files, data_path, is_file
from selfeval.roleplay.jury import Jury, judged_turns, warnings
from selfeval.roleplay.transcripts import Conversation, read_conversations, read_verdicts
from selfeval.roleplay.verdicts import decide
from selfeval.stats import conclusion, conversations_needed, serving
from selfeval.stats.jury import JUROR, baseline_auc, jury_table, seated
from selfeval.stats.jury import served as served_by_several
from selfeval.stats.readings import out_of_fold
from selfeval.stats.table import default_rows
from selfeval.stats.votes import ARMS

ARM = {"reask": "second look"}  # what a reader calls an arm
ENOUGH = 20  # conversations that say how much differences vary
VERDICT = ["conversation_id", "turn", "arm"]
SHOWN = {"task": "arm", "author": "source", "condition": "round", "evaluator": "juror"}  # of `jury_table`, as shown
Known = tuple[list[Conversation], list[dict]]


def existing(
    verdicts: Rows, conversations: Rows = (), *, controls: Rows = (), limit: int = 0, max_turns: int = 0
) -> Known:
    """Return verdicts that exist, in files, rows or a frame, as (conversations, statements).

    The conversations are those that the statements are about, as far as they are found in the verdicts' files, beside
    them, or in `conversations` or `controls`, in this order. limit: only the first so many of them, and all of
    `controls`. max_turns: only the first so many answers of each; 0 = all.
    """
    statements, found = read_verdicts(verdicts)
    files = _listed(verdicts) if are_files(verdicts) else []
    beside = [file for file in (data_path(file).with_name("conversations.jsonl") for file in files) if file.is_file()]
    whole = read_conversations(controls)
    more = [*read_conversations(beside), *read_conversations(conversations), *whole]
    texts = {one.conversation_id: one for one in reversed([*found, *more])}
    judged = list(dict.fromkeys(row["conversation_id"] for row in statements))
    stay = {one.conversation_id for one in whole}
    cut = [name for name in judged if name not in stay][limit or len(judged) :]
    judged = [name for name in judged if name not in cut]
    kept = [r for r in statements if r["conversation_id"] in judged and r["turn"] <= (max_turns or r["turn"])]
    if not any(row["role"] == "juror" for row in kept):
        raise InputError("There is no juror's verdict on the answers to analyse; raise `limit` and `max_turns`.")
    return [texts[name].first(max_turns) for name in judged if name in texts], kept


def check_not_read(out: str | Path, *sources: Rows) -> None:
    """Raise `InputError` where `out` is a folder that one of these files is in, since files are written there."""
    files = [file for source in sources if are_files(source) for file in _listed(source)]
    if data_path(out).resolve() in [data_path(file).resolve().parent for file in files]:
        raise InputError(f"`out` {str(out)!r} is a folder that is read here; choose another one for `out`.")


def _listed(files: str | Path | Sequence[str | Path]) -> list[str | Path]:
    return [files] if is_file(files) else list(files)


def served(records: pd.DataFrame, conversations: Sequence[Conversation]) -> dict[str, dict[str, int]]:
    """Return the endpoints of the models that several of them served, as jurors or as agents of the conversations."""
    said = [
        [one.agent_model, turn.more.get("served_model"), turn.more.get("served_by")]
        for one in conversations
        for turn in one.turns
        if turn.speaker == one.agent and one.agent_model not in ("human", "")
    ]
    return served_by_several(pd.concat([records.filter(JUROR), pd.DataFrame(said, columns=JUROR)]))


def doubts(jury: Jury, arms: Sequence[str], conversations: Sequence[Conversation]) -> list[str]:
    """Return a sentence for everything that weakens a jury over these conversations (`jury.warnings`)."""
    return warnings([model.id for model in jury.jurors], [one.agent_model for one in conversations], arms)


def doubts_of(statements: Sequence[Mapping]) -> list[str]:
    """Return a sentence for everything that weakened the jury of verdicts that exist."""
    said = [row for row in statements if row["role"] == "juror"]
    return warnings(*(list(dict.fromkeys(row[name] for row in said)) for name in ("juror", "agent", "arm")))


def settings(records: pd.DataFrame, **how) -> dict:
    """Return what a paper says of a jury: who sat on it, as far as its verdicts say it, and how they were made.

    Where no verdict names a model that was judged there are no agents, though people may be among those judged.
    """
    said, each = records[records["role"] == "juror"], {"jurors": "juror", "personas": "persona", "agents": "agent"}
    found = {name: said[field].replace("", None).dropna().unique().tolist() for name, field in each.items()}
    if set(found["agents"]) <= {"human"}:
        found["agents"] = []
    return found | {"rounds": int(said["round"].max())} | how


def verdicts(records: pd.DataFrame, aggregation: str = "mean") -> pd.DataFrame:
    """Return one row per verdict: conversation, turn, arm, source, agent, `score` (null without any valid score)."""
    first = records.drop_duplicates(VERDICT).set_index(VERDICT)[["source", "agent"]]
    parts = records.groupby(VERDICT, sort=False)
    scores = {name: decide(part.to_dict("records"), aggregation) for name, part in parts}
    return first.assign(score=pd.Series(scores, dtype=float)).reset_index()


def exchanges(conversations: Rows) -> Records:
    """Return the questions of conversations with their answers, one row each.

    conversations: a frame, rows or files. Columns: conversation_id, `chat` (what a chat between people and its twin
    share), source, agent (the model that answers, or "human"), turn (from 1), question, answer, status.
    """
    names = ["conversation_id", "chat", "source", "agent", "turn", "question", "answer", "status"]
    rows = [
        (one.conversation_id, one.meta.get("pair") or one.conversation_id, one.source, one.agent_model, *exchange)
        for one in read_conversations(conversations)
        for exchange in one.exchanges()
    ]
    return Records(rows, columns=names).astype({"turn": int})


def costs(records: pd.DataFrame) -> pd.DataFrame:
    """Return what the statements of each arm took: repairs, missing scores, tokens (and the share cached), dollars.

    What is known of no statement is null, and no 0.
    """
    usage = pd.DataFrame([u if isinstance(u, dict) else {} for u in records["usage"]], records.index)
    frame = usage.reindex(columns=["prompt", "cached", "completion"]).add_suffix("_tokens")
    frame["repaired"] = records["repaired"].astype("boolean")
    frame["no_score"] = records["score"].isna() & (records["role"] != "summary")
    arms = frame.groupby(records["arm"], sort=False)
    found = arms.sum(min_count=1)
    found["cached"] = (found.pop("cached_tokens").astype(float) / found["prompt_tokens"]).round(2)
    found["dollars"] = records["cost"].astype(float).groupby(records["arm"]).agg(lambda cost: cost.sum(skipna=False))
    found.insert(0, "statements", arms.size())
    found.insert(0, "verdicts", records.drop_duplicates(VERDICT).groupby("arm").size())
    whole = ["repaired", "no_score", "prompt_tokens", "completion_tokens"]
    return found.astype(dict.fromkeys(whole, "Int64")).reset_index()


def baselines(
    conversations: Sequence[Conversation], scope: str = "turn", *, n_resamples: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """Return AUC and paired accuracy of two content-blind baselines, as rows of `jury_table`.

    `length`: the longer, the more human; an area below .5 says that people write less, and tells them apart as well as
    one above. `character n-grams`: a classifier of style that saw none of the texts of the same conversation or pair.
    scope: of the verdicts. Empty without both sources, or with fewer than two conversations of each.
    """
    rows = []
    for one in conversations:
        answers = [exchange.answer for exchange in one.exchanges()]
        cluster = one.meta.get("pair") or one.conversation_id
        for turn in judged_turns(scope, one):
            text = answers[turn - 1] if scope == "turn" else "\n".join(answers[:turn])
            rows.append((text, one.source == "human", cluster, turn))
    frame = pd.DataFrame(rows, columns=["text", "human", "cluster", "turn"])
    if frame.groupby("human")["cluster"].nunique().reindex([False, True]).fillna(0).min() < 2:
        return pd.DataFrame()
    style = out_of_fold(frame["text"], frame["human"].map({True: "human", False: "model"}), frame["cluster"])
    scores = {"length": frame["text"].str.split().str.len(), "character n-grams": style["human"]}
    units, how = (frame["human"], frame["cluster"], frame["turn"]), {"n_resamples": n_resamples, "seed": seed}
    tables = [baseline_auc(score, *units, name=name, **how) for name, score in scores.items()]
    return pd.concat(tables, ignore_index=True)


def summary(
    table: pd.DataFrame, statistics: Sequence[str], jurors: bool = False, display: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Return statistics of `jury_table` as text with intervals: a row per arm, source, round and juror that occur.

    jurors: the rows of single jurors instead of those of whole juries. The sizes are those of the first statistic that
    a row has.
    """
    rows = default_rows(table, *statistics)
    rows = rows.rename(columns=SHOWN)[(rows["evaluator"] != "") == jurors]
    if rows.empty:
        return pd.DataFrame(columns=["arm", *statistics])
    rows["round"] = rows["round"].str.removeprefix("round=")
    models = {juror: seated(juror, display or ()) for juror in rows["juror"].unique()}
    rows["juror"] = rows["juror"].replace({j: display[m] + j.removeprefix(m) for j, m in models.items() if m})
    keys = [name for name in SHOWN.values() if rows[name].nunique() > 1] or ["arm"]
    first = rows.sort_values("statistic", key=lambda names: names.map(list(statistics).index), kind="stable")
    sizes = first.drop_duplicates(keys).set_index(keys)[["n", "clusters"]]
    return side_by_side(rows, keys, statistics).join(sizes).reset_index()


def first_attempts(records: pd.DataFrame, table: pd.DataFrame, **options) -> pd.DataFrame:
    """Show the mean scores of `jury_table(records)` beside those where a statement that was asked again has no score.

    Empty unless a juror was asked again for more than `serving.WORTH_SAYING` of its statements.
    """
    if not (serving.asked_again(records, ["juror"]) > serving.WORTH_SAYING).any():
        return pd.DataFrame()
    first = jury_table(serving.first_attempts(records, ["score"]), **options)
    parts = [summary(rows, ["mean_score"]).assign(attempt=name) for name, rows in (("last", table), ("first", first))]
    return pd.concat(parts).sort_index(kind="stable").reset_index(drop=True)


def conclusions(table: pd.DataFrame) -> list[str]:
    """Return a sentence per question that the data can answer: can the jury tell, and what does debating change?

    table: of `jury_table`, with or without `baselines`.
    """
    areas = default_rows(table, "auc").query("evaluator == ''")
    juries, others = areas[areas["task"].isin(ARMS)], areas[~areas["task"].isin(ARMS)].dropna(subset="estimate")
    found = [f"{ARM.get(row.task, row.task)}: {_told_apart(row)}." for row in juries.itertuples()]
    found += [f"Content-blind baseline {row.task}: AUC {_tested(row)}." for row in others.itertuples()]
    effect = default_rows(table, "difference", "equivalence").query("author == '' and task == 'debate - reask'")
    if len(effect):
        equal = effect.loc[effect["statistic"] == "equivalence", "p"].lt(0.05).any()
        [row] = effect[effect["statistic"] == "difference"].itertuples()
        found.append(_changed(row, equal))
    return found


def planning(table: pd.DataFrame) -> str:
    """Say how many conversations show a difference of .05 between two arms, and at which standard deviation."""
    rows = default_rows(table, "difference").query("author == '' and clusters >= @ENOUGH").dropna(subset=["low"])
    if rows.empty:
        needed = [conversations_needed(0.05, sd) for sd in (0.1, 0.15, 0.2)]
        return (
            f"A difference of 0.05 between two arms needs {needed[0]}, {needed[1]} or {needed[2]} "
            "conversations where the differences per conversation have a standard deviation of .10, .15 or .20 "
            f"(assumed: fewer than {ENOUGH} conversations do not say how much they vary; 80 % power)."
        )
    rows = rows.astype({"level": float, "clusters": float})  # beside baselines without a level they are objects
    t = sps.t.ppf(0.5 + rows["level"] / 2, rows["clusters"] - 1)
    sd = float(((rows["high"] - rows["low"]) / 2 / t * rows["clusters"] ** 0.5).max())
    return (
        f"A difference of 0.05 between two arms needs {conversations_needed(0.05, sd)} "
        f"conversations: their differences have a standard deviation of up to {sd:.2f} here (80 % power)."
    )


def _told_apart(row) -> str:
    if pd.isna(row.estimate):
        return f"whether it tells people from models cannot be estimated ({row.note})"
    verbs = {"recognises": "tells people from models", "avoids": "rates models as more human than people"}
    verb = verbs.get(conclusion(row, 0.5), "is not shown to tell people from models")
    if conclusion(row, 0.5) == "too few answers":
        verb = no_interval(row)
    few = "conversation or pair" if row.clusters == 1 else "conversations or pairs"
    return f"{verb} (AUC {_tested(row)}, {row.clusters} {few}{dominated(row)})"


def _tested(row) -> str:
    """Return an AUC with its interval and p; where so few conversations allow no small p, say so."""
    shown = _shown(row)
    if pd.isna(row.p):
        return shown
    return f"{shown}, p {equals(row.p)}"


def _changed(row, equal: bool) -> str:
    """Say what debate changes; equal: the test of equivalence found no more than its margin."""
    if pd.isna(row.low):
        same = row.estimate == 0
        return "Debate changed no mean score." if same else f"What debate changes cannot be estimated ({row.note})."
    verb = "Debate changed scores by no more than the margin:" if equal else "Whether debate changes scores is open:"
    if conclusion(row) in ("recognises", "avoids"):
        verb = "Debate changed scores by"
    return f"{verb} {_shown(row)} relative to a second look."


def _shown(row) -> str:
    return estimate_text(row.estimate, row.low, row.high)
