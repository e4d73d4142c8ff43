"""What the jury's notebook needs: conversations to judge, verdicts, baselines, costs, tables and sentences."""

from collections.abc import Mapping, Sequence

import pandas as pd
from scipy import stats as sps

from selfeval.asking.client import Client
from selfeval.errors import InputError, check_whole
from selfeval.figures.tables import equals, estimate_text, side_by_side
from selfeval.models import Model
from selfeval.records import data_path
from selfeval.roleplay import cast
from selfeval.roleplay.humans import forced_context, human_conversations
from selfeval.roleplay.jury import Jury, hold, judged_turns, warnings
from selfeval.roleplay.transcripts import Conversation, read_conversations, read_verdicts
from selfeval.roleplay.verdicts import decide
from selfeval.stats import conversations_needed, serving
from selfeval.stats.classifier import out_of_fold
from selfeval.stats.jury import JUROR, baseline_auc, jury_table, seated
from selfeval.stats.jury import served as served_by_several
from selfeval.stats.table import default_rows

ENOUGH = 20  # conversations that say how much differences vary
VERDICT = ["conversation_id", "turn", "arm"]
SHOWN = {"task": "arm", "author": "source", "condition": "round", "evaluator": "juror"}  # of `jury_table`, as shown
Known = tuple[list[Conversation], list[dict]]


def existing(
    verdicts: str | Sequence[str], conversations: str | Sequence[str], *, limit: int = 0, max_turns: int = 0, out: str
) -> Known | None:
    """Return verdicts that exist, in files, as (conversations, statements); None where no file is named.

    The conversations are those that the statements are about, as far as they stand in these files, beside them, or in
    `conversations`; first file first. limit, max_turns: as in `hear`. Raises `InputError` where `out` is a folder
    that one of the files is in, since the notebook writes there.
    """
    check_whole("limit", limit)
    check_whole("max_turns", max_turns)
    files, talks = ([each] if isinstance(each, str) else list(each) for each in (verdicts, conversations))
    if data_path(out).resolve() in [data_path(file).resolve().parent for file in files + talks]:
        raise InputError(f"`out` {out!r} is a folder that is read here; choose another one for `out`.")
    if not files:
        return None
    statements, found = read_verdicts(files)
    beside = [file for file in (data_path(file).with_name("conversations.jsonl") for file in files) if file.is_file()]
    texts = {one.conversation_id: one for one in reversed([*found, *read_conversations(beside + talks)])}
    judged = list(dict.fromkeys(row["conversation_id"] for row in statements))[: limit or None]
    kept = [r for r in statements if r["conversation_id"] in judged and r["turn"] <= (max_turns or r["turn"])]
    if not _jurors(kept):
        raise InputError(f"There is no juror's verdict in {', '.join(map(str, files))} on the answers to analyse.")
    return [texts[name].first(max_turns) for name in judged if name in texts], kept


def _jurors(statements: Sequence[dict]) -> list[dict]:
    return [row for row in statements if row["role"] == "juror"]


async def hear(
    client: Client, jury: Jury, arms: Sequence[str], files: str | Sequence[str], *, humans: int = 0,
    exchanges: int = 2, agent: Model, seed: int = 0, limit: int = 0, max_turns: int = 0,
) -> Known:  # fmt: skip
    """Have a jury judge the conversations of files, then so many human controls with their twins; return both.

    A control is a chat between people, of so many exchanges; in its twin the agent answers in one person's place
    (`humans.forced_context`). limit: only the first so many conversations of the files, 0 = all. max_turns: only the
    first so many exchanges of each conversation, 0 = all. Returns the conversations and the jury's statements.
    """
    check_whole("humans", humans)
    found = [one.first(max_turns) for one in (read_conversations(files) if files else [])[: limit or None]]
    if humans:
        people = [one.first(max_turns) for one in human_conversations(humans, exchanges=exchanges, seed=seed)]
        found += [*people, *await forced_context(client, agent, people, seed=seed)]
    return found, await hold(client, jury, found, arms)


def served(records: pd.DataFrame, conversations: Sequence[Conversation]) -> dict[str, dict[str, int]]:
    """Return the endpoints of the models that several of them served, as jurors or as agents of the conversations."""
    said = [
        [one.agent_model, turn.more.get("served_model"), turn.more.get("served_by")]
        for one in conversations
        for turn in one.turns
        if turn.speaker == one.agent and one.agent_model not in ("human", "")
    ]
    return served_by_several(pd.concat([records.filter(JUROR), pd.DataFrame(said, columns=JUROR)]))


def seating(records: pd.DataFrame) -> pd.DataFrame:
    """Return who sat on the jury, model and persona, as they first spoke."""
    said = records.loc[records["role"] == "juror", ["juror", "persona"]].drop_duplicates(ignore_index=True)
    return said.assign(title=[cast.jurors().get(name, {}).get("title", name) for name in said["persona"]])


def doubts(jury: Jury, agents: Sequence[str], arms: Sequence[str], known: Known | None = None) -> list[str]:
    """Return a sentence for everything that weakens this jury (`jury.warnings`), or the one of verdicts that exist."""
    jurors = [model.id for model in jury.jurors]
    if known:
        jurors, agents, arms = (dict.fromkeys(row[f] for row in _jurors(known[1])) for f in ("juror", "agent", "arm"))
    return warnings(list(jurors), agents, arms)


def settings(jury: Jury, records: pd.DataFrame, known: Known | None = None) -> dict:
    """Return what a paper says of the jury; of verdicts that exist, as far as these say it."""
    said, each = records[records["role"] == "juror"], {"jurors": "juror", "personas": "persona", "agents": "agent"}
    found = {name: said[field].replace("", None).dropna().unique().tolist() for name, field in each.items()}
    how = ("aggregation", "seed") if known else ("aggregation", "seed", "scope", "context", "temperature")
    return found | {"rounds": int(said["round"].max())} | {name: getattr(jury, name) for name in how}


def verdicts(records: pd.DataFrame, aggregation: str = "mean") -> pd.DataFrame:
    """Return one row per verdict: conversation, turn, arm, source, agent, `score` (null without any valid score)."""
    first = records.drop_duplicates(VERDICT).set_index(VERDICT)[["source", "agent", "pair"]]
    parts = records.groupby(VERDICT, sort=False)
    scores = {name: decide(part.to_dict("records"), aggregation) for name, part in parts}
    return first.assign(score=pd.Series(scores, dtype=float)).reset_index()


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
    jury: Jury, conversations: Sequence[Conversation], *, n_resamples: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """Return AUC and paired accuracy of two content-blind baselines, as rows of `jury_table`.

    `length`: the longer, the more human; an area below .5 says that people write less, and tells them apart as well as
    one above. `character n-grams`: a classifier of style that saw none of the texts of the same conversation or pair.
    Empty without both sources, or with fewer than two conversations of each.
    """
    rows = []
    for one in conversations:
        answers = [exchange.answer for exchange in one.exchanges()]
        cluster = one.meta.get("pair") or one.conversation_id
        for turn in judged_turns(jury, one):
            text = answers[turn - 1] if jury.scope == "turn" else "\n".join(answers[:turn])
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


def conclusions(table: pd.DataFrame, base: pd.DataFrame | None = None) -> list[str]:
    """Return a sentence per question that the data can answer: can the jury tell, and what does debating change?"""
    areas = default_rows(table, "auc").query("evaluator == ''")
    found = [f"{row.task}: {_told_apart(row)}." for row in areas.itertuples()]
    if base is not None and len(base):
        for row in default_rows(base, "auc").dropna(subset=["estimate"]).itertuples():
            found.append(f"Content-blind baseline {row.task}: AUC {_tested(row)}.")
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
    t = sps.t.ppf(0.5 + rows["level"] / 2, rows["clusters"] - 1)
    sd = float(((rows["high"] - rows["low"]) / 2 / t * rows["clusters"] ** 0.5).max())
    return (
        f"A difference of 0.05 between two arms needs {conversations_needed(0.05, sd)} "
        f"conversations: their differences have a standard deviation of up to {sd:.2f} here (80 % power)."
    )


def _told_apart(row) -> str:
    if pd.isna(row.estimate):
        return f"whether it tells people from models cannot be estimated ({row.note})"
    verb = "is not shown to tell people from models"
    if (row.low > 0.5 or row.high < 0.5) and (pd.isna(row.p) or row.p < 1 - row.level):
        verb = "tells people from models" if row.low > 0.5 else "rates models as more human than people"
    return f"{verb} (AUC {_tested(row)}, {row.clusters} conversations or pairs)"


def _tested(row) -> str:
    """Return an AUC with its interval and p; where so few conversations allow no small p, say so."""
    shown = _shown(row)
    if pd.isna(row.p):
        return shown
    few = ", the least that exchanging so few can give" if f"least_p={row.p:.3g}" in row.note else ""
    few = few or (", with so few to exchange" if "least_p" in row.note else "")
    return f"{shown}, p {equals(row.p)}{few}"


def _changed(row, equal: bool) -> str:
    """Say what debate changes; equal: the test of equivalence found no more than its margin."""
    if pd.isna(row.low):
        same = row.estimate == 0
        return "Debate changed no mean score." if same else f"What debate changes cannot be estimated ({row.note})."
    verb = "Debate changed scores by no more than the margin:" if equal else "Whether debate changes scores is open:"
    if row.low > 0 or row.high < 0:
        verb = "Debate changed scores by"
    return f"{verb} {_shown(row)} relative to a second look."


def _shown(row) -> str:
    return estimate_text(row.estimate, row.low, row.high)
