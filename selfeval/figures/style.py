"""One style: sizes in inches as printed, colours with markers, files that are equal on a second run."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
import seaborn as sns
from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.text import Text

from selfeval.files import write_whole
from selfeval.keys import visible

SINGLE, DOUBLE = 3.3, 6.9  # column widths in inches
PAGE = 9.0  # no figure is higher
SMALLEST = 4.5  # points: no label is smaller
PALETTE = sns.color_palette("colorblind")
ASIAN = (
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Source Han Sans",
    "WenQuanYi Zen Hei",
    "IPAGothic",
    "Arial Unicode MS",
)
FONTS = ["DejaVu Sans", *(name for name in ASIAN if name in set(font_manager.get_font_names()))]
STYLE = {
    "pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "selfeval", "font.family": FONTS,
    "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "xtick.labelsize": 7, "ytick.labelsize": 7,
    "legend.fontsize": 7, "figure.titlesize": 9, "axes.linewidth": 0.6, "lines.linewidth": 1.0,
    "xtick.major.width": 0.6, "ytick.major.width": 0.6, "xtick.major.size": 2.5, "ytick.major.size": 2.5,
    "grid.linewidth": 0.4, "hatch.linewidth": 0.4, "figure.dpi": 130, "savefig.dpi": 200, "text.parse_math": False,
}  # fmt: skip
DATELESS = {"pdf": {"CreationDate": None}, "png": {"Software": None}, "svg": {"Date": None}}


def use_style() -> None:
    """Set the project's style for everything drawn from here on."""
    sns.set_theme(context="paper", style="ticks", palette="colorblind", rc=STYLE)


def save(fig: Figure, folder: Path | str, name: str) -> list[Path]:
    """Write name.pdf, name.png and name.svg to a folder, without dates, so that a second run gives the same bytes."""
    paths = []
    with mpl.rc_context(STYLE):
        fig.draw_without_rendering()
        fig.set_layout_engine(None)  # what was laid out once stays, whatever the resolution
        for kind, metadata in DATELESS.items():
            content = io.BytesIO()
            fig.savefig(content, format=kind, dpi=200, metadata=metadata)
            paths.append(Path(folder) / f"{name}.{kind}")
            write_whole(paths[-1], content.getvalue())
    return paths


def _on_one_line(cell):
    return " ".join(visible(cell).split()) if isinstance(cell, str) else cell


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
    """Return the labels of ids, the middle of a very long one left out; labels that would be alike get a number."""
    names = [" ".join(visible((display or {}).get(i, i)).split()) for i in ids]
    longest = max(longest, 5)
    head = longest * 2 // 3
    short = [n if len(n) <= longest else f"{n[:head]}…{n[head + 1 - longest :]}" for n in names]
    if len(set(short)) == len(short) or len(set(names)) < len(names):
        return short
    return [n if short.count(n) == 1 else f"{n[: longest - 3]} {short[:k].count(n) + 1}" for k, n in enumerate(short)]


def pitch(rows: int, room: float = PAGE - 1.3, most: float = 0.17) -> float:
    """Return the height of one labelled row in inches: `most`, or less where so many rows would not fit on a page."""
    return min(most, room / max(rows, 1))


def size_of(row: float, most: float = 7) -> float:
    """Return the font size in points of labels in rows of so many inches."""
    return min(most, max(SMALLEST, row * 72 * 0.75))


def small_panels(count: int, width: float) -> tuple[int, int, float]:
    """Return rows, columns and the side in inches of so many square panels that fit on a page."""
    most = 8 if width >= DOUBLE else 5
    columns = min(count, 4 if width >= DOUBLE and count != 5 and count != 6 and count != 9 else 2 if count == 4 else 3)
    while columns < most and -(-count // columns) * ((width - 0.5) / columns + 0.25) > min(PAGE - 0.9, 1.25 * width):
        columns += 1
    side = min((width - 0.5) / columns - 0.05, 2.0)
    return -(-count // columns), columns, side


def title_panels(axes, ids, display: Mapping[str, str] | None, side: float) -> None:
    """Write names above panels of so many inches: smaller, and in two lines, where a panel is small."""
    size = 7 if side > 0.9 else 5.5
    line = int(side * 125 / size)
    names = names_shown(ids, display, line if side > 0.9 else 2 * line - 2)
    for ax, name in zip(axes.flat, names, strict=False):
        ax.set_title("\n".join(textwrap.wrap(name, line)) or name, fontsize=size, pad=3, linespacing=1)


def hide_rest(axes, used: int) -> None:
    """Hide the panels of a grid after the used ones; what stands above a hidden one gets its tick labels."""
    rows, columns = axes.shape
    for ax in axes.flat[used:]:
        ax.set_axis_off()
    for ax in axes.flat[max(used - columns, 0) : (rows - 1) * columns]:
        ax.tick_params(labelbottom=True)


def plain(fig: Figure) -> Figure:
    """Make every text literal and drawable: labels come from data, "$$" is no mathematics, a surrogate no glyph."""
    for text in fig.findobj(Text):
        text.set_parse_math(False)
        text.set_text(visible(text.get_text()))
    return fig


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1, **options):
    """Return a figure in this style, sizes in inches, and its axes as a grid."""
    with mpl.rc_context(STYLE):
        fig = Figure(figsize=(width, min(height, PAGE)), layout="constrained")
        return fig, fig.subplots(rows, columns, squeeze=False, **options)
