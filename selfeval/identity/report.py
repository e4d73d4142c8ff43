"""Replies from elsewhere as identity records, and scorers held against each other."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import pandas as pd

from selfeval.errors import InputError
from selfeval.figures.tables import estimate_text
from selfeval.identity.run import VERDICT, accepts, passed, rescore
from selfeval.records import Rows, rows_of
from selfeval.stats import cohen_kappa, default_rows
from selfeval.stats.identity import FALSE, SITUATION

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


def _verdicts(records: Sequence[Mapping], source: str) -> pd.Series:
    frame = pd.DataFrame([record for record in records if record["source"] == source])
    key = ["model", "template_id", "variant", "arm", "language", "repeat", "turn"]
    return frame.set_index(key)["stance"].map(SAYS)
