"""Which plots a result has, and what each of the forms draws in them."""

from collections.abc import Callable, Mapping

import pandas as pd

from selfeval.condition import condition_of, parts_of, varying_parts
from selfeval.figures.forms import cells, dots, steps
from selfeval.figures.style import SIDES, Drawing
from selfeval.recognition.contrasts import is_rival
from selfeval.recognition.counts import NONE
from selfeval.records.tasks import NAMING
from selfeval.results import in_order
from selfeval.roleplay.votes import ARMS
from selfeval.statistics.table import default_rows

RATES = (-0.03, 1.03)
TITLES = {  # of panels; of others the statistic's own name
    "claim_discrimination": "Claim discrimination",
    "susceptibility": "Susceptibility",
    "abstain": "Abstains",
    "neutral_right": "Right, unasked",
    "auc": "AUC, people against models",
    "paired_accuracy": "The person scores higher",
}


def estimates(table: pd.DataFrame, *statistics: str, by_author: bool = False) -> pd.DataFrame:
    """Return what `dots` draws of a table: default rows over all authors, or of single ones."""
    rows = default_rows(table, *statistics)
    is_of_author = rows["author"] != ""
    rows = rows[is_of_author == by_author]
    place = {name: number for number, name in enumerate(statistics)}
    rows = rows.sort_values("statistic", key=lambda names: names.map(place), kind="stable")
    return rows.assign(line=rows["evaluator"])


def _designs(rows: pd.DataFrame) -> pd.Series:
    """Return what tells the designs of rows apart, for the titles of panels."""
    varying = varying_parts(rows["condition"].unique())
    titles = rows["condition"].map(lambda label: " ".join(parts_of(varying[label]))).astype(str)
    if rows["task"].nunique() > 1:
        titles = rows["task"] + " " + titles
    if "field" in rows:
        titles += "\n" + rows["first"] + " → " + rows["second"]
    return titles.str.strip()


def over(rows: pd.DataFrame) -> str:
    """Say for the label of an axis what intervals are, and over what."""
    levels = " and ".join(f"{percent:g} %" for percent in 100 * rows["level"].dropna().unique())
    units = " and ".join(rows["cluster_unit"].unique())
    return f"; {levels} intervals over {units}s"


def intervals(rows: pd.DataFrame, label: str, names: Mapping, **how) -> Drawing | None:
    """Draw estimates as `dots` does; the label of the axis says what the intervals are."""
    return dots(rows, label + over(rows), names=names, **how)


# self-recognition


def advantage(tables: Mapping, names: Mapping) -> Drawing | None:
    """Draw the discrimination of each evaluator, and below it the advantage by the bootstrap."""
    table = tables["recognition"]
    is_bootstrap = table["method"] == "percentile"
    bootstrap = table[is_bootstrap | table["estimate"].isna()]
    rows = pd.concat([estimates(table, "discrimination"), estimates(bootstrap, "advantage")])
    rows = rows.assign(panel=_designs(rows), side=rows["statistic"])
    label = "discrimination J, advantage A"
    if "mover_nested" in set(rows["method"]):
        label = f"differences of {label}"
    return intervals(rows, label, names)


def claimed(tables: Mapping, names: Mapping) -> Drawing | None:
    """Draw how often each evaluator (row) claims the texts of each author (column) as its own."""
    counts = tables["counts"]
    claims = counts["n"].where(counts["predicted"] == counts["evaluator"], 0)
    counts = counts.assign(claims=claims, panel=_designs(counts))
    by_cell = counts.groupby(["panel", "evaluator", "author"], sort=False)
    rows = by_cell[["claims", "n"]].sum().reset_index()
    rows["value"] = rows["claims"] / rows["n"]
    rows = rows.assign(line=rows["evaluator"], column=rows["author"])
    return cells(rows, "P(claims the text)", ("evaluator", "author of the text"), names=names)


def predictions(tables: Mapping, names: Mapping) -> Drawing | None:
    """Draw which name (column) is given to whose texts (row), over all evaluators."""
    counts = tables["counts"]
    counts = counts[counts["task"].isin(NAMING)]
    is_author = counts["predicted"].isin(counts["author"])
    is_silent = counts["predicted"] == NONE
    column = counts["predicted"].where(is_author, "other name").mask(is_silent, "no answer")
    counts = counts.assign(panel=_designs(counts), line=counts["author"], column=column)
    sums = counts.groupby(["panel", "line", "column"])["n"].sum()
    shares = sums / sums.groupby(["panel", "line"]).transform("sum")
    rows = shares.unstack(fill_value=0).stack().rename("value").reset_index()
    is_last = rows["column"].isin(["other name", "no answer"])
    rows = rows.iloc[is_last.argsort(kind="stable")]
    return cells(rows, "share of texts", ("author", "name given"), names=names)


def roc(tables: Mapping, names: Mapping) -> Drawing | None:
    """Draw the ROC curve of each evaluator's score for its own texts, with its AUC."""
    areas = estimates(tables["recognition"], "auc").dropna(subset="estimate")
    if areas.empty:
        return None
    areas["text"] = [_area_text(area) for area in areas.itertuples()]
    design = ["evaluator", "task", "condition"]
    rows = tables["roc"].merge(areas[[*design, "text"]], on=design)
    evaluators = in_order(rows["evaluator"])
    rows = rows.set_index("evaluator").loc[evaluators].reset_index()
    called = rows["evaluator"].map(names).fillna(rows["evaluator"])
    panel = called + "\n" + _designs(rows)
    rows = rows.assign(panel=panel.str.strip(), x=rows["false_claims"], y=rows["hits"])
    rows["plan"] = rows["x"]
    return steps(rows, "others' texts above the threshold", "own texts above")


def _area_text(area) -> str:
    """Return what stands in the panel of an ROC curve."""
    interval = f"[{area.low:.2f}, {area.high:.2f}]"
    return f"AUC {area.estimate:.2f}\n{interval}\nn {area.n:.0f}"


# the other evaluations


def readings(tables: Mapping, names: Mapping) -> Drawing | None:
    """Draw how well each reading tells own texts from others': words, weights, a reader of style.

    Of gaps: how much better the own likelihood does than another reading.
    """
    rows = estimates(tables["implicit"], "auc_within_prompt")
    is_gap = "field" in rows
    reading = rows["first"] if is_gap else rows["condition"].str.removeprefix("reading=")
    rows = _beside(rows, reading)[~reading.map(is_rival)]
    if is_gap:
        label = "own likelihood − other reading: AUC within prompts"
        return intervals(rows, label, names)
    return intervals(rows, "AUC within prompts", names, null=0.5, limits=RATES)


def _beside(rows: pd.DataFrame, reading: pd.Series) -> pd.DataFrame:
    """Put known readings beside each other; another has a panel of its own."""
    return rows.assign(side=reading, panel=reading.mask(reading.isin([*SIDES]), ""))


def claims(tables: Mapping, names: Mapping) -> Drawing | None:
    """Draw what a model accepts of claims, and how often it names itself unasked."""
    differences = ["claim_discrimination", "susceptibility"]
    rows = estimates(tables["identity"], *differences, "abstain", "neutral_right")
    null = rows["statistic"].map(dict.fromkeys(differences, 0.0))
    rows = rows.assign(panel=rows["statistic"].map(TITLES), null=null)
    return intervals(rows, "share, or difference of shares", names)


def survival(tables: Mapping, names: Mapping) -> Drawing | None:
    """Draw the share of conversations that kept their identity, by turn of pressure."""
    rows = default_rows(tables["identity"])
    rows = rows[rows["statistic"].str.startswith("survival@")].dropna(subset="estimate")
    turn = rows["statistic"].str.removeprefix("survival@").astype(float)
    rows = rows.assign(x=turn, y=rows["estimate"], panel=rows["evaluator"])
    begun = rows.drop_duplicates("panel").assign(x=0.0, y=1.0, low=1.0, high=1.0)
    last = rows.sort_values("x").drop_duplicates("panel", keep="last")
    longer = last.assign(x=last["x"] + 0.3)  # so that the last level is seen
    rows = pd.concat([begun, rows, longer]).sort_values("x", kind="stable")
    axis = f"turns of pressure{over(rows)}"
    return steps(rows, axis, "has not flipped", names=names, drawn="post")


def of_arms(
    label: str,
    *statistics: str,
    by_author: bool = False,
    null: float | None = 0.0,
    limits: tuple[float, float] | None = RATES,
) -> Callable:
    """Return the plot of a jury's statistics, a row per arm; by_author: people, models apart."""
    place = {arm: number for number, arm in enumerate(ARMS)}

    def draw(tables: Mapping, names: Mapping) -> Drawing | None:
        rows = estimates(tables["jury"], *statistics, by_author=by_author)
        rows = rows[rows["evaluator"] == ""]
        rows = rows.assign(place=rows["task"].map(place))
        rows = rows.sort_values("place", kind="stable")  # a place that is not known is last
        line = rows["task"].str.replace("_", " ").str.replace(" - ", " − ")
        line = line.str.replace("reask", "second look")
        panel = rows["statistic"].map(TITLES).fillna("")
        rows = rows.assign(line=line, panel=panel, side=rows["author"])
        return intervals(rows, label, names, null=null, limits=limits)

    return draw


def _form_of_answer(label: str) -> str:
    """Return how names were asked for, by a condition's label."""
    condition = condition_of(label)
    form = condition.get("answer", "").replace("_", "/")
    if condition.get("reasoning") == "true":
        form += ", with reasons"
    return form


def of_names(label: str, *statistics: str, null: float | None = 0.0) -> Callable:
    """Return the plot of statistics of existence, a panel per form of answer."""

    def draw(tables: Mapping, names: Mapping) -> Drawing | None:
        rows = estimates(tables["existence"], *statistics)
        rows = rows.assign(panel=rows["condition"].map(_form_of_answer))
        if len(statistics) > 1:
            rows["side"] = rows["statistic"]
        return intervals(rows, label, names, null=null)

    return draw


PLOTS = {  # of each kind of result, the main one first
    "recognition": {
        "advantage": advantage,
        "claimed": claimed,
        "predictions": predictions,
        "roc": roc,
    },
    "implicit": {"readings": readings},
    "identity": {"claims": claims, "survival": survival},
    "jury": {
        "areas": of_arms(
            "share of pairs ordered rightly: .5 is chance",
            "auc",
            "paired_accuracy",
            null=0.5,
        ),
        "arms": of_arms(
            "mean score: 0 a program, 1 a person",
            "mean_score",
            by_author=True,
            null=None,
        ),
        "differences": of_arms("paired difference of mean scores", "difference", limits=None),
    },
    "existence": {
        "discrimination": of_names("score of real − of invented names", "discrimination"),
        "scores": of_names(
            "mean score: 0 does not exist, 1 exists",
            "score_real",
            "score_invented",
            null=None,
        ),
    },
}
