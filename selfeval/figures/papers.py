"""Tables for papers: LaTeX (booktabs) that fits a page or a column, with estimates aligned on their decimals."""

import re

import pandas as pd

from selfeval.secrets import visible

SPECIAL = {sign: f"\\{sign}" for sign in "&%$#_{}"}
SPECIAL |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
SIGNS = {"−": "--", "≤": r"$\leq$", "<": "$<$", '"': "''"}


def escaped(text: str) -> str:
    """Return a text on one line that LaTeX prints as it is; quotes open and close.

    A [ or * where a row begins would be an option of the row before, so it stands in braces.
    """
    text = " ".join(visible(text).split())
    text = text.translate(str.maketrans(SPECIAL))
    text = re.sub(r'(^|[\s(])"', r"\1``", text)
    for sign, command in SIGNS.items():
        text = text.replace(sign, command)
    return re.sub(r"^[\[*]", r"{\g<0>}", text)


def halves(cell: str) -> tuple[str, str]:
    """Return an estimate and its interval as two cells, with a minus that is as wide as a plus."""
    estimate, _, interval = cell.partition(" ")
    return estimate.replace("-", "$-$"), interval.replace("-", "$-$")


def cells_of(rows: pd.DataFrame) -> tuple[list[str], list[str], list[list[str]]]:
    """Return the alignments, the heads and the rows of a table.

    A column of estimates becomes two: the estimate, right, and its interval, left, close to it.
    """
    alignments, heads, columns = [], [], []
    for name in rows:
        texts = [str(cell) for cell in rows[name]]
        if any(text.endswith("]") for text in texts):
            alignments += ["r", "@{ }l"]
            heads.append(rf"\multicolumn{{2}}{{c}}{{{escaped(name)}}}")
            columns += zip(*map(halves, texts), strict=True)
        else:
            alignments.append("l")
            heads.append(escaped(name))
            columns.append([escaped(text) for text in texts])
    return alignments, heads, [list(row) for row in zip(*columns, strict=True)]


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
    body, last = [], None
    for number, line in enumerate(lines):
        block = rows[group].iloc[number] if group else None
        if block != last:
            space = r"\addlinespace" if body else ""
            body.append(rf"{space}\multicolumn{{{len(alignments)}}}{{@{{}}l}}{{\textit{{{escaped(block)}}}}} \\")
            last = block
        body.append(" & ".join(line) + r" \\")
    kind, size = ("table", "footnotesize") if column else ("table*", "small")
    return "\n".join(
        [
            rf"\begin{{{kind}}}",
            r"\centering",
            rf"\caption{{{escaped(caption)}}}",
            rf"\label{{tab:{label}}}",
            rf"\{size}",
            r"\setlength{\tabcolsep}{4pt}",
            rf"\begin{{tabular}}{{{''.join(alignments)}}}",
            r"\toprule",
            " & ".join(heads) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\par\vspace{2pt}",
            rf"{{\footnotesize {escaped(note)}\par}}",
            rf"\end{{{kind}}}",
            "",
        ]
    )
