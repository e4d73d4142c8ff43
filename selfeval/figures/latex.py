"""Tables for print: CSV with full precision, and LaTeX with rules and notes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from selfeval.keys import visible
from selfeval.records import write_csv, write_whole

SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "\n": " ",
    "−": r"\textminus{}", "Δ": r"$\Delta$", "′": r"$'$", "→": r"$\to$", "≤": r"$\leq$",
    "κ": r"$\kappa$", "‡": r"\ddag{}",
}  # fmt: skip
LONG = 9  # letters of a head that takes one line
_NUMBER = re.compile(r"(\\textless\{\} )?(\\textminus\{\})?\d[\d.,]*")
_INTERVAL = re.compile(rf"({_NUMBER.pattern}) (\[{_NUMBER.pattern}, {_NUMBER.pattern}\])")
_MINUS = re.compile(r"(?<![\w.-])-(?=\d)")
_SPECIAL = re.compile("|".join(map(re.escape, SPECIAL)))


def escaped(text: str) -> str:
    """Return text as LaTeX prints it literally, the hyphen of a negative number as a minus."""
    text = _MINUS.sub("−", " ".join(visible(text).split()))
    return _SPECIAL.sub(lambda match: SPECIAL[match[0]], text)


def latex(df: pd.DataFrame, precision: int = 3, notes: Sequence[str] = (), groups: Sequence[str] = ()) -> str:
    """Return a table for booktabs with its notes (threeparttable), made to fit a page.

    An interval stands below its estimate, a long head takes two lines. groups: columns whose values stand as one line
    above the rows that share them.
    """
    body = df.drop(columns=list(groups))
    cells = [[_cell(value, precision) for value in row] for row in body.itertuples(index=False)]
    columns = "".join(_alignment([row[i] for row in cells]) for i in range(body.shape[1]))
    labels = [", ".join(_cell(value, precision) for value in row) for row in df[list(groups)].itertuples(index=False)]
    lines, above = [], ""
    for label, row in zip(labels, cells, strict=True):
        if lines and (label != above or _INTERVAL.search(" ".join(row))):
            lines.append("\\addlinespace[2pt]")
        if label != above:
            lines.append(f"\\multicolumn{{{body.shape[1]}}}{{@{{}}l}}{{\\emph{{{label}}}}} \\\\")
        lines += _lines(row)
        above = label
    heads = (_head(str(name), align) for name, align in zip(body, columns, strict=True))
    lines = [
        f"\\footnotesize\\setlength{{\\tabcolsep}}{{2pt}}\\begin{{tabular}}{{@{{}}{columns}@{{}}}}",
        "\\toprule",
        " & ".join(heads) + " \\\\",
        "\\midrule",
        *lines,
        "\\bottomrule",
        "\\end{tabular}",
    ]
    if notes:
        below = ["\\begin{tablenotes}\\scriptsize", *(f"\\item {escaped(note)}" for note in notes)]
        head = "% \\usepackage{booktabs,threeparttable}"
        lines = [head, "\\begin{threeparttable}", *lines, *below, "\\end{tablenotes}", "\\end{threeparttable}"]
    return "\n".join(lines) + "\n"


def _alignment(cells: list[str]) -> str:
    """Return the alignment of a column: estimates over their intervals centred, other numbers right, text left."""
    filled = [cell for cell in cells if cell]
    if any(_INTERVAL.fullmatch(cell) for cell in filled):
        return "c"
    return "r" if filled and all(_NUMBER.fullmatch(cell) for cell in filled) else "l"


def _lines(cells: list[str]) -> list[str]:
    """Return a row, with a second line where a number has its interval."""
    parts = [_INTERVAL.fullmatch(cell) for cell in cells]
    lines = [[part[1] if part else cell for part, cell in zip(parts, cells, strict=True)]]
    if any(parts):
        lines.append([rf"{{\scriptsize {part[4]}}}" if part else "" for part in parts])
    return [" & ".join(line) + r" \\" for line in lines]


def _head(name: str, align: str) -> str:
    """Return a column's head; a long one in two lines, broken at the space nearest to its middle."""
    spaces = [i for i, letter in enumerate(name) if letter == " "]
    if len(name) < LONG or not spaces:
        return escaped(name)
    at = min(spaces, key=lambda i: abs(i - len(name) / 2))
    first, second = escaped(name[:at]), escaped(name[at + 1 :])
    return f"\\shortstack[{align}]{{\\strut {first}\\\\\\strut {second}}}"


def _cell(value, precision: int) -> str:
    if value is None or value is pd.NA or value != value:
        return ""
    if isinstance(value, float):
        return f"{value:.{precision}f}".replace("-", r"\textminus{}")
    text = escaped(str(value))
    return f"{{{text[0]}}}{text[1:]}" if text.startswith(("[", "*")) else text  # after \\ it would begin an option


def save_table(
    df: pd.DataFrame,
    folder: Path | str,
    name: str,
    precision: int = 3,
    notes: Sequence[str] = (),
    shown: pd.DataFrame | None = None,
    groups: Sequence[str] = (),
) -> list[Path]:
    """Write name.csv (full precision) and name.tex (rounded, with rules and notes); the index is left out.

    shown: what the LaTeX table has instead of df, where its form for print is another one. groups: columns of it that
    stand above the rows which share their values.
    """
    paths = [Path(folder) / f"{name}.csv", Path(folder) / f"{name}.tex"]
    write_csv(paths[0], df)
    write_whole(paths[1], latex(df if shown is None else shown, precision, notes, groups))
    return paths
