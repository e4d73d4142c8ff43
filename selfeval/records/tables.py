"""Tables on disk: where files of records are, and how they are read and written."""

import contextlib
import gzip
import json
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, TextIO, TypeAlias, TypeGuard

import numpy as np
import pandas as pd
import yaml

from selfeval.bounds import check_lines, check_zip
from selfeval.errors import PACKAGE, InputError, did_you_mean
from selfeval.paths import DATA, in_utf8, shipped, write_whole
from selfeval.providers.request import Request, Response
from selfeval.secrets import HIDDEN, visible

PREDICTION_FIELDS = (
    "text_id",
    "text_preview",
    "true_model",
    "true_model_display",
    "evaluator_model",
    "task_type",
    "predicted_model",
    "predicted_self",
    "is_correct",
    "prompt_used",
)
# How a cell that a spreadsheet computes begins, or a part of one behind a sign at which some divide
# it; blanks and signs that nobody sees do not count. A ' in front makes it text, and one that stood
# there is kept by another.
FORMULA = re.compile(rf"[\s'{HIDDEN}]*[=+\-@＝＋－＠]")
DIVIDES = re.compile("([;\t\n])")
# also "-0.12 [-0.30, 0.06]"
NUMBER = re.compile(r"= [\d.]+|[+-][\d.,]+(?:[eE][+-]?\d+)?%?(?: \[[\d., +-]+\])?")


PACKED: dict[str, Callable] = {".gz": gzip.open, ".xz": lzma.open}
UNREADABLE = (OSError, ValueError, ImportError, EOFError, lzma.LZMAError, zlib.error)
FORMS = (
    "JSON lines, CSV with commas and Excel are read; read other files with pandas, and give its "
    "DataFrame"
)


def _opened(path: Path) -> TextIO:
    """Open a text file, packed or not, in UTF-8."""
    return PACKED.get(path.suffix.lower(), open)(path, "rt", encoding="utf-8-sig")


def check_size(path: Path) -> None:
    """Refuse a file with a line, or packed content, that is longer than what is read."""
    # said on reading
    with contextlib.suppress(EOFError, lzma.LZMAError, zlib.error, OSError, zipfile.BadZipFile):
        check_zip(path)
        with PACKED.get(path.suffix.lower(), open)(path, "rb") as file:
            check_lines(path, file)


# "NA" and "None" are texts, and ids may be 1.1 and 1.10
_TABLE = {
    "keep_default_na": False,
    "na_values": [""],
    "dtype": {"prompt_id": str, "text_id": str},
}


def _read_excel(path: Path) -> pd.DataFrame:
    sheets = pd.read_excel(path, sheet_name=None, **_TABLE)
    if len(sheets) > 1:
        raise InputError(f"{path} has the sheets {', '.join(sheets)}; save the one that is meant.")
    return next(iter(sheets.values()))


def _read_lines(path: Path) -> pd.DataFrame:
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    return pd.DataFrame({"prompt": [line for line in lines if line.strip()]})


TABLES: dict[str, Callable] = {
    ".csv": partial(pd.read_csv, encoding="utf-8-sig", **_TABLE),
    ".xlsx": _read_excel,
    ".txt": _read_lines,
}
# kind of records: how their files are called in a folder; of several patterns the first that fits
# counts
HELD_IN = {
    "texts": ("texts.jsonl",),
    "predictions": ("predictions_*.jsonl",),
    "likelihoods": ("likelihoods.jsonl",),
    "conversations": (
        "conversations.jsonl",
        "*.json",
    ),  # the latter are outputs of `selfeval roleplay`, `compare`
    "verdicts": ("verdicts.jsonl", "*.json"),
    "identity": ("identity.jsonl",),
    "existence": ("existence.jsonl",),
}
WRITERS = {  # kind of records: what writes such files
    "texts": "`generate_texts` with `corpus`, and notebook 01,",
    "predictions": "`collect_predictions` with `out`, and `02_collect_predictions`,",
    "likelihoods": "`likelihoods` with `out`, and notebook 10,",
    "conversations": "`converse` and `judge` with `out`, and notebooks 05 and 06,",
    "verdicts": "`judge` with `out`, and notebook 06,",
    "identity": "`save` of a result on identity, and notebook 04,",
    "existence": "`save` of a result on existence, and notebook 07,",
}


def data_path(path: str | Path) -> Path:
    """Return where to write.

    The path itself if absolute, else below `data/`, from many working directories.
    """
    return _below(DATA, path)


def corpus_file(corpus: str) -> Path:
    """Return the file of a corpus to write.

    A name below `data/corpora/`, or a path to a folder or file.
    """
    path = _below(DATA / "corpora", corpus)
    return path if path.suffix in (".jsonl", ".json", ".csv") else path / HELD_IN["texts"][0]


def path_to_read(path: str | Path) -> Path:
    """Return a file or folder to read: one in the current folder, else below `data/`.

    Raises where there is neither.
    """
    named = _below(Path(), path)
    return _first(path, Path.cwd() / named, shipped(named))


def corpus_to_read(corpus: str | Path) -> Path:
    """Return the file of a corpus to read.

    A path as for `path_to_read`, else a name below `data/corpora/`.
    """
    named = _below(Path(), corpus)
    places = [Path.cwd() / named, shipped(named), shipped(_below(Path("corpora"), corpus))]
    return _first(corpus, *map(_text_file, places))


def _text_file(place: Path) -> Path:
    """Return the file of texts in a folder, or the only one below it.

    Several below it are several corpora.
    """
    if not place.is_dir():
        return place
    [name] = HELD_IN["texts"]
    below = sorted(place.rglob(name))
    if (place / name).exists() or not below:
        return place / name
    if len(below) > 1:
        named = ", ".join(str(file.parent.relative_to(place)) for file in below)
        raise InputError(
            f"{place} holds {len(below)} corpora ({named}); name one of these folders."
        )
    return below[0]


def files_of(kind: str, name: str | Path) -> list[Path]:
    """Return the files that hold records of a kind (`HELD_IN`).

    The file that is named, or those below a folder.
    """
    path = path_to_read(name).resolve()
    if not path.is_dir():
        return [path]
    for pattern in HELD_IN[kind]:
        if found := sorted(path.rglob(pattern)):
            return found
    names = sorted(file.name for file in path.rglob("*") if file.is_file())
    if len(names) > 6:
        names[6:] = ["..."]
    holds = ", ".join(names) or "nothing"
    wanted = f"`{HELD_IN[kind][0]}`, which {WRITERS[kind]} writes"
    raise InputError(f"{path} holds no {wanted}; it holds {holds}.")


def _first(name: str | Path, *places: Path) -> Path:
    """Return the first of these places where something is, and say which where a name fits two.

    Raises for none.
    """
    existing = {path.resolve(): path for path in places if path.exists()}
    if existing:
        first, *others = existing.values()
        if others:
            print(f"{str(name)!r} is read from {first}; {others[0]} has the same name.")
        return first
    near = did_you_mean(name, [path.name for path in Path.cwd().iterdir()]) or "."
    what = "file"
    if len(places) > 2:
        what = "file or corpus"
        corpora = sorted(path.parent.name for path in shipped("corpora").glob("*/texts.jsonl"))
        near = f"; corpora are {', '.join(corpora)}{near}"
    where = f"neither in {Path.cwd()} nor below {DATA}"
    raise InputError(f"There is no {what} {str(name)!r}, {where}{near}")


def _below(folder: Path, name: str | Path) -> Path:
    """Return the path of this name below a folder, or itself if absolute."""
    if not isinstance(name, str | Path) or not str(name).strip():
        raise InputError(f"A file or folder must be named by a non-empty text, got {name!r}.")
    return folder / Path(name).expanduser()


def fields_of(response: Response, *names: str) -> dict:
    """Return what a record has of a reply by the reply's own names."""
    return {name: getattr(response, name) for name in names}


def call_fields(request: Request, response: Response) -> dict:
    """Return what every record says of the call behind it.

    Who served it, what was thought and what was sent.
    """
    sent = {
        "messages": request.full()[0],
        "adapted": response.adapted,
        "asked_again": response.earlier or None,
    }
    return fields_of(response, "served_model", "served_by", "reasoning") | sent


# files


def write_jsonl(path: Path, rows: Iterable[dict]) -> None:
    """Write rows as JSON lines, whole or not at all.

    A lone surrogate, which UTF-8 cannot hold, as its escape.
    """
    write_whole(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def write_csv(path: Path, table: pd.DataFrame) -> None:
    """Write a table as CSV without its index, whole or not at all.

    What a spreadsheet would compute begins with '. Numbers have six significant digits: the last
    bits of a float differ between machines.
    """
    write_whole(path, for_spreadsheet(table).to_csv(index=False, float_format="%.6g"))


def for_spreadsheet(table):
    """Return a copy of a DataFrame in which no text is a formula: it begins with '.

    So does what stands behind a semicolon, a tab or a line break, at which some divide a cell. Line
    breaks are \\n: a bare \\r would end the row. Numbers stay numbers, and texts like "-0.12
    [-0.30, 0.06]" stay as they are. `from_spreadsheet` is the way back.
    """

    def guarded(value):
        if not isinstance(value, str):
            return value
        lines = in_utf8(value).replace("\r\n", "\n").replace("\r", "\n")
        return "".join(f"'{part}" if _is_computed(part) else part for part in DIVIDES.split(lines))

    return table.map(guarded).set_axis(table.columns.map(guarded), axis=1)


def from_spreadsheet(table):
    """Return a copy of a DataFrame without what `for_spreadsheet` put in front of texts."""

    def bare(value):
        if not isinstance(value, str) or "'" not in value:
            return value
        parts = DIVIDES.split(value)
        return "".join(
            part[1:] if part[:1] == "'" and _is_computed(part[1:]) else part for part in parts
        )

    return table.map(bare).set_axis(table.columns.map(bare), axis=1)


def _is_computed(part: str) -> bool:
    return bool(FORMULA.match(part)) and not NUMBER.fullmatch(part)


def read_jsonl(path: Path) -> list[dict]:
    """Return the rows of a JSON lines file (or of one JSON list).

    Raises `InputError` naming a broken line.
    """
    return list(json_rows(path))


def json_rows(path: Path) -> Iterator[dict]:
    """Yield the rows of a JSON lines file one at a time.

    So a large file is never in memory as a whole.
    """
    row = None
    check_size(path)
    try:
        with _opened(path) as file:
            for row in _json_values(path, file):
                if not isinstance(row, dict):
                    raise InputError(
                        f"{path} holds something that is not a record (a JSON object)."
                    )
                yield row
    except (OSError, UnicodeError, EOFError, lzma.LZMAError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{path} cannot be read: {why}. {FORMS}.") from error
    if row is None:
        raise InputError(f"{path} holds no record.")


def _json_values(path: Path, file: TextIO) -> Iterator:
    """Yield what each line holds.

    Where a line only begins an object or a list, what it and the rest hold.
    """
    for number, line in enumerate(file, 1):
        if line.strip():
            value = _json_at(path, file, number, line)
            yield from value if isinstance(value, list) else [value]


def _json_at(path: Path, file: TextIO, number: int, line: str):
    """Return the value of a line, or of it and all lines that follow."""
    text = line.strip()
    whole = text.startswith("{") and text.endswith("}")
    try:
        return json.loads(text if whole else line + file.read())
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path}, line {number}: not valid JSON ({error}); mend that line. {FORMS}."
        ) from error


# rows as a user has them, or the file that holds them
Rows: TypeAlias = pd.DataFrame | Sequence[Mapping] | str | Path


def is_file(source) -> TypeGuard[str | Path]:
    """Tell whether rows are given by the name of their file."""
    return isinstance(source, str | Path)


def is_given(source: Rows) -> bool:
    """Tell whether there are any rows, or a file of them."""
    return is_file(source) or len(source) > 0  # type: ignore[arg-type]


def are_files(source) -> bool:
    """Tell whether rows are given by the names of one or more files."""
    if is_file(source):
        return True
    return (
        not isinstance(source, pd.DataFrame)
        and isinstance(source, Iterable)
        and all(map(is_file, source))
    )


def rows_of(source: Rows) -> list[dict]:
    """Return the rows of a DataFrame (what is missing is null), of dictionaries, or of a file.

    Rows in which nothing stands are passed over; raises `InputError` where there is no other.
    """
    rows = file_rows(path_to_read(source)) if is_file(source) else source
    if isinstance(rows, pd.DataFrame):
        rows = with_nulls(without_empty_rows(rows)).to_dict("records")
    rows = [*rows] if isinstance(rows, Iterable) else []
    if not rows or not all(isinstance(row, Mapping) for row in rows):
        got = " ".join(repr(source).split())
        raise InputError(
            f"Rows must be a DataFrame, dictionaries or a file, and one at least, got {got:.80}."
        )
    return [dict(row) for row in rows]


def without_empty_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame without the rows in which nothing stands.

    As a spreadsheet keeps them below or between others. The number that pandas gives a row when it
    writes its index counts as nothing.
    """
    empty = frame.loc[:, [str(name) not in ("Unnamed: 0", "index", "") for name in frame]]
    for at in range(empty.shape[1]):
        column = empty.iloc[:, at]
        blank = column.isna()
        if not pd.api.types.is_numeric_dtype(column):
            blank |= np.array(
                [isinstance(value, str) and not value.strip() for value in column], bool
            )
        empty = empty[blank]
        if empty.empty:
            return frame
    return frame.drop(index=empty.index)


def records_of(kind: str, source: Rows | Sequence[str | Path]) -> list[dict]:
    """Return the records of a kind that files and folders hold, or rows as `rows_of` takes them."""
    if isinstance(source, pd.DataFrame) or not are_files(source):
        return rows_of(source)
    named: Any = [source] if is_file(source) else source
    files = dict.fromkeys(file for name in named for file in files_of(kind, name))
    tell_several(named, files)
    return [row for file in files for row in rows_of(file)]


def tell_several(named: Sequence[str | Path], files: Iterable[Path]) -> None:
    """Say which files are read together where a folder that was named holds several."""
    if len(found := [*files]) > len(named):
        print(f"Read together: {', '.join(map(str, found))}.")


def with_nulls(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of plain objects, in which what is missing is null."""
    return frame.astype(object).where(frame.notna(), None)


def file_rows(path: Path) -> Iterable[dict] | pd.DataFrame:
    """Return the rows of a file: JSON lines, or a table that pandas reads (CSV, Excel)."""
    packed = path.suffix.lower() in PACKED
    ending = (path.with_suffix("") if packed else path).suffix.lower()
    if (read := TABLES.get(ending)) is None:
        return json_rows(path)
    check_size(path)
    try:
        rows = read(path)
    except UNREADABLE as error:
        if isinstance(error, InputError):
            raise
        why = str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"{path} cannot be read: {why}. {FORMS}.") from error
    if len(rows.columns) == 1 and re.search("[;\t|]", str(rows.columns[0])):
        raise InputError(f"{path} has one column, {rows.columns[0]!r:.80}. {FORMS}.")
    return without_empty_rows(rows)


@cache
def headings(kind: str) -> dict[str, list[str]]:
    """Return {field: what others call it}, as `synonyms.yaml` has it for a kind of records."""
    return yaml.safe_load((PACKAGE / "synonyms.yaml").read_text("utf-8"))["headings"][kind]


def called_otherwise(
    where: str | Path, there: Iterable, headings: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """Return {their heading: our field} for fields that are there by one other name; say so aloud.

    headings: {field: what others call it}.
    """
    there = [*there]
    found = {}
    for field, others in headings.items():
        same = [name for name in there if str(name).strip().casefold() in (field, *others)]
        if field not in there and len(same) == 1:
            found[same[0]] = field
    if found:
        said = [f"`{theirs}` is read as `{ours}`" for theirs, ours in found.items()]
        print(visible(f"{where}: {', '.join(said)}."))
    return found
