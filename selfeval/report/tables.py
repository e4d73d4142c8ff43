"""Records as tables for the pages that filter them: columns of values, each distinct value once.

A column is {label, show, filter, values, codes}: the value of row i is values[codes[i]]. show: `cell`, `number` and
`link` ([label, address]) stand in the table; `fact`, `text`, `folded` and `chat` (a list of [who, text, note, raw],
with reasoning and messages behind them where there are any) where a row is opened. filter: readers can choose among
its values.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

import pandas as pd

from selfeval.figures.cards import as_text
from selfeval.report.sources import Run, Sources
from selfeval.stats.counts import condition_label, varying_parts
from selfeval.stats.serving import MARK

IN_WORDS = "served by several endpoints"  # the note of result tables, for readers
MODELS = ("evaluator", "author", "model")  # columns that name models
MOST = 20_000  # rows of one page, unless told otherwise


class Table:
    """A table in the making: a column for each name, a row at a time."""

    def __init__(self, noun: str, columns: Mapping[str, str], clean: Callable[[str], str]):
        """columns: {label: how it is shown, with a "*" behind it where readers filter by it}."""
        self.noun, self.clean, self.size, self.left_out = noun, clean, 0, 0
        self.columns = {
            label: {"label": label, "show": show.rstrip("*"), "filter": show.endswith("*"), "values": [], "codes": []}
            for label, show in columns.items()
        }
        self._known: dict[str, dict] = {label: {} for label in columns}

    def add(self, **row) -> None:
        """Add a row; labels that it lacks are empty. A space in a label is written as _."""
        for label, column in self.columns.items():
            value = self._plain(row.get(label.replace(" ", "_")), column["show"])
            key = repr(value) if isinstance(value, list) else (type(value), value)
            known = self._known[label]
            if key not in known:
                known[key] = len(column["values"])
                column["values"].append(value)
            column["codes"].append(known[key])
        self.size += 1

    def _plain(self, value, show: str):
        if show == "chat":
            return [[self.clean(part or "") for part in block] for block in value or ()]
        if show == "link":
            return [self.clean(value[0]), value[1]]
        if show == "number":
            return value if isinstance(value, int | float) and value == value else None
        return "" if value is None or value != value else self.clean(said(value))

    def mark(self, models: Collection[str]) -> None:
        """Set a mark behind the names of these models, which several endpoints served."""
        named = {self.clean(model) for model in models}
        for label in {*MODELS} & {*self.columns}:
            column = self.columns[label]
            column["values"] = [value + MARK if value in named else value for value in column["values"]]

    def data(self) -> dict:
        """Return what the page's script reads; columns without any value are left out."""
        used = [column for column in self.columns.values() if any(v not in ("", None, []) for v in column["values"])]
        return {"noun": self.noun, "size": self.size, "left_out": self.left_out, "columns": used}


def said(value) -> str:
    """Return a value as a reader reads it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={said(part)}" for name, part in value.items() if part not in (None, ""))
    return ", ".join(map(said, value)) if isinstance(value, list | tuple) else str(value)


RUNS = {
    "run": "link", "status": "cell*", "notebook": "cell*", "sweep": "cell*", "stage": "cell*", "seconds": "number",
    "calls": "number", "stored": "number", "failed": "number", "tokens": "number", "USD": "number",
    "cause": "cell", "started": "fact", "code": "fact", "parameters": "text", "packages": "text", "records": "fact",
}  # fmt: skip


def runs(found: Sources, pages: Mapping[str, str]) -> Table:
    """Return the runs from their manifests: status, cost, calls, failures, versions, cause; `pages` shows them."""
    table = Table("run", RUNS, found.clean)
    for run in found.runs:
        table.add(**_run(run, pages.get(run.name, "")))
    return table


def _run(run: Run, page: str) -> dict:
    m = run.manifest
    counts, before, code = (m.get(key) or {} for key in ("counts", "before", "code"))
    paid = {
        name: counts[name] + before.get(name, 0) if name in counts else None for name in ("calls", "tokens", "cost")
    }
    sweep, stage, name = run.name.split("/")
    lines = {
        key: "\n".join(f"{k}: {said(v)}" for k, v in (m.get(key) or {}).items()) for key in ("parameters", "packages")
    }
    return {
        "run": (name, page), "sweep": sweep, "stage": stage, "status": m.get("status") or "unknown",
        "cause": m.get("cause"),
        "notebook": str(m.get("notebook", "")).rpartition("/")[2].removesuffix(".ipynb"), "started": m.get("started"),
        "seconds": _rounded(m.get("seconds")), "calls": paid["calls"], "stored": counts.get("stored"),
        "failed": counts.get("failed"), "tokens": paid["tokens"], "USD": paid["cost"],
        "code": " · ".join(filter(None, [code.get("commit"), code.get("hash")])),
        "records": [*(m.get("outputs") or ()), *(m.get("written") or ())], **lines,
    }  # fmt: skip


def _rounded(seconds) -> float | None:
    return round(seconds, 1) if isinstance(seconds, int | float) else None


PREDICTIONS = {
    "evaluator": "cell*", "author": "cell*", "task": "cell*", "says": "cell", "result": "cell*", "status": "cell*",
    "score": "number", "condition": "cell*", "prompt": "cell", "raw reply": "text", "asked for": "text", "text": "text",
    "reasoning": "folded", "as sent": "folded",
    "candidates": "fact", "position": "fact", "other author": "fact", "scores": "fact", "usage": "fact",
    "served by": "fact*", "asked again after": "fact", "all of the condition": "fact", "text id": "fact",
    "sample": "fact", "repeat": "fact", "request": "fact", "run": "fact*",
}  # fmt: skip


def predictions(found: Sources, most: int = MOST) -> tuple[Table, pd.DataFrame]:
    """Return the predictions with their raw replies, then the answers to the test of existence; and `answers` of all.

    most: rows of the table; those beyond are counted as left out.
    """
    table = Table("prediction", PREDICTIONS, found.clean)
    texts = {row["text_id"]: row["text"] for _, row in found.rows("texts")}
    kept, counted = [], Counter()
    for file, row in found.rows("predictions"):
        condition = condition_label(row.get("condition"))
        counted[row["task_type"], condition, row["evaluator_model"], row.get("status") or _result(row)] += 1
        if len(kept) < most:
            kept.append((file, row, condition))
    short = varying_parts(condition for _, condition, *_ in counted)
    for file, row, condition in kept:
        table.add(**_prediction(row, condition, short[condition], texts), run=found.run_of(file))
    for file, row in found.rows("existence"):
        counted["existence", "", row["evaluator"], row.get("status") or "unknown"] += 1
        if table.size < most:
            table.add(**_existence(row), run=found.run_of(file))
    table.left_out = counted.total() - table.size
    return table, _answers(counted, short)


def _prediction(row: Mapping, condition: str, short: str, texts: Mapping) -> dict:
    return {
        "evaluator": row["evaluator_model"], "author": row["true_model"], "task": row["task_type"], "says": _says(row),
        "result": _result(row), "status": row.get("status"), "score": row.get("score"), "condition": short,
        "prompt": row.get("prompt_id"), "asked_for": row.get("prompt_used"), "candidates": row.get("candidates"),
        "text": row.get("text_full") or texts.get(row["text_id"]) or row.get("text_preview"),
        "reasoning": as_text(row.get("reasoning") or row.get("returned_reasoning")),
        "as_sent": as_text(row.get("messages") or row.get("evaluation_prompt")),
        "raw_reply": row.get("reply", row.get("returned_text")), "position": row.get("position"),
        "other_author": row.get("other_model"), "scores": row.get("scores"), "usage": row.get("usage"),
        "text_id": row["text_id"], "sample": row.get("sample"), "repeat": row.get("repeat"),
        "all_of_the_condition": condition.replace(";", "; "), "request": row.get("request_id"), **_asked(row),
    }  # fmt: skip


def _existence(row: Mapping) -> dict:
    return {
        "evaluator": row["evaluator"], "author": row["target_display"], "condition": row.get("answer_type"),
        "task": "existence", "says": row.get("parsed_response"), "status": row.get("status"),
        "score": row.get("existence_score"), "asked_for": row.get("question"), "raw_reply": row["raw_response"],
        "result": {True: "exists", False: "invented"}.get(row.get("exists")), "prompt": row.get("template_id"),
        "usage": row.get("usage"), "repeat": row.get("iteration"), "request": row.get("request_id"), **_asked(row),
    }  # fmt: skip


def _asked(row: Mapping) -> dict:
    """Return who served a reply, and the statuses after which it was asked for again."""
    served = " via ".join(said(row[name]) for name in ("served_model", "served_by") if row.get(name))
    return {"served_by": served, "asked_again_after": row.get("asked_again")}


def _answers(counted: Counter, short: Mapping[str, str]) -> pd.DataFrame:
    """Return per task, condition and evaluator the number of questions and what share of them ended in each status."""
    rows = [
        (task, short.get(condition, condition), who, status, n) for (task, condition, who, status), n in counted.items()
    ]
    frame = pd.DataFrame(rows, columns=["task", "condition", "evaluator", "status", "n"])
    wide = frame.pivot_table(index=["task", "condition", "evaluator"], columns="status", values="n", aggfunc="sum")
    total = wide.sum(axis=1).astype(int)
    shares = wide.fillna(0).div(total, axis=0)
    return shares.assign(questions=total).reset_index().rename_axis(columns=None)


def _says(row: Mapping) -> str:
    if row.get("predicted_model"):
        return row["predicted_model"]
    return {True: "itself", False: "not itself"}.get(row.get("predicted_self"), "no answer")


def _result(row: Mapping) -> str:
    return {True: "right", False: "wrong"}.get(row.get("is_correct"), "no answer")


def chat(blocks: Iterable[tuple]) -> list[tuple[str, str, str, str]]:
    """Return blocks of a conversation filled up to (who, text, note, raw)."""
    return [(*block, *[""] * (4 - len(block))) for block in blocks]
