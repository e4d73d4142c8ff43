"""Sets of results and what is drawn from them: the same bytes twice, dates that stay, an index, nothing stale."""

import json
import shutil

import pandas as pd
import pytest

from selfeval import DATA
from selfeval.errors import InputError
from selfeval.figures import paper, printed, results
from selfeval.figures.results import find, save
from selfeval.figures.rows import COLUMNS, renamed

RECORDS = pd.DataFrame({"evaluator": ["a/b"], "served_model": ["b-2026"]})
DISPLAY = {"a/b": "A <b> | $x$"}


def keep(folder, table):
    return save(folder, "existence", RECORDS, {"existence": table}, {}, {"temperature": 0.0}, DISPLAY)


@pytest.fixture
def existence():
    rows = [{"evaluator": "a/b", "author": "", "task": "existence", "condition": "answer=yes_no;reasoning=false",
             "statistic": name, "estimate": 1 / 3, "low": 0.1, "high": 0.9, "level": 0.95, "method": "mover", "p": p,
             "p_holm": p, "n": 4, "clusters": 3, "cluster_unit": "name", "note": "few_targets", "policy": ""}
            for name, p in (("score_real", None), ("score_invented", None), ("discrimination", 0.0001))]  # fmt: skip
    return pd.DataFrame(rows)


@pytest.fixture
def kept(existence, tmp_path):
    keep(tmp_path / "in" / "names", existence)
    return tmp_path / "in"


def test_a_set_read_again_is_what_was_kept(kept, existence):
    [one] = find(str(kept))
    assert (one.name, one.kind, one.display) == ("names", "existence", {"a/b": "A <b> | $x$"})
    read = one.tables["existence"][existence.columns]
    pd.testing.assert_frame_equal(read, existence, check_dtype=False, rtol=1e-5)
    assert "0.333333," in (kept / "names" / "paper" / "existence.csv").read_text()


def test_the_date_is_that_of_the_first_time_with_these_results(kept, existence):
    about = kept / "names" / "paper" / "about.json"
    first = json.loads(about.read_text())
    about.write_text(json.dumps(first | {"date": "2020-02-02"}))
    keep(kept / "names", existence)
    assert json.loads(about.read_text())["date"] == "2020-02-02"
    other = existence.assign(estimate=0.5)
    keep(kept / "names", other)
    assert json.loads(about.read_text())["date"] == first["date"]


def test_a_second_run_writes_the_same_bytes_says_what_made_them_and_removes_what_is_gone(kept, tmp_path):
    written = []
    for run in ("one", "two"):
        out = tmp_path / run
        index = paper.make(find(str(kept)), out, "make it")
        assert {path.relative_to(out).as_posix() for path in out.rglob("*.*")} == {
            "README.md", "index.json", *(file for entry in index for file in entry["files"])
        }  # fmt: skip
        written.append({path.name: path.read_bytes() for path in sorted(out.rglob("*.*"))})
    assert written[0] == written[1] and len([name for name in written[0] if name.endswith(".svg")]) == 2
    first = index[0]
    assert first["type"] == "figure" and first["name"] == "names_discrimination" and first["paper"]
    assert "n: 1 model, 3 names. 95 % intervals: differences by MOVER (Zou and Donner 2008)." in first["caption"]
    assert "single/names_discrimination.pdf" in first["files"] and first["notebook"] == "07_existence"
    table = next(entry for entry in index if entry["type"] == "table")
    assert table["notes"][0] == "A <b> | $x$ is a/b (answered by b-2026)."
    assert "0.33 [0.10, 0.90]" in table["rows"][0] and "< 0.001" in table["rows"][0]
    readme = (out / "README.md").read_text()
    assert "(`make it`)" in readme and "A \\<b\\> \\| $x$" in readme and "(names_scores.png)" in readme
    assert readme.index("## Contents") < readme.index("## The paper's figures") < readme.index("\n## names")
    numbers = pd.read_csv(out / "tables" / "names_existence.csv")
    assert numbers.loc[0, ["discrimination_low", "p", "n", "clusters"]].tolist() == [0.1, 0.0001, 4, 3]
    (out / "mine.txt").write_text("not of the index")
    paper.make([], out, "make it")
    assert {path.name for path in out.rglob("*.*")} == {"mine.txt", "index.json", "README.md"}


def test_what_cannot_be_read_is_said_in_one_sentence(kept, tmp_path):
    with pytest.raises(InputError, match="no results for figures below"):
        find(str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="There is no set of results 'x'; found names"):
        find(str(kept), only="x")
    shutil.copytree(kept / "names", tmp_path / "more" / "names")
    with pytest.raises(InputError, match="Two sets of results are called 'names'"):
        find([str(kept), str(tmp_path / "more")])
    (kept / "names" / "paper" / "existence.csv").unlink()
    with pytest.raises(InputError, match=r"existence.csv cannot be read .* run 07_existence again"):
        find(str(kept))
    (kept / "names" / "paper" / "about.json").write_text("{}")
    with pytest.raises(InputError, match="`kind` must be one of recognition"):
        find(str(kept))
    with pytest.raises(InputError, match="A result of kind 'jury' needs the table `jury`, got existence"):
        save(tmp_path, "jury", RECORDS, {"existence": pd.DataFrame()}, {}, {})


def test_the_committed_results_are_small_and_complete():
    for folder in ("sample", "demo"):
        sets = find(f"results/{folder}")
        assert {one.kind for one in sets} == set(results.KINDS)
        assert all(printed.set_tables(one) for one in sets)
    files = [path for path in DATA.glob("results/*/*/paper/*") if path.relative_to(DATA).parts[1] in ("sample", "demo")]
    assert sum(path.stat().st_size for path in files) < 2_000_000


OLD = [  # a row as up to 0.1, and what it is now
    ({"evaluator": "a", "n_prompts": 4, "note": ""}, {"clusters": 4, "cluster_unit": "prompt", "author": ""}),
    ({"evaluator": "a", "n_prompts": 4, "note": "clusters_are_texts"}, {"cluster_unit": "text"}),
    ({"evaluator": "a", "n_targets": 3}, {"clusters": 3, "cluster_unit": "name", "policy": ""}),
    (
        {"model": "a", "family": "f", "source": "readout", "turn": 2, "statistic": "survival", "n_templates": 4},
        {"evaluator": "a", "task": "f", "policy": "readout", "statistic": "survival@2", "cluster_unit": "template"},
    ),
    ({"model": "a", "turn": 2, "statistic": "restricted_mean", "n_templates": 4}, {"statistic": "restricted_mean"}),
    (
        {"arm": "debate", "source": "human", "round": 2.0, "juror": None, "n_conversations": 3},
        {"task": "debate", "author": "human", "condition": "round=2", "evaluator": "", "cluster_unit": "conversation"},
    ),
]


@pytest.mark.parametrize(("old", "new"), OLD)
def test_tables_of_0_1_are_read_in_the_columns_of_today(old, new):
    table = renamed(pd.DataFrame([{"statistic": "x"} | old]))
    assert [*table][: len(COLUMNS)] == [*COLUMNS] and renamed(table) is table
    assert {name: table[name].iloc[0] for name in new} == new


def test_a_set_keeps_default_rows_and_the_bca_rows_that_are_shown(tmp_path):
    groups = {"evaluator": "a", "author": "", "task": "exact_model", "condition": "", "policy": "all", "level": 0.95}
    rows = [groups | {"statistic": name, "method": how, "estimate": 0.5, "low": 0.1, "high": 0.9, "clusters": 50,
                      "cluster_unit": "prompt", "n": 50, "note": ""}
            for name in ("discrimination", "self_accuracy") for how in ("mover", "percentile", "bca")]  # fmt: skip
    table = pd.DataFrame(rows)
    empty = dict.fromkeys(("counts", "roc", "contrasts"), pd.DataFrame(columns=["task", "condition"]))
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "survival.csv").touch()  # of 0.1, which would be read too
    save(tmp_path, "recognition", RECORDS, {"recognition": table} | empty, {}, {}, {})
    assert not (tmp_path / "paper" / "survival.csv").exists()
    kept = pd.read_csv(tmp_path / "paper" / "recognition.csv")[["statistic", "method"]].to_numpy().tolist()
    assert kept == [["discrimination", "mover"], ["self_accuracy", "mover"], ["discrimination", "bca"]]
    assert len(pd.read_csv(tmp_path / "self_recognition.csv")) == 6
