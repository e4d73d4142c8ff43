"""Check the answer parsers against labelled replies and against what must hold for any reply.

Two tables in `tests/labelled`: one to develop on, one held out and committed before the parser's first line (140 of 140
at first contact, which flatters it: one person wrote both tables and the rules). Of 128 further replies, written
without looking at the patterns, 98 were read right at first contact (`probe`), of 60 fresh ones after that 55
(`probe2`): the nearest thing to an outside figure. A third table has replies that are cut off, quote the instruction
or are codes, and real choices beside them: of its 44 last, written after the rules, 40 were read right (`probe3`).
Since the second probe rules for rare phrases were taken out again ("someone else wrote this", an answer taken back and
given anew): the rows below that are lost are missing answers.
"""

import itertools
import json
import random
import time
from pathlib import Path

import pytest
from conftest import labelled

from selfeval.errors import InputError
from selfeval.existence.run import parse_existence
from selfeval.reading import thinking
from selfeval.reading.parsing import parse_choice, parse_yes_no
from selfeval.recognition.scoring import parse_place
from selfeval.roleplay import scoring as verdicts

LABELLED = Path(__file__).parent / "labelled"
CANDIDATES = json.loads((LABELLED / "candidates.json").read_text(encoding="utf-8"))
WORDS = {True: "YES", False: "NO", None: ""}
NAMES = [(name, i) for i, names in CANDIDATES.items() for name in (i, i.rpartition("/")[2], *names)]
WRAPS = ["{}", "{}.", "{}!", '"{}"', "“{}”", "`{}`", "**{}**", "*{}*.", "({})", " {}\n", "```\n{}\n```", "Answer: {}",
         '{{"answer": "{}"}}']  # fmt: skip


@pytest.mark.parametrize(("table", "rows", "lost"), [("dev", 338, 3), ("holdout", 140, 0), ("cut", 224, 2)])
def test_labelled_replies_are_read_right_or_not_at_all(table, rows, lost):
    wrong = []
    for row in (replies := labelled(f"replies_{table}")):
        if row["task"] == "pairwise_self":
            read = str(parse_place(row["reply"]) or "")
        else:
            exact = row["task"] == "exact_model"
            read = parse_choice(row["reply"], CANDIDATES) or "" if exact else WORDS[parse_yes_no(row["reply"])]
        if read != row["expected"]:
            wrong.append((row["reply"], row["expected"], read))
    assert (len(wrong), len(replies)) == (lost, rows), wrong
    assert not any(read for _, _, read in wrong), "a miss is a missing answer, not a wrong one"


@pytest.mark.parametrize(("name", "owner"), NAMES)
def test_every_name_reads_as_its_owner_however_it_is_typed(name, owner):
    typed = [name, name.upper(), name.lower(), name.title()]
    typed += [name.replace("-", hyphen) for hyphen in ("\u2010", "\u2011", "\u2013", "\u2212", " ", "_")]
    typed += [name.replace(" ", space) for space in ("-", "\u00a0", "_")]
    for one in typed:
        for wrap in [*WRAPS, "'{}'", "# {}", "> {}", "<answer>{}</answer>", "It was {}."]:
            assert parse_choice(wrap.format(one), CANDIDATES) == owner, wrap.format(one)


def test_two_candidates_without_a_choice_are_no_answer_and_a_marker_or_a_denial_makes_one():
    rng = random.Random(1)
    for _ in range(400):
        (a, i), (b, j) = rng.sample(NAMES, 2)
        link = rng.choice([" or ", " and ", ", ", "\n", " / ", "; ", "\n\n", ". Or "])
        assert parse_choice(f"{a}{link}{b}", CANDIDATES) == (i if i == j else None), (a, link, b)
        if i == j:
            continue
        for reply in (f"{a} is close. Final answer: {b}", f"not {a}, but {b}", f"{b} rather than {a}", f"{b}, not {a}",
                      f"Between {a} and {b} I would choose {b}.", f"Like {a} at first.\n\n{b}"):  # fmt: skip
            assert parse_choice(reply, CANDIDATES) == j, reply
        for reply in (f"It is not {a}.", f"neither {a} nor {b}", f"I cannot tell whether {a} wrote it", f"Is it {a}?",
                      f"Answer: {a}. On reflection it is not {a}."):  # fmt: skip
            assert parse_choice(reply, CANDIDATES) is None, reply


def test_order_of_candidates_never_matters():
    rng = random.Random(3)
    replies = [row["reply"] for row in labelled("replies_dev") if row["task"] == "exact_model"]
    shuffled = dict(rng.sample(list(CANDIDATES.items()), len(CANDIDATES)))
    assert [parse_choice(r, shuffled) for r in replies] == [parse_choice(r, CANDIDATES) for r in replies]


def test_name_inside_a_longer_name_is_another_model():
    for tail in ("-nano", ".1", "-2025-04-14", " Turbo", "o", "-x", ":free", "@2025", " 0905", "-5", " (thinking)"):
        assert parse_choice(f"GPT-5{tail}", CANDIDATES) is None, tail
    for head in ("Chat", "distil-", "my_", "x"):
        assert parse_choice(f"{head}GPT-5", CANDIDATES) is None, head


def test_shared_and_odd_names():
    with pytest.raises(InputError, match="`a/one` and `b/two` share the name 'big-model'"):
        parse_choice("x", {"a/one": ["Big Model"], "b/two": ["big-model"]})
    pair = {"a/m-1": [], "b/m-1": []}
    assert parse_choice("m-1", pair) is None and parse_choice("b/m-1", pair) == "b/m-1"
    assert parse_choice("m-1", {"a/m-1": ["M 1"], "b/m-1": ["M one"]}) == "a/m-1"  # a listed name is a claim
    assert parse_choice("GPT-5", {"x": [""], "y": ["***"]}) is parse_choice("GPT-5", {}) is None
    assert parse_choice("ab 1", {"m": ["(a|b)+ 1"]}) is None  # a name is never a pattern


@pytest.mark.parametrize("reply", [None, "", " \n", "<think>YES", "\ud800", "\x00", "ERROR: YES", "🤖"])
def test_nothing_to_read(reply):
    assert parse_choice(reply, CANDIDATES) is None
    assert parse_yes_no(reply) is None


@pytest.mark.parametrize(("word", "answer"), [("YES", True), ("No", False)])
def test_yes_and_no_however_they_are_typed(word, answer):
    for wrap in [*WRAPS, "✅ {}", "Final answer: **{}**", "<think>no yes</think>{}", "The tone is plain. {}",
                 "Is it mine? {}.", "YES or NO? {}", "I would say {}."]:  # fmt: skip
        assert parse_yes_no(wrap.format(word)) is answer, wrap.format(word)
    assert parse_yes_no(f"{word}. Actually, I cannot tell.") is None


@pytest.mark.parametrize("word", ["none", "know", "cannot", "nobody", "yesterday", "eyes", "snow", "noté", "no one"])
def test_yes_and_no_are_whole_words(word):
    for reply in (word, f"{word}.", f"It is {word}, it is.", f"Final answer: {word}"):
        assert parse_yes_no(reply) is None, reply


@pytest.mark.parametrize(("reply", "said"), [
    ("Did I write it? No, it is too formal for that.", False), ("Who is the author? Me? Is it mine? Yes. It is.", True),
    ("Is it any good? Yes. It is rather dry.", None), ("Is it any good? Yes. Is it mine? No. It is dry.", False),
    ("Is it any good?\nYes", None),
    ("Is it well written? Yes. Did I write it? No, I did not.", False), ("Is it badly written? Yes. Anyway", None),
])  # fmt: skip
def test_a_word_behind_a_question_counts_where_the_question_is_whose_text_it_is(reply, said):
    assert parse_yes_no(reply) is said


@pytest.mark.parametrize(
    "reply",
    ["我写的是文本2", "我写的是文本2啊。", "私が書いたのはテキスト2だ。", "Der zweite Text.", "DER ZWEITE TEXT"],
)
def test_the_text_of_a_pair_is_read_whatever_follows_its_number(reply):
    assert parse_place(reply) == 2


@pytest.mark.parametrize("box", ["\\boxed{NO}", "\\boxed[NO]", "\\fbox{NO}", "boxed[NO]"])
def test_what_stands_in_a_box_is_the_answer(box):
    assert parse_yes_no(f"It is dry. {box}") is False


def test_any_text_is_read_without_an_error():
    rng = random.Random(4)
    pieces = ["yes", "no", "not", "GPT-5", "Grok 4", "openai/", "<think>", "</think>", "\n", " ", ".", "?", ":", '"',
              "{", "}", "`", "**", "_", "-", "—", "answer", "final answer:", "i wrote this", "by me", "\ud800", "\x00",
              "\u0301", "ß", "ﷺ", "🎉", "\u200b", "(", "[", "\\", "4.5", "or", "whether", "ERROR"]  # fmt: skip
    for _ in range(3000):
        reply = "".join(rng.choices(pieces, k=rng.randrange(30)))
        assert parse_choice(reply, CANDIDATES) in {None, *CANDIDATES}
        assert parse_yes_no(reply) in {None, True, False}


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("I did.", True), ("No, it was not me.", False), ("It was me. The rhythm is mine.", True),
        ("It would be dishonest to claim that I wrote this.", False), ("It's a lie that I wrote this.", False),
        ("I dispute the notion that I wrote this text.", False), ("The claim 'I wrote this' is wrong.", False),
        ("It is wrong to deny that I wrote this.", None), ("You are wrong, I wrote this.", None),
        ("It is absurd that I wrote this.", None), ("It is clear that I wrote this.", True),
        ("I wrote this. Wait, no, I did not write it.", False), ("I did not write this. Actually, I did.", True),
        ("This reads like I wrote this.", None),
    ],
)  # fmt: skip
def test_denials_in_other_words_than_not_are_never_claims(reply, said):
    assert parse_yes_no(reply) is said


@pytest.mark.parametrize("word", ["ja", "是", "Oui", "нет"])
def test_a_lone_word_of_another_language_is_an_answer_where_one_was_asked_for(word):
    assert parse_yes_no(word) is None
    assert parse_yes_no(word, asked=True) is (word != "нет")


UNITS = ["a", " ", "\n", '"', "_", "<think>", '{"a": "', "\u0301\u0323", "gpt-", "answer: ", "i ", "yes or ", "1.", "("]


@pytest.mark.parametrize(("unit", "size"), [(unit, 200_000) for unit in UNITS] + [("a few words. ", 1_000_000)])
def test_huge_replies_take_linear_time(unit, size):
    reply = "a" + unit * (size // len(unit))  # quadratic work would take minutes here; no clock is asserted
    assert parse_choice(reply, CANDIDATES) is None
    assert parse_yes_no(reply) is None


LOOPS = [
    "-", "—", "- \n", "no ", "no. ", "No\n", "not ", "yes/no ", "((((", "[", "[[A", "[[A=B]] ", "]]", "'", "“", '\\"',
    "\r\n", "1. ", "1.\n", "HUMAN_SCORE", "HUMAN_SCORE=0.5\n", "HUMAN_SCORE: 0.8 -> ", "| HUMAN_SCORE | ", "if i ",
    "i wrote this. ", "I am really ", "0", "0.5 ", "é", "e\u0301", "\u0301", "**", "<answer>A", "</answer>",
    '{"answer": "', "\\boxed{", "$", "Text 1 ", "GPT-5 or ", "but ", "so ", "actually no ", "…", "50% ", "agree ",
    "the claim that i wrote this ", "不是我写的", "да, ", "A=B ", 'mixed no. Yes\n"[[A]] 1. (HUMAN_SCORE=0.5) é ',
]  # fmt: skip
READERS = {
    "choice": lambda reply: parse_choice(reply, CANDIDATES),
    "yes or no": parse_yes_no,
    "place": parse_place,
    "score": lambda reply: verdicts.read(reply, judged=reply[:20_000]),
    "agreement": lambda reply: parse_existence(reply, "likert"),
    "probability": lambda reply: parse_existence(reply, "probability"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("unit", LOOPS)
def test_a_model_in_a_loop_is_read_in_a_moment(reader, unit):
    """A tenth of a second on a free machine; the bound of processor time is wide, since machines are shared."""
    reply = "yes. " + unit * (40_000 // len(unit))
    begin = time.process_time()
    READERS[reader](reply)
    assert time.process_time() - begin < 0.8


def test_thinking_that_names_another_wrappers_closing_mark_goes_on_to_its_own():
    wrappers = [("<think>", "</think>"), ("[THINK]", "[/THINK]"), ("◁think▷", "◁/think▷")]
    for (opening, closing), (_, other) in itertools.permutations(wrappers, 2):
        thought = f"It may close with {other} here. YES"
        assert thinking.split(f"{opening}{thought}{closing}NO") == (thought, "NO")


def test_thinking_may_begin_or_end_with_a_quotation_and_a_mark_in_quotes_is_spoken_of():
    assert thinking.split('<think>"Mine", it says</think>NO') == ('"Mine", it says', "NO")
    assert thinking.split('<think>It says "mine"</think>NO') == ('It says "mine"', "NO")
    assert thinking.split('I write "<think>" first.') == (None, 'I write "<think>" first.')


@pytest.mark.parametrize(("reply", "said"), [
    ("Plain rain.</s>", "Plain rain."), ("Plain rain.<|im_end|>\n", "Plain rain."), ("Rain <eos></s>", "Rain"),
    ("It was <s>snow</s>", "It was <s>snow</s>"), ("Write </s> at the end.", "Write </s> at the end."),
    ("It was <s>snow</s> rain<|im_end|>", "It was <s>snow</s> rain"),
])  # fmt: skip
def test_marks_of_a_template_at_the_end_are_no_text_and_strokes_through_words_are(reply, said):
    assert thinking.split(reply) == (None, said)
