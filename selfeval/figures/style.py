"""One style: sizes in inches as printed, colours with markers, files that are equal on a second run."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.text import Text

SINGLE, DOUBLE = 3.4, 7.0  # column widths in inches
PALETTE = sns.color_palette("colorblind")
STYLE = {
    "pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "selfeval",
    "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "xtick.labelsize": 7, "ytick.labelsize": 7,
    "legend.fontsize": 7, "figure.titlesize": 9, "axes.linewidth": 0.6, "lines.linewidth": 1.0,
    "xtick.major.width": 0.6, "ytick.major.width": 0.6, "xtick.major.size": 2.5, "ytick.major.size": 2.5,
    "grid.linewidth": 0.4, "hatch.linewidth": 0.4, "figure.dpi": 130, "savefig.dpi": 200, "text.parse_math": False,
}  # fmt: skip


def use_style() -> None:
    """Set the project's style for everything drawn from here on."""
    sns.set_theme(context="paper", style="ticks", palette="colorblind", rc=STYLE)


def save(fig: Figure, folder: Path | str, name: str) -> list[Path]:
    """Write name.pdf and name.png to a folder, without dates, so that a second run gives the same bytes."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.pdf", folder / f"{name}.png"]
    with mpl.rc_context(STYLE):
        fig.savefig(paths[0], metadata={"CreationDate": None})
        fig.savefig(paths[1], dpi=200, metadata={"Software": None})
    return paths


def save_table(df: pd.DataFrame, folder: Path | str, name: str, precision: int = 3) -> list[Path]:
    """Write name.csv (full precision) and name.tex (booktabs, rounded); the index is left out."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.csv", folder / f"{name}.tex"]
    df.to_csv(paths[0], index=False)
    styler = df.style.format(escape="latex", precision=precision, na_rep="").format_index(escape="latex", axis=1)
    paths[1].write_text(styler.hide(axis="index").to_latex(hrules=True), encoding="utf-8")
    return paths


def show(drawn: Mapping[str, Figure], kind: str) -> None:
    """Display the figures of one kind in a notebook, each under its name."""
    from IPython.display import Image, display

    chosen = {name: figure for name, figure in drawn.items() if name == kind or name.startswith(f"{kind}_")}
    if not chosen:
        print(f"No figure of this kind ({kind}): the records do not allow one.")
    for name, figure in chosen.items():
        print(name)
        picture = io.BytesIO()
        with mpl.rc_context(STYLE):
            figure.savefig(picture, format="png", dpi=130, metadata={"Software": None})
        display(Image(picture.getvalue()))


def names_shown(ids, display: Mapping[str, str] | None, longest: int = 30) -> list[str]:
    """Return the labels of ids, the middle of a very long one left out."""
    names = [str((display or {}).get(i, i)) for i in ids]
    head = longest * 2 // 3
    return [n if len(n) <= longest else f"{n[:head]}…{n[head + 1 - longest :]}" for n in names]


def plain(fig: Figure) -> Figure:
    """Make every text literal: labels come from data, and "$$" is not mathematics."""
    for text in fig.findobj(Text):
        text.set_parse_math(False)
    return fig


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1, **options):
    """Return a figure in this style, sizes in inches, and its axes as a grid."""
    with mpl.rc_context(STYLE):
        fig = Figure(figsize=(width, height), layout="constrained")
        return fig, fig.subplots(rows, columns, squeeze=False, **options)
