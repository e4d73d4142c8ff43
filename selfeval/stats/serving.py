"""Who served a model, and which replies were asked for again: what a reader must know before comparing models.

One model id may be served by several endpoints, which differ in weights (quantisation), templates and filters. Such a
model has `MARK` behind its name in every table and figure, and the note `several_endpoints` in every CSV.
"""

from collections.abc import Mapping, Sequence

import pandas as pd

MARK = " ‡"
NOTE = "several_endpoints"
WORTH_SAYING = 0.02  # of an evaluator's questions: above it, estimates from first attempts stand beside the others
EVALUATOR = ("evaluator_model", "served_model", "served_by")  # of prediction records
AUTHOR = ("true_model", "text_served_model", "text_served_by")


def served_by_several(records: pd.DataFrame, *roles: tuple[str, str, str]) -> dict[str, dict[str, int]]:
    """Return {model id: {endpoint: replies}} of the models that more than one endpoint served, the busiest first.

    roles: the columns of (model id, served model, upstream), such as ("juror", "served_model", "served_by"); columns
    that the records lack, and replies that do not say who served them, count for nothing.
    """
    counts: dict[str, dict[str, int]] = {}
    for role in roles:
        if {*role[:1]} <= {*records} and {*role[1:]} & {*records}:
            said = records.reindex(columns=role).replace("", None).dropna(subset=role[1:], how="all")
            said = said.astype(object).fillna("").astype(str)
            for (model, served, upstream), n in said.groupby([*role]).size().items():
                name = " via ".join(filter(None, (served, upstream)))
                counts.setdefault(model, {})[name] = counts.get(model, {}).get(name, 0) + int(n)
    known = {model: _known(found) for model, found in counts.items()}
    return {m: dict(sorted(found.items(), key=lambda item: -item[1])) for m, found in known.items() if len(found) > 1}


def _known(found: Mapping[str, int]) -> dict[str, int]:
    """Leave out replies that name no upstream where others of the same served model do: these may be the same."""
    return {name: n for name, n in found.items() if not any(other.startswith(f"{name} via ") for other in found)}


def of_predictions(records: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Return `served_by_several` of prediction records: what a model answered, and each text that it wrote once."""
    places = pd.to_numeric(records["position"], errors="coerce") if "position" in records else 0
    further = records["task_type"].eq("lineup") & (places > 1)  # a lineup has a record for each of its texts
    replies = records[~further].filter(EVALUATOR)
    texts = records.drop_duplicates(["true_model", "text_id"]).filter(AUTHOR)
    return served_by_several(pd.concat([replies, texts]), EVALUATOR, AUTHOR)


def flagged(table: pd.DataFrame, several: Mapping[str, Mapping], columns: Sequence[str]) -> pd.DataFrame:
    """Return a result table with the note `several_endpoints` on rows that name such a model in one of the columns."""
    return noted(table, table[list(columns)].isin([*several]).any(axis=1)) if several else table


def noted(table: pd.DataFrame, where: pd.Series) -> pd.DataFrame:
    """Return a result table with the note `several_endpoints` on some rows, once."""
    notes = table["note"].fillna("")
    named = where & ~notes.str.contains(NOTE, regex=False)
    return table.assign(note=notes.where(~named, (notes + f"; {NOTE}").str.removeprefix("; ")))


def marked(display: Mapping[str, str], several: Mapping[str, Mapping]) -> dict[str, str]:
    """Return {id: display name} with `MARK` behind the names of models that several endpoints served."""
    return {**display, **{model: display.get(model, model) + MARK for model in several}}


def sentences(display: Mapping[str, str], several: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Say who served whom, one sentence for each model that several endpoints served."""
    return [
        f"{MARK.strip()} {display.get(model, model).removesuffix(MARK)} was served by {len(found)} endpoints: "
        f"{', '.join(f'{name} ({n} replies)' for name, n in found.items())}. Its numbers mix them; data/models.yaml "
        "says how to pin one."
        for model, found in several.items()
    ]


def asked_again(records: pd.DataFrame, by: Sequence[str]) -> pd.Series:
    """Return the share of the records of each group whose reply was asked for again."""
    return _again(records).groupby([records[name] for name in by], sort=False).mean()


def _again(records: pd.DataFrame) -> pd.Series:
    """Tell of each record whether its reply was asked for again; foreign files may mean something else by the name."""
    if "asked_again" not in records:
        return pd.Series(False, records.index)
    return records["asked_again"].map(lambda statuses: isinstance(statuses, list)).astype(bool)


def first_attempts(records: pd.DataFrame, answers: Sequence[str]) -> pd.DataFrame:
    """Return the records as they would be had nothing been asked again: first attempts were no answers.

    answers: the columns that hold what a reply says, made null where it was asked again.
    """
    again = _again(records)
    first = records.assign(**{name: records[name].mask(again) for name in answers})
    first.loc[again, "status"] = [statuses[0] for statuses in records.loc[again, "asked_again"]]
    return first
