"""The golden reference (`tests/golden`, its README says what it is): what this and every later version must keep.

Keys are computed anew from the recordings and from the designs that notebooks ask, and fixtures of version 0.1 are read
and computed with. Of the committed results, those of self-recognition are made again here; the others below
`data/results/sample` are read, and nbval makes their numbers again wherever a notebook shows them.
"""

import json
import lzma
import math
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

GOLDEN = Path(__file__).parent / "golden"
sys.path.insert(0, str(GOLDEN))

import adapter  # noqa: E402
import make  # noqa: E402

KEYS = json.loads((GOLDEN / "keys.json").read_text(encoding="utf-8"))
FACTS = json.loads((GOLDEN / "facts.json").read_text(encoding="utf-8"))
TABLES = {file.stem: file for file in sorted((GOLDEN / "results").glob("*.csv"))}
BEFORE = {file.stem: file for file in sorted((GOLDEN / "results-0.1").glob("*.csv"))}  # default rows, old columns
GONE = (  # statistics that no notebook, figure or command reached
    "fleiss_kappa icc_c1 first_speaker_weight family_gap auc_difference brier calibration_offset seconds_per_verdict "
    "conformity conformity_minus_sham accept_false_far accept_false_near neutral_wrong no_answer right_false flip_rate "
    "recovery_rate entropy susceptibility_mention pass_hat_1 pass_hat_2 pass_hat_3 claim_discrimination_if_right "
    "accept_true_if_right accept_false_if_right"
).split()
DEMO = adapter.NOTEBOOKS / "sweeps" / "demo.yaml"
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
    rows = adapter.recordings()[name]
    assert all(key == row["key"] for key, row in rows.items()), f"{name}: requests have other keys than they had"
    frozen = KEYS["recordings"][name]
    lost = {*frozen["keys"].split()} - {key[: adapter.DIGITS] for key in rows}
    assert not lost, f"{name}: {len(lost)} of {frozen['count']} recorded replies are gone, the first is {min(lost)}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the designs write what later ones read."""
    return tmp_path_factory.mktemp("designs")


@pytest.mark.parametrize("name", KEYS["designs"])
def test_every_design_asks_what_it_asked(name, folder, monkeypatch):
    monkeypatch.delenv("SELFEVAL_MODELS")
    frozen = KEYS["designs"][name]
    for needed in map(KEYS["designs"].get, KEYS["designs"]):  # a run of this test alone makes the corpus that it reads
        corpus = frozen["parameters"].get("corpus", "")
        written = needed["notebook"].startswith("01") and needed["parameters"]["corpus"] == corpus
        if written and needed is not frozen and not Path(make.filled(corpus, folder)).exists():
            adapter.asked_by(needed["notebook"], **make.filled(needed["parameters"], folder))
    asked = adapter.asked_by(frozen["notebook"], **make.filled(frozen["parameters"], folder))
    now = asked.frozen()
    example = frozen["example"]
    if example["key"] not in asked.requests:
        pytest.fail(f"{name}: a request has another key; {adapter.difference(example['request'], asked.requests)}")
    if "keys" in frozen:
        lost = {*frozen["keys"].split()} - {key[: adapter.DIGITS] for key in asked.requests}
        assert not lost, f"{name}: {len(lost)} of {frozen['count']} requests are no longer asked, e.g. {min(lost)}"
    else:
        same = (now["count"], now.get("sha256")) == (frozen["count"], frozen["sha256"])
        assert same, f"{name}: {now['count']} requests that are not the {frozen['count']} there were"
    if now["count"] == frozen["count"]:
        assert now.get("simulated_replies") == frozen.get("simulated_replies"), (
            f"{name}: simulated models say otherwise"
        )


def test_the_demo_sweep_and_the_notebooks_still_ask_every_design():
    now = [(design["notebook"], design["parameters"]) for design in make.designs().values()]
    for name, frozen in KEYS["designs"].items():
        if not name.startswith("demo"):
            continue
        parts = frozen["parameters"].items()
        assert any(
            notebook == frozen["notebook"] and all(parameters.get(k) == v for k, v in parts)
            for notebook, parameters in now
        ), f"notebooks/sweeps/demo.yaml has no run like {name} any more: {frozen['parameters']}"


def test_notebooks_take_the_parameters_that_they_took_with_the_same_defaults():
    now = make.parameters()
    for notebook, frozen in json.loads((GOLDEN / "parameters.json").read_text()).items():
        for name, default in frozen.items():
            assert name in now[notebook], f"{notebook} has no parameter {name!r} any more"
            assert now[notebook][name] == default, f"{notebook}: {name} is {now[notebook][name]!r}, was {default!r}"


# stores ---------------------------------------------------------------------------------------------------------------


def test_a_store_is_read_with_its_failed_attempts_and_what_was_rescued_beside_it():
    with make.copied("store") as store:
        rows = adapter.rows_of(store / "responses.sqlite")
        assert adapter.attempts_of(store / "responses.sqlite") == FACTS["attempts"]
    assert len(rows) == FACTS["replies"] and {row["request"]["sample"] for row in rows} == {0, 1, 98}
    assert all(row["key"] == adapter.key_of_request(row["request"]) for row in rows)
    said = adapter.digest(json.dumps([[row["key"], row["response"]] for row in rows]))
    assert said == FACTS["replies_digest"], "the store's replies are not what they were"
    statuses = {row["response"].get("status", "ok") for row in rows}
    assert statuses == {"ok", "refusal", "filtered", "length"} and {"abandoned"} < {*FACTS["attempts"]}


def test_an_export_is_imported_and_written_again_to_the_byte(tmp_path, monkeypatch):
    export = GOLDEN / "store" / "export.jsonl"
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "new.sqlite"))
    count = len(export.read_text().splitlines())
    assert f"{count} new replies, 0 already" in adapter.command("store", "import", export)
    assert f"0 new replies, {count} already" in adapter.command("store", "import", export)
    adapter.command("store", "export", tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == export.read_bytes()
    with make.copied("store") as store:
        monkeypatch.setenv("SELFEVAL_STORE", str(store / "responses.sqlite"))
        adapter.command("store", "export", tmp_path / "same.jsonl", "--model", "second")
        printed = adapter.command("store", "stats")
    assert (tmp_path / "same.jsonl").read_bytes() == export.read_bytes()
    assert all(
        f"{count} attempts without a reply: {outcome}" in printed for outcome, count in FACTS["attempts"].items()
    )
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "new.sqlite"))
    assert f"{FACTS['replies'] - count} new replies" in adapter.command("store", "merge", copy_of_store(tmp_path))


def copy_of_store(folder):
    return Path(shutil.copytree(GOLDEN / "store", folder / "store")) / "responses.sqlite"


@pytest.mark.parametrize("condition", ["told", "anonymous", "scored", "stated"])
def test_stored_replies_are_served_without_a_call_and_make_the_same_predictions(condition, tmp_path, monkeypatch):
    monkeypatch.setenv("SELFEVAL_STORE", str(copy_of_store(tmp_path)))
    parameters = make.PREDICTED[condition]
    adapter.run_notebook("02_collect_predictions", **make.filled(parameters, tmp_path), out=str(tmp_path / "out"))
    files = sorted((GOLDEN / "predictions" / condition).glob("*.jsonl"))
    assert files
    for file in files:
        same_rows(adapter.read_jsonl(tmp_path / "out" / file.name), rows_of("predictions", condition, file.name), file)


def same_rows(now, frozen, where):
    """Hold rows against frozen ones: as many, and every field that was there has its value."""
    assert len(now) == len(frozen), f"{where}: {len(now)} rows, {len(frozen)} before"
    for number, (one, other) in enumerate(zip(now, frozen, strict=True), 1):
        for name, value in other.items():
            assert name in one, f"{where}, row {number}: `{name}` is gone"
            assert same(one[name], value), f"{where}, row {number}: `{name}` is {one[name]!r:.200}, was {value!r:.200}"


def same(a, b):
    """Tell whether two values are equal; what is missing is null or not a number."""
    missing = [x is None or (isinstance(x, float) and math.isnan(x)) for x in (a, b)]
    if isinstance(a, dict) and isinstance(b, dict):  # what was there; more may have come
        return all(name in a and same(a[name], value) for name, value in b.items())
    return all(missing) if any(missing) else a == b


def test_a_purse_and_the_rates_beside_it_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    make.place_limits(tmp_path)
    assert adapter.spent("golden") == pytest.approx(FACTS["spent"], abs=1e-12) and FACTS["spent"] > 0
    assert adapter.spent("another") == 0


# corpora, predictions, identity, role-play ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ours", "samples", "people"])
def test_a_corpus_of_ours_is_read_field_by_field(name):
    rows = rows_of("corpora", name, "texts.jsonl")
    same_rows(adapter.read_texts(str(GOLDEN / "corpora" / name)), rows, name)
    assert ("human" in {row["author"] for row in rows}) == (name == "people")


@pytest.mark.parametrize("name", ["corpora/published.json", "corpora/own.csv"])
def test_a_corpus_in_a_form_of_others_is_read(name):
    same_rows(adapter.read_texts(str(GOLDEN / name)), FACTS[name], name)


@pytest.mark.parametrize("name", ["published.csv", "foreign.json"])
def test_predictions_in_a_form_of_others_are_read(name):
    frame = adapter.read_predictions(GOLDEN / "predictions" / name)
    same_rows(json.loads(frame.to_json(orient="records")), FACTS[f"predictions/{name}"], name)


def test_predictions_of_all_tasks_are_read_field_by_field():
    files = sorted((GOLDEN / "predictions").glob("*/*.jsonl"))
    for file in files:
        same_rows(adapter.read_predictions(file).to_dict("records"), rows_of(file), file.name)
    frame = adapter.read_predictions(GOLDEN / "predictions" / "told")
    assert set(frame["task_type"]) == {"exact_model", "binary_self", "pairwise_self", "lineup"}
    assert {"ok", "no_answer", "refusal"} <= {*frame["status"]}


def test_identity_records_and_result_objects_are_read(tmp_path):
    rows = rows_of("identity", "identity.jsonl")
    same_rows(adapter.read_jsonl(GOLDEN / "identity" / "identity.jsonl"), rows, "identity.jsonl")
    same_rows(adapter.rescored(rows), rows, "identity.jsonl, read anew from its raw replies")
    for name, models in (("one", ["sim/identity-susceptible"]), ("two", ["sim/identity-correct", make.WRITER])):
        content = json.loads((GOLDEN / "identity" / f"{name}.json").read_text(encoding="utf-8"))
        frozen = content if isinstance(content, list) else [content]
        assert [one["model_id"] for one in frozen] == models
        again = adapter.published(models[0], repeats=2 if name == "one" else 1)
        same_rows([again], [{key: frozen[0][key] for key in frozen[0] if key != "interval"}], f"{name}.json")


def test_conversations_and_files_of_both_commands_are_read():
    for name in ("conversations.jsonl", "judged.jsonl"):
        read = [one.to_dict() for one in adapter.read_conversations(GOLDEN / "roleplay" / name)]
        same_rows(read, rows_of("roleplay", name), name)
    for name, part in (("roleplay.json", "interaction"), ("compare.json", "turns")):
        [read] = adapter.read_conversations(GOLDEN / "roleplay" / name)
        frozen = json.loads((GOLDEN / "roleplay" / name).read_text(encoding="utf-8"))
        wanted = [(row["turn"], row["question"], row["answer"] or "") for row in frozen[part]]
        assert [tuple(exchange)[:3] for exchange in read.exchanges()] == wanted and len(wanted) == 2
        assert (read.source, read.agent_model) == ("model", "sim/talker")


def test_the_commands_write_the_same_files_again(tmp_path, monkeypatch):
    monkeypatch.setenv("SELFEVAL_STORE", str(copy_of_store(tmp_path)))
    for name, arguments in make.PLAYED.items():
        adapter.command(name, "--output_file_path", tmp_path / f"{name}.json", *arguments)
        again, frozen = (json.loads((f / f"{name}.json").read_text()) for f in (tmp_path, GOLDEN / "roleplay"))
        same_rows([without_clock(again)], [without_clock(frozen)], f"{name}.json")


def without_clock(value):
    """Return a value without the seconds that calls took."""
    if isinstance(value, dict):
        return {name: without_clock(one) for name, one in value.items() if name != "latency"}
    return [without_clock(one) for one in value] if isinstance(value, list) else value


def test_the_sweep_file_is_read_as_before():
    now = json.loads(json.dumps(adapter.runs(GOLDEN / "sweep.yaml")))
    assert len(now) == len(FACTS["sweep"]) == 10
    for one, frozen in zip(now, FACTS["sweep"], strict=True):
        assert one[:2] == frozen[:2] and same(one[2], frozen[2]), f"{one} was {frozen}"


# results --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def computed():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SELFEVAL_MODELS", str(GOLDEN / "models.yaml"))
        return {name: make.numbered(table) for name, table in make.result_tables().items()}


@pytest.mark.parametrize("name", TABLES)
def test_results_of_the_fixtures_are_what_they_were(name, computed, tmp_path):
    hold_table(name, write_and_read(computed[name], tmp_path), read(TABLES[name]))


@pytest.mark.parametrize("name", BEFORE)
def test_estimates_and_sizes_are_those_of_0_1_whatever_the_rule_of_intervals(name, computed, tmp_path):
    now = write_and_read(computed[name], tmp_path)
    frozen = adapter.renamed(pd.read_csv(BEFORE[name])).fillna({"estimate": ""}).astype(str)
    frozen = frozen.replace({"True": "true", "False": "false"})
    known = frozen.columns[(frozen != "").any()]
    key = [column for column in NAMES if column in known and column in now and column not in ("method", "level")]
    if name == "jury":  # rounds are numbered as the others' conditions are
        numbers = zip(dict.fromkeys(frozen["condition"]), dict.fromkeys(now["condition"]), strict=True)
        frozen["condition"] = frozen["condition"].map(dict(numbers))
    kept = frozen[~frozen["statistic"].isin(GONE)].drop_duplicates(key).set_index(key)
    found = now.drop_duplicates(key).set_index(key)
    assert not [row for row in kept.index if row not in found.index]
    sized = [] if name == "models_in_general" else ["n", "clusters"]
    for row, before in kept.iterrows():
        for column in ["estimate", *(sized if before["estimate"] else [])]:
            was, is_ = before[column], found.loc[row, column]
            assert close(is_, was, 1e-9), f"{name}: {column} of {row} is {is_}, was {was}"


def read(file):
    """Return a table as it stands in its file."""
    return pd.read_csv(file, dtype=str, keep_default_na=False)


def write_and_read(table, folder, digits=12):
    """Return a table as it is read from its file."""
    table.to_csv(folder / "table.csv", index=False, float_format=f"%.{digits}g")
    return read(folder / "table.csv")


def hold_table(name, now, frozen, tolerance=1e-9):
    """Hold a table against a frozen one: the same rows, and the values of every column that was there."""
    keys = [column for column in NAMES if column in frozen]
    gone = [column for column in frozen if column not in now]
    assert not gone, f"{name}: the columns {gone} are gone"
    before, after = by_key(frozen, keys), by_key(now, keys)
    for key, row in before.items():
        who = f"{name}: " + ", ".join(f"{k} {v}" for k, v in zip(keys, key, strict=False) if v not in ("", "nan"))
        assert key in after, f"{who} is no longer in the table"
        for column, value in row.items():
            assert close(after[key][column], value, tolerance), f"{who}: {column} is {after[key][column]}, was {value}"


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


def test_a_changed_number_is_named_with_statistic_and_evaluator():
    frozen = read(TABLES["self_recognition"])
    changed = frozen.copy()
    at = changed.index[(changed["statistic"] == "discrimination") & (changed["evaluator"] == "sim/good")][0]
    changed.loc[at, "estimate"] = "0.123456789"
    with pytest.raises(AssertionError, match=r"evaluator sim/good.*statistic discrimination.*estimate is 0.123456789"):
        hold_table("self_recognition", changed, frozen)
    hold_table("self_recognition", frozen.assign(another=1), frozen)


def test_committed_results_are_read_and_those_of_recognition_made_again(tmp_path, monkeypatch):
    monkeypatch.delenv("SELFEVAL_MODELS")
    sets = adapter.committed_sets("results/sample") | adapter.committed_sets("results/demo")
    assert {"recognition", "identity", "jury", "existence", "validation"} <= {*sets}
    assert all(len(table.columns) for tables in sets.values() for table in tables.values())
    hold_set("sample/recognition", tmp_path, ["predictions/sample", "predictions/sample-untold"], "sample")


def hold_set(name, folder, predictions, corpus):
    """Hold a recognition set, made again from its records, against the committed one."""
    for table, file in adapter.recognition_set(folder, predictions, corpus).items():
        frozen = adapter.ROOT / "data" / "results" / name / "paper" / file.name
        frozen = adapter.renamed(read(frozen)).astype(object).fillna("")
        parts = [rows[rows["method"] != "bca"] if "method" in rows else rows for rows in (read(file), frozen)]
        hold_table(f"results/{name}/{table}", *parts, 2e-6)  # written with six digits


def test_the_replies_behind_the_demo_make_its_results_again_without_a_call(tmp_path, monkeypatch):
    """Those with texts by people; `make figures` after an import does the same for all of the demo."""
    monkeypatch.delenv("SELFEVAL_MODELS")
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "store.sqlite"))
    export = tmp_path / "demo-replies.jsonl"
    export.write_bytes(lzma.decompress((GOLDEN / "demo-replies.jsonl.xz").read_bytes()))
    rows = [json.loads(line) for line in export.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 1624 and all(adapter.key_of_request(row["request"]) == row["key"] for row in rows)
    adapter.command("store", "import", export)
    asked = [(stage, notebook, given) for stage, notebook, given in adapter.runs(DEMO) if "human" in str(given)]
    texts, answers = (next(given for stage, _, given in asked if stage == name) for name in ("texts", "asked-human"))
    corpus, out = str(tmp_path / "human"), str(tmp_path / "answers")
    adapter.run_notebook("01_generate_texts", **texts | {"corpus": corpus})
    adapter.run_notebook("02_collect_predictions", **answers | {"corpus": corpus, "out": out})
    hold_set("demo/human", tmp_path / "results", [out], corpus)
    assert len(adapter.rows_of(tmp_path / "store.sqlite")) == len(rows)  # nothing was asked
