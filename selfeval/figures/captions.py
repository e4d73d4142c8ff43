"""What each figure of the paper shows: its caption, with intervals, n, settings and date, and the notes of tables."""

from collections.abc import Iterable

from selfeval.figures.recognition import designs
from selfeval.figures.results import ResultSet
from selfeval.figures.tables import unit
from selfeval.stats.serving import MARK

HOLLOW = "Hollow squares: the interval holds 0."
SILENT = "no answer counts as not claimed (policy all)"
DIAGONAL = (
    "on the dashed diagonal a model cannot tell them apart. Points of equal estimates stand side by side; hollow ones "
    "have no interval."
)
CLAIMS = "claim_discrimination"
CAPTIONS = {
    "recognition": {
        "advantage": "Advantage A (accuracy on own texts minus mean accuracy on others') and discrimination J (own "
        f"texts claimed minus others' claimed) of each evaluator, highest J first; {SILENT}. {HOLLOW}",
        "accuracy": "Accuracy of each evaluator (row) on each author's texts (column), own texts framed, pairs without "
        "texts hatched; no answer counts as not correct.",
        "forest": "Advantage A, discrimination J, corrected advantage Δ (J for its own name minus J for the others') "
        f"and peer-corrected D (J minus the peers' J for the same name) of each evaluator; {SILENT}. {HOLLOW}",
        "matrix": "Discrimination J of each evaluator (row) for each author's name (column), its own name framed, "
        "over the questions that got an answer (policy answered). Where there is no room for numbers, a dash marks "
        "clearly negative cells. The scale reaches at least ±.5.",
        "predictions": "Which name (column) is given to whose texts (row), over all evaluators; rows sum to 1.",
        "claims": "How often each name is given (bar) against the share of the texts that it wrote (mark), over all "
        "evaluators.",
        "roc": "ROC curves of the probability that each evaluator gives to a text being its own, the others' in grey; "
        "on the dotted diagonal it knows nothing. AUC with its interval over prompts; n: texts.",
        "contrasts": "Change of discrimination J from the first condition to the second, paired by prompt; "
        f"{SILENT}. {HOLLOW}",
    },
    "identity": {
        "claims": "Claim discrimination (true claims accepted minus false ones), susceptibility (how much more often a "
        "model names the foil under a false claim), abstention, and how often it names itself unasked; best first. "
        f"{HOLLOW}",
        "acceptance": "True claims accepted over false claims accepted, a panel per model and a point per family of "
        f"templates; {DIAGONAL}",
        "conditions": "True claims accepted over false claims accepted, a panel per model and a point per condition; "
        f"{DIAGONAL}",
        "survival": "Share of conversations in which a model that knew itself has not yet taken itself for another, by "
        "turns of pressure; other models in grey.",
    },
    "jury": {
        "arms": "Mean score of people and models in each arm (0 a program, 1 a person), and paired differences between "
        "arms; the grey band is what counts as no difference.",
        "turns": "Verdicts by turn in each arm: a thin line per conversation, a thick one for the mean, joined between "
        "turns on which the same conversations were judged.",
        "distributions": "Verdicts on people and on models in each arm; bars are the mean scores of the table, in "
        "which every conversation counts alike.",
        "shifts": "How scores move from round to round: signed, in size, and the share that crosses .5.",
        "areas": "AUC and paired accuracy, people against models, of each arm and of two judges that understand "
        "nothing; .5 is chance. Length takes the longer answer for a person's: far below .5 it separates as well as "
        "far above, people writing less.",
    },
    "existence": {
        "scores": "Mean score of real and of invented names, a panel per form of answer.",
        "discrimination": f"Score of real names minus score of invented ones, a panel per form of answer. {HOLLOW}",
    },
    "validation": {
        "coverage": "Share of simulated tables whose 95 % interval holds the truth, a line per scenario and a column "
        "per method; bars are the Monte Carlo error.",
        "power": "Share of simulated tables with p ≤ .05 (points) on the power planned with an sd of .55 (dotted) and "
        "with the tables' own sd (solid).",
    },
}
INTERVALS = {
    "recognition": (("advantage", "forest", "contrasts"), "prompts"),
    "identity": (("claims", "acceptance", "conditions", "survival"), "templates"),
    "jury": (("arms", "shifts", "areas"), "conversations or pairs"),
    "existence": (("scores", "discrimination"), "names"),
    "validation": ((), ""),
}
COUNTED = {  # how the rows of a kind's tables are counted
    "recognition": "A question without an answer counts as not claimed (policy all).",
    "identity": "n and templates are those of claim discrimination, or of the turns kept.",
    "jury": "A chat between people and the same chat with a model in it are one conversation.",
}


def caption(one: ResultSet, name: str) -> str:
    """Say what a figure shows, over how much, under which settings, and from when."""
    kind, _, design = name.partition("_")
    drawn_with, over = INTERVALS[one.kind]
    parts = [CAPTIONS[one.kind][kind]]
    if kind in drawn_with:
        parts.append(f"Lines are {one.about['settings']['level']:.0%} intervals over {over}.")
    parts.append(_asked(one, kind, design) if one.kind == "recognition" else _counted(one, kind))
    return " ".join([*filter(None, [*parts, _mixed(one)]), f"Results of {one.about['date']}."])


def _mixed(one: ResultSet) -> str:
    """Explain the mark behind a name, where a set has one."""
    mixed = any(label.endswith(MARK) for label in one.display.values())
    return f"{MARK.strip()} Several endpoints served this model; its numbers mix them." * mixed


def _asked(one: ResultSet, kind: str, design: str) -> str:
    """Say what was asked how often under a figure's design."""
    if kind == "contrasts":
        return _compared(one, design)
    rows = one.tables["recognition"]
    task, condition = designs(rows).get(design, (design, None))
    rows = rows[(rows["task"] == task) & (rows["statistic"] == "no_answer_rate")]
    if condition is not None:
        rows = rows[rows["condition"] == condition]
    prompts = " and ".join(str(int(n)) for n in sorted(rows["n_prompts"].unique(), reverse=True))
    evaluators = _number([rows["evaluator"].nunique()], "evaluators")
    text = f"n: {evaluators}, {prompts} {unit(rows['note'].iloc[0])}, {int(rows['n'].sum())} questions ({task})."
    return f"{text} {_settings(dict(p.split('=', 1) for p in condition.split(';') if '=' in p))}" if condition else text


def _compared(one: ResultSet, task: str) -> str:
    """Say over how much two conditions of a task are compared: the prompts that both have."""
    rows = one.tables["contrasts"]
    rows = rows[(rows["task"] == task) & (rows["statistic"] == "discrimination")]
    questions = rows.groupby(["condition", "field", "first", "second"])["n"].sum()
    evaluators = _number([rows["evaluator"].nunique()], "evaluators")
    prompts = _number(rows["n_prompts"], "prompts")
    return f"n: {evaluators}, {prompts} asked under both conditions, {_number(questions, 'questions')} ({task})."


def _counted(one: ResultSet, kind: str) -> str:
    """Say how much a set of results rests on, and its settings."""
    counted = {"templates", "records", "conversations", "statements", "names", "questions"}
    sizes = []
    for key, value in one.about["settings"].items():
        if key in counted:
            shown = _number(value.values() if isinstance(value, dict) else [value], key)
            sizes.append(shown + _clusters(one, kind, key, value))
    names = [model["id"] for model in one.about["models"]]
    who = _number([len(names) - names.count("human")], "models") + " and people" * ("human" in names)
    sizes = [who, *sizes] if names else sizes
    rest = {k: v for k, v in one.about["settings"].items() if k not in counted | {"level"}}
    return " ".join(filter(None, [f"n: {', '.join(sizes)}." if sizes else "", _settings(rest)]))


def _clusters(one: ResultSet, kind: str, counted: str, size: int | dict) -> str:
    """Say over how many of the templates or conversations the estimates are, where that is another number."""
    if one.kind == "identity" and counted == "templates":
        table, statistic = ("survival", "restricted_mean") if kind == "survival" else ("identity", CLAIMS)
        rows = one.tables[table]
        rows = rows[(rows["statistic"] == statistic) & (rows["n_templates"] > 0)]
        return f" ({statistic.replace('_', ' ')} over {_span(rows['n_templates'])})" if len(rows) else ""
    if one.kind == "jury" and counted == "conversations":
        clusters = int(one.tables["jury"]["n_conversations"].max())
        return f" in {clusters} clusters (a chat between people and its twin are one)" if clusters < size else ""
    return ""


def _number(values: Iterable[float], name: str) -> str:
    """Write "1 model", "3 models" or "3 to 5 models"."""
    span = _span(values)
    return f"{span} {name.removesuffix('s') if span == '1' else name}"


def _span(values: Iterable[float]) -> str:
    values = sorted(set(map(int, values)))
    return " to ".join(map(str, dict.fromkeys([values[0], values[-1]])))


def _settings(settings: dict) -> str:
    """Write settings as "answer constrained, told true"; what is empty is left out."""
    shown = [
        f"{key.replace('_', ' ')} {', '.join(map(str, value)) if isinstance(value, list) else value}"
        for key, value in settings.items()
        if value not in ("", None, [], "none")
    ]
    return f"Settings: {'; '.join(shown)}." if shown else ""


def notes(one: ResultSet) -> list[str]:
    """Return the notes of a set's tables: models with the version that answered, settings, date."""
    models = [
        f"{m['display']} is {m['id']}" + f" (answered by {m['served']})" * bool(m["served"])
        for m in one.about["models"]
    ]
    settings = {k: v for k, v in one.about["settings"].items() if not isinstance(v, dict)}
    level = (
        f"Brackets are {settings['level']:.0%} intervals over {INTERVALS[one.kind][1]}." if "level" in settings else ""
    )
    counted = COUNTED.get(one.kind, "")
    found = [
        f"{'; '.join(models)}." if models else "",
        level,
        counted,
        _mixed(one),
        _settings(settings),
        f"Results of {one.about['date']}.",
    ]
    return [*filter(None, found)]
