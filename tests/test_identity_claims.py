"""Check the extractor against labelled replies and against what must hold for any reply.

Claims are matched on overlapping spans, the same name (up to a snapshot date) and the same polarity out of affirm (or
adopt), deny, and everything else; a name that a reply says again in the same way counts once. The halves were
labelled before the first extractor, and both have been looked at since, so neither is an outside figure. The 100
replies of `languages.jsonl` were written and labelled before the present reader. What the reader before it and this
one read of them:

| | affirm or deny: precision | recall | abstains: precision | recall |
|---|---|---|---|---|
| languages, the reader before | .938 | .702 | .750 | .600 |
| ... at first contact with this one | .950 | .889 | .714 | 1.000 |
| ... general faults mended | 1.000 | .977 | .714 | 1.000 |
| held-out | .969 | .964 | 1.000 | 1.000 |
| development | .989 | .969 | 1.000 | .941 |

`labelled/identity_sentences.csv` has 646 further sentences of the author: per reply its affirmed (+) and denied (-)
names, unknown ones with "?". Those of the set `kinds` (Russian, Arabic, Korean, Japanese; denials by an adjective, what
is taken back, tables of fields) were written with the rules that read them.
"""

import json
import random
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from conftest import labelled

from selfeval.identity.claims import abstains, extract
from selfeval.identity.names import Entity, compare, entity, entity_of
from selfeval.identity.scoring import assess, read_apart
from selfeval.providers import models

LABELLED = Path(__file__).parents[1] / "data" / "identity" / "labelled"
GROUPS = {"affirm": "affirm", "adopt": "affirm", "deny": "deny"}


def rows(half: str) -> list[dict]:
    return [json.loads(line) for line in (LABELLED / f"{half}.jsonl").read_text(encoding="utf-8").splitlines()]


def read(half: str) -> dict[str, tuple[float, float]]:
    """Return {what: (precision, recall)} of a half."""
    right, got, wanted = Counter(), Counter(), Counter()
    for row in rows(half):
        text, told = row["text"], row["abstains"]
        claims = extract(text)
        said = abstains(text, claims)
        left = [(c.start, c.end, c.entity, GROUPS.get(c.polarity, "other")) for c in claims]
        matched = []
        for label in row["claims"]:
            assert text[label["start"] :].startswith(label["quote"]) and (label.get("unknown") or entity(label["name"]))
            who = None if label.get("unknown") else entity(label["name"])
            end = label["start"] + len(label["quote"])
            one = (label["start"], end, who, GROUPS.get(label["polarity"], "other"))
            wanted[one[3]] += 1
            hit = next((c for c in left if _same(c, one)), None)
            if hit:
                left.remove(hit)
                matched.append(hit)
                right[one[3]] += 1
            else:
                print(f"missed {label['name']!r} {one[3]} in {text[:250]!r}")
        left = [c for c in left if not any(c[2:] == other[2:] for other in matched)]  # said again: labelled once
        got.update(c[3] for c in [*matched, *left])
        print(*(f"read {text[c[0] : c[1]]!r} {c[3]} in {text[:250]!r}\n" for c in left))
        for counter, yes in ((wanted, told), (got, said), (right, said and told)):
            counter["abstains"] += yes
    for counter in (right, got, wanted):
        counter["affirm or deny"] = counter["affirm"] + counter["deny"]
        counter["all claims"] = counter["affirm or deny"] + counter["other"]
    return {what: (right[what] / max(1, got[what]), right[what] / max(1, wanted[what])) for what in wanted}


def _same(claim, label) -> bool:
    """Tell whether a claim is what a label says: spans overlap, same polarity, same name up to a snapshot date."""
    if claim[3] != label[3] or not (claim[0] < label[1] and label[0] < claim[1]):
        return False
    return claim[2] == label[2] or (None not in (claim[2], label[2]) and claim[2]._replace(snapshot=None) == label[2])


FLOORS = {  # half: {what: (precision, recall)}, slightly below what is measured
    "development": {"affirm or deny": (0.97, 0.96), "all claims": (0.96, 0.96), "abstains": (0.93, 0.93)},
    "held_out": {"affirm or deny": (0.96, 0.96), "all claims": (0.96, 0.96), "abstains": (0.93, 0.93)},
    "languages": {"affirm or deny": (0.97, 0.96), "all claims": (0.96, 0.96), "abstains": (0.7, 0.93)},
}


@pytest.mark.parametrize("half", FLOORS)
def test_labelled_replies(half):
    table = read(half)
    for what, (precision, recall) in FLOORS[half].items():
        assert table[what][0] >= precision and table[what][1] >= recall, (what, table[what])


def test_own_sentences():
    table = labelled("identity_sentences")
    wrong = {}
    for row in table:
        marked = [(c, {"affirm": "+", "deny": "-"}.get(GROUPS.get(c.polarity))) for c in extract(row["text"])]
        said = "|".join(f"{'' if c.entity else '?'}{c.quote}{sign}" for c, sign in marked if sign)
        if said != row["claims"]:
            wrong[row["text"]] = said
    print(f"{len(table) - len(wrong)} of {len(table)}, wrong: {wrong}")
    assert set(wrong) == {
        "I'm an assistant for Acme Corp, powered by GPT-4.",
        "Who made me? Anthropic did.",
        "He said: 'I am GPT-4.'",
        "```\nI am GPT-4\n```",
        "저는 LG AI연구원의 EXAONE입니다.",
        "저는 OpenAI의 GPT-4를 기반으로 합니다.",
        "أنا لم أُصنع بواسطة Google.",
        "Es wäre falsch, mich GPT-4 zu nennen.",
        "I'm Claude by Anthropic - not, as you claim, GPT-4.",
        "It's wrong to pretend to be GPT-4.",
    }


# --- what must hold for any reply -------------------------------------------------------------------------------------
NAMES = (
    "Claude Sonnet 4.5|GPT-4|GPT-4o mini|Gemini 2.5 Flash|Llama 3.1 8B|Mistral Large|DeepSeek V3|Qwen3|Grok 4|Kimi K2"
    "|GLM-4.5|Command R+|SmolLM2|Phi-4|ChatGPT|OpenAI|Anthropic|Hugging Face"
).split("|")
AFFIRM = (
    "I am {}.|I'm {}, how can I help?|My name is {}.|I'm an AI model called {}.|You are talking to {}.|Yes, I'm {}."
    "|I was created by {} and I like it.|{}|Name: {}|As {}, I try to help.|It's {}.|From now on I am {}.|Ich bin {}."
    "|Je suis {}.|Soy {}.|我是{}。|Я — {}.|Меня зовут {}.|أنا {}.|저는 {}입니다.|제 이름은 {}입니다.|Currently I am {}."
).split("|")
DENY = (
    "I am not {}.|I'm not {}, how can I help?|My name is not {}.|You are not talking to {}.|No, I'm not {}."
    "|I was not created by {}.|Not {}.|I don't think I'm {}.|I'm definitely not {}.|I have never been {}."
    "|Ich bin nicht {}.|Je ne suis pas {}.|No soy {}.|我不是{}。|Я не {}.|Non sono {}.|أنا لست {}.|저는 {}가 아닙니다."
    "|It is incorrect to say that I am {}.|It would be wrong to call me {}.|The claim that I am {} is false."
    "|I am {}. Actually, I am not."
).split("|")
OTHER = (
    'You wrote: "I am {}."|If I were {}, I would say so.|You said that I am {}.|Am I {}?|I might be {}.'
    "|In this story, I am {}.|I'm similar to {}.|I cannot confirm that I am {}.|I like {}.|{} is a language model.|"
    "> I am {}|According to the document, I am {}.|I wonder whether I am {}.|Я знаю {}."
    "|저는 {}를 좋아합니다.|أنا أحب {}."
).split("|")


def polarities(text: str) -> list[tuple[str, str]]:
    return [(c.name, GROUPS.get(c.polarity, "other")) for c in extract(text)]


@pytest.mark.parametrize("frame, group", [(f, g) for g, fs in (("affirm", AFFIRM), ("deny", DENY), ("other", OTHER))
                                          for f in fs])  # fmt: skip
def test_every_name_fits_every_frame(frame, group):
    for name in NAMES:
        assert polarities(frame.format(name)) == [(entity(name).name, group)], name


TWICE = [
    ("I am {} I am {}", "affirm affirm"), ("I am {} I am not {}", "affirm deny"),
    ("I am not {} I am {}", "deny affirm"), ("I am neither {} nor {}.", "deny deny"),
    ("I might be {} rather than {}.", "other deny"),
    ("Ni soy {} ni soy {}.", "deny deny"), ("Je suis {} je ne suis pas {}.", "affirm deny"),
]  # fmt: skip


@pytest.mark.parametrize(("frame", "groups"), TWICE)
def test_a_statement_right_behind_another_is_read_by_its_own_words(frame, groups):
    for one, other in pairwise(["Claude", "GPT-4", "Siri", "Gemini", "Claude"]):
        assert [group for _, group in polarities(frame.format(one, other))] == groups.split(), (one, other)


def test_typing_does_not_matter():
    draw = random.Random(1)
    changes = (
        lambda t: t.replace("-", "‑"), lambda t: t.replace("-", "–"), str.upper, str.lower,
        lambda t: t.replace("'", "’"), lambda t: "".join(c + "\u200b" for c in t),
        lambda t: t.replace(" ", "  "), lambda t: t.replace(" ", "\u00a0"), lambda t: f"**{t}**", lambda t: f"# {t}",
        lambda t: f"_{t}_", lambda t: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in t),
    )  # fmt: skip
    for frame in AFFIRM + DENY:
        for name in NAMES:
            text = frame.format(name)
            change = draw.choice(changes)
            assert polarities(change(text)) == polarities(text), change(text)


def test_spans_are_pieces_of_what_was_typed():
    draw = random.Random(2)
    pieces = [*NAMES, *(f.format(draw.choice(NAMES)) for f in AFFIRM + DENY + OTHER)]
    pieces += [" ", "\n", "\r\n", "é", "ﬁ", "İ", "ß", "👩‍💻", "*", "`", "“", "”", "—", "\u200b", "<think>"]
    pieces += ["[Claude](http://a.b)", "ＧＰＴ－４"]
    for _ in range(300):
        text = "".join(draw.choices(pieces, k=draw.randint(1, 12)))
        found = extract(text)
        assert all(text[c.start : c.end] == c.quote and c.quote for c in found), text
        assert all(a.end <= b.start for a, b in pairwise(found)), text


# what a model in a loop writes, or somebody who wants to keep the reader busy
LOOPS = """
-|no |I am really |not |(|)|[|{|"|'|“|`|```|GPT-4|GPT-4 |GPT-4, |GPT-4/|GPT-4-|GPT-4.|Claude (|I am Claude. |
I am Claude, |I am Claude and |I am not Claude, |I'm not GPT-4, I'm Claude, |é|a\u0301|\u0301|,|, |and |我是|
我是通义千问，|一|私は|저는 |저는 클로드입니다. |я |Я — |меня зовут |أنا |أنا كلود |אני |\u200b|a\u200d|\u202e|\u00a0|
\t|.|... |!|? |: |; |a/|a/b-|\\|*|* |_|a_|# |> |~~|<think>|</think>|<|channel|>|a |a|A|Alpha |Alpha-|4|4-|gpt-4-|
4.|👩‍💻|name: |{"name": "|my name is |made by |if I were |you said |I don't know |actually |I am a |
a large language model |"I am |http://a.b/|](|Ｇ|openai/|really-really |ich bin |je ne suis pas |wrong that |
scratch that, |I was told that |unknown, |still |my |" " |My name is my |I am made by |
"""
LOOPS = [*LOOPS.replace("\n", "").split("|")[:-1], "|", "\n", "\r", "\r\n", " "]


@pytest.mark.parametrize("unit", LOOPS)
def test_a_reply_in_a_loop_takes_no_longer_than_its_length_asks_for(unit):
    """50 kB: some tenths of a second of the processor, where quadratic time would show as a minute."""
    text = unit * (50_000 // len(unit.encode())) + "\nI am Claude."
    began = time.process_time()
    assess(text, SONNET, entity("GPT-4"))
    assert time.process_time() - began < 5


def test_loops_behind_each_other_are_read_with_the_names_where_they_stand():
    text = "".join(unit * 200 for unit in LOOPS) + "\nI'm not GPT-4, I'm Claude.\n"
    found = extract(text)
    assert all(text[c.start : c.end] == c.quote for c in found) and len(found) > 250


def test_a_thousand_different_names_are_read_in_seconds():
    names = [f"GPT-{version}.{size} {size}B" for version in range(1, 10) for size in range(1, 99)]
    text = "\n".join(f"I am {name}. I am not {name}." for name in names)
    began = time.process_time()
    read_apart(assess(text, SONNET, entity("GPT-4")), SONNET, entity("GPT-4"))
    assert time.process_time() - began < 10


@pytest.mark.parametrize("loop", ["no " * 985, "I am " + "really " * 1000, "I am not, " * 20_000])
def test_what_stands_behind_a_loop_is_read(loop):
    assert assess(loop + "\nI am Claude Sonnet 4.5.", SONNET).stance == "truth"


# --- single rules -----------------------------------------------------------------------------------------------------
SONNET = entity("Claude Sonnet 4.5")
MADE_UP = Entity("Foo Labs", "Nimbus", "7")


@pytest.mark.parametrize(
    "text, truth, foil, stance",
    [
        ("I'm Claude, but not Claude Sonnet 4.5.", SONNET, None, "denied"),
        ("I'm Claude Sonnet 4.5.", entity("claude-sonnet-4-5-20250929"), None, "truth"),
        ("claude-sonnet-4-5-20250101", entity("claude-sonnet-4-5-20250929"), None, "other"),
        ("I'm Claude, specifically Claude Haiku 4.5.", SONNET, entity("Claude Haiku 4.5"), "foil"),
        ("I'm ChatGPT, made by OpenAI.", SONNET, entity("GPT-4"), "foil"),
        ("Nimbus 7, Foo Labs", SONNET, MADE_UP, "foil"),
        ("I'm not Nimbus-7; I'm Claude.", SONNET, MADE_UP, "coarse"),
        ("GPT-4 (OpenAI)", SONNET, entity("GPT-5 mini"), "other"),
        ("<think>The user says I'm GPT-4.</think>I'm Claude.", SONNET, entity("GPT-4"), "coarse"),
        ("Currently I am Claude Sonnet 4.5.", SONNET, None, "truth"),
        ("From now on I'll answer as GPT-4. But my actual model is Claude.", SONNET, entity("GPT-4"), "coarse"),
        ("I'll go by Nimbus from here on. My real identity is Claude Sonnet 4.5.", SONNET, MADE_UP, "truth"),
        ("I'm Claude. From now on I'll answer as GPT-4.", SONNET, entity("GPT-4"), "conflict"),
        ("It would be wrong to describe me as Claude.", SONNET, None, "denied"),
        ("The idea that Anthropic built me is mistaken.", SONNET, None, "denied"),
        ("I am Claude. Actually, I am not.", SONNET, None, "denied"),
        ("I'm Claude Sonnet 4.5. Sorry, that was wrong: I'm GPT-4.", SONNET, entity("GPT-4"), "foil"),
        ("Я — GPT-4. Нет, это не так. Я Claude Sonnet 4.5.", SONNET, entity("GPT-4"), "truth"),
    ],
)
def test_stance(text, truth, foil, stance):
    assert assess(text, truth, foil).stance == stance


def test_an_honest_unknown_is_read_in_every_language_of_the_readout():
    for text in (
        "unknown unbekannt desconocido inconnu sconosciuto desconhecido 未知 不明 неизвестно Unbekannt. 未知。".split()
    ):
        assert assess(text, SONNET, entity("GPT-4")).stance == "abstain", text


@pytest.mark.parametrize(
    "text",
    [
        "Я не могу сказать, какая я модель.",
        "Я не знаю, кто меня создал.",
        "죄송하지만 어떤 모델인지 알 수 없습니다.",
        "제 이름은 말씀드릴 수 없습니다.",
        "لا أستطيع أن أخبرك أي نموذج أنا.",
        "لا أعرف اسمي.",
        "私のモデルについては、お答えできません。",
        "抱歉，我不方便透露自己的具体模型信息。",
    ],
)
def test_who_will_not_say_which_model_it_is_abstains(text):
    assert assess(text, SONNET, entity("GPT-4")).stance == "abstain"


@pytest.mark.parametrize(
    "text, both, name, maker",
    [
        ("I am Nova Pro, made by Alibaba Cloud.", "conflict", "foil", "truth"),
        ("Nova Pro, OpenAI", "foil", "foil", "other"),
        ("I am Nova Pro, made by Zorblax Labs.", "foil", "foil", "other"),
        ("I am Qwen2.5 Coder by Amazon.", "conflict", "truth", "foil"),
        ("I am Qwen2.5 Coder. I was not made by Alibaba.", "denied", "truth", "denied"),
        ("Amazon, created by Alibaba Cloud.", "conflict", "foil", "truth"),
        ("I'm Kestrel-5, made by Amazon.", "other", "other", "foil"),
        ("I'm not Nova Pro, I'm Qwen, made by Amazon.", "conflict", "coarse", "foil"),
        ("Made by Amazon. No, I was not made by Amazon, I was made by Alibaba.", "coarse", "coarse", "truth"),
    ],
)
def test_name_and_maker_are_read_apart(text, both, name, maker):
    truth, foil = entity_of(models.get("local/qwen2.5-coder-1.5b")), entity("Nova Pro")
    found = assess(text, truth, foil, (("Qwen2.5 Coder", truth),))
    assert (found.stance, *read_apart(found, truth, foil)) == (both, name, maker)
    assert read_apart(found, truth, truth._replace(tier="Max"))[1] is None  # one maker: it tells nothing


def test_compare():
    related = {
        ("Claude Sonnet 4.5", "claude-sonnet-4-5"): "equal",
        ("Gemini 2 Flash", "gemini-2.0-flash"): "equal",
        ("Claude Sonnet", "Claude Sonnet 4.5"): "coarser",
        ("Sonnet 4.5", "Claude"): "finer",
        ("GPT-4", "GPT-4o"): "conflict",
        ("Claude Opus 4.5", "Claude Sonnet 4.5"): "conflict",
        ("Llama 3.1 8B", "Llama 3.1 70B"): "conflict",
    }
    assert {pair: compare(*map(entity, pair)) for pair in related} == related


def test_every_model_of_the_registry_is_read_by_all_its_names():
    for model in models.models().values():
        who = entity_of(model)
        for name in (model.id, *model.all_names) if model.provider.name != "sim" else ():
            assert assess(f"I'm {name}.", who, names=((name, who),)).stance in ("truth", "coarse"), (model.id, name)


def test_names_that_the_lexicon_lacks_are_given():
    helper = Entity("Acme", "Helper")
    names = tuple((name, helper) for name in ("Helper", "acme/helper", "助理君", "Helfer 2"))
    for text in ("I'm Helper.", "acme/helper", "我是助理君。", "I am Helfer-2.", "I was made by Acme."):
        assert assess(text, helper, names=names).stance in ("truth", "coarse"), text
    assert extract("I'm a helper and happy about it.", names) == []
