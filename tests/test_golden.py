"""The golden reference (`tests/golden`, its README says what it is): what this and every later version must keep.

Keys are computed anew from the recordings and from the designs that notebooks ask, and fixtures of version 0.1 are read
and computed with. Of the committed results, those of self-recognition are made again here; the others below
`data/results/sample` are read, and nbval makes their numbers again wherever a notebook shows them.
"""

import json
import math
import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest

GOLDEN = Path(__file__).parent / "golden"
sys.path.insert(0, str(GOLDEN))

import make  # noqa: E402
from written_files import run_command, run_notebook  # noqa: E402

from selfeval.identity import EvalRunner  # noqa: E402
from selfeval.identity.replies import rescore  # noqa: E402
from selfeval.providers.recordings import KEY, read_lines  # noqa: E402
from selfeval.providers.request import canonical, key_of  # noqa: E402
from selfeval.records.tables import read_jsonl  # noqa: E402
from selfeval.roleplay.transcripts import read_conversations  # noqa: E402

PARAMETERS = GOLDEN / "parameters.json"  # of the notebooks, when the keys were frozen
KEYS = json.loads((GOLDEN / "keys.json").read_text(encoding="utf-8"))
PARTS = {"04_identity": ["04_identity", "15_identity_details"]}  # notebooks that were divided since
FACTS = json.loads((GOLDEN / "facts.json").read_text(encoding="utf-8"))
NAMES = "model evaluator author task condition policy statistic method family arm source round juror turn first second "
NAMES = (NAMES + "field predicted level").split()


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Serve the models of the fixtures beside the project's; nobody listens at their address."""
    monkeypatch.setenv("SELFEVAL_MODELS", str(GOLDEN / "models.yaml"))
    monkeypatch.setenv("TQDM_DISABLE", "1")


def rows_of(*parts):
    """Return the rows of a fixture as they stand in the file."""
    return [json.loads(line) for line in GOLDEN.joinpath(*parts).read_text(encoding="utf-8").splitlines()]


# keys -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KEYS["recordings"])
def test_every_recorded_reply_is_still_found_by_its_request(name):
    rows, frozen = make.recordings()[name], KEYS["recordings"][name]
    assert all(key == row["key"] for key, row in rows.items()), f"{name}: requests have other keys than they had"
    lost = {*frozen["keys"].split()} - {key[: make.DIGITS] for key in rows}
    assert not lost, f"{name}: {len(lost)} of {frozen['count']} recorded replies are gone, the first is {min(lost)}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the designs write what later ones read."""
    return tmp_path_factory.mktemp("designs")


def defaults(notebook):
    """Return the parameters of a notebook; what stands together in a dictionary by its own names."""
    now = make.parameters(make.NOTEBOOKS / f"{notebook}.ipynb")
    return {name: part for value in (now, *now.values()) if isinstance(value, dict) for name, part in value.items()}


def named_as_now(parameters):
    return {"models" if name == "evaluators" else name: value for name, value in parameters.items()}


def as_it_was(notebook, parameters, part=None):
    """Return parameters with the defaults of their time, as far as the notebook, or this part of it, still has them."""
    known, before = defaults(part or notebook), json.loads(PARAMETERS.read_text()).get(notebook, {})
    return {name: value for name, value in named_as_now(before | parameters).items() if name in known}


def asked_by(design, folder):
    """Return what a design asks, by all notebooks that its own has become since."""
    asked = make.Asked()
    for part in PARTS.get(design["notebook"], [design["notebook"]]):
        parameters = as_it_was(design["notebook"], design["parameters"], part)
        more = make.asked_by(part, **make.filled(parameters, folder))
        asked.requests |= more.requests
        asked.replies |= more.replies
    return asked


def is_executed(design):
    """Tell whether nbval executes a design on the recordings: a notebook as it stands, with the defaults of then."""
    now, then = defaults(design["notebook"]), as_it_was(design["notebook"], {})
    return {"out", "corpus"} >= {*design["parameters"]} and all(now[name] == value for name, value in then.items())


@pytest.mark.parametrize("name", [name for name, design in KEYS["designs"].items() if not is_executed(design)])
def test_every_design_asks_what_it_asked(name, folder, monkeypatch):
    monkeypatch.delenv("SELFEVAL_MODELS")
    frozen = KEYS["designs"][name]
    corpus = frozen["parameters"].get("corpus", "")
    for needed in KEYS["designs"].values():  # a run of this test alone makes the corpus that it reads
        writes = needed["notebook"].startswith("01") and needed["parameters"]["corpus"] == corpus
        if writes and needed is not frozen and not Path(make.filled(corpus, folder)).exists():
            asked_by(needed, folder)
    asked = asked_by(frozen, folder)
    now, example = asked.frozen(), frozen["example"]
    assert example["key"] in asked.requests, f"{name}: a request has another key; it was {example['request']}"
    if "keys" in frozen:
        lost = {*frozen["keys"].split()} - {key[: make.DIGITS] for key in asked.requests}
        assert not lost, f"{name}: {len(lost)} of {frozen['count']} requests are no longer asked, e.g. {min(lost)}"
    else:
        assert (now["count"], now.get("sha256")) == (frozen["count"], frozen["sha256"]), f"{name} asks something else"
    if now["count"] == frozen["count"]:
        assert now.get("simulated_replies") == frozen.get("simulated_replies"), f"{name}: simulated models differ"


# stores ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A copy of the frozen store, in use: opening it may change its file."""
    path = Path(shutil.copytree(GOLDEN / "store", tmp_path / "store")) / "responses.sqlite"
    monkeypatch.setenv("SELFEVAL_STORE", str(path))
    return path


def test_a_store_is_read_with_its_failed_attempts_and_what_was_rescued_beside_it(store):
    rows, attempts = make.content_of(store)
    assert attempts == FACTS["attempts"] and "abandoned" in attempts
    assert len(rows) == FACTS["replies"] and all(row["key"] == key_of(canonical(row["request"])) for row in rows)
    said = make.digest(json.dumps([[row["key"], row["response"]] for row in rows]))
    assert said == FACTS["replies_digest"], "the store's replies are not what they were"


def test_an_export_is_imported_and_written_again_to_the_byte(tmp_path, monkeypatch):
    export, again = GOLDEN / "store" / "export.jsonl", tmp_path / "again.jsonl"
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "new.sqlite"))
    run_command("store", "import", export)
    run_command("store", "export", again)
    assert again.read_bytes() == export.read_bytes()


@pytest.mark.parametrize("condition", make.PREDICTED)
def test_stored_replies_are_served_without_a_call_and_make_the_same_predictions(condition, store, tmp_path):
    given = named_as_now(make.filled(make.PREDICTED[condition], tmp_path))
    run_notebook("02_collect_predictions", **given, out=str(tmp_path))
    files = sorted((GOLDEN / "predictions" / condition).glob("*.jsonl"))
    assert files
    for file in files:
        same_rows(read_jsonl(tmp_path / file.name), rows_of(file), file)


def same_rows(now, frozen, where):
    """Hold rows against frozen ones: as many, and every field that was there has its value."""
    assert len(now) == len(frozen), f"{where}: {len(now)} rows, {len(frozen)} before"
    for number, (one, other) in enumerate(zip(now, frozen, strict=True), 1):
        for name, value in other.items():
            assert same(one[name], value), f"{where}, row {number}: `{name}` is {one[name]!r:.200}, was {value!r:.200}"


def same(a, b):
    """Tell whether two values are equal, floats to 1e-12; what is missing is null or not a number."""
    missing = [x is None or (isinstance(x, float) and math.isnan(x)) for x in (a, b)]
    if isinstance(a, dict) and isinstance(b, dict):  # what was there; more may have come
        return all(name in a and same(a[name], value) for name, value in b.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and isinstance(b, float) and not any(missing):
        return math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12)
    return all(missing) if any(missing) else a == b


# predictions, identity, role-play ------------------------------------------------------------------------------------


def test_identity_records_and_result_objects_are_read():
    rows = rows_of("identity", "identity.jsonl")
    same_rows(rescore(rows), rows, "identity.jsonl, read anew from its raw replies")
    one, [two, _] = (json.loads((GOLDEN / "identity" / f"{name}.json").read_text()) for name in ("one", "two"))
    for frozen, repeats in ((one, 2), (two, 1)):
        again = dict(EvalRunner("identity/published.json").run(frozen.pop("model_id"), repeats=repeats))
        same_rows([again], [{name: value for name, value in frozen.items() if name != "interval"}], "result object")


@pytest.mark.parametrize("name", ["conversations.jsonl", "judged.jsonl"])
def test_conversations_are_read_field_by_field(name):
    same_rows(
        [one.to_dict() for one in read_conversations(GOLDEN / "roleplay" / name)], rows_of("roleplay", name), name
    )


def test_the_comparison_writes_the_same_file_again(store, tmp_path):
    run_command("compare", "--output_file_path", tmp_path / "compare.json", *make.PLAYED)
    files = [folder / "compare.json" for folder in (tmp_path, GOLDEN / "roleplay")]
    again, frozen = (json.loads(file.read_text(), object_hook=without_clock) for file in files)
    del frozen["config"]["feedback"]  # the interrogator heard no verdict
    set_up = again["config"]
    assert set_up.pop("words") == 0  # statements were one short sentence
    assert set_up.pop("context") == "rolling"  # jurors were always shown the conversation so far
    set_up["max_tokens"] = 0  # sent a limit of ours, 2000
    same_rows([again], [frozen], "compare.json")


def without_clock(values):
    """Return an object of a file without the seconds that a call took, and without what is asked no more."""
    return {name: value for name, value in values.items() if name not in ("latency", "blind", "dimensions")}


# results --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def computed(tmp_path_factory):
    """All result tables, as they are read from their files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SELFEVAL_MODELS", str(GOLDEN / "models.yaml"))
        made = make.result_tables()
    folder = tmp_path_factory.mktemp("tables")
    for name, table in made.items():
        table.to_csv(folder / f"{name}.csv", index=False, float_format="%.12g")
    return {name: by_key(folder / f"{name}.csv") for name in made}


def by_key(file):
    """Return a table with the columns that name a row as index, and how many there were with the same names."""
    table = pd.read_csv(file).assign(note=lambda rows: rows["note"].fillna(""))
    keys = [name for name in NAMES if name in table]
    return table.assign(number=table.groupby(keys, dropna=False).cumcount()).set_index([*keys, "number"])


@pytest.mark.parametrize("file", sorted((GOLDEN / "results").glob("*.csv")), ids=lambda file: file.stem)
def test_results_of_the_fixtures_are_what_they_were(file, computed):
    """The rows that were there, and the values of their columns; there may be more notes than there were."""
    frozen = by_key(file)
    now = computed[file.stem].reindex(frozen.index)[frozen.columns]
    notes = zip(now.pop("note").fillna("gone").str.split("; "), frozen.pop("note").str.split("; "), strict=True)
    assert all({*was} <= {"", *new} for new, was in notes)
    pd.testing.assert_frame_equal(now, frozen, rtol=1e-9, atol=1e-9, check_dtype=False)


def test_no_request_has_two_recorded_replies():
    """One that a notebook and a figure ask has the same line in both recordings."""
    files = [file for folder in ("sample", "recorded") for file in (make.ROOT / "data" / folder).iterdir()]
    lines = {line.rstrip() for file in files for _, _, line in read_lines(file)}
    keys = [KEY.match(line)[1] for line in lines]
    assert len(keys) == len(set(keys)) > 1624
