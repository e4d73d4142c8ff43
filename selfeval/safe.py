"""What leaves a notebook kernel or goes into a spreadsheet, without keys and without formulas.

Replies, names and files of strangers may hold what a spreadsheet obeys or a kernel cannot send. Records keep every
text as it was; these functions stand where it is shown (`display.visible` is the one for terminals and pages).
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from selfeval.display import visible
from selfeval.secrets import redact

if TYPE_CHECKING:
    import pandas as pd  # its import takes half a second, which the command line need not wait for

FORMULA = re.compile(r"[=+\-@\s＝＋－＠]")
ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
NUMBER = re.compile(r"= [\d.]+|[+-][\d.,]+(?:[eE][+-]?\d+)?%?(?: \[[\d., +-]+\])?")  # also "-0.12 [-0.30, 0.06]"


def for_spreadsheet(table: pd.DataFrame) -> pd.DataFrame:
    """Return a copy in which no text, header included, is a formula to a spreadsheet: such a one begins with '.

    Numbers stay numbers, and texts like "-0.12 [-0.30, 0.06]" stay as they are.
    """

    def guarded(value):
        if not isinstance(value, str):
            return value
        value = value.encode("utf-8", "backslashreplace").decode()
        return f"'{value}" if FORMULA.match(value) and not NUMBER.fullmatch(value) else value

    shown = table.set_axis(table.columns.map(guarded), axis=1)
    for number in range(table.shape[1]):
        if table.iloc[:, number].dtype.kind not in "biuf":
            shown.isetitem(number, table.iloc[:, number].map(guarded))
    return shown


def guard_kernel() -> None:
    """Keep keys out of whatever this notebook kernel sends: outputs, tracebacks, the reply to a cell.

    A verbose traceback shows local variables, and with them headers or the environment. A lone surrogate in an output
    ends the kernel's channel, so it is written as an escape; in tables and other displayed values (not in what is
    printed) so are escape sequences and marks that turn text round. Does nothing outside of a kernel, or a second time.
    """
    ipython = sys.modules.get("IPython")
    session = getattr(getattr(ipython and ipython.get_ipython(), "kernel", None), "session", None)
    if session is None or hasattr(session.pack, "unguarded"):
        return
    pack = session.pack

    def guarded(message):
        return pack(message if "msg_id" in message else _clean(message))

    guarded.unguarded = pack
    session.pack = guarded


def _clean(part, kind: str = ""):
    if isinstance(part, str):
        text = ACTS.sub(lambda match: visible(match[0]), part) if kind.startswith("text/") else part
        return redact(text.encode("utf-8", "backslashreplace").decode(), shapes=False)
    if isinstance(part, dict):
        return {key: _clean(value, str(key)) for key, value in part.items()}
    return [_clean(value) for value in part] if isinstance(part, list | tuple) else part
