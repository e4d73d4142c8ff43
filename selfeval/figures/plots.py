"""Which figures a result has, and what each of the forms draws in them."""

from collections.abc import Callable, Mapping

import pandas as pd

from selfeval.condition import varying_parts
from selfeval.figures.forms import cells, dots, steps
from selfeval.figures.style import SIDES, Drawing
from selfeval.recognition.counts import NAMING, NONE
from selfeval.results import in_order
from selfeval.roleplay.votes import ARMS
from selfeval.statistics.table import default_rows

J = "discrimination"
RATES = (-0.03, 1.03)
TITLES = {  # of panels; of others the statistic's own name
    "claim_discrimination": "Claim discrimination",
    "susceptibility": "Susceptibility",
    "abstain": "Abstains",
    "neutral_right": "Right, unasked",
    "auc": "AUC, people against models",
    "paired_accuracy": "The person scores higher",
}
Tables = Mapping[str, pd.DataFrame]
Names = Mapping[str, str]


def estimates(table: pd.DataFrame, *statistics: str, author: bool = False) -> pd.DataFrame:
    """Return what `dots` draws of a table: default rows over all authors, or of single ones."""
    rows = default_rows(table, *statistics)
    rows = rows[(rows["author"] != "") == author]
    rows = pd.concat([rows[rows["statistic"] == name] for name in statistics])
    return rows.assign(line=rows["evaluator"])


def _designs(rows: pd.DataFrame) -> pd.Series:
    """Return what tells the designs of rows apart, for the titles of panels."""
    same = rows["condition"].map(varying_parts(rows["condition"].unique()))
    tasks = rows["task"] if rows["task"].nunique() > 1 else ""
    change = "\n" + rows["first"] + " → " + rows["second"] if "field" in rows else ""
    return (tasks + " " + same.astype(str).str.replace(";", " ") + change).str.strip()


def over(rows: pd.DataFrame) -> str:
    """Say for the label of an axis what intervals are, and over what."""
    level = " and ".join(f"{level * 100:g} %" for level in rows["level"].dropna().unique())
    return f"; {level} intervals over {' and '.join(rows['cluster_unit'].unique())}s"


# self-recognition -----------------------------------------------------------------------------------------------------


def advantage(tables: Tables, names: Names) -> Drawing | None:
    """Draw discrimination of each evaluator, and below it the advantage with its bootstrap interval."""
    table = tables["recognition"]
    second = table[table["method"].eq("bca") | table["estimate"].isna()]
    rows = pd.concat([estimates(part, what) for part, what in ((table, J), (second, "advantage"))])
    rows = rows.assign(panel=_designs(rows), side=rows["statistic"])
    compared = "differences of " if rows["method"].eq("mover_nested").any() else ""
    return dots(rows, f"{compared}discrimination J, advantage A{over(rows)}", names=names)


def claimed(tables: Tables, names: Names) -> Drawing | None:
    """Draw how often each evaluator (row) claims the texts of each author (column) as its own."""
    counts = tables["counts"].assign(own=lambda c: c["n"].where(c["predicted"] == c["evaluator"], 0))
    counts = counts.assign(panel=_designs(counts))
    sums = counts.groupby(["panel", "evaluator", "author"], sort=False)[["own", "n"]].sum().reset_index()
    rows = sums.assign(value=sums["own"] / sums["n"]).rename(columns={"evaluator": "line", "author": "column"})
    return cells(rows, "P(claims the text)", ("evaluator", "author of the text"), names=names)


def accuracy(tables: Tables, names: Names) -> Drawing | None:
    """Draw how often each evaluator (row) is right about the texts of each author (column)."""
    rows = estimates(tables["recognition"], "author_accuracy", author=True)
    if rows.empty:
        return None
    rows = rows.assign(panel=_designs(rows))
    rows = rows.rename(columns={"author": "column", "estimate": "value"})
    return cells(rows, "accuracy", ("evaluator", "author of the text"), names=names)


def predictions(tables: Tables, names: Names) -> Drawing | None:
    """Draw which name (column) is given to whose texts (row), over all evaluators."""
    counts = tables["counts"][tables["counts"]["task"].isin(NAMING)]
    other = {name: "other name" for name in counts["predicted"] if name not in {*counts["author"]}}
    counts = counts.replace({"predicted": other | {NONE: "no answer"}}).assign(panel=_designs(counts))
    sums = counts.groupby(["panel", "author", "predicted"])["n"].sum()
    rows = (sums / sums.groupby(["panel", "author"]).transform("sum")).unstack(fill_value=0).stack().reset_index()
    rows = rows.set_axis(["panel", "line", "column", "value"], axis=1)
    rows = rows.sort_values("column", key=lambda column: column.isin(["other name", "no answer"]), kind="stable")
    return cells(rows, "share of texts", ("author", "name given"), names=names)


def roc(tables: Tables, names: Names) -> Drawing | None:
    """Draw the ROC curve of each evaluator's score for its own texts, with its AUC and interval."""
    areas = estimates(tables["recognition"], "auc").dropna(subset="estimate")
    if areas.empty:
        return None
    texts = [f"AUC {a.estimate:.2f}\n[{a.low:.2f}, {a.high:.2f}]\nn {a.n:.0f}" for a in areas.itertuples()]
    key = ["evaluator", "task", "condition"]
    rows = tables["roc"].merge(areas.assign(text=texts)[[*key, "text"]], on=key)
    rows = rows.set_index("evaluator").loc[in_order(rows["evaluator"])].reset_index()
    called = rows["evaluator"].map(names).fillna(rows["evaluator"])
    rows = rows.assign(panel=(called + "\n" + _designs(rows)).str.strip(), x=rows["false_claims"], y=rows["hits"])
    return steps(rows.assign(plan=rows["x"]), "others' texts above the threshold", "own texts above")


# the other evaluations ------------------------------------------------------------------------------------------------


def readings(tables: Tables, names: Names) -> Drawing | None:
    """Draw how well each reading tells own texts from others': an evaluator's words, its weights, a reader of style."""
    rows = estimates(tables["implicit"], "auc_within_prompt")
    side, gap = rows.get("first", rows["condition"].str.removeprefix("reading=")), "field" in rows
    rows = rows.assign(panel=side.where(~side.isin([*SIDES]), ""), side=side)
    label = f"{'own likelihood − other reading: ' * gap}AUC within prompts{over(rows)}"
    return dots(rows, label, names=names, null=0.5 * (not gap), limits=None if gap else RATES)


def claims(tables: Tables, names: Names) -> Drawing | None:
    """Draw what a model accepts of claims, and how often it names itself unasked."""
    rows = estimates(tables["identity"], "claim_discrimination", "susceptibility", "abstain", "neutral_right")
    rows = rows[rows["task"].eq("") & rows["condition"].eq("")]
    difference = rows["statistic"].isin(["claim_discrimination", "susceptibility"])
    rows = rows.assign(panel=rows["statistic"].map(TITLES), null=difference.map({True: 0.0}))
    return dots(rows, f"share, or difference of shares{over(rows)}", names=names)


def acceptance(tables: Tables, names: Names) -> Drawing | None:
    """Draw claim discrimination by family of templates, of which a few allow no more than a hint."""
    rows = estimates(tables["identity"], "claim_discrimination").dropna(subset="estimate")
    rows = rows[rows["task"].ne("") & rows["condition"].eq("")]
    sizes = rows.groupby("task")["clusters"].agg(["min", "max"])
    span = {name: f"{a:.0f}" if a == b else f"{a:.0f} to {b:.0f}" for name, a, b in sizes.itertuples()}
    rows = rows.assign(panel=rows["task"] + "\nn " + rows["task"].map(span))
    return dots(rows, f"claim discrimination{over(rows)}", names=names, limits=(-1.03, 1.03))


def survival(tables: Tables, names: Names) -> Drawing | None:
    """Draw the share of conversations that kept their identity, by turn of pressure, a panel per model."""
    rows = default_rows(tables["identity"]).query("task == '' and condition == ''").dropna(subset="estimate")
    rows = rows[rows["statistic"].str.startswith("survival@")]
    rows = rows.assign(x=rows["statistic"].str.slice(9).astype(float), y=rows["estimate"], panel=rows["evaluator"])
    begun = rows.drop_duplicates("panel").assign(x=0.0, y=1.0, low=1.0, high=1.0)
    last = rows.sort_values("x").drop_duplicates("panel", keep="last")
    rows = pd.concat([begun, rows, last.assign(x=last["x"] + 0.3)])  # so that the last level is seen
    axis = f"turns of pressure{over(rows)}"
    return steps(rows.sort_values("x", kind="stable"), axis, "has not flipped", names=names, drawn="post")


def of_arms(label: str, *statistics: str, author: bool = False, null: float | None = 0.0) -> Callable:
    """Return the figure of a jury's statistics, a row per arm; author: of people and of models apart."""

    def form(tables: Tables, names: Names) -> Drawing | None:
        rows = estimates(tables["jury"], *statistics, author=author)
        rows = rows[rows["evaluator"] == ""]
        place = {arm: k for k, arm in enumerate(ARMS)}
        rows = rows.sort_values("task", key=lambda arms: arms.map(place).fillna(len(place)), kind="stable")
        line = rows["task"].str.replace("_", " ").str.replace(" - ", " − ").str.replace("reask", "second look")
        rows = rows.assign(line=line, panel=rows["statistic"].map(TITLES).fillna(""), side=rows["author"])
        return dots(rows, f"{label}{over(rows)}", null=null, limits=RATES if null != 0 else None)

    return form


def of_names(label: str, *statistics: str, **how) -> Callable:
    """Return the figure of statistics of existence, a panel per form of answer."""

    def form(tables: Tables, names: Names) -> Drawing | None:
        rows = estimates(tables["existence"], *statistics)
        reasons = rows["condition"].str.contains("reasoning=true").map({True: ", with reasons", False: ""})
        asked = rows["condition"].str.extract("answer=([^;]*)")[0].str.replace("_", "/")
        rows = rows.assign(panel=asked + reasons, side=rows["statistic"] if len(statistics) > 1 else "")
        return dots(rows, f"{label}{over(rows)}", names=names, **how)

    return form


def scores(tables: Tables, names: Names) -> Drawing | None:
    """Draw the rate or mean score of each model of a log, or the differences of models, a panel per task and scorer."""
    rows = estimates(tables["log"], "rate", "mean_score")
    rows = rows.assign(panel=_designs(rows), null=rows["evaluator"].str.contains(" - ").map({True: 0.0}))
    return dots(rows, f"mean score{over(rows)}", names=names)


PLOTS = {  # figures of each kind of result, the main one first
    "recognition": {f.__name__: f for f in (advantage, claimed, accuracy, predictions, roc)},
    "implicit": {"readings": readings},
    "identity": {"claims": claims, "acceptance": acceptance, "survival": survival},
    "jury": {
        "areas": of_arms("share of pairs ordered rightly: .5 is chance", "auc", "paired_accuracy", null=0.5),
        "arms": of_arms("mean score: 0 a program, 1 a person", "mean_score", author=True, null=None),
        "differences": of_arms("paired difference of mean scores", "difference"),
    },
    "existence": {
        "discrimination": of_names("score of real − of invented names", "discrimination"),
        "scores": of_names("mean score: 0 does not exist, 1 exists", "score_real", "score_invented", null=None),
    },
    "log": {"scores": scores},
}
