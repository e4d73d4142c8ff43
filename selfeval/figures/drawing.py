"""Which figures a result has, and what each of the three forms draws in them."""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path

import pandas as pd
import scipy.stats as sps
import yaml
from matplotlib.figure import Figure

from selfeval.figures.cells import cells
from selfeval.figures.dots import dots, scale
from selfeval.figures.results import bootstrapped, default_rows, renamed
from selfeval.figures.steps import steps
from selfeval.figures.style import DOUBLE, Look, colours
from selfeval.stats.counts import NAMING, NONE, TASKS, varying_parts
from selfeval.stats.votes import ARMS

J = "discrimination"
FOREST = ("advantage", J, "corrected_advantage", "peer_corrected")
CLAIMS = ("claim_discrimination", "susceptibility", "abstain", "neutral_right")
OTHER = {NONE: "no answer", "other": "other name"}
RATES = (-0.03, 1.03)
Tables = Mapping[str, pd.DataFrame]


@cache
def words() -> dict:
    """Return what readers of figures and tables are told: captions, titles, labels."""
    return yaml.safe_load(Path(__file__).with_name("words.yaml").read_text(encoding="utf-8"))


def draw(
    kind: str, tables: Tables, display: Mapping[str, str] | None = None, width: float = DOUBLE, only: Collection[str] = ()
) -> dict[str, Figure]:  # fmt: skip
    """Draw what a result allows: {"<what>_<design or kind>": figure}, the most important first.

    kind, tables: as in `results.KINDS`; recognition needs its first table alone. only: names of figures.
    """
    tables = {name: renamed(table) for name, table in tables.items()}
    main = tables[next(iter(tables))]
    order = ranked(main) if "evaluator" in main else []
    authors = {*main["author"]} if kind == "recognition" else set()
    look = Look(display or {}, width, colours([*order, *sorted(authors - {*order, ""})]), _limits(kind, tables))
    parts = _designs(tables) if kind == "recognition" else {kind: tables}
    found = {}
    for name, part in parts.items():
        for what, form in FORMS[kind].items():
            if not only or f"{what}_{name}" in only:
                found[f"{what}_{name}"] = form(part, order, look)
    return {name: figure for name, figure in found.items() if figure is not None}


def ranked(table: pd.DataFrame) -> list[str]:
    """Return evaluators by discrimination, highest first: the one order in all figures of a set."""
    rows = default_rows(table)
    main = rows[rows["statistic"].isin([J, "claim_discrimination"]) & (rows["task"].isin(["", *TASKS, "existence"]))]
    first = main.groupby("evaluator", sort=False)["estimate"].mean().sort_values(ascending=False, kind="stable")
    return [name for name in dict.fromkeys([*first.index, *rows["evaluator"]]) if name]


def _limits(kind: str, tables: Tables) -> tuple[float, float] | None:
    """Return the x scale that the differences of a set share."""
    if kind != "recognition":
        return None
    rows = default_rows(tables["recognition"], *FOREST)
    return scale(pd.concat([rows, default_rows(tables["contrasts"], J)] if "contrasts" in tables else [rows]))


def _designs(tables: Tables) -> dict[str, dict]:
    """Return {what figures of a design are called: its tables}, naming tasks first; contrasts by task."""
    parts, main = {}, tables["recognition"]
    for task in sorted(main["task"].unique(), key=[*TASKS].index):
        for condition, part in varying_parts(main.loc[main["task"] == task, "condition"].unique()).items():
            name = f"{task}_{re.sub(r'[^a-z0-9.]+', '-', part.lower())}" if part else task
            of_design = {key: table[(table["task"] == task) & (table["condition"] == condition)]
                         for key, table in tables.items() if key != "contrasts" and {"task", "condition"} <= {*table}}  # fmt: skip
            parts[name] = of_design
    for task, rows in tables["contrasts"].groupby("task", sort=False) if "contrasts" in tables else ():
        parts.setdefault(task, {})["contrasts"] = rows
    return parts


def _lines(rows: pd.DataFrame, statistics: Sequence[str] = (), line: str = "evaluator") -> pd.DataFrame:
    """Return rows as `dots` takes them: a line per evaluator (or arm), a panel per statistic, in this order."""
    rows = pd.concat([rows[rows["statistic"] == name] for name in statistics]) if statistics else rows
    return rows.assign(line=rows[line], panel=rows["statistic"].map(words()["titles"]).fillna(""))


def axis(rows: pd.DataFrame, what: str) -> str:
    """Return an axis label: what is measured, under which policy, and over what its intervals are."""
    policies = ", ".join(sorted({*rows["policy"]} - {""}))
    units = " and ".join(f"{unit}s" for unit in rows["cluster_unit"].unique())
    level = " ".join(f"{level * 100:g} %" for level in rows["level"].unique()[:1])
    return f"{words()['labels'][what]}{f', policy {policies}' * bool(policies)}; {level} intervals over {units}"


# self-recognition -----------------------------------------------------------------------------------------------------


def _advantage(t: Tables, order: list[str], look: Look) -> Figure | None:
    """One dumbbell per evaluator, from the usual score to discrimination."""
    table = t.get("recognition", pd.DataFrame())
    if table.empty or "advantage" not in set(table["statistic"]):
        return None
    rows, second = _lines(default_rows(table), [J]).set_index("evaluator"), bootstrapped(table)
    second = second[second["statistic"] == J].set_index("evaluator")[["low", "high"]]
    usual = default_rows(table, "advantage").set_index("evaluator")["estimate"]
    rows = rows.assign(start=usual, panel="").join(second.set_axis(["low2", "high2"], axis=1))
    start = "usual score: self accuracy − mean cross accuracy"
    return dots(rows, look, axis(rows, "advantage"), order=_those(order, rows.index), start=start)


def _those(order: Sequence[str], found) -> list[str]:
    """Return what was found: evaluators in their order, then authors that are none."""
    return [name for name in order if name in set(found)] + sorted(set(found) - set(order) - {*OTHER, ""})


def _claimed(t: Tables, order: list[str], look: Look) -> Figure | None:
    """How often each evaluator (row) claims the texts of each author (column) as its own."""
    counts = t.get("counts", pd.DataFrame())
    if counts.empty:
        return None
    own = counts["n"].where(counts["predicted"] == counts["evaluator"], 0)
    pair = [counts["evaluator"], counts["author"]]
    share = own.groupby(pair).sum().unstack() / counts["n"].groupby(pair).sum().unstack()
    share = share.reindex(index=_those(order, share.index), columns=_those(order, share.columns))
    return cells(share, look, "P(claims the text), policy all", "evaluator", "author of the text")


def _forest(t: Tables, order: list[str], look: Look) -> Figure | None:
    """Advantage, discrimination and their corrections."""
    rows = _naming(t, "recognition")
    if rows.empty:
        return None
    rows = _lines(default_rows(rows), FOREST)
    return dots(rows, look, axis(rows, "forest"), order=_those(order, rows["evaluator"]))


def _naming(t: Tables, name: str) -> pd.DataFrame:
    """Return a table of a naming task, of another task nothing."""
    rows = t.get(name, pd.DataFrame())
    return rows if rows.empty or rows["task"].iloc[0] in NAMING else rows.head(0)


def _matrix(t: Tables, order: list[str], look: Look) -> Figure | None:
    """J of every evaluator (row) for every author's name (column)."""
    rows = _naming(t, "recognition")
    if rows.empty:
        return None
    rows = default_rows(rows, J, author=None)
    j = rows[rows["author"] != ""].pivot(index="evaluator", columns="author", values="estimate")
    j = j.reindex(index=_those(order, j.index), columns=_those(order, j.columns))
    return cells(j, look, "discrimination J, policy answered", "evaluator", "author named", centred=True)


def _predictions(t: Tables, order: list[str], look: Look) -> Figure | None:
    """Which name (column) is given to whose texts (row), over all evaluators."""
    counts = _naming(t, "counts")
    if counts.empty:
        return None
    table = counts.pivot_table(index="author", columns=_given(counts), values="n", aggfunc="sum", fill_value=0)
    table = table.div(table.sum(axis=1), axis=0)
    names = [*_those(order, table.index), *(name for name in OTHER if name in table)]
    table = table.reindex(index=_those(order, table.index), columns=names, fill_value=0).rename(columns=OTHER)
    return cells(table, look, "share of texts", "author of the text", "name given", frame=False)


def _given(counts: pd.DataFrame) -> pd.Series:
    """Return the names given, those outside the authors as "other"."""
    return counts["predicted"].where(counts["predicted"].isin([*counts["author"], NONE]), "other").rename("name")


def _names(t: Tables, order: list[str], look: Look) -> Figure | None:
    """How often each name is given, from the share of texts that it wrote, over all evaluators."""
    counts = _naming(t, "counts")
    if counts.empty:
        return None
    wrote = counts.groupby("author")["n"].sum() / counts["n"].sum()
    given = counts.groupby(_given(counts))["n"].sum() / counts["n"].sum()
    rows = pd.DataFrame({"estimate": given, "start": wrote}).assign(low=None, high=None, panel="")
    rows.loc[wrote.index, "estimate"] = rows.loc[wrote.index, "estimate"].fillna(0)
    rows = rows.rename(index=OTHER).rename_axis("line").reset_index()
    order = [*_those(order, wrote.index), *(label for label in OTHER.values() if label in set(rows["line"]))]
    look = Look(look.display, look.width, look.colours, (-0.03, 1.1 * rows[["estimate", "start"]].max(axis=None)))
    label = "share of texts given this name (point), policy all"
    return dots(rows, look, label, order=order, null=None, start="share of texts it wrote")


def _roc(t: Tables, order: list[str], look: Look) -> Figure | None:
    """ROC curves of each evaluator's score for its own texts, with AUC and interval."""
    points = t.get("roc", pd.DataFrame())
    if points.empty:
        return None
    known = default_rows(t["recognition"], "auc").set_index("evaluator")
    texts = points.groupby("evaluator")["area"].first().map("AUC {:.2f}".format).to_dict()
    for name, row in known[known["low"].notna()].iterrows():
        texts[name] = f"AUC {row['estimate']:.2f}\n[{row['low']:.2f}, {row['high']:.2f}]\nn {row['n']:.0f}"
    place = _those(order, points["evaluator"]).index
    points = points.sort_values("evaluator", key=lambda names: names.map(place), kind="stable")
    names = {"evaluator": "panel", "false_claims": "x", "hits": "y"}
    rows = points.assign(text=points["evaluator"].map(texts)).rename(columns=names)
    return steps(rows, look, "others' texts above the threshold", "own texts above")


def _contrasts(t: Tables, order: list[str], look: Look) -> Figure | None:
    """The change of J from one condition to another, a panel per pair of conditions."""
    rows = t.get("contrasts", pd.DataFrame())
    if rows.empty:
        return None
    rows = _lines(default_rows(rows), [J])
    varying = varying_parts(rows["condition"].unique())
    rows["panel"] = (
        rows["field"] + ": " + rows["first"] + " → " + rows["second"] + "\n" + rows["condition"].map(varying)
    )
    rows["panel"] = rows["panel"].str.strip()
    return dots(rows, look, axis(rows, "contrasts"), order=_those(order, rows["evaluator"]))


# identity, juries, names, validation ----------------------------------------------------------------------------------


def _claims(t: Tables, order: list[str], look: Look) -> Figure | None:
    """Claim discrimination, susceptibility, abstention, and what a model says unasked."""
    rows = default_rows(t["identity"])
    rows = _lines(rows[(rows["task"] == "") & (rows["condition"] == "")], CLAIMS)
    return dots(rows, look, axis(rows, "claims"), order=order)


def _acceptance(t: Tables, order: list[str], look: Look) -> Figure | None:
    """Claim discrimination by model and family, with the rates of true and of false claims and the templates."""
    rows = default_rows(t["identity"])
    wide = rows[(rows["task"] != "") & (rows["condition"] == "")].pivot(
        index=["evaluator", "task"], columns="statistic"
    )
    if not {("estimate", "accept_true"), ("estimate", "accept_false")} <= {*wide}:
        return None
    found = wide["estimate"]
    true, false = (
        found[name].map(lambda rate: f"{rate:.2f}".removeprefix("0")) for name in ("accept_true", "accept_false")
    )
    gap = (found["accept_true"] - found["accept_false"]).rename("gap")
    if "claim_discrimination" in found:
        gap = found["claim_discrimination"].fillna(gap)
    number = wide["clusters"][["accept_true", "accept_false"]].min(axis=1)
    text = (true + " − " + false + "\nn " + number.map("{:.0f}".format)).where(gap.notna(), "")
    models = sorted(_those(order, gap.index.levels[0]), key=lambda name: name.startswith("sim/"))
    gap, text = gap.unstack().reindex(models), text.unstack().reindex(models).fillna("")
    label, about = "claim discrimination", "family of templates; in a cell: true − false claims accepted, n templates"
    return cells(gap, look, label, "model", about, texts=text, centred=True, frame=False)


def _survival(t: Tables, order: list[str], look: Look) -> Figure | None:
    """The share of conversations that kept their identity, by turn of pressure, a panel per model."""
    rows = default_rows(t["identity"]).dropna(subset="estimate")
    rows = rows[rows["statistic"].str.startswith("survival@") & (rows["task"] == "") & (rows["condition"] == "")]
    if rows.empty:
        return None
    rows = rows.assign(x=rows["statistic"].str.partition("@")[2].astype(float), y=rows["estimate"])
    begun = rows.drop_duplicates("evaluator").assign(x=0.0, y=1.0, low=1.0, high=1.0)
    last = rows.sort_values("x").drop_duplicates("evaluator", keep="last")
    rows = pd.concat([begun, rows, last.assign(x=last["x"] + 0.3)])  # so that the last level is seen
    place = sorted(order, key=lambda name: name.startswith("sim/")).index
    rows = rows.assign(panel=rows["evaluator"]).sort_values(["panel", "x"])
    rows = rows.sort_values("panel", key=lambda names: names.map(place), kind="stable")
    return steps(rows, look, axis(rows, "survival"), "has not flipped", drawn="post")


def _of_arms(what: str, statistics: Sequence[str], author: str | None = "", **how):
    """Return a form for rows of arms: whole juries, a line per arm."""

    def form(t: Tables, order: list[str], look: Look) -> Figure | None:
        rows = default_rows(t["jury"], author=author)
        rows = rows[(rows["evaluator"] == "") & ((rows["author"] != "") == (author is None))]
        rows = _lines(rows, statistics, "task")
        if rows.empty:
            return None
        rounds = rows["condition"].str.replace("=", " ")
        rows["line"] = (rows["task"].map(_arm) + " " + (rounds if rounds.nunique() > 1 else "")).str.strip()
        look = Look({}, look.width, {}, RATES if how else None)
        return dots(rows.assign(side=rows["author"]), look, axis(rows, what), **{"null": None} | how if how else {})

    return form


def _arm(name: str) -> str:
    return name.replace("_", " ").replace(" - ", " − ").replace("reask", "second look")


def _turns(t: Tables, order: list[str], look: Look) -> Figure | None:
    """Mean scores by turn, with t intervals over the conversations that were judged on it."""
    verdicts = t["verdicts"].dropna(subset="score")
    rows = verdicts.groupby(["arm", "source", "turn"])["score"].agg(["mean", "std", "size"]).reset_index()
    half = sps.t.ppf(0.975, (rows["size"] - 1).clip(lower=1)) * rows["std"] / rows["size"] ** 0.5
    rows = rows.assign(low=(rows["mean"] - half).clip(lower=0), high=(rows["mean"] + half).clip(upper=1))
    rows = rows.sort_values("arm", key=lambda arms: arms.map(_known(arms).index), kind="stable")
    rows = rows.assign(panel=rows["arm"].map(_arm)).rename(columns={"turn": "x", "mean": "y", "source": "line"})
    return steps(rows, look, "turn; 95 % t intervals over the conversations judged on it", "mean score", drawn=".")


def _known(arms) -> list[str]:
    found = set(arms)
    return [arm for arm in ARMS if arm in found] + sorted(found - {*ARMS})


def _distributions(t: Tables, order: list[str], look: Look) -> Figure | None:
    """How verdicts on people and on models are spread in each arm; rows sum to 1."""
    verdicts = t["verdicts"].dropna(subset="score")
    score = verdicts["score"].mul(10).round().astype(int).rename("score")
    share = pd.crosstab([verdicts["arm"], verdicts["source"]], score, normalize="index")
    share = share.reindex(columns=range(11), fill_value=0).reindex(_known(verdicts["arm"]), level=0)
    share.columns = [f"{column / 10:.1f}" for column in share]
    share.index = [f"{_arm(arm)}, {'people' if source == 'human' else 'models'}" for arm, source in share.index]
    return cells(share, look, "share of verdicts", "verdicts on", "score: 0 a program, 1 a person", frame=False)


def _names_scored(what: str, statistics: Sequence[str], **how):
    """Return a form for the test of names: a panel per form of answer."""

    def form(t: Tables, order: list[str], look: Look) -> Figure | None:
        rows = _lines(default_rows(t["existence"]), statistics)
        parts = rows["condition"].str.extract(r"answer=([^;]*)")[0].fillna(rows["condition"]).str.replace("_", "/")
        reasoned = rows["condition"].str.contains("reasoning=true").map({True: ", with reasons", False: ""})
        look = Look(look.display, look.width, look.colours, RATES if how else None)
        return dots(
            rows.assign(panel=parts + reasoned, side=rows["statistic"]), look, axis(rows, what), order=order, **how
        )

    return form


def _coverage(t: Tables, order: list[str], look: Look) -> Figure | None:
    """The lowest coverage over all scenarios by number of prompts, a curve per method, a panel per statistic."""
    lowest = t["coverage"].groupby(["statistic", "method", "prompts"], sort=False)["coverage"].min().reset_index()
    panel = lowest["statistic"].map(words()["titles"]).fillna(lowest["statistic"].str.replace("_", " "))
    rows = lowest.assign(panel=panel).rename(columns={"prompts": "x", "coverage": "y", "method": "line"})
    limits = min(0.9, rows["y"].min() - 0.01), 1.0
    return steps(rows, look, "prompts", "lowest coverage", level=0.95, limits=limits)


def _power(t: Tables, order: list[str], look: Look) -> Figure | None:
    """The power of the test of J in simulation (points) on what was planned for it."""
    rows, error = t["power"].sort_values(["prompts", "difference"]), 1.96 * t["power"]["mc_error"]
    rows = rows.assign(low=rows["power"] - error, high=rows["power"] + error, panel="")
    rows["line"] = rows["prompts"].map("{} prompts".format)
    rows = rows.rename(columns={"difference": "x", "power": "y", "planned_sd": "plan"})
    return steps(rows, look, "true discrimination J (simulated)", "share of tables with p ≤ .05", drawn=".")


FORMS = {
    "recognition": {
        "advantage": _advantage,
        "claimed": _claimed,
        "forest": _forest,
        "roc": _roc,
        "matrix": _matrix,
        "predictions": _predictions,
        "names": _names,
        "contrasts": _contrasts,
    },
    "identity": {"claims": _claims, "acceptance": _acceptance, "survival": _survival},
    "jury": {
        "areas": _of_arms("areas", ["auc", "paired_accuracy"], null=0.5),
        "arms": _of_arms("arms", ["mean_score"], None, null=None),
        "differences": _of_arms("differences", ["difference"]),
        "shifts": _of_arms("shifts", ["shift", "absolute_shift", "crossing"]),
        "turns": _turns,
        "distributions": _distributions,
    },
    "existence": {
        "discrimination": _names_scored("discrimination", [J]),
        "scores": _names_scored("scores", ["score_real", "score_invented"], null=None),
    },
    "validation": {"coverage": _coverage, "power": _power},
}
