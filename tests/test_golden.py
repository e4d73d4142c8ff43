"""The golden reference (`tests/golden`, its README says what it is): what this and every later version must keep.

Keys are computed anew from the recordings and from the designs that notebooks ask, and fixtures of version 0.1 are read
and computed with. Of the committed results, those of self-recognition are made again here; the others below
`data/results/sample` are read, and nbval makes their numbers again wherever a notebook shows them.
"""

import json
import math
import shutil
import sys
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

GOLDEN = Path(__file__).parent / "golden"
sys.path.insert(0, str(GOLDEN))

import make  # noqa: E402
from written_files import run_command, run_notebook  # noqa: E402

from selfeval.asking.store import KEY, canonical, key_of, read_lines  # noqa: E402
from selfeval.identity import EvalRunner  # noqa: E402
from selfeval.identity.run import rescore  # noqa: E402
from selfeval.predictions import read_predictions  # noqa: E402
from selfeval.records import read_jsonl, read_texts  # noqa: E402
from selfeval.roleplay.transcripts import read_conversations  # noqa: E402

PARAMETERS = GOLDEN / "parameters.json"  # of the notebooks, when the keys were frozen
KEYS = json.loads((GOLDEN / "keys.json").read_text(encoding="utf-8"))
FACTS = json.loads((GOLDEN / "facts.json").read_text(encoding="utf-8"))
TABLES = {file.stem: file for file in sorted((GOLDEN / "results").glob("*.csv"))}
BOOTSTRAP = ("percentile", "bca")
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


@pytest.mark.parametrize("name", KEYS["designs"])
def test_every_design_asks_what_it_asked(name, folder, monkeypatch):
    monkeypatch.delenv("SELFEVAL_MODELS")
    frozen = KEYS["designs"][name]
    corpus = frozen["parameters"].get("corpus", "")
    for needed in KEYS["designs"].values():  # a run of this test alone makes the corpus that it reads
        writes = needed["notebook"].startswith("01") and needed["parameters"]["corpus"] == corpus
        if writes and needed is not frozen and not Path(make.filled(corpus, folder)).exists():
            make.asked_by(needed["notebook"], **make.filled(as_it_was(needed), folder))
    asked = make.asked_by(frozen["notebook"], **make.filled(as_it_was(frozen), folder))
    now, example = asked.frozen(), frozen["example"]
    assert example["key"] in asked.requests, f"{name}: a request has another key; it was {example['request']}"
    if "keys" in frozen:
        lost = {*frozen["keys"].split()} - {key[: make.DIGITS] for key in asked.requests}
        assert not lost, f"{name}: {len(lost)} of {frozen['count']} requests are no longer asked, e.g. {min(lost)}"
    else:
        assert (now["count"], now.get("sha256")) == (frozen["count"], frozen["sha256"]), f"{name} asks something else"
    if now["count"] == frozen["count"]:
        assert now.get("simulated_replies") == frozen.get("simulated_replies"), f"{name}: simulated models differ"


def as_it_was(design):
    """Return the parameters of a design with the defaults of its time, as far as the notebook still has them."""
    now, before = make.parameters(make.NOTEBOOKS / f"{design['notebook']}.ipynb"), json.loads(PARAMETERS.read_text())
    known = {*now, *(part for value in now.values() if isinstance(value, dict) for part in value)}
    given = before.get(design["notebook"], {}) | design["parameters"]
    return {name: value for name, value in given.items() if name in known}


def test_the_demo_sweep_still_has_every_design():
    now = make.runs(make.NOTEBOOKS / "sweeps" / "demo.yaml")
    for name, frozen in KEYS["designs"].items():
        if name.startswith("demo"):
            wanted = {k: v for k, v in frozen["parameters"].items() if k not in ("corpus", "out", "n_resamples")}
            like = [given for _, notebook, given in now if notebook == frozen["notebook"]]
            assert any(all(given.get(k) == v for k, v in wanted.items()) for given in like), f"no run like {name}"


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


def test_an_export_is_imported_and_written_again_to_the_byte(store, tmp_path, monkeypatch):
    export, same, again = GOLDEN / "store" / "export.jsonl", tmp_path / "same.jsonl", tmp_path / "again.jsonl"
    count = len(export.read_text().splitlines())
    run_command("store", "export", same, "--model", "second")
    said = run_command("store", "stats")
    assert all(f"{count} attempts without a reply: {outcome}" in said for outcome, count in FACTS["attempts"].items())
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "new.sqlite"))
    assert f"{count} new replies, 0 already" in run_command("store", "import", export)
    assert f"0 new replies, {count} already" in run_command("store", "import", export)
    run_command("store", "export", again)
    assert again.read_bytes() == same.read_bytes() == export.read_bytes()
    rescued = 1  # beside the store by 0.1: `import` adds it
    assert f"{FACTS['replies'] - count - rescued} new replies" in run_command("store", "merge", store)


@pytest.mark.parametrize("condition", make.PREDICTED)
def test_stored_replies_are_served_without_a_call_and_make_the_same_predictions(condition, store, tmp_path):
    run_notebook("02_collect_predictions", **make.filled(make.PREDICTED[condition], tmp_path), out=str(tmp_path))
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
    """Tell whether two values are equal; what is missing is null or not a number."""
    missing = [x is None or (isinstance(x, float) and math.isnan(x)) for x in (a, b)]
    if isinstance(a, dict) and isinstance(b, dict):  # what was there; more may have come
        return all(name in a and same(a[name], value) for name, value in b.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return all(missing) if any(missing) else a == b


# corpora, predictions, identity, role-play ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["corpora/ours", "corpora/samples", "corpora/people", "corpora/published.json",
                                  "corpora/own.csv"])  # fmt: skip
def test_a_corpus_is_read_field_by_field(name):
    rows = FACTS[name] if name in FACTS else rows_of(name, "texts.jsonl")
    same_rows(read_texts(str(GOLDEN / name)), rows, name)


def test_predictions_are_read_field_by_field():
    for name in ("published.csv", "foreign.json"):
        frame = read_predictions(GOLDEN / "predictions" / name)
        same_rows(json.loads(frame.to_json(orient="records")), FACTS[f"predictions/{name}"], name)
    for file in sorted((GOLDEN / "predictions").glob("*/*.jsonl")):
        same_rows(read_predictions(file).to_dict("records"), rows_of(file), file.name)


def test_identity_records_and_result_objects_are_read():
    rows = rows_of("identity", "identity.jsonl")
    same_rows(rescore(rows), rows, "identity.jsonl, read anew from its raw replies")
    one, [two, _] = (json.loads((GOLDEN / "identity" / f"{name}.json").read_text()) for name in ("one", "two"))
    for frozen, repeats in ((one, 2), (two, 1)):
        again = dict(EvalRunner("identity/published.json").run(frozen.pop("model_id"), repeats=repeats))
        same_rows([again], [{name: value for name, value in frozen.items() if name != "interval"}], "result object")


def test_conversations_and_files_of_both_commands_are_read():
    for name in ("conversations.jsonl", "judged.jsonl"):
        read = [one.to_dict() for one in read_conversations(GOLDEN / "roleplay" / name)]
        same_rows(read, rows_of("roleplay", name), name)
    for name, part in (("roleplay.json", "interaction"), ("compare.json", "turns")):
        [read] = read_conversations(GOLDEN / "roleplay" / name)
        frozen = json.loads((GOLDEN / "roleplay" / name).read_text(encoding="utf-8"))
        wanted = [(row["turn"], row["question"], row["answer"] or "") for row in frozen[part]]
        assert [tuple(exchange)[:3] for exchange in read.exchanges()] == wanted and len(wanted) == 2
        assert (read.source, read.agent_model) == ("model", "sim/talker")


def test_the_comparison_writes_the_same_file_again(store, tmp_path):
    run_command("compare", "--output_file_path", tmp_path / "compare.json", *make.PLAYED)
    again, frozen = (json.loads((f / "compare.json").read_text()) for f in (tmp_path, GOLDEN / "roleplay"))
    del frozen["config"]["feedback"]  # the interrogator heard no verdict
    same_rows([without_clock(again)], [without_clock(frozen)], "compare.json")


def without_clock(value):
    """Return a value without the seconds that calls took."""
    if isinstance(value, dict):
        return {name: without_clock(one) for name, one in value.items() if name != "latency"}
    return [without_clock(one) for one in value] if isinstance(value, list) else value


def test_the_sweep_file_is_read_as_before():
    now = json.loads(json.dumps(make.runs(GOLDEN / "sweep.yaml")))
    for one, frozen in zip(now, FACTS["sweep"], strict=True):
        assert one[:2] == frozen[:2] and same(one[2], frozen[2]), f"{one} was {frozen}"


# results --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def computed(tmp_path_factory):
    """All result tables, as they are read from their files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SELFEVAL_MODELS", str(GOLDEN / "models.yaml"))
        made = make.result_tables()
    folder = tmp_path_factory.mktemp("tables")
    for name, table in made.items():
        table.to_csv(folder / name, index=False, float_format="%.12g")
    return {name: read(folder / name) for name in made}


def read(file):
    """Return a table as it stands in its file."""
    return pd.read_csv(file, dtype=str, keep_default_na=False)


@pytest.mark.parametrize("name", TABLES)
def test_results_of_the_fixtures_are_what_they_were(name, computed):
    hold_table(name, computed[name], read(TABLES[name]))


def hold_table(name, now, frozen, tolerance=1e-9):
    """Hold a table against a frozen one: the same rows, and the values of every column that was there."""
    keys = [column for column in NAMES if column in frozen]
    before, after = by_key(frozen, keys), by_key(now, keys)
    for key, row in before.items():
        if key not in after and (row.get("method") in BOOTSTRAP or row.get("statistic", "").endswith("_per_verdict")):
            continue  # most statistics have no bootstrap any more, and what a verdict takes is a cell of 06
        who = f"{name}: " + ", ".join(f"{k} {v}" for k, v in zip(keys, key, strict=False) if v not in ("", "nan"))
        assert key in after, f"{who} is no longer in the table"
        for column, value in row.items():
            here = after[key][column]
            assert unchanged(column, here, value, tolerance), f"{who}: {column} is {here}, was {value}"


def unchanged(column, now, was, tolerance):
    """Tell whether a value is what it was; there may be more notes than there were."""
    return {*was.split("; ")} <= {"", *now.split("; ")} if column == "note" else close(now, was, tolerance)


def by_key(table, keys):
    """Return {values of the columns that name a row, and how many there were with them: the row}."""
    seen, found = Counter(), {}
    for row in table.to_dict("records"):
        name = tuple(str(row[key]) for key in keys)
        found[*name, seen[name]] = row
        seen[name] += 1
    return found


def close(a, b, tolerance):
    """Tell whether two cells hold the same."""
    try:
        return math.isclose(float(a), float(b), rel_tol=tolerance, abs_tol=tolerance)
    except ValueError:
        return a == b


@pytest.mark.parametrize(
    ("name", "predictions"),
    [("recognition", ["predictions/families"]), ("details", ["predictions/families", "predictions/families-untold"])],
)
def test_committed_results_of_recognition_are_made_again(name, predictions, tmp_path, monkeypatch):
    monkeypatch.delenv("SELFEVAL_MODELS")
    for table, file in make.recognition_set(tmp_path, predictions).items():
        frozen = read(make.ROOT / "data" / "results" / "families" / name / file.name)
        parts = [rows[~rows["method"].isin(BOOTSTRAP)] if "method" in rows else rows for rows in (read(file), frozen)]
        hold_table(f"families/{name}/{table}", *parts, 2e-6)  # written with six digits


def test_no_request_has_two_recorded_replies():
    files = [file for folder in ("sample", "recorded") for file in (make.ROOT / "data" / folder).iterdir()]
    keys = [KEY.match(line)[1] for file in files for _, _, line in read_lines(file)]
    assert len(keys) == len(set(keys)) > 1624
