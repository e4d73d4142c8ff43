"""One style: sizes in inches as printed, files that are equal on a second run."""

import io
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import PIL.Image
import PIL.ImageShow
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from selfeval.errors import InputError
from selfeval.paths import write_whole
from selfeval.secrets import visible

# inches: two columns of print, and no figure is higher than a page
WIDTH = 6.9
PAGE = 9.0
SMALLEST = 4.5  # points: no label is smaller
# colours, on white at least 3 : 1; ink and grey are for what is neither a reading nor a source
INK = "0.2"
GREY = "0.5"
BLUE = "#0173b2"
ORANGE = "#b87400"
GREEN = "#00805c"
RED = "#c44e00"
PURPLE = "#a64d97"
BROWN = "#8c5a2b"
SIDES = {  # what is compared within a row: (colour, marker, label)
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
    "advantage": (GREY, "x", "advantage A, percentile bootstrap interval"),
    "usual": (BLUE, "D", "usual score"),
    "peers": (GREY, "v", "own minus peers or neutral judges"),
    "scenario": (INK, "|", "one simulated scenario"),
    "true name": (GREEN, "o", "its own name"),
    "sibling": (ORANGE, "D", "a sibling's name"),
    "another maker": (GREY, "s", "another maker's name"),
}
FACES = {  # of marks in a legend, by their labels without the last word
    "interval excludes": "0.25",
    "interval includes": "white",
    "no": "0.8",
}
SANS = "DejaVu Sans"  # comes with matplotlib: no figure depends on the fonts of a machine
ASIAN = (
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Source Han Sans",
    "WenQuanYi Zen Hei",
    "IPAGothic",
    "Arial Unicode MS",
)
INSTALLED = font_manager.get_font_names()
FONTS = [SANS, *(name for name in ASIAN if name in INSTALLED)]
BEYOND_SANS = re.compile("[\u2e80-\U0003ffff]")  # scripts that need more
STYLE_FILE = Path(__file__).with_name("selfeval.mplstyle")
THEME_FILE = Path(__file__).with_name("theme.mplstyle")
STYLE = mpl.rc_params_from_file(STYLE_FILE, use_default_template=False) | {"font.family": SANS}
BLIND = sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & {*os.environ}  # no screen
DATELESS = {"pdf": {"CreationDate": None}, "png": {"Software": None}, "svg": {"Date": None}}


class Drawing(Figure):
    """A figure that shows itself as the last expression of a cell, and writes itself for print."""

    def show(self, warn: bool = True) -> None:
        """Display the figure in 256 colours, a third of the size; elsewhere open a viewer."""
        from IPython import display, get_ipython

        picture = io.BytesIO()
        with mpl.rc_context(STYLE):
            self.savefig(picture, format="png", dpi=130, metadata=DATELESS["png"])
        shown = PIL.Image.open(picture).convert("RGB").quantize(256)
        if get_ipython():
            small = io.BytesIO()
            shown.save(small, "png", optimize=True)
            display.display(display.Image(small.getvalue()))
        elif BLIND or not PIL.ImageShow.show(shown):
            print('Nothing here shows pictures; `.save("figure.png")` writes it to a file.')

    _ipython_display_ = show

    def save(self, path: str | Path, title: str = "") -> list[Path]:
        """Write PDF, PNG and SVG, with or without such an ending. title: in their metadata."""
        path = Path(path)
        if path.suffix[1:] in DATELESS:
            path = path.with_suffix("")
        elif re.fullmatch(r"\.[a-z]{3,4}", path.suffix):
            kinds = f"{', '.join(DATELESS)}, got {path.name!r}"
            raise InputError(f"A figure is written as {kinds}; leave out the ending.")
        return save(self, path.parent, path.name, title)


def use_style() -> None:
    """Set the project's style for everything drawn from here on; tables then show whole texts."""
    pd.set_option("display.max_colwidth", None)
    mpl.rc_file(THEME_FILE, use_default_template=False)
    mpl.rcParams.update(STYLE | {"font.family": FONTS})


def save(fig: Figure, folder: Path | str, name: str, title: str = "") -> list[Path]:
    """Write name.pdf, name.png and name.svg to a folder, without dates: always the same bytes."""
    paths = []
    with mpl.rc_context(STYLE):
        fig.draw_without_rendering()
        fig.set_layout_engine(None)  # what was laid out once stays, whatever the resolution
        for kind, dateless in DATELESS.items():
            content = io.BytesIO()
            metadata = dateless | {"Title": title or name}
            fig.savefig(content, format=kind, dpi=200, metadata=metadata)
            paths.append(Path(folder) / f"{name}.{kind}")
            write_whole(paths[-1], content.getvalue())
    return paths


PLACE: ContextVar[Axes | None] = ContextVar("place", default=None)  # in a figure of the user's


def new_figure(high: float, wide: float):
    """Return a new figure of so many inches, or a part of the user's where `PLACE` says so."""
    ax = PLACE.get()
    if ax is None:
        return Drawing(figsize=(wide, high), layout="constrained")
    place = ax.get_subplotspec() if isinstance(ax, Axes) else None
    if place is None:
        raise InputError(f"`ax` must be axes of `plt.subplots()`, got {ax!r:.80}.")
    whole = ax.figure.figure
    whole.set_layout_engine(whole.get_layout_engine() or "constrained")
    ax.set_axis_off()
    return ax.figure.add_subfigure(place)


def labels(ids: Iterable[str], display: Mapping[str, str] | None, longest: int) -> list[str]:
    """Return labels of so many letters at most; of a longer one the middle is left out."""
    called = {"human": "people"} | dict(display or {})
    head = longest * 2 // 3
    found = []
    for name in ids:
        text = " ".join(visible(called.get(name, name)).split())
        if len(text) > longest:
            text = f"{text[:head]}…{text[head + 1 - longest :]}"
        found.append(text)
    return found


def size_of(row: float, most: float = 7) -> float:
    """Return the font size in points of labels in rows of so many inches."""
    return min(most, max(SMALLEST, row * 72 * 0.75))


def grid(titles: Sequence[str], columns: int, panel: float, wide: float = WIDTH):
    """Return a figure of a page at most, and its panels, each so many inches high."""
    lines = -(-len(titles) // columns)
    room = (wide - 1.2) / columns
    size = 7 if room > 0.9 else 5.5
    with mpl.rc_context(STYLE):
        fig = new_figure(min(lines * panel + 0.6, PAGE), wide)
        axes = fig.subplots(lines, columns, squeeze=False, sharex=True, sharey=True)
        for ax, title in zip(axes.flat, titles, strict=False):
            ax.set_title(wrapped(title, room, size), fontsize=size, pad=3, linespacing=1)
        for ax in axes.flat[len(titles) :]:
            ax.set_axis_off()
        for ax in axes.flat[max(len(titles) - columns, 0) : (lines - 1) * columns]:
            ax.tick_params(labelbottom=True)  # the panel below it is not there
    return fig, axes


def wrapped(text: str, inches: float, size: float = 7) -> str:
    """Return a text in lines that fit into so many inches."""
    letters = max(8, int(inches * 135 / size))
    return "\n".join(textwrap.fill(line, letters) for line in text.split("\n"))


def finish(fig: Drawing, x: str = "", y: str = "", *, legend: bool = True) -> Drawing:
    """Label a figure's axes, explain what is drawn, and make every text literal ("$$")."""
    wide = fig.bbox.width / fig.dpi
    high = fig.bbox.height / fig.dpi
    with mpl.rc_context(STYLE):
        fig.supxlabel(wrapped(x, wide, 8), fontsize=7.5)
        fig.supylabel(wrapped(y, high, 8), fontsize=7.5)
        if legend:
            _explain(fig, wide)
        for text in fig.findobj(Text):
            text.set_parse_math(False)
            text.set_text(visible(text.get_text()))
            text.set_fontfamily(FONTS if BEYOND_SANS.search(text.get_text()) else SANS)
    return fig


def _explain(fig: Drawing, wide: float) -> None:
    """Add a legend of what is drawn and nothing else: sides first, then faces of marks."""
    sides = {}
    faces = {}
    for ax in fig.axes:
        for mark, label in zip(*ax.get_legend_handles_labels(), strict=True):
            face = FACES.get(label.rpartition(" ")[0])
            if face:  # the same mark, whatever has this face
                faces[label] = Line2D([], [], linewidth=0, marker="o", ms=4, mec="0.25", mfc=face)
            else:
                sides[label] = mark
    shown = sides | faces
    if shown:
        longest = max(map(len, shown))
        columns = max(1, min(len(shown), int(wide * 19 / (8 + longest))))
        place = "outside upper center"
        marks = list(shown.values())
        names = [str(name) for name in shown]
        fig.legend(marks, names, loc=place, ncols=columns, frameon=False)  # type: ignore
