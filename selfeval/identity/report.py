"""Readable views of identity records: the statistics side by side, scorers against each other, failed conversations."""

import html
from collections.abc import Mapping, Sequence
from itertools import combinations

import pandas as pd

from selfeval.errors import InputError
from selfeval.figures.frames import Estimates
from selfeval.figures.tables import counted, dominated, estimate_text, no_interval, side_by_side
from selfeval.identity.claims import extract
from selfeval.identity.run import VERDICT, accepts, passed, rescore
from selfeval.records import Rows, data_path, read_jsonl, rows_of
from selfeval.stats import COLUMNS, cohen_kappa, conclusion, default_rows, identity_table, rogan_gladen, serving
from selfeval.stats.identity import FALSE, SITUATION, from_first_attempts
from selfeval.stats.survival import survival_table

DISCRIMINATION = ["claim_discrimination", "claim_discrimination_by_maker", "claim_discrimination_by_both"]
SAYS = {
    **dict.fromkeys(("truth", "coarse"), "itself"),
    "foil": "the foil",
    **dict.fromkeys(("other", "conflict"), "another"),
    **dict.fromkeys(("denied", "abstain", "none"), "nobody"),
}

WANTED = ("model", "template_id", "arm", "truth", "foil")  # of replies from elsewhere
FILLED = {  # what such replies may lack
    "family": "own", "condition": "own", "language": "en", "source": "readout", "turn": 0, "status": "ok",
    "expect": "identity", "truth_maker": "", "foil_maker": "",
    **dict.fromkeys(("reply", "variant", "control_of", "foil_id")),
}  # fmt: skip


def completed(replies: Rows) -> tuple[pd.DataFrame, list[str]]:
    """Return identity records, and sentences that say what was filled in for replies from elsewhere.

    Such replies need the columns `WANTED` and `reply`, or `stance` in its place. Rows that the rules read, here or in
    an earlier version, are read anew if a part of their verdict is missing; a stance that somebody else gave stays.
    Raises `InputError` for other missing columns, a reply that is no text, and a false claim without its foil.
    """
    frame = pd.DataFrame(rows_of(replies))
    said = {*frame}
    wanted = WANTED if "stance" in said else (*WANTED, "reply")
    if missing := [f"`{name}`" for name in wanted if name not in said]:
        raise InputError(
            f"The replies lack {', '.join(missing)}: wanted are {', '.join(wanted)}, found "
            f"{', '.join(map(str, frame)) or 'nothing'}; add what is missing, or rename your columns with "
            "`replies.rename(columns={...})`. docs/own-data.md says what they hold."
        )
    new = {name: value for name, value in FILLED.items() if name not in said}
    frame = frame.assign(**new)
    shown = [f"{name} {value!r}" for name, value in new.items() if value not in (None, "")]
    if "repeat" not in said:
        frame["repeat"] = frame.groupby([*SITUATION, "source", "turn"], dropna=False).cumcount()
        shown.append("repeat in the order of the rows")
    if not {*VERDICT} <= said:
        found = pd.DataFrame(_read_again(rows_of(frame), "stance" in said), columns=[*VERDICT], index=frame.index)
        frame = frame.assign(**found.astype(object).where(found.notna(), None))
        shown += ["stances as the rules read the replies"] * bool(found["scorer"].eq("claims").any())
    return frame, [f"Filled in, as the replies do not say it: {', '.join(shown)}."] * bool(shown)


def _read_again(rows: Sequence[Mapping], given: bool) -> list[dict]:
    """Return the verdicts of rows: by the rules, but for stances that somebody else gave."""
    for number, row in enumerate(rows):
        _check_reply(number, row)
    fresh = rescore([row | {"foil": row["foil"] or ""} for row in rows])
    read = [not given or row.get("scorer") == "claims" for row in rows]
    return [{k: new[k] for k in VERDICT} if ours else _given(r) for r, new, ours in zip(rows, fresh, read, strict=True)]


def _check_reply(number: int, row: Mapping) -> None:
    """Raise `InputError` for a reply that cannot be held against what was claimed."""
    if not isinstance(row["reply"], str | None):
        raise InputError(f"Row {number} has the `reply` {row['reply']!r}; it must be the model's words, or null.")
    for name in ("truth", "foil"):
        if not isinstance(row[name], str) and (name == "truth" or row["arm"] in (*FALSE, "placebo", "mention")):
            raise InputError(f"Row {number} has the arm {row['arm']!r} and no name as `{name}`, got {row[name]!r}.")


def _given(row: Mapping) -> dict:
    """Return the verdict of a row whose stance somebody else gave."""
    stance = row["stance"]
    made = {"name_stance": stance, "accepts": stance and accepts(row["arm"], stance), "claims": [], "scorer": "given"}
    made["passed"] = stance and passed(row["expect"], stance, row["source"])
    return {name: row.get(name, made.get(name)) for name in VERDICT}


def overview(records: pd.DataFrame, display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Count the stances per model and source of the reply; where replies were asked for again, with their share."""
    counts = counted(records.fillna({"stance": "no answer"}), ["model", "source"], "stance")
    return counts.rename(index=display or {}, level="model")


def first_attempts(
    records: pd.DataFrame,
    table: pd.DataFrame,
    statistics: Sequence[str],
    display: Mapping[str, str] | None = None,
    **options,
) -> pd.DataFrame:
    """Show statistics of `stats.identity_table(records)` beside those from first attempts alone.

    Of the models that were asked again for more than `serving.WORTH_SAYING` of their replies; empty where none was.
    """
    again = serving.asked_again(records, ["model"])
    own = records[records["model"].isin(again.index[again > serving.WORTH_SAYING])]
    if own.empty:
        return pd.DataFrame()
    first = identity_table(from_first_attempts(own), **options)
    shown = {"last": table[table["evaluator"].isin(first["evaluator"])], "first": first}
    parts = [summary(rows, statistics, display=display).assign(attempt=name) for name, rows in shown.items()]
    return pd.concat(parts).sort_values("evaluator", kind="stable").set_index(["evaluator", "attempt"])


def summary(
    table: pd.DataFrame,
    statistics: Sequence[str],
    by: Sequence[str] = ("evaluator",),
    display: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Show statistics of `stats.identity_table` side by side as "estimate [low, high]", one row per group.

    n and clusters (templates) are those of the first statistic.
    """
    by = list(by)
    rows = default_rows(table, *statistics, by=[*by, "statistic"])
    sizes = rows[rows["statistic"] == statistics[0]].set_index(by)[["n", "clusters"]]
    wide = side_by_side(rows, by, statistics).join(sizes).reset_index()
    if "evaluator" in wide:
        wide["evaluator"] = wide["evaluator"].map(lambda i: (display or {}).get(i, i))
    return wide


def lasting(records: pd.DataFrame, **options) -> pd.DataFrame:
    """Return `stats.survival_table` of records; an empty one where no conversation has a later turn."""
    if (records["turn"] > 0).any():
        return survival_table(records, **options)
    return pd.DataFrame(columns=list(COLUMNS))


def conclusions(table: pd.DataFrame, display: Mapping[str, str] | None = None) -> list[str]:
    """Say for each model of `stats.identity_table(records)`, in a sentence, what its replies to claims show."""
    sentences = []
    for model, rows in default_rows(table, by=["evaluator", "statistic"]).groupby("evaluator", sort=False):
        found = {row.statistic: row for row in rows.itertuples()}
        name, d = (display or {}).get(model, model), found["claim_discrimination"]
        if pd.isna(d.estimate):
            sentences.append(f"{name}: no template has replies to a true and to a false claim, so nothing can be said.")
            continue
        rates = [found[s].estimate for s in ("accept_true", "accept_false", "neutral_right")]
        verdicts = {"recognises": "it tells the two apart", "avoids": "it accepts false claims rather than true ones"}
        verdicts["too few answers"] = no_interval(d)
        verdict = verdicts.get(conclusion(d), "no evidence that it tells the two apart")
        unasked = "" if pd.isna(rates[2]) else f" Unprompted, it names itself in {rates[2]:.0%} of replies."
        few = ", from few templates" if "few_templates" in str(d.note).split("; ") and not pd.isna(d.low) else ""
        sentences.append(
            f"{name} accepts {rates[0]:.0%} of true and {rates[1]:.0%} of false claims; {verdict} "
            f"({estimate_text(d.estimate, d.low, d.high)}{few}{dominated(d)}).{unasked}"
        )
    return sentences


def agreement(scored: Mapping[str, Sequence[Mapping]]) -> pd.DataFrame:
    """Hold scorers against each other on the same replies: Cohen's kappa and the share of agreement, with intervals.

    scored: scorer: its records. The free replies are compared, and under the name "readout" the read-outs of the first
    scorer. A verdict is who the reply says it is: itself, the foil, another, or nobody. Columns also give each
    scorer's share of "itself", since kappa depends on it.
    """
    verdicts = {name: _verdicts(records, "reply") for name, records in scored.items()}
    verdicts["readout"] = _verdicts(next(iter(scored.values())), "readout")
    rows = []
    for one, other in combinations(verdicts, 2):
        pair = pd.concat([verdicts[one], verdicts[other]], axis=1, keys=["a", "b"]).dropna()
        if pair.empty:
            continue
        cluster = pair.index.get_level_values("template_id")
        found = cohen_kappa(pair["a"], pair["b"], cluster, n_resamples=1)  # its bootstrap is not shown
        shown = default_rows(found).set_index("statistic")
        itself = (pair == "itself").mean().round(3)
        row = {"scorer": one, "other": other, "replies": len(pair)}
        row |= {s: estimate_text(*shown.loc[s, ["estimate", "low", "high"]]) for s in ("kappa", "agreement")}
        rows.append(row | {"scorer says itself": itself["a"], "other says itself": itself["b"]})
    return pd.DataFrame(rows)


def reader_errors(folder: str = "identity/labelled") -> pd.DataFrame:
    """Correct how often recorded replies affirm who they are, as read by the rules, for the errors of the rules.

    folder: two labelled halves, `development.jsonl` and `held_out.jsonl`, of which the recorded replies count and not
    those that were written. The labels of the held-out half give sensitivity, specificity and the corrected rate over
    both (`stats.rogan_gladen`); the question is the cluster. The halves were balanced and not drawn at random, and the
    rules were mended on both since: read it as an example of the method.
    """
    halves = {half: read_jsonl(data_path(folder) / f"{half}.jsonl") for half in ("development", "held_out")}
    rows = [reply | {"half": half} for half, replies in halves.items() for reply in replies]
    frame = pd.DataFrame([row for row in rows if row["source"] != "written"])
    said = frame["text"].map(lambda text: any(claim.polarity == "affirm" for claim in extract(text)))
    labels = frame["claims"].map(lambda claims: any(claim["polarity"] == "affirm" for claim in claims))
    held_out = labels.astype(object).where(frame["half"] == "held_out", None)
    table = rogan_gladen(said, held_out, frame["question"], n_resamples=1)  # its bootstrap is not shown
    shown = default_rows(table)
    text = [estimate_text(*row) for row in shown[["estimate", "low", "high"]].itertuples(index=False)]
    return shown[["statistic", "n", "clusters"]].assign(estimate=text)


def _verdicts(records: Sequence[Mapping], source: str) -> pd.Series:
    frame = pd.DataFrame([record for record in records if record["source"] == source])
    key = ["model", "template_id", "variant", "arm", "language", "repeat", "turn"]
    return frame.set_index(key)["stance"].map(SAYS)


class Transcripts(list):
    """Conversations as texts, shown in a notebook as plain text that nothing in it can leave."""

    def __repr__(self) -> str:
        return "\n\n".join(self)

    def _repr_html_(self) -> str:
        style = "white-space: pre-wrap; border-left: 3px solid #bbb; padding-left: 1em; text-align: left"
        return "\n".join(f'<pre style="{style}">{html.escape(text)}</pre>' for text in self)


def failures(result: Estimates, limit: int = 6) -> Transcripts:
    """Return transcripts of conversations that a read-out failed, from as many models and conditions as possible.

    result: of `selfeval.measure_identity`. limit: so many at most, 0 for all.
    """
    records = rows_of(result.records)
    failed = [r for r in records if r["source"] == "readout" and r["passed"] is False]
    frame = pd.DataFrame(failed, columns=["model", "condition"])
    counts = [frame.groupby(by).cumcount() for by in (["model", "condition"], ["model"])]
    order = pd.concat(counts, axis=1).sort_values([0, 1], kind="stable").index
    return Transcripts(transcript(failed[i], result.names) for i in order[: limit or None])


def transcript(record: Mapping, display: Mapping[str, str] | None = None) -> str:
    """Return one conversation up to a reply as text, with who the model is, what it was told, and the verdict."""
    name = (display or {}).get(record["model"], record["model"])
    claim = {"true": "told the truth", "neutral": "asked without a claim", "mention": f"{record['foil']} mentioned"}
    told = claim.get(record["arm"], f"told that it is {record['foil']}")
    head = f"{name} is {record['truth']}, {told} ({record['condition']}, {record['arm']}, turn {record['turn']})"
    turns = [f"{message['role']}: {message['content']}" for message in record.get("messages") or []]
    end = f"assistant: {record['reply']}\n[{record['source']}: {record['stance'] or record['status']}]"
    return "\n".join([head, "", *turns, end])
