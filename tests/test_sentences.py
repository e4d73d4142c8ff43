"""What README.md and docs/results.md say is what the committed tables say: every number, and every "no" and "more".

`SAID` has pieces of a page in which names of `CELLS` stand for numbers, and what has to hold of the rows behind them
for the words to be true (`stats.conclusion`; of several models or tests together after Holm's correction). A sentence
or a row of a table with a number, a "not" or a "more" that no piece covers fails, and so does a piece whose numbers or
claims are not those of the tables: the message says what the page has to say. `python tests/test_sentences.py` writes
the numbers into the pages and leaves the words to you.
"""

import functools
import json
import lzma
import re
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
import pytest
import yaml

from selfeval import DATA, ROOT
from selfeval.figures.tables import estimate_text, p_text
from selfeval.stats import conclusion, detectable_difference

README, RESULTS = "README.md", "docs/results.md"
CLAIM = re.compile(r"\d|\b(no|not|never|none|nobody|nothing|neither|nor|cannot|without|only|more|less|fewer)\b", re.I)
SMOLLM2, CAPTAIN, HOT = (f"local/smollm2-135m{name}" for name in ("", "-captain", "-hot"))
QWEN, UNTOLD = (f"local/qwen2.5-coder-1.5b{name}" for name in ("", "-untold"))
AUC, J, A = "auc_within_prompt", "discrimination", "advantage"
EXACT, YES_NO = "exact_model", "binary_self"
OTHERS = (SMOLLM2, HOT, CAPTAIN)  # as the table of the other evaluations names them
SIMULATED = ("sim/perfect", "sim/good", "sim/always-itself")
RECOGNITION, PREFERENCE = (f"families/{name}/paper/recognition" for name in ("families", "preference"))
MOVED, JURY = "families/provenance/paper/contrasts", "families/families-jury/paper/jury"
PLACES = {  # a quoted text is the default, which no condition names
    "quoted": "-provenance=",
    "own_turn": "provenance=own_turn",
    "prefill": "provenance=prefill",
}
LABELS = ("evaluator", "author", "task", "condition", "note", "first", "second", "field")


@functools.cache
def table(file):
    frame = pd.read_csv(DATA / file)
    return frame.assign(**{name: frame[name].astype(object).fillna("") for name in LABELS if name in frame})


# what stands for numbers in a piece -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """A row of a committed table: the default one, or that of the bootstrap (`bca`).

    part: of its condition, "-..." where it must not be in it. where: pairs (column, value). In a piece `{name}` is
    "0.12 [-0.01, 0.25]"; `{name:e}`, `{name:n}` and others are single numbers (`SHOWN`).
    """

    file: str
    statistic: str
    who: str = ""
    part: str = ""
    where: tuple = ()
    bca: bool = False

    @property
    def row(self):
        rows = table(f"results/{self.file}.csv")
        for column, value in {
            "statistic": self.statistic,
            "evaluator": self.who,
            "author": "",
            **dict(self.where),
        }.items():
            rows = rows[rows[column] == value]
        has = rows["condition"].str.contains(f"(?:^|;){re.escape(self.part.removeprefix('-'))}")
        rows = rows[(~has if self.part.startswith("-") else has) & (rows["method"].eq("bca") == self.bca)]
        assert len(rows), f"{self} is in no table"
        return rows.iloc[0]

    def __format__(self, spec):
        return SHOWN[spec](self.row) if spec in SHOWN else format(self.row.estimate, spec)


@dataclass(frozen=True)
class Number:
    """A number that is counted, or the least or largest of several; `{name:e3}` is .935."""

    of: Callable

    def __format__(self, spec):
        return short(self.of(), int(spec[1:] or 2)) if spec[:1] == "e" else format(self.of(), spec)


class Row(tuple):
    """Cells side by side: `{name}` in a table, `{name:and}` or `{name:and e}` in a sentence, `{name:dots}` in one."""

    def __format__(self, spec):
        how, _, spec = spec.partition(" ")
        *first, last = (format(cell, spec) for cell in self)
        if how == "and":
            return f"{', '.join(first)} and {last}"
        return {"": " | ", "dots": " · ", "commas": ", "}[how].join([*first, last])


class Pair(tuple):
    """Two numbers in one cell of a page."""

    def __format__(self, spec):
        return " · ".join(format(cell, spec) for cell in self)


def short(number, digits=2):
    """Return ".20", as prose has it."""
    return f"{number:z.{digits}f}".replace("0.", ".", 1)


SHOWN = {
    "": lambda row: estimate_text(row.estimate, row.low, row.high),
    "minus": lambda row: estimate_text(-row.estimate, -row.high, -row.low),
    "e": lambda row: short(row.estimate),
    "n": lambda row: str(row.clusters),
    "p": lambda row: p_text(row.p),
    "p3": lambda row: short(row.p, 3),
    "holm": lambda row: short(row.p_holm),
}


# cells ----------------------------------------------------------------------------------------------------------------


def trio(file, statistic, part="", who=(SMOLLM2, CAPTAIN, QWEN), bca=False, **where):
    return Row(Cell(file, statistic, one, part, tuple(where.items()), bca) for one in who)


def one(file, statistic, who="", part="", **where):
    return Cell(file, statistic, who, part, tuple(where.items()))


def readings(name, statistic=AUC, corpus="implicit"):
    return trio(f"families/{corpus}/paper/implicit", statistic, f"reading={name}")


def place(name, statistic):
    return trio("families/provenance/paper/recognition", statistic, PLACES[name])


def existence(statistic, form):
    return trio("demo/existence/paper/existence", statistic, f"answer={form}", OTHERS)


def first_study(statistic, task, answer="constrained", of="recognition", bca=False, who=(SMOLLM2, CAPTAIN, HOT)):
    return trio(f"demo/{of}/paper/recognition", statistic, f"answer={answer}", who, bca, task=task)


def lines_of_first_study(task, answer, label):
    """Return a piece and its cells: three rows of the table of the first study."""
    names = ("self_accuracy", "false_claim_rate", A, J)
    cells = [first_study(name, task, answer, bca=name == A) for name in names]
    rows = [Row([*of_one, Number(lambda j=of_one[-1]: format(j, "p"))]) for of_one in zip(*cells, strict=True)]
    name, models = f"{task}_{answer}", ("SmolLM2", "SmolLM2 (captain)", "SmolLM2 (hot)")
    said = [f"| {model} | `{task}`, {label} | {{{name}_j[0]:n}} | {{{name}[{k}]}} |" for k, model in enumerate(models)]
    return "\n".join(said), {name: rows, f"{name}_j": cells[-1]}


def validation(name):
    return table(f"validation/{name}.csv")


def covered(method="default"):
    return validation("coverage").query("method == @method")["coverage"]


def harsh(column="coverage"):
    """Return the coverage of designs that are hard on intervals, or how often a test rejects there."""
    return validation("designs").query("prompts >= 20")[column].dropna()


def planted_j(who):
    """Return the J that a simulated evaluator has by construction."""
    return validation("planted").query("task == @EXACT and statistic == @J and evaluator == @who")["truth"].item()


def highest(*cells):
    return max(cell.row.high for cell in cells)


@functools.cache
def scores_alone():
    """Return the scores that SmolLM2 gives to whole conversations where it votes alone and without a persona."""
    people = yaml.safe_load((DATA / "roleplay" / "jurors.yaml").read_text(encoding="utf-8")).values()
    personas, scores = [entry["persona"].strip() for entry in people], []
    with lzma.open(DATA / "recorded" / "two_families.jsonl.xz", "rt", encoding="utf-8") as lines:
        for reply in map(json.loads, lines):
            said = [message["content"] for message in reply["request"].get("messages") or ()]
            if reply["request"]["model"] != "smollm2-135m" or len(said) != 1 or "You sit on a jury" not in said[0]:
                continue
            if "\nJURY\n" not in said[0] and not any(persona in said[0] for persona in personas):
                found = re.search(r'"human_score"\s*:\s*"?([\d.]+)', reply["response"]["text"])
                scores.append(found and float(found[1]))
    return scores


own, words, style, oracle = map(readings, ("own likelihood", "yes or no", "style", "oracle"))
oracle_j, untold_j = readings("oracle", J), readings("names the author, untold", J)
people = {"corpus": "implicit-people"}
own_people, words_people, style_people, oracle_people = (
    readings(name, **people) for name in ("own likelihood", "yes or no", "style", "oracle")
)
gap_words, gap_names, gap_style = (
    trio("families/implicit/paper/gaps", AUC, first=name) for name in ("yes or no", "names the author, told", "style")
)
j, j_yes_no = (trio(RECOGNITION, J, task=task) for task in (EXACT, YES_NO))
a, a_bca, a_yes_no_bca = (
    trio(RECOGNITION, A, bca=bca, task=task) for bca, task in ((False, EXACT), (True, EXACT), (True, YES_NO))
)
quoted, own_turn, prefill = (
    Row(Pair(both) for both in zip(place(name, "self_accuracy"), place(name, "false_claim_rate"), strict=True))
    for name in PLACES
)
quoted_auc, own_turn_auc, prefill_auc = (place(name, AUC) for name in PLACES)
prefill_j, quoted_silent = place("prefill", J), place("quoted", "no_answer_rate")
beginning = trio(MOVED, "false_claim_rate", first="prefill", second="quoted")
earlier, earlier_others = (
    trio(MOVED, name, first="own_turn", second="quoted") for name in ("self_accuracy", "false_claim_rate")
)
chosen, order = (trio(PREFERENCE, name, "question=authored") for name in ("self_accuracy", "position_bias"))
better = trio(PREFERENCE, "own_minus_neutral", "question=better")
claims, unprompted = (
    trio("families/families-identity/paper/identity", name, who=(SMOLLM2, QWEN, UNTOLD), task="", condition="")
    for name in ("claim_discrimination", "neutral_right")
)
told, told_maker = (
    one("families/families-identity/paper/paired", f"claim_discrimination{by}", f"{QWEN} - {UNTOLD}")
    for by in ("", "_by_maker")
)
arms = Row(one(JURY, "auc", task=arm) for arm in ("independent", "reask", "debate"))
letters = one(JURY, "auc", task="character n-grams")
debate, debate_people, debate_model = (
    one(JURY, "difference", task="debate - reask", author=who) for who in ("", "human", "model")
)
first = {(task, answer): first_study(J, task, answer) for task in (EXACT, YES_NO) for answer in ("constrained", "free")}
first_json, first_free, first_json_yes_no, first_free_yes_no = first.values()
silent = first_study("no_answer_rate", EXACT, "free")
human, human_yes_no = (first_study(J, task, of="human", who=OTHERS) for task in (EXACT, YES_NO))
human_others = first_study("false_claim_rate", YES_NO, of="human", who=OTHERS)
first_true, first_false, first_claims = (
    trio("demo/identity/paper/identity", name, who=OTHERS, task="", condition="")
    for name in ("accept_true", "accept_false", "claim_discrimination")
)
personas, baselines = (
    Row(one("demo/jury/paper/jury", "auc", task=arm) for arm in two)
    for two in (("personas", "debate"), ("length", "character n-grams"))
)
first_debate = one("demo/jury/paper/jury", "difference", task="debate - reask")
names = existence(J, "true_false")
fleet, fleet_a = (first_study(name, EXACT, "free", "fleet", who=SIMULATED) for name in (J, A))
hot_told = Row(
    one("sample/recognition/paper/contrasts", name, HOT, field="told", task=EXACT) for name in ("self_accuracy", J)
)
tables_of_first_study = [
    lines_of_first_study(task, answer, label)
    for task in (EXACT, YES_NO)
    for answer, label in (("constrained", "JSON"), ("free", "words"))
]
NUMBERS = {  # counted, the least or the largest, or of 08_validation
    "highest_j": lambda: highest(*j, *j_yes_no),
    "highest_json": lambda: highest(*first_json),
    "highest_free": lambda: highest(*first_free),
    "qwen_first": lambda: 0.5 + order[2].row.estimate,
    "ones": lambda: scores_alone().count(1),
    "alone": lambda: len(scores_alone()),
    "silent_least": lambda: 100 * min(cell.row.estimate for cell in silent),
    "silent_most": lambda: 100 * max(cell.row.estimate for cell in silent),
    "found_json": lambda: detectable_difference(first_json[0].row.clusters),
    "found_free": lambda: detectable_difference(first_free[0].row.clusters, t=True),
    "human_least": lambda: min(cell.row.estimate for cell in human_others),
    "human_most": lambda: max(cell.row.estimate for cell in human_others),
    "reversed_length": lambda: 1 - baselines[0].row.estimate,
    "reversed_low": lambda: 1 - baselines[0].row.high,
    "reversed_high": lambda: 1 - baselines[0].row.low,
    "prompts_from": lambda: validation("coverage")["prompts"].min(),
    "scenarios": lambda: validation("coverage")["scenario"].nunique(),
    "tables": lambda: validation("coverage")["tables"].unique().item(),
    "cells": lambda: len(covered()),
    "least": lambda: covered().min(),
    "least_anywhere": lambda: min([covered().min(), *harsh()]),
    "short": lambda: sum((cells < 0.93).sum() for cells in (covered(), harsh())),
    "all_cells": lambda: len(covered()) + len(harsh()),
    "most": lambda: covered().max(),
    "mean": lambda: covered().mean(),
    "least_bca": lambda: covered("BCa").min(),
    "least_percentile": lambda: covered("percentile").min(),
    "least_t": lambda: covered("clustered t").min(),
    "harsh_cells": lambda: len(harsh()),
    "harsh_least": lambda: harsh().min(),
    "harsh_p": lambda: harsh("rejected").max(),
    "planted": lambda: validation("planted")["coverage"].mean(),
    "blind": lambda: validation("blind")["rejected"].mean(),
    "blind_most": lambda: validation("blind")["rejected"].max(),
    "blind_cells": lambda: len(validation("blind")),
}
truth = [Number(lambda who=who: planted_j(who)) for who in SIMULATED]
CELLS = globals() | {name: Number(of) for name, of in NUMBERS.items()}
CELLS |= {name: cells for _, found in tables_of_first_study for name, cells in found.items()}


# pieces of the pages --------------------------------------------------------------------------------------------------


def qwen_answers_no():
    return not any(cell.row.estimate for cell in (*quoted[2], quoted_silent[2]))


def two_always_take_the_first():
    return all(cell.row.estimate == 0.5 for cell in order[:2])


def captain_and_hot_name_themselves():
    """Tell whether they name themselves wherever a free reply names somebody."""
    rows = table("results/demo/recognition/paper/counts.csv")
    rows = rows[rows["condition"].str.contains("answer=free") & rows["task"].eq(EXACT) & rows["predicted"].ne("none")]
    return all({*rows.loc[rows["evaluator"] == who, "predicted"]} == {who} for who in (CAPTAIN, HOT))


def all_say_yes_in_json_and_no_in_words():
    yes, no = (
        [c.row.estimate for name in ("self_accuracy", "false_claim_rate") for c in first_study(name, YES_NO, answer)]
        for answer in ("constrained", "free")
    )
    return min(yes) > 0.9 and max(no) == 0


def true_or_false_leaves_the_fewest():
    few, *others = (existence("no_answer_rate", form) for form in ("true_false", "yes_no", "probability", "likert"))
    return all(least.row.estimate < cell.row.estimate for form in others for least, cell in zip(few, form, strict=True))


def hot_is_the_same_there():
    return format(names[0]) == format(names[1])


SAID = """
README.md

| Its weights: likelihood of the text. AUC | {own} | {own[2]:n} prompts |
| Its words: did you write this? AUC | {words} | {words[2]:n} prompts |
| the same, prompt shown, free reply | {quoted_auc} | {quoted_auc[2]:n} prompts |
| Its words: which of the three wrote this? J | {j} | {j[2]:n} prompts |
| the same: advantage A, BCa | {a_bca} | {j[2]:n} prompts |
| A reader with all candidates (oracle): AUC | {oracle} | {oracle[2]:n} prompts |
| Who are you? Claim discrimination | {claims[0]} | | told by its system prompt − not told {told} |
{told:n} templates |
| Person or model? Both as a jury: AUC after a debate; debate − second look | {arms[2]} | | {debate} |
{debate:n} chats |

**Only Qwen's own likelihood clearly orders its texts above others'.**
    above .5 together: own[2]
    unclear .5 together: own[:2]

Its words, asked in JSON without the prompt, are not shown to;
    unclear .5: words[2]

in free replies with the prompt, P(YES) is higher for its own texts, although all answers are NO
    above .5 together: quoted_auc[2]
    so: qwen_answers_no

All intervals of J include 0 (up to {highest_j:e} could be missed);
    unclear: j j_yes_no

a habit of naming lifts two of the A.
    above: a[:2] a_bca[:2]
    unclear: j a_bca[2]

Others' texts are claimed more often at the beginning of an answer than quoted,
    below together: beginning

Whether its system prompt helps Qwen to tell true claims from false is open.
    unclear together: told

No arm of the jury, half of it the agent's own model, is shown to tell people from models;
    unclear .5 together: arms

debate is shown to raise scores over all, not of people or the model apart.
    above: debate
    unclear together: debate_people debate_model

From {prompts_from} prompts up they cover simulated true values in {least_anywhere:e3} to {most:.2f} of tables

below .93 in {short} of {all_cells} cells

docs/results.md

Each wrote on {own[2]:n} prompts and, beside people, on {own_people[2]:n} chats;

advantage A with its BCa interval, over {own[2]:n} prompts.

| its weights: own likelihood | AUC | {own} |
| words: did you write this? | AUC | {words} |
| | J | {j_yes_no} |
| | A | {a_yes_no_bca} |
| words: which of the three wrote this? told who it is | J | {j} |
| | A | {a_bca} |
| not told | J | {untold_j} |
| style, no model | AUC | {style} |
| a reader with all candidates (oracle) | AUC | {oracle} |
| | J | {oracle_j} |
| **gap**: own likelihood − yes or no | AUC | {gap_words} |
| gap: own likelihood − style | AUC | {gap_style} |

Qwen's orders its texts above the others' nearly always, and better than these words and the style do;
    above .85: own[2]
    above together: gap_words[2] gap_names[2] gap_style[2]

for SmolLM2 and captain, the AUC of the own likelihood is not shown to differ from chance once corrected for three
models, nor is either gap from 0.
    unclear .5 together: own[:2]
    unclear together: gap_words[:2] gap_style[:2]

None of the three is shown to claim its own texts more often than others'.
    unclear: j j_yes_no

On the {own_people[2]:n} chats with people's messages (`implicit-people`), the own likelihood has an AUC of
{own_people:and}, the style {style_people:and}, yes or no {words_people:and}, and the oracle {oracle_people:and}.

(`provenance`, {quoted_auc[2]:n} prompts, yes or no in a free reply, the prompt shown)

| quoted in the question | claimed | {quoted} |
| | AUC | {quoted_auc} |
| in its own earlier turn | claimed | {own_turn} |
| | AUC | {own_turn_auc} |
| at the beginning of its answer | claimed | {prefill} |
| | AUC | {prefill_auc} |

Asked about a quoted text, with the prompt shown and in a free reply, Qwen answers NO to all, and its P(YES) is higher
for its own texts:
    above .5 together: quoted_auc[2]
    so: qwen_answers_no

In JSON and with the prompt hidden the AUC was {words[2]}, over {words[2]:n} prompts.

All three claim others' texts more often at the beginning of their answer than quoted, by {beginning:and minus}; J
there is {prefill_j:and}.
    below together: beginning

Between quoted and an earlier turn, no difference in claims is shown.
    unclear together: earlier earlier_others

(`preference`, {chosen[2]:n} prompts, both orders): own text chosen in {chosen:and} of pairs.

SmolLM2 and captain take the first text in all of them, Qwen in {qwen_first:e}.
    so: two_always_take_the_first

Own preference minus that of the judges that wrote neither text is {better:and}.

(`families-identity`, {claims[1]:n} templates with a true and a false claim): claim discrimination is {claims[1]} for
Qwen

Alibaba Cloud"), {claims[2]} without it, and {claims[0]} for SmolLM2.

told minus not told is {told} (p = {told:holm} after Holm's correction for three pairs): that the system prompt makes
the difference is not shown.
    unclear together: told

by the maker, told minus not told is {told_maker}.
    unclear together: told_maker

Unprompted it names itself in {unprompted[1]} of replies with it and in {unprompted[2]} without.

(`families-jury`, {debate:n} chats between people, each with a twin in which Qwen answers): AUC, people against
models, {arms[0]} independently, {arms[1]} at a second look, {arms[2]} after a debate, where letter sequences reach
{letters}.

No arm is shown to tell people from models,
    unclear .5 together: arms

voting alone, gives {ones} of {alone} conversations the score 1.00.

Debate minus second look is {debate} over all conversations (p = {debate:p3}).
    above: debate

Apart, it is {debate_people} for people and {debate_model} for the model; corrected for these two tests, neither is
shown (p = {debate_people:holm} and {debate_model:holm}).
    unclear together: debate_people debate_model

{lines}

of which {silent_least:.0f} to {silent_most:.0f} % name nobody or several in the exact task

There is no evidence that any of the three tells its own texts from the others'.
    unclear: first_json first_free first_json_yes_no first_free_yes_no

a J of up to {highest_json:e} (JSON) or {highest_free:e} (words).

*captain* and *hot* name themselves every time, so J among the answers is 0: their {first_free[1]:e} and
{first_free[2]:e} only reflect on whose texts they gave no answer.
    so: captain_and_hot_name_themselves

all three say YES to nearly everything in JSON and NO to everything in words.
    so: all_say_yes_in_json_and_no_in_words

With {first_json[0]:n} prompts, a true J of about {found_json:e} is detected in four of five such runs; with
{first_free[0]:n} prompts, one of about {found_free:e}.

| `human` | four authors, one of them people ({human[0]:n} chats, JSON): J of SmolLM2 · *hot* · *captain*, exact |
{human:dots} | {human[0]:n} chats |
| `human` | the same, yes or no (each claims {human_least:e} to {human_most:e} of others' texts) | {human_yes_no:dots} |
{human[0]:n} chats |
| `identity` | claim discrimination of SmolLM2 · *hot* · *captain* (accept {first_true:commas e} of true and
{first_false:commas e} of false claims) | {first_claims:dots} | {first_claims[0]:n} templates |
| `jury` | AUC of three SmolLM2 personas, people against models: each on its own (arm `personas`) · in a debate |
{personas:dots} | {personas[0]:n} conversations or pairs |
| `jury` | the same by text length (people's answers are the shorter ones: reversed: {reversed_length:e}, from
{reversed_low:e} to {reversed_high:.2f}) · by letter sequences | {baselines:dots} | as above |
| `jury` | effect of debate: debate − second look | {first_debate} | |
| `existence` | real against invented names, asked as true or false, which leaves the fewest questions without an
answer:
SmolLM2 · *hot* (at temperature 0 the same model) · *captain* | {names:dots} | {names[0]:n} names |
| `fleet` | simulated evaluators, exact: J of *perfect* · *good* · *always itself* (whose A is {fleet_a[2]:.2f}); true
values
{truth[0]:g} · {truth[1]:e} · {truth[2]:g} | {fleet:dots} | {fleet[0]:n} prompts |
| told | who it is, against not told: claims of own texts of *hot* · its J (`11_recognition_details` as committed) |
{hot_told:dots} | {hot_told[0]:n} prompts |
    so: true_or_false_leaves_the_fewest hot_is_the_same_there

These answers give no evidence of self-knowledge.
    unclear: first_json first_free first_json_yes_no first_free_yes_no human human_yes_no first_claims names

from {prompts_from} prompts up, the default interval covers the true J, Δ and D in at least {least:e3} of tables in
each of {cells} cells ({scenarios} scenarios, {tables:,} tables each), and in {mean:e3} on average.

In {harsh_cells} further cells that are hard on intervals

coverage is at least {harsh_least:e3}, and p ≤ .05 for content-blind evaluators in at most {harsh_p:e3} of tables.

Near 0 and 1 the alternatives cover as low as {least_bca:e} (BCa), {least_percentile:e} (percentile) and {least_t:e}
(clustered t).

are asked the real questions cover the true value in {planted:e3} of cases.

p ≤ .05 in {blind:e3} of tables, and in at most {blind_most:e3} in any of {blind_cells} cells.
"""


@dataclass(frozen=True)
class Piece:
    """A piece of a page, and what has to be so: (what, value, whether together, names of cells or of functions)."""

    page: str
    words: str
    claims: tuple

    @property
    def now(self):
        return self.words.format(**CELLS)

    @property
    def pattern(self):
        """A regular expression of the piece with any numbers."""
        end = "$" if self.words.endswith("|") else r"(?!\d)"
        numbers = r"(?:[^A-Za-z\n]|\band\b)*?"
        return re.compile(numbers.join(map(re.escape, re.split(r"\{[^}]*\}", self.words))) + end, re.M)

    def wrong(self):
        """Say which claims do not hold of the tables."""
        problems = []
        for claim in self.claims:
            [[what, value, together, names]] = re.findall(r"^(\w+)(?: (\.\d+))?( together)?: (.+)$", claim)
            for name in names.split():
                if what == "so":
                    problems += [] if globals()[name]() else [f"{name} is not so"]
                    continue
                for cell in cells_of(name):
                    found = conclusion(cell.row, float(value or 0))
                    if together and cell.row.p_holm >= 1 - cell.row.level:
                        found = "no evidence"
                    if found not in WANTED[what]:
                        problems.append(f"{name} {cell} is {found!r}")
        return problems


WANTED = {"above": ["recognises"], "below": ["avoids"], "unclear": ["no evidence", "constant answer"]}


def cells_of(name):
    """Return the cells that a claim names: own, own[2], own[:2]."""
    [[name, first, until]] = re.findall(r"^(\w+)(?:\[(\d)\]|\[:(\d)\])?$", name)
    found = CELLS[name]
    if isinstance(found, Cell):
        return [found]
    return [found[int(first)]] if first else found[: int(until) if until else None]


def pieces():
    found, page, tables = [], "", "\n\n".join(piece for piece, _ in tables_of_first_study)
    for block in SAID.replace("{lines}", tables).strip().split("\n\n"):
        if block in (README, RESULTS):
            page = block
            continue
        words, *claims = re.split(r"\n    ", block)
        found.append(Piece(page, re.sub(r"\n(?!\| [^{])", " ", words), tuple(claims)))
    return found


PIECES = pieces()
NOT_OF_TABLES = {  # why no table of results can have these words of the pages, which / divides
    "by definition": "0.5 is chance / 0 for a model that / .5 knows nothing",
    "data/models.yaml and the model card": (
        "(135 million parameters) / (1.5 billion) / (1.1 GB, / temperature 1.3 instead of 0.7 / (Q4_1)"
    ),
    "what the software does; test_pages.py, test_cli.py, test_store.py": (
        "Python 3.11 or newer / no API key / Without make: / without a file the models write the texts first / "
        "only counts / It asks no model / No reply is bought twice / about 25 minutes for "
        "`notebooks/sweeps/demo.yaml` and 100 for"
    ),
    "how answers are read; test_scoring.py": (
        "or never arrives counts as **no answer**: stored as null, never guessed / (counted here as not claimed,"
    ),
    "how intervals are made; test_intervals.py": (
        "Estimates with 95 % intervals / Intervals 95 %. / Brackets are 95 % intervals / The bootstrap of a "
        "constant answer has no width"
    ),
    "sources": (
        "Bai et al. 2025 / arXiv 2510.03399 / Chan et al. 2023 / arXiv 2308.07201 / Davidson et al. 2024 / The "
        "yes/no counts / Apache-2.0"
    ),
    "how it was asked; the condition": "do not show the writing prompt / answer at temperature 0",
    "what a likelihood is": "which no single model has: the oracle is a ceiling, not a measure of what a model knows",
    "what the design leaves open": (
        "the answers are all alike, their probabilities are not / the quality of the texts is not controlled, so this "
        "is exploratory: it shows neither what moved the order nor that only their author could order them so"
    ),
}


# the tests ------------------------------------------------------------------------------------------------------------


def text_of(page):
    """Return a page without its blocks of code and headings, and without the targets of links."""
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.sub(r"\]\([^)\s]+\)", "]", re.sub(r"^#.*", "", text, flags=re.M))


def untied(text, pieces):
    """Return the sentences and rows of a text with a number or a "not" that no piece and no reason covers."""
    for piece in pieces:
        text = piece.pattern.sub("", text, count=1)
    for words in " / ".join(NOT_OF_TABLES.values()).split(" / "):
        text = text.replace(words, "")
    text = re.sub(r"`[^`\n]*`|SmolLM2(-135M\S*)?|Qwen2\.5|\[\d\d_\w+\]", "", text)
    return [one for line in text.splitlines() for one in re.split(r"(?<=[.?!;])\s+", line) if CLAIM.search(one)]


@pytest.mark.parametrize("piece", PIECES, ids=lambda piece: f"{piece.page}: {piece.words[:50]}")
def test_the_page_says_what_the_tables_say(piece):
    text, wrong = text_of(piece.page), piece.wrong()
    assert not wrong, f"{piece.page} says {piece.words!r}, but in the tables {'; '.join(wrong)}"
    found, now = piece.pattern.search(text), piece.now
    assert found, f"{piece.page} does not have {piece.words!r}, by the tables {now!r}"
    changed = [pair for pair in zip(found[0].splitlines(), now.splitlines(), strict=True) if len({*pair}) > 1]
    assert not changed, f"{piece.page} says\n{changed[0][0]}\nand the tables say\n{changed[0][1]}"


@pytest.mark.parametrize("page", [README, RESULTS])
def test_every_number_and_every_not_is_tied_to_a_table(page):
    assert untied(text_of(page), [piece for piece in PIECES if piece.page == page]) == []


def test_the_reasons_are_of_words_that_are_there():
    pages = text_of(README) + text_of(RESULTS)
    assert [words for words in " / ".join(NOT_OF_TABLES.values()).split(" / ") if words not in pages] == []


@pytest.mark.parametrize(
    "old", ["The weights know and the words do not say.", "No way of asking brings that into them."]
)
def test_the_first_headline_would_have_failed(old):
    assert untied(old, PIECES) == [old]
    [wrong] = Piece(RESULTS, old, ("unclear .5 together: words quoted_auc",)).wrong()
    assert wrong == f"quoted_auc {CELLS['quoted_auc'][2]} is 'recognises'"


if __name__ == "__main__":
    for page in (README, RESULTS):
        text = (ROOT / page).read_text(encoding="utf-8")
        for piece in PIECES:
            if piece.page == page and not piece.wrong():
                text = piece.pattern.sub(lambda _, piece=piece: piece.now, text, count=1)
        (ROOT / page).write_text(text, encoding="utf-8")
