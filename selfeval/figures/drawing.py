"""Which figures a result has, and what each of the three forms draws in them."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence

import pandas as pd
import scipy.stats as sps
from matplotlib.figure import Figure

from selfeval.figures.cells import cells
from selfeval.figures.dots import dots, scale
from selfeval.figures.rows import CHANGE, COLUMNS, bootstrapped, default_rows, words
from selfeval.figures.steps import steps
from selfeval.figures.style import DOUBLE, Look, colours
from selfeval.stats.tallies import NAMING, NONE, TASKS, varying_parts
from selfeval.stats.votes import ARMS

J = "discrimination"
OTHER = {NONE: "no answer", "other": "other name"}
RATES = (-0.03, 1.03)
EMPTY = pd.DataFrame(columns=[*COLUMNS, *CHANGE, "predicted", "false_claims", "hits", "area"])
Tables = Mapping[str, pd.DataFrame]
Form = Callable[[Tables, list[str], Look], Figure | None]


def draw(
    kind: str, tables: Tables, display: Mapping[str, str] | None = None, width: float = DOUBLE, only: Collection = ()
) -> dict[str, Figure]:
    """Draw what a result allows: {"<what>_<design or kind>": figure}, the most important first.

    kind, tables: as in `frames.KINDS`; of recognition the first table is enough. only: names of figures.
    """
    main = next(iter(tables.values()))
    order = ranked(main) if "evaluator" in main else []
    authors = {*main["author"]} - {*order, ""} if kind == "recognition" else ()
    parts, limits = {kind: tables}, None
    if kind == "recognition":
        rows = [default_rows(main, *words()["drawn"]["forest"]), default_rows(tables.get("contrasts", EMPTY), J)]
        rows.append(bootstrapped(main))
        parts, limits = designs(tables), scale(pd.concat([part for part in rows if len(part)] or rows))
    look = Look(display or {}, width, colours([*order, *sorted(authors)]), limits)
    found = {}
    for name, part in parts.items():
        for what, form in FORMS[kind].items():
            if not only or f"{what}_{name}" in only:
                found[f"{what}_{name}"] = form(part, order, look)
    return {name: figure for name, figure in found.items() if figure is not None}


def ranked(table: pd.DataFrame) -> list[str]:
    """Return evaluators by discrimination, highest first: the one order in all figures of a set."""
    rows = default_rows(table)
    over_all = rows["statistic"].eq(J) | rows["statistic"].eq("claim_discrimination") & rows["condition"].eq("")
    main = rows[over_all & rows["task"].isin(["", *TASKS, "existence"])]
    first = main.groupby("evaluator", sort=False)["estimate"].mean().sort_values(ascending=False, kind="stable")
    return [name for name in dict.fromkeys([*first.index, *rows["evaluator"]]) if name]


def designs(tables: Tables) -> dict[str, Tables]:
    """Return {what figures of a design are called: its tables}, naming tasks first, a task's contrasts last."""
    parts, main = {}, tables["recognition"]
    tables = {name: tables.get(name, EMPTY) for name in ("recognition", "counts", "roc", "contrasts")}
    for task in sorted(main["task"].unique(), key=TASKS.index):
        own = {name: table[table["task"] == task] for name, table in tables.items()}
        for condition, part in varying_parts(own["recognition"]["condition"].unique()).items():
            called = f"{task}_{re.sub(r'[^a-z0-9.]+', '-', part.lower())}" if part else task
            parts[called] = {name: table[table["condition"] == condition] for name, table in own.items()}
        parts[task] = parts.get(task, dict.fromkeys(tables, EMPTY)) | {"contrasts": own["contrasts"]}
    return parts


def _those(order: Sequence[str], found) -> list[str]:
    """Return what was found: evaluators in their order, then authors that are none."""
    return [name for name in order if name in set(found)] + sorted(set(found) - {*order, *OTHER, ""})


def _ordered(values: pd.DataFrame, order: Sequence[str]) -> pd.DataFrame:
    return values.reindex(index=_those(order, values.index), columns=_those(order, values.columns))


def _naming(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["task"].isin(NAMING)]


def axis(rows: pd.DataFrame, what: str) -> str:
    """Return an axis label: what is measured, under which policy, and over what its intervals are."""
    policy = "".join(f", policy {name}" for name in rows["policy"].unique() if name)
    over = "".join(f"; {level * 100:g} % intervals" for level in rows["level"].unique())
    return f"{words()['labels'][what]}{policy}{over} over {' and '.join(rows['cluster_unit'].unique())}s"


def estimates(what: str, line: str = "evaluator", **how) -> Form:
    """Return the form of a figure of statistics: a panel each (of names: per form of answer), a line per model or arm.

    With `null` (the value of no effect, or None), the scale is that of rates.
    """
    titles, statistics = words()["titles"], words()["drawn"][what]

    def form(t: Tables, order: list[str], look: Look) -> Figure | None:
        rows = default_rows(next(iter(t.values())), *statistics, author=None)
        rows = rows[((rows["author"] != "") == (what == "arms")) & ((rows["evaluator"] == "") == (line == "task"))]
        if what == "forest":
            rows = _naming(rows)  # of other tasks it would show what the dumbbells show
        elif what == "claims":
            rows = rows[(rows["task"] == "") & (rows["condition"] == "")]
        rows = pd.concat([rows[rows["statistic"] == name] for name in statistics])
        rows = rows.assign(line=rows[line], panel=rows["statistic"].map(titles), side=rows["author"])
        if line == "task":
            rounds = rows["condition"].str.replace("=", " ")
            rows["line"] = (rows["task"].map(_arm) + " " + (rounds if rounds.nunique() > 1 else "")).str.strip()
            order = _known(rows["line"])
        elif "existence" in t:
            reasoned = rows["condition"].str.contains("reasoning=true").map({True: ", with reasons", False: ""})
            rows["panel"] = rows["condition"].str.extract("answer=([^;]*)")[0].str.replace("_", "/") + reasoned
            rows["side"] = rows["statistic"]
        scaled = Look(look.display, look.width, look.colours, RATES if how else look.limits)
        return dots(rows, scaled, axis(rows, what), order=_those(order, rows["line"]), **how)

    form.__name__ = what
    return form


def _arm(name: str) -> str:
    return name.replace("_", " ").replace(" - ", " − ").replace("reask", "second look")


def _known(arms) -> list[str]:
    """Return arms in their order, then other names as they come."""
    found = dict.fromkeys(arms)
    return [arm for arm in map(_arm, ARMS) if arm in found] + [arm for arm in found if arm not in map(_arm, ARMS)]


def advantage(t: Tables, order: list[str], look: Look) -> Figure | None:
    """Draw discrimination of each evaluator, and below it the published advantage with its BCa interval."""
    rows = _dumbbells(t["recognition"])
    start = "advantage A: self accuracy − mean cross accuracy"
    return dots(rows, look, axis(rows, "advantage"), order=_those(order, rows.index), start=start)


def _dumbbells(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of dumbbells, one per evaluator, which is their index."""
    rows, usual = (default_rows(table, name).set_index("evaluator") for name in (J, "advantage"))
    second = bootstrapped(table).query("statistic == 'advantage'").set_index("evaluator")
    rows = rows.assign(line=rows.index, panel="", start=usual["estimate"], low2=second["low"], high2=second["high"])
    return rows[rows["start"].notna()]


def claimed(t: Tables, order: list[str], look: Look) -> Figure | None:
    """Draw how often each evaluator (row) claims the texts of each author (column) as its own."""
    counts = t["counts"].assign(own=lambda c: c["n"].where(c["predicted"] == c["evaluator"], 0))
    sums = counts.groupby(["evaluator", "author"])[["own", "n"]].sum()
    share = (sums["own"] / sums["n"]).unstack()
    return cells(_ordered(share, order), look, "P(claims the text), policy all", "evaluator", "author of the text")


def matrix(t: Tables, order: list[str], look: Look) -> Figure | None:
    """Draw J of every evaluator (row) for every author's name (column)."""
    rows = _naming(default_rows(t["recognition"], J, author=None)).query("author != ''")
    j = rows.pivot(index="evaluator", columns="author", values="estimate")
    return cells(
        _ordered(j, order), look, "discrimination J, policy answered", "evaluator", "author named", centred=True
    )


def predictions(t: Tables, order: list[str], look: Look) -> Figure | None:
    """Draw which name (column) is given to whose texts (row), over all evaluators."""
    counts = _naming(t["counts"])
    authors = _those(order, counts["author"])
    given = counts["predicted"].where(counts["predicted"].isin([*authors, NONE]), "other")
    table = counts.pivot_table(index="author", columns=given, values="n", aggfunc="sum", fill_value=0)
    names = [*authors, *(name for name in OTHER if name in table)]
    table = table.div(table.sum(axis=1), axis=0).reindex(index=authors, columns=names, fill_value=0)
    return cells(table.rename(columns=OTHER), look, "share of texts", "author", "name given", frame=False)


def roc(t: Tables, order: list[str], look: Look) -> Figure | None:
    """Draw the ROC curve of each evaluator's score for its own texts, with its AUC and interval."""
    areas = default_rows(t["recognition"], "auc").set_index("evaluator").itertuples()
    texts = {a.Index: f"AUC {a.estimate:.2f}\n[{a.low:.2f}, {a.high:.2f}]\nn {a.n:.0f}" for a in areas}
    rows = t["roc"].assign(panel=t["roc"]["evaluator"], text=t["roc"]["evaluator"].map(texts))
    rows = rows.sort_values("panel", key=lambda names: names.map(_those(order, names).index), kind="stable")
    rows = rows.rename(columns={"false_claims": "x", "hits": "y"}).assign(plan=t["roc"]["false_claims"])
    return steps(rows, look, "others' texts above the threshold", "own texts above")


def contrasts(t: Tables, order: list[str], look: Look) -> Figure | None:
    """Draw the change of J from one condition to another, a panel per pair of conditions."""
    rows = default_rows(t["contrasts"], J)
    same = rows["condition"].map(varying_parts(rows["condition"].unique()))
    panel = rows["field"] + ": " + rows["first"] + " → " + rows["second"] + "\n" + same
    rows = rows.assign(line=rows["evaluator"], panel=panel.str.strip())
    return dots(rows, look, axis(rows, "contrasts"), order=_those(order, rows["line"]))


def acceptance(t: Tables, order: list[str], look: Look) -> Figure | None:
    """Draw claim discrimination by model and family, with the rates of true and of false claims and the templates."""
    rows = default_rows(t["identity"], "claim_discrimination", "accept_true", "accept_false")
    wide = rows.query("task != '' and condition == ''").pivot(index=["evaluator", "task"], columns="statistic")
    if wide.empty:
        return None
    true, false = wide["estimate", "accept_true"], wide["estimate", "accept_false"]
    gap = wide["estimate", "claim_discrimination"]
    number = wide["clusters"][["accept_true", "accept_false"]].min(axis=1)
    said = [f"{a:.2f} − {b:.2f}\nn {n:.0f}".replace("0.", ".") for a, b, n in zip(true, false, number, strict=True)]
    text = pd.Series(said, gap.index).where(gap.notna(), "")
    models = sorted(_those(order, gap.index.levels[0]), key=lambda name: name.startswith("sim/"))
    gap, text = gap.unstack().reindex(models), text.unstack().reindex(models).fillna("")
    about = "family of templates; in a cell: true − false claims accepted, n templates"
    return cells(gap, look, "claim discrimination", "model", about, texts=text, centred=True, frame=False)


def survival(t: Tables, order: list[str], look: Look) -> Figure | None:
    """Draw the share of conversations that kept their identity, by turn of pressure, a panel per model."""
    rows = default_rows(t["identity"]).query("task == '' and condition == ''").dropna(subset="estimate")
    rows = rows[rows["statistic"].str.startswith("survival@")]
    rows = rows.assign(x=rows["statistic"].str.slice(9).astype(float), y=rows["estimate"], panel=rows["evaluator"])
    begun = rows.drop_duplicates("panel").assign(x=0.0, y=1.0, low=1.0, high=1.0)
    last = rows.sort_values("x").drop_duplicates("panel", keep="last")
    rows = pd.concat([begun, rows, last.assign(x=last["x"] + 0.3)])  # so that the last level is seen
    place = sorted(order, key=lambda name: name.startswith("sim/")).index
    rows = rows.sort_values("x").sort_values("panel", key=lambda names: names.map(place), kind="stable")
    return steps(rows, look, axis(rows, "survival"), "has not flipped", drawn="post")


def turns(t: Tables, order: list[str], look: Look) -> Figure | None:
    """Draw mean scores by turn, with t intervals over the conversations that were judged on it."""
    rows = t["verdicts"].dropna(subset="score").assign(panel=lambda verdicts: verdicts["arm"].map(_arm))
    rows = rows.groupby(["panel", "source", "turn"])["score"].agg(["mean", "std", "size"]).reset_index()
    half = sps.t.ppf(0.975, (rows["size"] - 1).clip(lower=1)) * rows["std"] / rows["size"] ** 0.5
    rows = rows.assign(low=(rows["mean"] - half).clip(lower=0), high=(rows["mean"] + half).clip(upper=1))
    rows = rows.sort_values("panel", key=lambda arms: arms.map(_known(arms).index), kind="stable")
    rows = rows.rename(columns={"turn": "x", "mean": "y", "source": "line"})
    return steps(rows, look, "turn; 95 % t intervals over the conversations judged on it", "mean score", drawn=".")


def coverage(t: Tables, order: list[str], look: Look) -> Figure | None:
    """Draw how often the default interval of J contains the truth: every scenario, with its Monte Carlo error."""
    rows = t["coverage"].query("method == 'default' and statistic == 'discrimination' and prompts <= 50")
    error, panel = 1.96 * rows["mc_error"], rows["prompts"].map("{} prompts".format)
    rows = rows.assign(line=rows["scenario"], panel=panel, estimate=rows["coverage"], low=rows["coverage"] - error)
    rows["high"] = (rows["coverage"] + error).clip(upper=1)
    scaled = Look(look.display, look.width, look.colours, (0.87, 1.01))
    return dots(rows, scaled, words()["labels"]["coverage"], null=0.95)


def power(t: Tables, order: list[str], look: Look) -> Figure | None:
    """Draw the power of the test of J in simulation (points) on what was planned for it."""
    rows, error = t["power"].sort_values(["prompts", "difference"]), 1.96 * t["power"]["mc_error"]
    rows = rows.assign(low=rows["power"] - error, high=rows["power"] + error, panel="")
    rows["line"] = rows["prompts"].map("{} prompts".format)
    rows = rows.rename(columns={"difference": "x", "power": "y", "planned_sd": "plan"})
    return steps(rows, look, "true discrimination J (simulated)", "share of tables with p ≤ .05", drawn=".")


def readings(t: Tables, order: list[str], look: Look) -> Figure | None:
    """Draw how well each reading tells own texts from others': an evaluator's words, its weights, a reader of style."""
    rows = default_rows(t["implicit"], "auc_within_prompt")
    rows = rows.assign(line=rows["evaluator"], panel="", side=rows["condition"].str.removeprefix("reading="))
    scaled = Look(look.display, look.width, look.colours, RATES)
    return dots(rows, scaled, axis(rows, "readings"), order=_those(order, rows["line"]), null=0.5)


def gaps(t: Tables, order: list[str], look: Look) -> Figure | None:
    """Draw the AUC of the own likelihood minus that of the words, and of the style, paired by prompt."""
    rows = default_rows(t["gaps"], *words()["drawn"]["gaps"])
    rows = rows.assign(line=rows["evaluator"], panel=rows["statistic"].map(words()["titles"]), side=rows["first"])
    return dots(rows, look, axis(rows, "gaps"), order=_those(order, rows["line"]))


def _named(*forms: Form) -> dict[str, Form]:
    return {form.__name__: form for form in forms}


FORMS = {
    "recognition": _named(advantage, claimed, estimates("forest"), roc, matrix, predictions, contrasts),
    "implicit": _named(readings, gaps),
    "identity": _named(estimates("claims"), acceptance, survival),
    "jury": _named(
        estimates("areas", "task", null=0.5),
        estimates("arms", "task", null=None),
        estimates("differences", "task"),
        estimates("shifts", "task"),
        turns,
    ),
    "existence": _named(estimates("discrimination"), estimates("scores", null=None)),
    "validation": _named(coverage, power),
}
