"""LaTeX tables (booktabs) that fit a page or a column, with estimates aligned on their decimals."""

import re
from collections.abc import Iterable, Sequence
from string import Template

import pandas as pd

from selfeval.secrets import visible

SPECIAL = {sign: f"\\{sign}" for sign in "&%$#_{}"}
SPECIAL |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
SIGNS = {"−": "--", "≤": r"$\leq$", "<": "$<$", '"': "''"}
TABLE = Template(r"""\begin{$kind}
\centering
\caption{$caption}
\label{tab:$label}
\$size
\setlength{\tabcolsep}{4pt}
\begin{tabular}{$alignments}
\toprule
$heads
\midrule
$body
\bottomrule
\end{tabular}
\par\vspace{2pt}
{\footnotesize $note\par}
\end{$kind}
""")


def escaped(text: str) -> str:
    """Return a text on one line that LaTeX prints as it is; quotes open and close.

    A [ or * where a row begins would be an option of the row before, so it stands in braces.
    """
    text = " ".join(visible(text).split())
    text = "".join(SPECIAL.get(sign, sign) for sign in text)
    text = re.sub(r'(^|[\s(])"', r"\1``", text)
    for sign, command in SIGNS.items():
        text = text.replace(sign, command)
    return re.sub(r"^[\[*]", r"{\g<0>}", text)


def halves(cell: str) -> tuple[str, str]:
    """Return an estimate and its interval as two cells, with a minus that is as wide as a plus."""
    estimate, _, interval = cell.partition(" ")
    return estimate.replace("-", "$-$"), interval.replace("-", "$-$")


def cells_of(rows: pd.DataFrame) -> tuple[list[str], list[str], list[str]]:
    """Return the alignments of a table's columns, their heads, and its lines.

    A column of estimates becomes two: the estimate, right, and its interval, left, close to it.
    """
    alignments = []
    heads = []
    columns: list[Sequence[str]] = []
    for name in rows:
        texts = [str(cell) for cell in rows[name]]
        if any(text.endswith("]") for text in texts):
            alignments += ["r", "@{ }l"]
            heads.append(rf"\multicolumn{{2}}{{c}}{{{escaped(name)}}}")
            estimates, intervals = zip(*map(halves, texts), strict=True)
            columns += [estimates, intervals]
        else:
            alignments.append("l")
            heads.append(escaped(name))
            columns.append([escaped(text) for text in texts])
    return alignments, heads, [line_of(cells) for cells in zip(*columns, strict=True)]


def line_of(cells: Iterable[str]) -> str:
    """Return a line of a table."""
    return " & ".join(cells) + r" \\"


def latex(
    rows: pd.DataFrame,
    *,
    label: str,
    caption: str,
    note: str,
    group: str = "",
    column: bool = False,
) -> str:
    """Return a table environment with its caption, label and a note below.

    rows: texts, estimates as `estimate_text` writes them. group: a column whose values become lines
    of their own above their rows. column: for one column of two, in smaller print.
    """
    shown = rows.drop(columns=group) if group else rows
    alignments, heads, lines = cells_of(shown)
    if group:
        lines = _with_headings(lines, rows[group], len(alignments))
    return TABLE.substitute(
        kind="table" if column else "table*",
        size="footnotesize" if column else "small",
        caption=escaped(caption),
        label=label,
        alignments="".join(alignments),
        heads=line_of(heads),
        body="\n".join(lines),
        note=escaped(note),
    )


def _with_headings(lines: list[str], groups: pd.Series, width: int) -> list[str]:
    """Return lines with one more above each group, as wide as so many columns."""
    body = []
    last = None
    for line, group in zip(lines, groups, strict=True):
        if group != last:
            space = r"\addlinespace" if body else ""
            head = rf"\multicolumn{{{width}}}{{@{{}}l}}"
            body.append(rf"{space}{head}{{\textit{{{escaped(group)}}}}} \\")
            last = group
        body.append(line)
    return body
