"""Tables for print: CSV with full precision, and LaTeX with rules and notes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from selfeval.display import visible
from selfeval.records import write_csv, write_whole

SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "\n": " ",
    "−": r"\textminus{}", "Δ": r"$\Delta$", "′": r"$'$", "→": r"$\to$", "≤": r"$\leq$",
    "κ": r"$\kappa$",
}  # fmt: skip
_MINUS = re.compile(r"(?<![\w.-])-(?=\d)")
_SPECIAL = re.compile("|".join(map(re.escape, SPECIAL)))


def escaped(text: str) -> str:
    """Return text as LaTeX prints it literally, the hyphen of a negative number as a minus."""
    text = _MINUS.sub("−", " ".join(visible(text).split()))
    return _SPECIAL.sub(lambda match: SPECIAL[match[0]], text)


def latex(df: pd.DataFrame, precision: int = 3, notes: Sequence[str] = ()) -> str:
    """Return a table for booktabs, text to the left and numbers to the right, with its notes (threeparttable)."""
    number = [pd.api.types.is_numeric_dtype(df[name]) for name in df]
    rows = [[_cell(value, precision) for value in row] for row in df.itertuples(index=False)]
    lines = [
        f"\\begin{{tabular}}{{{''.join('r' if right else 'l' for right in number)}}}",
        "\\toprule",
        " & ".join(escaped(str(name)) for name in df) + " \\\\",
        "\\midrule",
        *(" & ".join(row) + " \\\\" for row in rows),
        "\\bottomrule",
        "\\end{tabular}",
    ]
    if notes:
        below = ["\\begin{tablenotes}\\footnotesize", *(f"\\item {escaped(note)}" for note in notes)]
        head = "% \\usepackage{booktabs,threeparttable}"
        lines = [head, "\\begin{threeparttable}", *lines, *below, "\\end{tablenotes}", "\\end{threeparttable}"]
    return "\n".join(lines) + "\n"


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
) -> list[Path]:
    """Write name.csv (full precision) and name.tex (rounded, with rules and notes); the index is left out.

    shown: what the LaTeX table has instead of df, where its form for print is another one.
    """
    paths = [Path(folder) / f"{name}.csv", Path(folder) / f"{name}.tex"]
    write_csv(paths[0], df)
    write_whole(paths[1], latex(df if shown is None else shown, precision, notes))
    return paths
