"""A ready study of notebooks: its folder, its price, its runs, its answer."""

import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from selfeval.cli.options import confirm_calls
from selfeval.paths import DATA, ROOT
from selfeval.providers.models import get
from selfeval.secrets import visible


def named_study(
    command: str, file: Path | str, ids: list[str], out: Path | None, asked: Sequence[str] = ()
) -> tuple[str, Path]:
    """Return the title of a study and its folder, by default one of its own.

    Its name holds command, file and models, and a hash of these and of what is asked.
    """
    from selfeval.sweep.file import slug

    digest = hashlib.sha256(json.dumps([str(file), *ids, *asked]).encode()).hexdigest()
    texts = Path(file).name
    models = [model.rpartition("/")[2] for model in ids]
    title = f"{command} {texts}".strip() + f": {', '.join(models)}"
    if out is None:
        parts = {"command": command, "texts": texts, "models": " ".join(models)}
        out = DATA / "runs" / slug(parts, digest[:6])
    return title, out.absolute()


def run_study(
    name: str, variables: dict, ids: list[str], out: Path, title: str, *, yes, dry_run, max_cost
) -> None:
    """Run a ready study after a question, then print its table, and where figure and report are.

    Nothing is asked where nothing is to buy: simulated models, which are not counted first either,
    and replies that are stored.
    """
    from selfeval.providers.embedded import require
    from selfeval.providers.request import is_computed
    from selfeval.sweep import load, run_file
    from selfeval.sweep.report import build

    if not dry_run:
        for model in ids:
            require(get(model))
    file = ROOT / "notebooks" / "sweeps" / f"{name}.yaml"
    study = {"out": out, "variables": variables, "max_cost": max_cost}
    if dry_run or not all(is_computed(get(model)) for model in ids):
        confirm = None if yes or dry_run else confirm_calls
        status = run_file(file, dry_run=True, confirm=confirm, **study)
        if status or dry_run:
            sys.exit(status)
    status = run_file(file, **study)
    if status in (0, 3):
        folders = [run.folder for run in load(file, out, variables).runs]
        if name == "profile":
            _print_profile(folders[-1], title)
        else:
            _print_results(folders)
            click.echo(f"report: {build([out], out / 'report', title)}")
    sys.exit(status)


def _print_profile(folder: Path, title: str) -> None:
    """Print the rows of a profile, make its notebook a page, and print where that is."""
    from selfeval.cli.pages import write_page
    from selfeval.estimates.saved import read_table
    from selfeval.profiles.display import as_text

    page = folder / "profile.html"
    write_page(folder / "notebook.ipynb", page, title)
    click.echo(f"\n{as_text(read_table(folder / 'profile.csv'))}\n")
    if page.is_relative_to(Path.cwd()):
        page = page.relative_to(Path.cwd())
    click.echo(f"page: {page}")


def _print_results(folders: list[Path]) -> None:
    """Print what the analysis in the last of a study's folders says, and where its figure is."""
    from selfeval.estimates import saved, summaries

    analysis = folders[-1]
    [result] = saved.read_results(analysis)
    table = summaries.main_table(result)
    table = table.drop(columns="false_claim_rate", errors="ignore")  # self_accuracy less it is J
    shown = table.to_string(index=False, float_format="{:.2f}".format)
    click.echo(f"\n{visible(shown)}\n")
    answer = summaries.answer(result)
    if answer:
        click.echo(f"{visible(answer)}\n")
    why = summaries.why_without_value(result)
    if why:
        kept = [folder for folder in folders if any(folder.glob("*.jsonl"))]
        answers = kept[-1] if kept else analysis  # the last ones hold the answers
        click.echo(f"{why} The answers are kept in {answers}")
    for sentence in summaries.silence(result):
        click.echo(visible(sentence))
    for figure in sorted(analysis.glob("*.png"))[:1]:
        click.echo(f"figure: {figure}")
