"""Text and prediction records: reading, checking and writing the project's JSON lines files."""

import contextlib
import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import pandas as pd

from selfeval import DATA, foreign
from selfeval.errors import InputError
from selfeval.files import tell_sweep, write_whole
from selfeval.foreign import PREDICTION_FIELDS
from selfeval.recognition.prompts import blocks, check_limit
from selfeval.safe import for_spreadsheet

if TYPE_CHECKING:
    from selfeval.asking.request import Request, Response

TEXT_FIELDS = ("text_id", "prompt_id", "prompt", "sample", "author", "author_display", "text")
PLAIN = {*PREDICTION_FIELDS, "text_full", "prompt_id", "sample", "score", "position", "other_model", "other_text_id"}
REMEMBERED = 100_000  # values of a file that are known while it is read, so that equal ones are kept once
PUBLISHED_CORPUS = ("text", "model", "model_display_name", "prompt")
NEEDED = ("other_text_id", "other_model", "position", "repeat", "status", "candidates", "condition")
SENT = ("messages", "evaluation_prompt", "adapted")  # most of a file, and nothing that statistics need


def data_path(path: str | Path) -> Path:
    """Return the path itself if absolute, else below `data/`: notebooks run from many working directories."""
    path = _below(DATA, path)
    if path.is_file():
        tell_sweep("read", path)
    return path


def corpus_file(corpus: str) -> Path:
    """Return the file of a corpus: a name below `data/corpora/`, or a path to a folder or file."""
    path = _below(DATA / "corpora", corpus)
    return path if path.suffix in (".jsonl", ".json", ".csv") else path / "texts.jsonl"


def _below(folder: Path, name: str | Path) -> Path:
    """Return the path of this name below a folder, or itself if absolute; what no file can be called is an error."""
    if not isinstance(name, str | Path) or not str(name).strip():
        raise InputError(f"A file or folder must be named by a non-empty text, got {name!r}.")
    try:
        path = folder / Path(name).expanduser()
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            path.stat()
    except (OSError, ValueError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"The file or folder {str(name)!r:.120} cannot be used: {why}.") from error
    return path


def text_id(author: str, prompt_id: str, sample: int, text: str) -> int:
    """Return a number for a text that stays the same whatever else the corpus holds (52 bits, exact in JSON)."""
    identity = json.dumps([author, prompt_id, sample, text])
    return int(hashlib.sha256(identity.encode()).hexdigest()[:13], 16)


def call_fields(request: "Request", response: "Response") -> dict:
    """Return what every record says of the call behind it: who served it, what was thought and what was sent."""
    return {
        "served_model": response.served_model,
        "served_by": response.served_by,
        "reasoning": response.reasoning,
        "messages": request.full()[0],
        "adapted": response.adapted,
        "asked_again": response.earlier or None,
    }


def write_jsonl(path: Path, rows: Iterable[dict]) -> None:
    """Write rows as JSON lines, whole or not at all."""
    write_whole(path, "".join(map(_json_line, rows)))


def write_csv(path: Path, table: pd.DataFrame) -> None:
    """Write a table as CSV without its index, whole or not at all; what a spreadsheet would compute begins with '."""
    write_whole(path, for_spreadsheet(table).to_csv(index=False))


def _json_line(row: dict) -> str:
    line = json.dumps(row, ensure_ascii=False)
    try:
        line.encode()
    except UnicodeEncodeError:  # a lone surrogate cannot be written as UTF-8, but as an escape
        line = json.dumps(row)
    return line + "\n"


def read_jsonl(path: Path) -> list[dict]:
    """Return the rows of a JSON lines file (or of one JSON list); raise `InputError` naming a broken line."""
    return list(json_rows(path))


def json_rows(path: Path) -> Iterator[dict]:
    """Yield the rows of a JSON lines file one at a time, so that a large file is never in memory as a whole."""
    empty = True
    tell_sweep("read", path)
    try:
        with path.open(encoding="utf-8-sig") as file:
            for row in _json_values(path, file):
                if not isinstance(row, dict):
                    raise InputError(f"{path} holds something that is not a record (a JSON object).")
                empty = False
                yield row
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    if empty:
        raise InputError(f"{path} holds no record.")


def _json_values(path: Path, file: TextIO) -> Iterator:
    """Yield what each line holds, or the items of the one list that the file is."""
    first = True
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        if first and line.lstrip().startswith("["):
            file.seek(0)
            content = file.read()
            try:
                yield from json.loads(content)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path} is not valid JSON: {error}.") from error
            return
        first = False
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            if number == 1 and (whole := _one_object(line + file.read())):
                yield whole
                return
            raise InputError(f"{path}, line {number}: not valid JSON ({error}); mend that line.") from error
        yield value


def _one_object(content: str) -> dict | None:
    """Return the object that a file of many lines is, as logs of other tools are; None for anything else."""
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(content)
    return None


def _read_rows(path: Path) -> Iterable[dict]:
    foreign.check_file(path)
    if path.suffix != ".csv":
        return json_rows(path)
    tell_sweep("read", path)
    try:
        frame = pd.read_csv(path, keep_default_na=False, na_values=[""])
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as CSV: {error}.") from error
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def read_texts(corpus: str, limit: int = 0) -> list[dict]:
    """Return the text records of a corpus: ours, the published format, or a table with author, prompt, text.

    limit: only the first so many prompts, with all texts on them; 0 = all. Raises `InputError`
    for a file that is missing, empty, broken, or has two texts with one id.
    """
    check_limit(limit)
    path = corpus_file(corpus)
    if not path.exists():
        known = sorted(p.parent.name for p in (DATA / "corpora").glob("*/texts.jsonl"))
        raise InputError(
            f"There is no corpus {corpus!r} ({path} does not exist); known are {', '.join(known)}. "
            "`01_generate_texts` makes one."
        )
    texts = [_text_record(path, number, row) for number, row in enumerate(_read_rows(path), 1)]
    if not texts:
        raise InputError(f"{path} holds no text.")
    ids = pd.Series([text["text_id"] for text in texts])
    if ids.duplicated().any():
        raise InputError(f"{path} holds the `text_id` {ids[ids.duplicated()].iloc[0]} twice; every text needs its own.")
    chosen = set(list(dict.fromkeys(text["prompt_id"] for text in texts))[: limit or None])
    return [text for text in texts if text["prompt_id"] in chosen]


def _text_record(path: Path, number: int, row: dict) -> dict:
    where, row = f"{path}, record {number}", dict(row)
    author = row.get("author") or row.get("model")
    display = row.get("author_display") or row.get("model_display_name") or author
    if not all(
        isinstance(text, str) and text.strip() for text in (author, display, row.get("prompt"), row.get("text"))
    ):
        raise InputError(f"{where}: a text needs `author` (or `model`), `prompt` and `text`, each a non-empty text.")
    prompt_id = row.get("prompt_id") or hashlib.sha256(row["prompt"].encode()).hexdigest()[:12]
    if not isinstance(prompt_id, str | int | float):
        raise InputError(f"{where}: `prompt_id` must be a text or a number, got {prompt_id!r:.80}.")
    prompt_id = str(prompt_id)
    sample = _whole(where, "sample", row.get("sample") or 0)
    first = {
        "text_id": _whole(where, "text_id", row["text_id"])
        if row.get("text_id") is not None
        else text_id(author, prompt_id, sample, row["text"]),
        "prompt_id": prompt_id,
        "prompt": row["prompt"],
        "sample": sample,
        "author": author,
        "author_display": display,
        "text": row["text"],
        "words": len(row["text"].split()),
    }
    return first | {k: v for k, v in row.items() if k not in first and k not in PUBLISHED_CORPUS}


def _whole(where: str, name: str, value) -> int:
    """Return a whole number that may be written as text or, as in a CSV with gaps, with a point."""
    with contextlib.suppress(ValueError, OverflowError, TypeError):
        if not isinstance(value, bool) and (isinstance(value, str) or int(value) == value):
            return int(value)
    raise InputError(f"{where}: `{name}` must be a whole number, got {value!r:.80}.")


def read_predictions(
    source: str | Path | Mapping | Sequence[str | Path | Mapping],
    columns: Mapping[str, str] | None = None,
    *,
    messages: bool = False,
) -> pd.DataFrame:
    """Return the prediction records of files and folders (`predictions_*.jsonl` below them) as one table.

    source: paths, and mappings {path: {name: value}} that say of a whole file what it does not: parts of the condition
    (`hints: true`), `task_type`, `evaluator_model`, `true_model` or `repeat`. columns: {their name of a field: ours}.
    messages: keep what was sent too, `messages` and `adapted`; statistics need neither, and of 200,000 records they
    take 460 MB beside the 140 of all else. The published `evaluation_prompt` and `returned_reasoning` become `messages`
    and `reasoning`.
    A file that is named twice counts once, and so does a record that repeats another in question and answer (a resumed
    run); two different answers to the same question under the same condition are an error of the statistics, since two
    designs would be mixed. `attrs["notes"]` has a sentence for what was left out or taken for something else.
    """
    names = foreign.check_columns(columns or {})
    files = _named_files(source)
    unused, notes, frames = {*names}, [], []
    for file, given in files.items():
        left_out = () if messages else {*SENT} - {*names}
        rows = ({k: v for k, v in row.items() if k not in left_out} for row in _read_rows(file))
        found = _columns(file, rows, names)
        unused -= {*found}
        frame = foreign.complete(file, foreign.renamed(file, found, names), given)
        foreign.check_values(file, frame)
        notes += foreign.by_id(file, frame)
        frames.append(frame)
    if unused:
        raise InputError(f"`columns` names {sorted(unused)[0]!r}, a field that no file of `predictions` has.")
    frame, repeated = foreign.without_repeats(pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0])
    if repeated:
        notes.append(
            f"{repeated} records repeat others in question and answer, as after a resumed run, and count once."
        )
    frame.attrs["notes"] = notes
    return frame


def as_published(rows: Iterable[Mapping]) -> list[dict]:
    """Return prediction records in the form of the published data: its ten fields, the reply, the question, reasoning.

    Where the text judged stands in `messages` it is there in full, as `text_full` in the place of `text_preview`. What
    that form has no field for is left out: P(self), the condition, the candidates, a system prompt. Records that cannot
    be read without have more fields (`NEEDED`): of pairs, lineups and repeated questions, of replies that failed or
    were cut off, and of questions about anonymous authors or the better text.
    """
    return [_as_published(row) for row in rows]


def _as_published(row: Mapping) -> dict:
    row = {name: value for name, value in row.items() if value == value}  # a row of a table has NaN for null
    messages, preview = row.get("messages") or [], row.get("text_preview") or ""
    asked = messages[-1]["content"] if messages else None
    shown = [text for _, text in blocks(asked or "")][int(row.get("position") or 1) - 1 :][:1]
    fields = {name: row.get(name) for name in PREDICTION_FIELDS}
    if shown and shown[0].startswith(preview):
        fields = {"text_full" if name == "text_preview" else name: value for name, value in fields.items()}
        fields["text_full"] = shown[0]
    needed = [name for name in NEEDED[:4] if row.get(name)]
    needed += ["status"] * (row.get("status", "ok") not in ("ok", "no_answer"))
    if any(word in str(row.get("condition")) for word in ("anonymous", "better")):
        needed += NEEDED[5:]
    said = {"returned_text": row.get("reply"), "evaluation_prompt": asked, "returned_reasoning": row.get("reasoning")}
    return fields | said | {name: row.get(name) for name in needed}


def _named_files(source) -> dict[Path, Mapping]:
    """Return {file: what is said of it}."""
    single = isinstance(source, str | Path | Mapping) or not isinstance(source, Iterable)
    files: dict[Path, Mapping] = {}
    for one in [source] if single else source:
        for path, given in (one if isinstance(one, Mapping) else {one: {}}).items():
            if not isinstance(given, Mapping | None):
                raise InputError(
                    f"`predictions` must say of {str(path)!r} a mapping such as hints: true, got {given!r}."
                )
            for file in _prediction_files(data_path(path).resolve()):
                if files.setdefault(file, given or {}) != (given or {}):
                    raise InputError(f"`predictions` names {file} twice and says two things of it; name it once.")
    if not files:
        raise InputError("`predictions` names no file and no folder.")
    return files


def _prediction_files(path: Path) -> list[Path]:
    if path.is_dir():
        files = sorted(path.rglob("predictions_*.jsonl"))
        if not files:
            raise InputError(f"The folder {path} holds no `predictions_*.jsonl`; `02_collect_predictions` writes them.")
        return files
    if not path.exists():
        raise InputError(f"There are no predictions at {path}; `02_collect_predictions` writes them.")
    return [path]


def _columns(path: Path, rows: Iterable[dict], names: Mapping[str, str]) -> dict[str, list]:
    """Return rows as columns in which equal texts, lists and objects are one, NaN where a row lacks a field.

    names: {theirs: ours} of fields that have other names in the file.

    A prediction file says the same names, prompts and settings in every row; kept once each, a million rows fit into
    a gigabyte. Equal values mostly stand near each other, so what is remembered is bounded.
    """
    columns: dict[str, list] = {}
    texts: dict[str, str] = {}
    others: dict[str, list | dict] = {}
    for number, row in enumerate(rows):
        for name, value in row.items():
            if isinstance(value, str):
                value = texts.setdefault(value, value)
            elif isinstance(value, list | dict):
                if names.get(name, name) in PLAIN:
                    raise InputError(
                        f"{path}, record {number + 1}: `{name}` must be no list or object, got {value!r:.80}."
                    )
                value = others.setdefault(repr(value), value)
            if name not in columns:
                columns[name] = [math.nan] * number
            columns[name].append(value)
        if len(row) < len(columns):
            for column in columns.values():
                column.extend([math.nan] * (number + 1 - len(column)))
        for known in (texts, others):
            if len(known) > REMEMBERED:
                known.clear()
    return columns
