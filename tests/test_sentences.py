"""What the pages say is what the committed tables say: of README.md and docs/results.md every number, "no" and "more".

Of other pages, it is every number that a table has; test_prose.py finds those that are tied to none.

`sentences.yaml` has pieces of a page in which names of cells stand for numbers, and what has to hold of the rows behind
them for the words to be true: by their interval, and of several models or tests together after Holm's correction. A
sentence or a row of a table with a number, a "not" or a "more" that no piece covers fails, and so does a piece whose
numbers or claims are not those of the tables: the message says what the page has to say.
"""

import functools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
import yaml

from selfeval import DATA, ROOT
from selfeval.results import estimate_text, p_text
from selfeval.statistics.tests import holm

GIVEN = yaml.safe_load(Path(__file__).with_name("sentences.yaml").read_text(encoding="utf-8"))
CLAIM = re.compile(r"\d|\b(no|not|never|none|nobody|nothing|neither|nor|cannot|without|only|more|less|fewer)\b", re.I)
TIED_THROUGHOUT = ("README.md", "docs/results.md")
LABELS = ("evaluator", "author", "task", "condition", "note", "first", "second", "field")


@functools.cache
def table(file):
    frame = pd.read_csv(DATA / f"{file}.csv")
    frame = frame.assign(**{name: frame[name].astype(object).fillna("") for name in LABELS if name in frame})
    return frame.assign(**{name: "" for name in ("author", "condition", "method") if name not in frame})


# what stands for numbers in a piece -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """A row of a committed table: the default one, or that of the bootstrap.

    part: of its condition, "-..." where it must not be in it. where: pairs (column, value). In a piece `{name}` is
    "0.12 [-0.01, 0.25]"; `{name:e}`, `{name:n}` and others are single numbers (`SHOWN`).
    """

    file: str
    part: str
    bootstrap: bool
    where: tuple

    @property
    def row(self):
        rows = table(f"results/{self.file}")
        for column, value in self.where:
            rows = rows[rows[column] == value]
        has = rows["condition"].str.contains(f"(?:^|;){re.escape(self.part.removeprefix('-'))}")
        rows = rows[(~has if self.part.startswith("-") else has) & (rows["method"].eq("percentile") == self.bootstrap)]
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


@dataclass(frozen=True)
class Names:
    """Names of models that a table has: `{name}` is "Claude, GPT, Grok"."""

    of: Callable

    def __format__(self, spec):
        return self.of()


class Row(tuple):
    """Cells side by side: `{name}` in a table, `{name:and}` or `{name:and e}` in a sentence, `{name:dots}` in one."""

    def __format__(self, spec):
        how, _, spec = spec.partition(" ")
        *first, last = (format(cell, spec) for cell in self)
        if how == "and":
            return f"{', '.join(first)} and {last}"
        return {"": " | ", "dots": " · ", "commas": ", "}[how].join([*first, last])


CALLED = {"local/qwen2.5-coder-0.5b": "Qwen 0.5B", "local/qwen2.5-coder-1.5b": "Qwen 1.5B"}


def short(number, digits=2):
    """Return ".20", as prose has it."""
    return f"{number:z.{digits}f}".replace("0.", ".", 1)


SHOWN = {
    "": lambda row: estimate_text(row.estimate, row.low, row.high),
    "who": lambda row: CALLED[row.evaluator],
    "share": lambda row: f"{100 * row.estimate:.0f}",
    "minus": lambda row: estimate_text(-row.estimate, -row.high, -row.low),
    "e": lambda row: short(row.estimate),
    "n": lambda row: f"{row.clusters if 'clusters' in row else row.prompts:.0f}",
    "p": lambda row: p_text(row.p),
    "p3": lambda row: short(row.p, 3),
    "holm": lambda row: short(row.p_holm),
    "holm3": lambda row: short(row.p_holm, 3),
    "ph": lambda row: p_text(row.p_holm),
    "half": lambda row: short((row.high - row.low) / 2),
}


def cells(file, *, part="", bootstrap=False, of="", who="", **where):
    """Return a cell, or a row of them where `of` names a group or a column has several values."""
    several = {"evaluator": GIVEN["groups"][of]} if of else {k: v for k, v in where.items() if isinstance(v, list)}
    for column, values in several.items():
        each = ({"author": "", "evaluator": who} | where | {column: value} for value in values)
        return Row(Cell(file, part, bootstrap, tuple(one.items())) for one in each)
    return Cell(file, part, bootstrap, tuple(({"author": "", "evaluator": who} | where).items()))


CELLS = {name: cells(file, **how) for file, named in GIVEN["cells"].items() for name, how in named.items()}


def estimates(*names):
    return [cell.row.estimate for name in names for cell in CELLS[name]]


def highest(*names):
    return max(cell.row.high for name in names for cell in CELLS[name])


def validation(name, column, **where):
    """Return the values of a column of the simulations, of the rows that have these values."""
    rows = table(f"validation/{name}")
    return rows.loc[(rows[list(where)] == pd.Series(where)).all(axis=1), column].dropna()


def harsh(column):
    """Return how designs fare that are hard on intervals."""
    return table("validation/designs").query("prompts >= 20")[column].dropna()


def fleets(column, **where):
    """Return a value of the fleets simulated for the registration; .425 is .43 there, whatever its binary digits."""
    [value] = validation("words_and_weights", column, **where)
    return value + 1e-9


def power(column):
    """Return how often Qwen 1.5B is found in these fleets, by how closely its words follow; for 1.00 the page has 1."""
    found = validation("words_and_weights", f"{column}_qwen_1_5b", words_follow="own")
    return Row(Number(lambda value=value: value + 1e-9) for value in found[found < 1])


def study_of(predictions):
    """Return what a simulated study took: seconds to collect the answers and to measure them, and megabytes."""
    [found] = table("validation/scale").query("predictions == @predictions").to_dict("records")
    took = [f"{found[name]:g}" for name in ("answers_seconds", "table_seconds", "peak_mb")]
    return Row(took)


def published(name):
    """Return a table of 13_published_studies."""
    return pd.read_csv(ROOT / f"data/results/published/{name}.csv")


def findable():
    """Return the effects of own minus a peer's likelihood, authors fixed, that four of five studies would find."""
    rows = table("results/words_and_weights/secondary").query("section == 'findable' and statistic == 'one test'")
    return rows[rows["what"].str.startswith("own minus") & rows["what"].str.endswith("fixed")]["estimate"]


def singly():
    """Return the published cases in which a text is judged by itself, so that habits can count."""
    cases = published("evaluators")
    return cases[~cases["study"].str.contains("pairs|both")]


FRONTIER, OPEN, OLD = "frontier models of 2026", "open-weight models", "judges of 2024"
GONE, NOT_BEYOND = "not above 0 by J", "not beyond its peers"
UNKNOWN, BEYOND = "peers not known one by one", "beyond its peers"
HOW = {"lineup": "in lineups", "one text": "one at a time", "yes/no": "with yes or no"}


def positive(tier=None, left=None):
    """Return the published cases that are above chance by the usual score, of a tier, and of which so much is left."""
    cases = singly()
    cases = cases[cases["usual_low"] > 0]
    assert cases["left"].notna().all(), "each of them has a place in the figure"
    of_tier = cases["tier"].eq(tier) | (tier is None)
    return cases[of_tier & (cases["left"].eq(left) | (left is None))]


def listed(words):
    """Return "a, b and c"."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def names(cases):
    return ", ".join(sorted(cases["name"].unique()))


def texts(cases):
    """Return the kinds of texts of cases: chat essays, API texts."""
    kinds = cases["study"].str.split(", ").str[1].map({"chat": "chat essays", "api": "API texts"})
    return listed(sorted(kinds.unique()))


def with_values(cases):
    """Return "Claude (.78, .24) and Grok (.16)", the highest first."""
    by_name = cases.sort_values("j", ascending=False).groupby("name", sort=False)["j"]
    return listed([f"{name} ({', '.join(map(short, values))})" for name, values in by_name])


def with_texts(cases):
    """Return "Claude (chat essays in lineups) and GPT (API texts one at a time)"."""
    how = cases["study"].str.split(", ").str[2].map(HOW)
    kinds = cases["study"].str.split(", ").str[1].map({"chat": "chat essays ", "api": "API texts "})
    by_name = (kinds + how).groupby(cases["name"])
    return listed([f"{name} ({', '.join(sorted(each))})" for name, each in by_name])


def mine_after_holm(who):
    """Return p after Holm, over six, of Qwen 0.5B's own texts first by mine minus another model's name."""
    about = table("results/words_and_weights/secondary").query("section == 'about'")
    mine = about[about["what"].str.startswith("own texts first, mine minus")]
    assert len(mine) == 6
    p_holm = pd.Series(holm(mine["p"]), mine["evaluator"] + mine["what"])
    return p_holm[f"local/qwen2.5-coder-0.5bown texts first, mine minus {who}"]


def ours(number):
    """Return what 13_published_studies has for a published number."""
    return published("scoreboard").set_index("number").at[number, "ours"]


def covered(method="default"):
    return validation("coverage", "coverage", method=method)


CELLS |= {name: Number(lambda of=of: eval(of)) for name, of in GIVEN["numbers"].items()}
CELLS |= {name: Names(lambda of=of: eval(of)) for name, of in GIVEN["named"].items()}
CELLS |= {"power_a": power("a_rejected"), "power_b": power("b_rejected"), "power_access": power("privileged")}
CELLS |= {f"scale_{size}": study_of(size) for size in (10_000, 100_000, 1_000_000)}
CELLS["exchanged_signs"] = Number(lambda: table("validation/jury")["rejected"].max())
FEWEST = (6, 8, 12, 20, 40)  # prompts of small designs


def found_out(prompts, statistic):
    """Return the largest share of small tables in which a blind evaluator is found out."""
    rows = table("validation/small").query("statistic != 'auc_within_prompt' or truth == 0.5")
    return rows[(rows["statistic"] == statistic) & (rows["prompts"] == prompts)]["rejected"].max()


def after_holm(prompts, evaluators):
    """Return the largest share of tables in which one of several blind evaluators passes Holm's."""
    return validation("family", "family_wise", prompts=prompts, evaluators=evaluators).max()


for name, of, which in (
    ("small_j", found_out, "discrimination"), ("small_compare", found_out, "compare"),
    ("small_auc", found_out, "auc_within_prompt"), ("holm_5", after_holm, 5), ("holm_10", after_holm, 10),
):  # fmt: skip
    CELLS[name] = Row(Number(lambda n=n, of=of, which=which: of(n, which)) for n in FEWEST)


def told_apart(claims, column):
    """Return in what share of tables two of four authors, one blind, differ, by what they claim of others' texts."""
    rows = table("validation/habits").query("authors == 4 and prompts == 40 and first == 1 and second == 0")
    return rows[rows["claims"] == claims][column].item()


def habits_alone(prompts, column):
    """Return the largest share of tables in which two equally sensitive evaluators differ."""
    return table("validation/habits").query("first == second and prompts == @prompts")[column].max()


for name, column in (("habit_j", "j_differs"), ("habit_differ", "differ")):
    CELLS[name] = Row(Number(lambda n=n, column=column: habits_alone(n, column)) for n in (12, 20, 40, 120))


def words_given(column, designs="special == '' and own_taste == 0"):
    """Return in what share of simulated tables an evaluator gets a word, in some designs."""
    return table("validation/words").fillna({"special": ""}).query(designs)[column]


def word_found(prompts, taste):
    """Return the least power of the word with four authors."""
    return words_given("power", f"real != 'none' and authors == 4 and prompts == {prompts} and taste == {taste}").min()


for name, taste in (("word_power", 0), ("word_power_taste", 0.5)):
    CELLS[name] = Row(Number(lambda n=n, taste=taste: word_found(n, taste)) for n in (12, 40, 120))
TRUE_J = {"task": "exact_model", "statistic": "discrimination"}  # of a simulated evaluator, by construction
CELLS["truth"] = [
    Number(lambda who=who: validation("planted", "truth", evaluator=who, **TRUE_J).item())
    for who in GIVEN["groups"]["simulated"]
]


# what has to be so ----------------------------------------------------------------------------------------------------


def shown(row, value, together):
    """Return "above" or "below" a value by the interval, else "unclear"; together: where `p_holm` is small too."""
    if pd.isna(row.low) or row.low <= value <= row.high or (together and row.p_holm >= 1 - row.get("level", 0.95)):
        return "unclear" if pd.notna(row.low) else "not estimable"
    return "above" if row.low > value else "below"


# pieces of the pages --------------------------------------------------------------------------------------------------


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
        first, *others = re.split(r"\{([^}]*)\}", self.words)
        pattern = re.escape(first)
        for field, words in zip(others[::2], others[1::2], strict=True):
            has_names = field in GIVEN["named"] or field.endswith(":who")
            pattern += r"[^|\n]*?" if has_names else r"(?:[^A-Za-z\n]|\band\b)*?"
            pattern += re.escape(words)
        return re.compile(pattern + end, re.M)

    def changed(self, text):
        """Return the first line of the text that differs from what the tables say, and theirs; [] where none does."""
        here, now = self.pattern.search(text), self.now
        assert here, f"{self.page} does not have {self.words!r}, by the tables {now!r}"
        pairs = zip(here[0].splitlines(), now.splitlines(), strict=True)
        return next((list(pair) for pair in pairs if len({*pair}) > 1), [])

    def wrong(self):
        """Say which claims do not hold of the tables."""
        problems = []
        for claim in self.claims:
            [[what, value, together, names]] = re.findall(r"^(\w+)(?: (\.\d+))?( together)?: (.+)$", claim)
            for name in names.split():
                for cell in named_cells(name):
                    found = shown(cell.row, float(value or 0), bool(together))
                    problems += [] if found == what else [f"{name} {cell} is {found!r}"]
        return problems


def named_cells(name):
    """Return the cells that a claim names: own, own[2], own[:2]."""
    found = eval(name, {}, CELLS)
    return [found] if isinstance(found, Cell) else found


def pieces():
    found = []
    for page, text in GIVEN["pages"].items():
        for block in text.strip().split("\n\n"):
            words, *claims = re.split(r"\n    ", block)
            found.append(Piece(page, re.sub(r"\n(?!\| [^{])", " ", words), tuple(claims)))
    return found


PIECES = pieces()
REASONS = [words for why in GIVEN["no_table_has"].values() for words in why.split(" / ")]


def text_of(page):
    """Return a page without its blocks of code and headings, and without the targets of links."""
    text = (ROOT / page).read_text(encoding="utf-8")
    if page.endswith(".ipynb"):
        text = "\n\n".join(
            "".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"
        )
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    return re.sub(r"\]\([^)\s]+\)", "]", re.sub(r"^#.*", "", text, flags=re.M))


def untied(text, pieces):
    """Return the sentences and rows of a text with a number or a "not" that no piece and no reason covers."""
    for piece in pieces:
        text = piece.pattern.sub("", text, count=1)
    for words in REASONS:
        text = text.replace(words, "")
    text = re.sub(r"`[^`\n]*`|SmolLM2(-135M\S*)?|Qwen(2\.5 Coder)?( [01]\.5B)?|Qwen2\.5|\[\d\d_\w+\]", "", text)
    return [one for line in text.splitlines() for one in re.split(r"(?<=[.?!;])\s+", line) if CLAIM.search(one)]


# the tests ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("piece", PIECES, ids=lambda piece: f"{piece.page}: {piece.words[:50]}")
def test_the_page_says_what_the_tables_say(piece):
    text, wrong = text_of(piece.page), piece.wrong()
    assert not wrong, f"{piece.page} says {piece.words!r}, but in the tables {'; '.join(wrong)}"
    changed = piece.changed(text)
    assert not changed, f"{piece.page} says\n{changed[0]}\nand the tables say\n{changed[1]}"


@pytest.mark.parametrize("page", TIED_THROUGHOUT)
def test_every_number_and_every_not_is_tied_to_a_table(page):
    assert untied(text_of(page), [piece for piece in PIECES if piece.page == page]) == []


def test_the_reasons_are_of_words_that_are_there():
    pages = "".join(map(text_of, GIVEN["pages"]))
    assert [words for words in REASONS if words not in pages] == []


@pytest.mark.parametrize(
    "old", ["The weights know and the words do not say.", "No way of asking brings that into them."]
)
def test_a_headline_beyond_its_data_fails(old):
    assert untied(old, PIECES) == [old]
    [wrong] = Piece("", old, ("unclear .5 together: words quoted_auc",)).wrong()
    assert wrong == f"quoted_auc {CELLS['quoted_auc'][2]} is 'above'"


MODEL = re.compile(r"GPT|Claude|Gemini|Grok|DeepSeek|Qwen|Llama|Mistral|Mixtral|Phi|Command|SmolLM2")
ABOUT_PUBLISHED = [piece for piece in PIECES if piece.page.endswith("13_published_studies.ipynb")]
IN_POINTS = [piece for piece in PIECES if piece.page == "README.md"][1:3]


@pytest.mark.parametrize("piece", [*ABOUT_PUBLISHED, *IN_POINTS], ids=lambda piece: piece.words[:50])
def test_names_beside_the_numbers_of_the_first_points_come_from_tables(piece):
    words = re.sub(r"\{[^}]*\}|\"Did SmolLM2 write this text\?\"", "", piece.words)
    assert MODEL.findall(words) == []
    text = text_of(piece.page)
    assert piece.changed(text) == []
    for name in {*MODEL.findall(piece.now)} - {"SmolLM2"}:
        other = piece.pattern.sub(lambda here, name=name: here[0].replace(name, "Gemini"), text, count=1)
        said, now = piece.changed(other)
        assert "Gemini" in said and "Gemini" not in now


def test_asked_about_another_it_is_the_same_model_that_puts_its_own_texts_first():
    named = [CELLS["w_auc"][2], *CELLS["a_large_small"]]
    assert {cell.row.evaluator for cell in named} == {"local/qwen2.5-coder-1.5b"}
