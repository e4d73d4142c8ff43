"""What the SVG of a figure shows its reader: marks and their intervals, the names beside them, words and colours."""

import itertools
import re
from dataclasses import dataclass, field
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
BASELINE = 2.66  # points from the middle of a name's letters down to their baseline
INK = "#262626"  # of titles and names


@dataclass
class Word:
    text: str
    x: float
    y: float
    colour: str


@dataclass
class Panel:
    """A panel of a figure. Places are in points from the page's corner, values in the units of the axes."""

    top: float
    words: list
    names: list  # (place, name), from above
    places: list  # of the ticks below it
    to_x: object
    to_y: object
    marks: list = field(default_factory=list)  # (x, y, colour)
    lines: list = field(default_factory=list)  # ((x, y), (x, y)): intervals
    shades: list = field(default_factory=list)  # colours of cells, row by row from above

    @property
    def title(self):
        return next((word.text for word in self.words if word.colour == INK and word.y < self.top), "")

    def interval(self, x, y):
        """Return the ends, in the units of the axis, of the line through a mark; None where there is none.

        Beside names, an upright line leads to a word.
        """
        for (x0, y0), (x1, y1) in self.lines:
            if y0 == y1 and abs(y - y0) < 0.01 and x0 - 0.01 <= x <= x1 + 0.01:
                return self.to_x(x0), self.to_x(x1)
            if self.to_y and x0 == x1 and abs(x - x0) < 0.01 and y1 - 0.01 <= y <= y0 + 0.01:
                return self.to_y(y0), self.to_y(y1)
        return None


def panels(file):
    """Return the panels of an SVG, without the bar of a scale."""
    groups = [group for group in ElementTree.parse(file).iter(f"{SVG}g") if called(group, r"axes_\d+")]
    made = [panel(group) for group in groups if is_panel(group)]
    for above in made:  # numbers stand below the lowest panel of a column, names left of the first of a line
        below = [each for each in made if each.places == above.places and each.to_x]
        above.to_x = above.to_x or (below[0].to_x if below else None)
    for left, right in itertools.pairwise(made):
        right.names = right.names or left.names
    return made


def is_panel(group):
    """Tell a panel from the bar of a scale and from a place that is left empty."""
    has_axes = any(called(part, r"matplotlib\.axis_\d+") for part in group)
    return has_axes and group.find(f".//{SVG}image") is None


def panel(group):
    across, up = (part for part in group if called(part, r"matplotlib\.axis_\d+"))
    written = [words(part) for part in group if called(part, r"text_\d+")]
    background = next(part for part in group if called(part, r"patch_\d+")).find(f"{SVG}path")
    top = min(float(y) for _, y in re.findall(r"[ML] (\S+) (\S+)", background.get("d")))
    made = Panel(top, [*filter(None, written)], names(up), places(across, "x"), scale(across, "x"), scale(up, "y"))
    for part in group:
        if called(part, r"PathCollection_\d+"):
            for mark in part.iter(f"{SVG}use"):
                made.marks.append((float(mark.get("x")), float(mark.get("y")), style(mark)["fill"]))
        elif called(part, r"LineCollection_\d+"):
            for line in (line for line in part.iter(f"{SVG}path") if line.get("d")):
                ends = re.findall(r"[ML] (\S+) (\S+)", line.get("d"))
                made.lines.append(sorted((float(x), -float(y)) for x, y in ends))
        elif called(part, r"QuadMesh_\d+"):
            made.shades = [style(cell).get("fill") for cell in part.iter(f"{SVG}path")]
    made.lines = [tuple((x, -y) for x, y in ends) for ends in made.lines if len(ends) == 2]
    return made


def called(group, pattern):
    return re.fullmatch(pattern, group.get("id", ""))


def style(element):
    return dict(part.split(": ", 1) for part in element.get("style", "").split("; ") if part)


def words(group):
    """Return what a group says; several lines are one text at the place of the first."""
    texts = [*group.iter(f"{SVG}text")]
    if not texts:
        return None
    x, y = (float(each) for each in re.findall(r"-?[\d.]+", texts[0].get("transform"))[-2:])
    return Word(" ".join(text.text for text in texts), x, y, style(texts[0])["fill"])


def ticks(axis):
    return [words(tick) for tick in axis if called(tick, r"[xy]tick_\d+") and words(tick)]


def names(axis):
    return sorted((tick.y - BASELINE, tick.text) for tick in ticks(axis))


def places(axis, direction):
    return [float(tick.get(direction)) for tick in axis.iter(f"{SVG}use")]


def scale(axis, direction):
    """Return what turns a place into a value, by the first and last number at an axis; None without numbers."""
    first, *_, last = places(axis, direction) or [0, 0]
    values = [float(tick.text.replace("−", "-")) for tick in ticks(axis)] if last > first or last < first else []
    if not values:
        return None
    unit = (values[-1] - values[0]) / (last - first)
    return lambda place: values[0] + (place - first) * unit


def dots(file):
    """Return {(panel, name, side): [(value, low, high)]} of a figure of marks in named rows.

    A name below a head that ends in a colon is `head: name`. A side is the text of its colour; "" where a figure has
    one colour. low and high are None where no interval is drawn.
    """
    drawn = panels(file)
    sides = {word.colour: word.text for each in drawn for word in each.words if word.colour != INK}
    found = {}
    for each in drawn:
        rows, head = {}, ""
        for place, name in each.names:
            if name.endswith(":"):
                head = f"{name} "
            else:
                rows[head + name] = place
        for x, y, colour in each.marks:
            name = min(rows, key=lambda row: abs(rows[row] - y))
            mark = (each.to_x(x), *(each.interval(x, y) or (None, None)))
            found.setdefault((each.title, name, sides.get(colour, "")), []).append(mark)
    return found
