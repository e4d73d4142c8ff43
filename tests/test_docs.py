"""The data dictionary against the project: the fields that it lists are those of the files, and it is short."""

import dataclasses
import re

import dictionary
import pandas as pd

from selfeval import DATA, ROOT
from selfeval.identity.replies import SCORING
from selfeval.identity.run import Template
from selfeval.providers.request import STORED
from selfeval.recognition.scoring import READ

TEXT = dictionary.README.read_text(encoding="utf-8")


def test_the_lists_of_fields_are_those_of_the_files(own_store):
    made = TEXT.partition(dictionary.BEGIN)[2].partition(dictionary.END)[0]
    assert made == dictionary.generated(), "run `python tests/dictionary.py`, and look at what changes"


def test_what_is_explained_is_a_field_and_the_dictionary_is_short():
    written, _, made = TEXT.partition(dictionary.BEGIN)
    meanings = written.partition("## What fields mean")[2].partition("## Fields")[0]
    first = " ".join(re.findall(r"^\| (`[^|]+) \|", meanings, re.M))
    explained = {*re.findall(r"`(\w+)`", first)}
    assert len(explained) > 50 and sorted(explained - {*re.findall(r"`([^`]+)`", made)}) == []
    assert len(TEXT.split()) <= 3000


def test_the_values_of_status_and_scorer_are_those_of_the_code():
    [said] = re.findall(r"^\*\*`status`\*\*.*", TEXT, re.M)
    assert {*re.findall(r"`(\w+)`", said)} - {"status", "reply"} == {*STORED, *READ, "error"}
    [said] = re.findall(r"^\| `scorer` \|(.*)", TEXT, re.M)
    assert {*re.findall(r"`(\w+)`", said)} == {*SCORING, "unreadable"}


def test_every_status_of_a_committed_record_is_listed():
    found = set()
    for path in [*DATA.glob("*/**/*.jsonl"), *DATA.glob("*/**/*.csv")]:
        for row in dictionary.rows_in(path) if "status" in path.read_text(encoding="utf-8") else ():
            found.add(row.get("status") or "ok")
    assert found <= {*STORED, *READ, "error"}


def test_every_note_of_a_committed_result_is_explained():
    notes = set()
    for path in DATA.glob("results/**/*.csv"):
        table = pd.read_csv(path)
        if "note" in table:
            for words in table["note"].dropna().unique():
                notes |= {word.strip().partition("=")[0] for word in words.split(";")}
    page = (ROOT / "notebooks" / "README.md").read_text(encoding="utf-8").partition("| `note` | means |")[2]
    explained = {*re.findall(r"`(\w+)[^`]*`", " ".join(re.findall(r"^\|([^|]*)\|", page, re.M)))}
    assert len(notes) > 20 and notes <= explained


def test_the_suite_has_a_dictionary_of_its_own():
    text = (DATA / "identity" / "suite" / "README.md").read_text(encoding="utf-8")
    first_column = " ".join(re.findall(r"^\|([^|]*)\|", text, re.M))
    fields = {field.name for field in dataclasses.fields(Template)}
    assert set(re.findall(r"`(\w+)`", first_column)) == fields | {"content"}  # of a turn
