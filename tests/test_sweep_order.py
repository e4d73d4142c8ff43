"""What of a sweep is executed, in which order, and how it ends: with a launcher that only says how each run ended."""

import json

import nbformat
import pytest
from sweep_files import check, make_notebook, make_notebooks, write

from selfeval import sweep
from selfeval.errors import InputError
from selfeval.sweep import runs
from selfeval.sweep.show import time_left


@pytest.fixture
def folder(tmp_path):
    return make_notebooks(tmp_path)


@pytest.fixture(autouse=True)
def fixed_versions(monkeypatch):
    monkeypatch.setattr(runs, "versions", lambda: {"code": {"hash": "test"}, "environment": {}})
    monkeypatch.setattr("selfeval.sweep.execute.time.sleep", lambda seconds: None)  # between two looks at the runs


class Scripted:
    """A launcher without processes: a run ends at the second look, as `ends` says by its `name` or its stage.

    An end is an exit code, a dict of counts, or (exception, text) of the last cell.
    """

    def __init__(self, **ends):
        self.ends, self.log, self.looked, self.variables = ends, [], {}, {}

    def __call__(self, keep):
        return self

    def start(self, run):
        self.log.append(f"+{run.stage}")
        self.variables = run.variables

    def poll(self, run):
        self.looked[run.name] = self.looked.get(run.name, 0) + 1
        if self.looked[run.name] < 2:
            return None
        self.log.append(f"-{run.stage}")
        end = self.ends.get(str(run.parameters.get("name")), self.ends.get(run.stage, 0))
        cell = nbformat.v4.new_code_cell("1")
        counts = end if isinstance(end, dict) else {}
        if isinstance(end, tuple):
            cell.outputs = [nbformat.v4.new_output("error", ename=end[0], evalue=end[1])]
            counts = {"failed": 1}
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]), run.folder / "notebook.ipynb")
        (run.folder / "progress.json").write_text(json.dumps(counts))
        return end if isinstance(end, int) else int(isinstance(end, tuple))

    def end(self, runs):
        assert not runs

    def close(self):
        self.log.append("closed")


def execute(path, launcher=None, workers=1, **options):
    """Return the exit status and what became of each run."""
    loaded = sweep.load(path, path.parent / "out")
    return sweep.run(loaded, workers, launcher or Scripted(), **options), [run.status for run in loaded.runs]


def test_only_what_depends_on_a_stage_waits_for_it(folder):
    stages = [{"notebook": "rows", "name": "a"}, {"notebook": "rows", "name": "b", "after": []}]
    stages += [{"notebook": "read", "name": "c", "after": [], "parameters": {"tables": "{a}"}}]
    stages += [{"notebook": "read", "name": "d"}]
    path, launcher = write(folder, *stages), Scripted(a=1)
    loaded = sweep.load(path, folder / "out")
    assert [run.needs for run in loaded.runs] == [(), (), ("a",), ("a", "b", "c")]
    assert sweep.run(loaded, 2, launcher) == 1
    assert launcher.log == ["+a", "+b", "-a", "-b", "closed"], "independent stages side by side"
    assert [run.status for run in loaded.runs] == ["failed", "ok", "not started", "not started"]
    assert loaded.runs[2].cause.startswith("not started because a/") and loaded.runs[2].cause.endswith(" failed")

    again = Scripted()
    assert execute(path, again, 2) == (0, ["ok", "skipped", "ok", "ok"])
    assert again.log == ["+a", "-a", "+c", "-c", "+d", "-d", "closed"]


def test_a_list_is_one_run_for_each_set(folder):
    sets = [{"name": "x", "limit": 1}, {"name": "x"}, {"models": ["a/b"]}]
    loaded = sweep.load(write(folder, {"notebook": "rows", "parameters": {"temperature": 1.0}, "list": sets}))
    given = [{k: v for k, v in run.parameters.items() if k != "out"} for run in loaded.runs]
    assert given == [{"temperature": 1.0} | each for each in sets]
    assert len({run.folder for run in loaded.runs}) == 3


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        ("list: []", "is wrong at list: List should have at least 1 item"),
        ("list: [1]", "is wrong at list.0: Input should be a valid dictionary"),
        ("list: {limit: 1}", "is wrong at list: Input should be a valid list"),
        ("list: [{limit: 1}], grid: {name: [a]}", "of grid, zip and list there is one"),
        ("list: [{limit: 1}, {limit: 1}]", "the same parameters stand there twice"),
        ("list: [{limit: 1}], parameters: {limit: 2}", "'limit' is both fixed and varying"),
        ("list: [{limt: 1}]", "did you mean 'limit'?"),
        ("after: first", "is wrong at after: Input should be a valid list"),
        ("after: [frist]", "`after` names 'frist'; did you mean 'first'?"),
        ("after: [rows]", "`after` names 'rows'; stages before this one: first"),
    ],
)
def test_a_list_or_an_order_that_breaks_a_rule(folder, stage, message):
    first = "{notebook: rows, name: first}"
    assert message in check(folder, f"name: a\nstages: [{first}, {{notebook: rows, {stage}}}]")


def test_calls_that_failed_make_a_run_incomplete_and_later_stages_use_it(folder, capsys):
    stages = [{"notebook": "rows", "grid": {"name": ["good", "some", "cell"]}}]
    stages += [{"notebook": "read", "parameters": {"tables": "{rows}"}}]
    path, text = write(folder, *stages), "2 calls failed; run again to make only these. The first: HTTP 500"
    ends = {"some": {"failed": 3}, "cell": ("AssertionError", text)}
    assert execute(path, Scripted(**ends)) == (3, ["ok", "incomplete", "incomplete", "ok"])
    said = capsys.readouterr().out
    assert "rows  1 ok, 2 incomplete, 0 failed" in said and "run the same command again for what" in said
    assert ": 3 calls failed\n" in said and f": {text}\n" in said

    assert execute(path) == (0, ["skipped", "ok", "ok", "ok"])
    made = [json.loads(file.read_text()) for file in sorted(folder.glob("out/*/*/manifest.json"))]
    assert sorted(each["attempt"] for each in made) == [1, 2, 2, 2]


@pytest.mark.parametrize(
    "failure", [("AssertionError", "assert rows == 3"), ("ValueError", "2 calls failed; run again")]
)
def test_any_other_end_of_a_notebook_is_a_failure(folder, failure):
    assert execute(write(folder, {"notebook": "rows"}), Scripted(rows=failure)) == (1, ["failed"])


def test_only_leaves_the_rest_alone(folder, capsys):
    path = write(folder, {"notebook": "rows", "grid": {"name": ["good", "bad", "late"]}}, {"notebook": "read"})
    bad = Scripted(bad=1)
    assert execute(path, bad, only=["rows/[gb]*"]) == (1, ["ok", "failed", "left out", "left out"])
    assert execute(path, only=["read"]) == (1, ["skipped", "left out", "left out", "not started"])
    said = capsys.readouterr().out
    *_, remedy, report = said.splitlines()
    assert "is left out and to do (failed)" in said and remedy.endswith("for the rest")  # not: the same command again
    assert report.startswith("selfeval report ")
    assert execute(path, only=["rows"]) == (0, ["skipped", "ok", "ok", "left out"])
    assert execute(path, only=["read"]) == (0, ["skipped", "skipped", "skipped", "ok"])
    with pytest.raises(InputError, match=r"--only 'raed' names no run; did you mean 'read'\?"):
        execute(path, only=["raed"])


def test_a_ceiling_stops_cleanly_with_a_status_of_its_own(folder, capsys):
    path = write(folder, {"notebook": "rows", "grid": {"name": ["poor", "good", "third"]}}, {"notebook": "read"})
    launcher = Scripted(poor=("BudgetError", "spent"), good={"calls": 3, "cost": 0.3})
    assert execute(path, launcher, 2, max_cost=1.5) == (4, ["stopped", "ok", "not started", "not started"])
    assert launcher.variables["SELFEVAL_BUDGET"].endswith(":1.5")
    said = capsys.readouterr().out
    assert "3 calls, 0.3000 USD of 1.5" in said and "go on with a higher --max-cost" in said
    assert execute(path) == (0, ["ok", "skipped", "ok", "ok"])


def test_a_ceiling_that_cannot_be_kept_asks_for_a_price_and_leaves_out_what_was_not_asked_for(folder, capsys):
    path = write(folder, {"notebook": "rows", "grid": {"name": ["poor", "good"]}}, {"notebook": "read"})
    launcher = Scripted(poor=("PriceError", "The ceiling of $1 cannot be kept: ..."))
    assert execute(path, launcher, 1, max_cost=1, only=["rows"]) == (4, ["stopped", "not started", "left out"])
    said = capsys.readouterr().out
    assert "give the model a `price`" in said and "higher --max-cost" not in said


def test_what_all_attempts_took_stands_in_the_manifest(folder):
    """A resumed run showed the cost of its last attempt alone."""
    path = write(folder, {"notebook": "rows", "grid": {"name": ["dear"]}})
    for again in ({"calls": 3, "cost": 0.5, "failed": 1}, {"calls": 1, "cost": 0.25}):
        execute(path, Scripted(dear=again))
    [file] = folder.glob("out/rows/*/manifest.json")
    made = json.loads(file.read_text())
    assert (made["before"]["cost"], made["counts"]["cost"], made["attempt"]) == (0.5, 0.25, 2)
    old = {"before": {"calls": 2, "cost": 0.25}, "counts": {"calls": 3, "cost": 0.5, "stored": 9}, "status": "failed"}
    run = sweep.load(path, folder / "out").runs[0]
    assert run.paid(old) == {"calls": 5, "tokens": 0, "cost": 0.75, "unpriced": 0}
    (run.folder / "progress.json").write_text(json.dumps({"calls": 7, "cost": 1, "done": 7, "total": 9}))
    killed = {"before": {"calls": 2}, "status": "running"}
    assert run.paid(killed) == {"calls": 9, "tokens": 0, "cost": 1, "unpriced": 0}


def test_seeds_and_attempts_stand_in_the_manifest(folder):
    parameters = "seed: int = 7  # of the order\nother_seed: int = 0\nlimit: int = 1\nout: str = ''\n"
    make_notebook(folder / "seeded.ipynb", "1", parameters=parameters)
    path = write(folder, {"notebook": "seeded", "parameters": {"other_seed": 3}})
    execute(path, Scripted(seeded=1))
    execute(path)
    [file] = folder.glob("out/seeded/*/manifest.json")
    made = json.loads(file.read_text())
    assert made["seeds"] == {"seed": 7, "other_seed": 3} and made["attempt"] == 2 and made["status"] == "ok"


def test_the_time_left_is_told_by_what_was_bought(folder):
    loaded = sweep.load(write(folder, {"notebook": "rows", "grid": {"limit": [1, 2, 3, 4, 5]}}), folder / "out")

    def left(workers, **counts):
        for run in loaded.runs[:2]:
            run.status, run.manifest = "ok", {"seconds": 100.0, "counts": {"calls": 0} | counts}
        return time_left(loaded.runs, workers)

    assert left(2, calls=100) == "about 2 min left" and left(1, calls=100) == "about 5 min left"
    assert left(1, stored=100) == "", "replies from the store say nothing"
