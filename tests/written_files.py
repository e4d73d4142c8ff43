"""Every file that the project writes, made by what writes it: notebooks with simulated models, commands, a sweep."""

import ast
import asyncio
import contextlib
import io
from pathlib import Path

import matplotlib
import matplotlib.pyplot
import nbformat
from click.testing import CliRunner
from IPython.display import display

from selfeval import ROOT
from selfeval.cli import main
from selfeval.roleplay.conversation import human_conversations
from selfeval.roleplay.transcripts import write_conversations

AUTHORS = ["sim/good", "sim/no-answer", "sim/first"]
JURORS = ["sim/juror-lenient", "sim/juror-silent", "sim/juror-stern"]


def run_notebook(stem, until=None, **parameters):
    """Run the code cells of a notebook in this process, with other parameters; return what they printed.

    until: a pattern; the last cell that matches is the last that runs.
    """
    cells = nbformat.read(ROOT / "notebooks" / f"{stem}.ipynb", as_version=4).cells
    cells = [cell for cell in cells if cell.cell_type == "code"]
    if until:
        cells = cells[: 1 + max(number for number, cell in enumerate(cells) if until.search(cell.source))]
    space, printed = {"__name__": stem, "display": display}, io.StringIO()
    with asyncio.Runner() as runner, contextlib.redirect_stdout(printed), matplotlib.rc_context():
        for cell in cells:
            code = compile(cell.source, stem, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            waiting = eval(code, space)
            if asyncio.iscoroutine(waiting):
                runner.run(waiting)
            if "parameters" in cell.metadata.get("tags", []):
                set_parameters(space, parameters)
    matplotlib.pyplot.close("all")
    return printed.getvalue()


def set_parameters(space, parameters):
    """Set parameters of a notebook; those that stand together in a dictionary by their own names."""
    for name, value in parameters.items():
        groups = [group for group in space.values() if isinstance(group, dict) and name in group]
        assert name in space or groups, f"no parameter {name}"
        (space if name in space else groups[0])[name] = value


def run_notebooks(out):
    """Run all notebooks that write below a folder, one on what the one before wrote."""
    corpus, mixed = str(out / "corpora" / "people"), str(out / "corpora" / "own")
    run_notebook("01_generate_texts", models=AUTHORS, prompts="chats", limit=6, words=20, corpus=corpus)
    run_notebook("01_generate_texts", models=AUTHORS, limit=6, corpus=mixed)
    told, untold = str(out / "predictions" / "told"), str(out / "predictions" / "untold")
    tasks = ["exact_model", "binary_self", "pairwise_self", "lineup"]
    asked = {"evaluators": AUTHORS, "corpus": mixed, "answer": "free"}
    run_notebook("02_collect_predictions", **asked, tasks=tasks, out=told)
    run_notebook("02_collect_predictions", **asked, told=False, out=untold)
    results = out / "results"
    recognised = str(results / "recognition")
    run_notebook("03_self_recognition", predictions=told, n_resamples=20, out=recognised)
    both = {"predictions": [told, untold], "corpus": mixed, "judge": "sim/chance"}
    run_notebook("11_recognition_details", **both, n_resamples=20, out=str(results / "details"))
    fleet = {"models": ["sim/identity-wavers"], "simulated": ["sim/identity-refuses"]}
    run_notebook("04_identity", **fleet, limit=8, n_resamples=20, out=str(results / "identity"))
    people = out / "people.jsonl"
    write_conversations(people, human_conversations(2, exchanges=2))
    play = {"agent": "sim/talker", "interrogator": "sim/talker", "transcripts": [str(people)]}
    run_notebook("05_role_play", **play, n_conversations=1, out=str(out / "conversations" / "sim"))
    talks = [str(out / "conversations" / "sim" / "conversations.jsonl")]
    jury = {"conversations": talks, "agent": "sim/talker", "jurors": JURORS, "judge": "sim/juror-blind"}
    run_notebook("06_jury", **jury, humans=0, rounds=2, out=str(results / "jury"))
    run_notebook("07_existence", evaluators=["sim/chance"], out=str(results / "existence"))
    run_notebook("08_validation", out=str(results / "validation"))
    run_notebook("09_paper_figures", out=str(out / "figures"))


def run_command(*arguments):
    """Run the `selfeval` command in this process; raise where it fails."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, f"selfeval {arguments}: {result.output} {result.exception}"
    return result.output


def run_commands(out):
    """Run the commands that write a file."""
    parts = ["--role-play-llm-model", "sim/talker", "--interrogator-llm-model", "sim/talker", "--max-turns", 2]
    parts += ["--jury-llm-models", ",".join(JURORS)]
    run_command("roleplay", "--output_file_path", out / "play.json", *parts)
    run_command("compare", "--output_file_path", out / "both.json", *parts)
    run_command("identity", "data/identity/published.json", "--model", "sim/identity-correct", "--output",
                out / "published.json")  # fmt: skip


def without_pictures(monkeypatch):
    """Leave figures undrawn: they take most of the time, and tests of their own look at them."""

    def savefig(figure, file, **options):
        with contextlib.nullcontext(file) if hasattr(file, "write") else Path(file).open("wb") as out:
            out.write(b"not drawn")

    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", savefig)
    monkeypatch.setattr(matplotlib.figure.Figure, "draw_without_rendering", lambda figure: None)
