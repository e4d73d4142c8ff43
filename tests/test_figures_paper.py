"""Sets of results and what is drawn from them: the same bytes twice, dates that stay, an index, nothing stale."""

import json
import shutil

import pandas as pd
import pytest

from selfeval import DATA
from selfeval.errors import InputError
from selfeval.figures import paper, results
from selfeval.figures.results import find, keep

MODELS = [{"id": "a/b", "display": "A <b> | $x$", "served": "b-2026"}]
SETTINGS = {"level": 0.95, "names": 3, "questions": 4, "temperature": 0.0}


@pytest.fixture
def existence():
    rows = [{"evaluator": "a/b", "author": "", "task": "existence", "condition": "answer=yes_no;reasoning=false",
             "statistic": name, "estimate": 1 / 3, "low": 0.1, "high": 0.9, "level": 0.95, "method": "mover", "p": p,
             "p_holm": p, "n": 4, "n_targets": 3, "note": "few_targets"}
            for name, p in (("score_real", None), ("score_invented", None), ("discrimination", 0.0001))]  # fmt: skip
    return pd.DataFrame(rows)


@pytest.fixture
def kept(existence, tmp_path):
    keep(tmp_path / "in" / "names", "existence", {"existence": existence}, MODELS, SETTINGS)
    return tmp_path / "in"


def test_a_set_read_again_is_what_was_kept(kept, existence):
    [one] = find(str(kept))
    assert (one.name, one.kind, one.display) == ("names", "existence", {"a/b": "A <b> | $x$"})
    pd.testing.assert_frame_equal(one.tables["existence"], existence, check_dtype=False, rtol=1e-5)
    assert "0.333333," in (kept / "names" / "paper" / "existence.csv").read_text()


def test_the_date_is_that_of_the_first_time_with_these_results(kept, existence):
    about = kept / "names" / "paper" / "about.json"
    first = json.loads(about.read_text())
    about.write_text(json.dumps(first | {"date": "2020-02-02"}))
    keep(kept / "names", "existence", {"existence": existence}, MODELS, SETTINGS)
    assert json.loads(about.read_text())["date"] == "2020-02-02"
    other = existence.assign(estimate=0.5)
    keep(kept / "names", "existence", {"existence": other}, MODELS, SETTINGS)
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
    assert first["type"] == "figure" and first["name"] == "names_scores" and first["notebook"] == "07_existence"
    assert "95% intervals over names" in first["caption"] and "n: 1 model, 3 names, 4 questions." in first["caption"]
    table = next(entry for entry in index if entry["type"] == "table")
    assert table["notes"][0] == "A <b> | $x$ is a/b (answered by b-2026)."
    assert "0.33 [0.10, 0.90]" in table["rows"][0] and "< 0.001" in table["rows"][0]
    readme = (out / "README.md").read_text()
    assert "**command** `make it`" in readme and "A \\<b\\> \\| $x$" in readme and "(names_scores.png)" in readme
    numbers = pd.read_csv(out / "tables" / "names_existence.csv")
    assert numbers.loc[0, ["discrimination_low", "p", "n", "n_targets"]].tolist() == [0.1, 0.0001, 4, 3]
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
    with pytest.raises(InputError, match="A set of kind 'jury' has the tables jury, verdicts"):
        keep(tmp_path, "jury", {}, [], {})
    (tmp_path / "index.json").write_text("[1]")
    with pytest.raises(InputError, match="is no index of figures"):
        paper.make([], tmp_path, "")


def test_the_committed_results_are_small_and_complete():
    for folder in ("sample", "demo"):
        sets = find(f"results/{folder}")
        assert {one.kind for one in sets} == set(results.KINDS)
        assert all(paper.set_tables(one) for one in sets)
    files = [path for path in DATA.glob("results/*/*/paper/*") if path.relative_to(DATA).parts[1] in ("sample", "demo")]
    assert sum(path.stat().st_size for path in files) < 2_000_000
