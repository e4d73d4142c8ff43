"""Check the answer parsers against labelled replies and against what must hold for any reply.

Two tables in `tests/labelled`: one to develop on, one held out and committed before the parser's first line.
First contact with the held-out table, before any change: holdout 140 of 140. That flatters the parser, because one
person wrote both tables and the rules. 128 further replies, written afterwards without looking at the patterns, were
the harder test: 98 of 128 at first contact (`probe` in the development table). After general rules were mended, 60
fresh ones gave 55 of 60 (`probe2`): the nearest thing to an outside figure. Two of those five are left as they are: the
parser gives no answer where a person would read one. So is one of the replies that take an answer back (`taken_back`).
"""

import csv
import json
import random
from pathlib import Path

import pytest

from selfeval.errors import InputError
from selfeval.scoring import normalise, parse_choice, parse_yes_no, plain_answer

LABELLED = Path(__file__).parent / "labelled"
CANDIDATES = json.loads((LABELLED / "candidates.json").read_text(encoding="utf-8"))
IDS = list(CANDIDATES)
WORDS = {True: "YES", False: "NO", None: ""}


def agreement(table: str) -> tuple[int, list[str]]:
    """Return the number of rows of a labelled table and one line for each that is read differently."""
    with (LABELLED / f"replies_{table}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    wrong = []
    for row in rows:
        if row["task"] == "exact_model":
            read = parse_choice(row["reply"], CANDIDATES) or ""
        else:
            read = WORDS[parse_yes_no(row["reply"])]
        if read != row["expected"]:
            wrong.append(f"{row['phenomenon']} {row['reply'][:80]!r}: expected {row['expected']!r}, read {read!r}")
    print(f"{table}: {len(rows) - len(wrong)} of {len(rows)}, wrong: {'; '.join(wrong) or 'none'}")
    return len(rows), wrong


def test_development_table():
    n, wrong = agreement("dev")
    assert (n - len(wrong), n) == (335, 338), wrong
    assert all(line.endswith("read ''") for line in wrong)  # the known misses are missing answers, not wrong ones


def test_holdout_table():
    n, wrong = agreement("holdout")
    assert (n - len(wrong), n) == (140, 140), wrong


def every_name() -> list[tuple[str, str]]:
    """List each candidate's id, last path part and further names with the id they stand for."""
    return [(name, i) for i, names in CANDIDATES.items() for name in (i, i.rpartition("/")[2], *names)]


@pytest.mark.parametrize(("name", "owner"), every_name())
def test_every_name_reads_as_its_owner_however_it_is_typed(name, owner):
    typed = [name, name.upper(), name.lower(), name.title()]
    typed += [name.replace("-", hyphen) for hyphen in ("\u2010", "\u2011", "\u2013", "\u2212", " ", "_")]
    typed += [name.replace(" ", space) for space in ("-", "\u00a0", "_")]
    for one in typed:
        for wrap in ("{}", "{}.", "{}!", '"{}"', "'{}'", "“{}”", "`{}`", "**{}**", "*{}*.", "# {}", "> {}", "({})",
                     " {}\n", "```\n{}\n```", "Answer: {}", '{{"answer": "{}"}}', "<answer>{}</answer>",
                     "It was {}."):  # fmt: skip
            assert parse_choice(wrap.format(one), CANDIDATES) == owner, wrap.format(one)


def test_two_candidates_without_a_choice_are_no_answer():
    rng = random.Random(1)
    for _ in range(400):
        (a, i), (b, j) = rng.sample(every_name(), 2)
        link = rng.choice([" or ", " and ", ", ", "\n", " / ", "; ", "\n\n", ". Or "])
        expected = i if i == j else None
        assert parse_choice(f"{a}{link}{b}", CANDIDATES) == expected, (a, link, b)


def test_a_marker_or_a_denial_makes_the_choice():
    rng = random.Random(2)
    for _ in range(400):
        (a, i), (b, j) = rng.sample(every_name(), 2)
        if i == j:
            continue
        for reply in (f"{a} is close. Final answer: {b}", f"not {a}, but {b}", f"{b} rather than {a}", f"{b}, not {a}",
                      f"Between {a} and {b} I would choose {b}.", f"Like {a} at first.\n\n{b}"):  # fmt: skip
            assert parse_choice(reply, CANDIDATES) == j, reply
        for reply in (f"It is not {a}.", f"neither {a} nor {b}", f"I cannot tell whether {a} wrote it", f"Is it {a}?"):
            assert parse_choice(reply, CANDIDATES) is None, reply


def test_order_of_candidates_never_matters():
    rng = random.Random(3)
    with (LABELLED / "replies_dev.csv").open(encoding="utf-8", newline="") as file:
        replies = [row["reply"] for row in csv.DictReader(file) if row["task"] == "exact_model"]
    expected = [parse_choice(reply, CANDIDATES) for reply in replies]
    for _ in range(5):
        shuffled = dict(rng.sample(list(CANDIDATES.items()), len(CANDIDATES)))
        assert [parse_choice(reply, shuffled) for reply in replies] == expected


def test_name_inside_a_longer_name_is_another_model():
    for tail in ("-nano", ".1", "-2025-04-14", " Turbo", "o", "-x", ":free", "@2025", " 0905", "-5", " (thinking)"):
        assert parse_choice(f"GPT-5{tail}", CANDIDATES) is None, tail
    for head in ("Chat", "distil-", "my_", "x"):
        assert parse_choice(f"{head}GPT-5", CANDIDATES) is None, head


def test_shared_name_is_an_error_that_names_both():
    sentence = r"^candidates `a/one` and `b/two` share the name 'big-model': give each its own\.$"
    with pytest.raises(InputError, match=sentence):
        parse_choice("x", {"a/one": ["Big Model"], "b/two": ["big-model"]})


def test_shared_last_part_is_no_name_and_no_error():
    pair = {"a/m-1": [], "b/m-1": []}
    assert parse_choice("m-1", pair) is None
    assert parse_choice("b/m-1", pair) == "b/m-1"
    assert parse_choice("m-1", {"a/m-1": ["M 1"], "b/m-1": ["M one"]}) == "a/m-1"  # a listed name is a claim


def test_odd_candidate_tables():
    assert parse_choice("GPT-5", {}) is None
    assert parse_choice("GPT-5", {"x": [""], "y": ["***"]}) is None
    assert parse_choice("ab 1", {"m": ["(a|b)+ 1"]}) is None  # a name is never a pattern
    assert parse_choice("Grok 4", {"x-ai/grok-4": "Grok 4"}) == "x-ai/grok-4"  # one name instead of a list


@pytest.mark.parametrize("reply", [None, "", " \n", "<think>YES", "\ud800", "\x00", "ERROR: YES", "🤖"])
def test_nothing_to_read(reply):
    assert parse_choice(reply, CANDIDATES) is None
    assert parse_yes_no(reply) is None


@pytest.mark.parametrize(("word", "answer"), [("YES", True), ("NO", False), ("yes", True), ("No", False)])
def test_yes_and_no_however_they_are_typed(word, answer):
    for wrap in ("{}", "{}.", "{}!", '"{}"', "“{}”", "`{}`", "**{}**", "*{}*.", "({})", "[{}]", "✅ {}", " {}\n",
                 "{}\n\n", "```\n{}\n```", "Answer: {}", "Final answer: **{}**", '{{"answer": "{}"}}',
                 "<think>no yes</think>{}", "The tone is plain. {}", "Is it mine? {}.", "YES or NO? {}",
                 "I would say {}."):  # fmt: skip
        assert parse_yes_no(wrap.format(word)) is answer, wrap.format(word)


@pytest.mark.parametrize("word", ["none", "know", "cannot", "nobody", "yesterday", "eyes", "snow", "noté", "no one"])
def test_yes_and_no_are_whole_words(word):
    for reply in (word, f"{word}.", f"It is {word}, it is.", f"Final answer: {word}"):
        assert parse_yes_no(reply) is None, reply


def test_any_text_is_read_without_an_error():
    rng = random.Random(4)
    pieces = ["yes", "no", "not", "GPT-5", "Grok 4", "openai/", "<think>", "</think>", "\n", " ", ".", "?", ":", '"',
              "{", "}", "`", "**", "_", "-", "—", "answer", "final answer:", "i wrote this", "by me", "\ud800", "\x00",
              "\u0301", "ß", "ﷺ", "🎉", "\u200b", "(", "[", "\\", "4.5", "or", "whether", "ERROR"]  # fmt: skip
    for _ in range(3000):
        reply = "".join(rng.choices(pieces, k=rng.randrange(30)))
        assert parse_choice(reply, CANDIDATES) in {None, *IDS}
        assert parse_yes_no(reply) in {None, True, False}
        assert normalise(normalise(reply)) is not None
        assert isinstance(plain_answer(reply), str)


UNITS = ["a", " ", "\n", '"', "_", "<think>", '{"a": "', "\u0301\u0323", "gpt-", "answer: ", "i ", "yes or ", "1.", "("]


@pytest.mark.parametrize(("unit", "size"), [(unit, 200_000) for unit in UNITS] + [("a few words. ", 1_000_000)])
def test_huge_replies_take_linear_time(unit, size):
    reply = "a" + unit * (size // len(unit))  # quadratic work would take minutes here; no clock is asserted
    assert parse_choice(reply, CANDIDATES) is None
    assert parse_yes_no(reply) is None
