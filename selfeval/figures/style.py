"""One style: sizes in inches as printed, one order of models, files that are equal on a second run."""

import io
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import PIL.Image
import PIL.ImageShow
import seaborn as sns
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from selfeval.errors import InputError
from selfeval.paths import write_whole
from selfeval.secrets import visible

WIDTH, COLUMN, PAGE = 6.9, 3.39, 9.0  # inches: two columns of print, one, and no figure is higher
SMALLEST = 4.5  # points: no label is smaller
INK, GREY = "0.2", "0.5"  # of what is neither a reading nor a source, and of what stands behind it
BLUE, ORANGE, GREEN, RED = "#0173b2", "#b87400", "#00805c", "#c44e00"  # on white at least 3 : 1, as all colours here
PURPLE, BROWN = "#a64d97", "#8c5a2b"
SIDES = {  # what is compared within a row: (colour, marker, label); a colour is a reading or a source
    "human": (PURPLE, "o", "people"),
    "model": (BROWN, "s", "models"),
    "self_accuracy": (RED, "o", "own texts"),
    "false_claim_rate": (GREY, "s", "others' texts"),
    "score_real": (INK, "o", "real names"),
    "score_invented": (GREY, "s", "invented names"),
    "oracle": (GREY, "d", "a reader with all candidates (oracle)"),
    "own likelihood": (GREEN, "D", "its weights: own likelihood"),
    "style": (GREY, "^", "a reader of style, no model"),
    "names the author": (BLUE, "o", "its words: who wrote this?"),
    "names the author, told": (BLUE, "o", "its words: who wrote this? (told who it is)"),
    "names the author, untold": (INK, "v", "its words: who wrote this? (not told)"),
    "yes or no": (ORANGE, "s", "its words: did you write this?"),
    "rating": (PURPLE, "^", "its rating: is this a good answer?"),
    "discrimination": (INK, "o", "discrimination J"),
    "advantage": (GREY, "x", "advantage A, BCa bootstrap interval"),
    "usual": (BLUE, "D", "usual score"),
    "peers": (GREY, "v", "own minus peers or neutral judges"),
    "scenario": (INK, "|", "one simulated scenario"),
    "true name": (GREEN, "o", "its own name"),
    "sibling": (ORANGE, "D", "a sibling's name"),
    "another maker": (GREY, "s", "another maker's name"),
}
FACES = {"interval ex": "0.25", "interval in": "white", "no interval": "0.8"}  # in a legend, whatever the colours
SANS = "DejaVu Sans"  # which comes with matplotlib: what is drawn does not depend on the fonts of a machine
ASIAN = "Noto Sans CJK JP,Noto Sans CJK SC,Source Han Sans,WenQuanYi Zen Hei,IPAGothic,Arial Unicode MS"
FONTS = [SANS, *(name for name in ASIAN.split(",") if name in set(font_manager.get_font_names()))]
BEYOND_SANS = re.compile("[\u2e80-\U0003ffff]")  # scripts that need more
STYLE = dict(mpl.rc_params_from_file(Path(__file__).with_name("selfeval.mplstyle"), use_default_template=False))
STYLE["font.family"] = SANS
BLIND = sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & {*os.environ}  # no screen to show a picture on
DARK = dict.fromkeys(("figure.facecolor", "axes.facecolor"), "#0d1117")  # GitHub's, and what is seen on it
DARK |= dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), "#e6edf3")
DATELESS = {"pdf": {"CreationDate": None}, "png": {"Software": None}, "svg": {"Date": None}}


class Drawing(Figure):
    """A figure that shows itself as the last expression of a cell, and writes itself for print."""

    def show(self) -> None:
        """Display the figure, in 256 colours, which have a third of the size; without a notebook in a viewer."""
        from IPython import display, get_ipython

        picture, small = io.BytesIO(), io.BytesIO()
        with mpl.rc_context(STYLE):
            self.savefig(picture, format="png", dpi=130, metadata={"Software": None})
        shown = PIL.Image.open(picture).convert("RGB").quantize(256)
        if get_ipython():
            shown.save(small, "png", optimize=True)
            display.display(display.Image(small.getvalue()))
        elif BLIND or not PIL.ImageShow.show(shown):
            print('Nothing here shows pictures; `.save("figure.png")` writes it to a file.')

    _ipython_display_ = show

    def save(self, path: str | Path, title: str = "") -> list[Path]:
        """Write PDF, PNG and SVG, whichever of them the path ends in. title: in their metadata, else the name."""
        path = Path(path)
        if re.fullmatch(r"\.[a-z]{3,4}", path.suffix) and path.suffix[1:] not in DATELESS:
            raise InputError(f"A figure is written as {', '.join(DATELESS)}, got {path.name!r}; leave out the ending.")
        path = path.with_suffix("") if path.suffix[1:] in DATELESS else path
        return save(self, path.parent, path.name, title)


def use_style() -> None:
    """Set the project's style for everything drawn from here on; tables then show whole texts."""
    pd.set_option("display.max_colwidth", None)
    sns.set_theme(context="paper", style="ticks", palette="colorblind", rc=STYLE | {"font.family": FONTS})


def save(fig: Figure, folder: Path | str, name: str, title: str = "") -> list[Path]:
    """Write name.pdf, name.png and name.svg to a folder, without dates, so that a second run gives the same bytes."""
    paths = []
    with mpl.rc_context(STYLE):
        fig.draw_without_rendering()
        fig.set_layout_engine(None)  # what was laid out once stays, whatever the resolution
        for kind, metadata in DATELESS.items():
            content = io.BytesIO()
            fig.savefig(content, format=kind, dpi=200, metadata=metadata | {"Title": title or name})
            paths.append(Path(folder) / f"{name}.{kind}")
            write_whole(paths[-1], content.getvalue())
    return paths


PLACE: ContextVar[Axes | None] = ContextVar("place", default=None)  # of what is drawn in a figure of the user's


def _figure(high: float, wide: float = WIDTH):
    """Return a new figure of so many inches, or a part of the user's where `PLACE` says so."""
    ax = PLACE.get()
    if ax is None:
        return Drawing(figsize=(wide, high), layout="constrained")
    if getattr(ax, "get_subplotspec", lambda: None)() is None:
        raise InputError(f"`ax` must be axes of `plt.subplots()`, got {ax!r:.80}.")
    whole = ax.figure.figure
    whole.set_layout_engine(whole.get_layout_engine() or "constrained")
    ax.set_axis_off()
    return ax.figure.add_subfigure(ax.get_subplotspec())


def labels(ids: Iterable[str], display: dict[str, str], longest: int) -> list[str]:
    """Return labels of so many letters at most; of a longer one the middle is left out."""
    names = [" ".join(visible(({"human": "people"} | display).get(i, i)).split()) for i in ids]
    head = longest * 2 // 3
    return [n if len(n) <= longest else f"{n[:head]}…{n[head + 1 - longest :]}" for n in names]


def size_of(row: float, most: float = 7) -> float:
    """Return the font size in points of labels in rows of so many inches."""
    return min(most, max(SMALLEST, row * 72 * 0.75))


def grid(
    titles: Sequence[str],
    columns: int,
    panel: float,
    extra: float,
    page: float = WIDTH,
    **share,
):
    """Return a figure and its panels under their titles, each so many inches high; a page at most."""
    lines, used = -(-len(titles) // columns), len(titles)
    wide = (page - 1.2) / columns
    size = 7 if wide > 0.9 else 5.5
    with mpl.rc_context(STYLE):
        fig = _figure(min(lines * panel + extra, PAGE), page)
        axes = fig.subplots(lines, columns, squeeze=False, **({"sharex": True, "sharey": True} | share))
        for ax, title in zip(axes.flat, titles, strict=False):
            ax.set_title(wrapped(title, wide, size), fontsize=size, pad=3, linespacing=1)
        for ax in axes.flat[used:]:
            ax.set_axis_off()
        for ax in axes.flat[max(used - columns, 0) : (lines - 1) * columns]:
            ax.tick_params(labelbottom=True)  # the panel below it is not there
    return fig, axes


def wrapped(text: str, inches: float, size: float = 7) -> str:
    """Return a text in lines that fit into so many inches."""
    return "\n".join(textwrap.fill(line, max(8, int(inches * 135 / size))) for line in text.split("\n"))


def finish(fig: Drawing, x: str = "", y: str = "", legend: bool = True) -> Drawing:
    """Label a figure's axes, explain what is drawn and nothing else, and make every text literal ("$$")."""
    wide, high = fig.get_size_inches() if isinstance(fig, Figure) else fig.bbox.size / fig.dpi
    with mpl.rc_context(STYLE):
        fig.supxlabel(wrapped(x, wide, 8), fontsize=7.5)
        fig.supylabel(wrapped(y, high, 8), fontsize=7.5)
        shown = {label: mark for ax in fig.axes for mark, label in zip(*ax.get_legend_handles_labels(), strict=True)}
        shown = dict(sorted(shown.items(), key=lambda one: one[0][:11] in FACES))
        if shown and legend:
            columns = max(1, min(len(shown), int(wide * 19 / (8 + max(map(len, shown))))))
            for label in [label for label in shown if label[:11] in FACES]:  # the same mark, whatever has these faces
                shown[label] = Line2D([], [], linewidth=0, marker="o", ms=4, mec="0.25", mfc=FACES[label[:11]])
            fig.legend(shown.values(), shown, loc="outside upper center", ncols=columns, frameon=False)
        for text in fig.findobj(Text):
            text.set_parse_math(False)
            text.set_text(visible(text.get_text()))
            text.set_fontfamily(FONTS if BEYOND_SANS.search(text.get_text()) else SANS)
    return fig
