"""Texts and what they were written on.

Authors' texts, writing prompts, and what people wrote in chats.
"""

import contextlib
import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from selfeval.errors import InputError, check_name, check_whole
from selfeval.providers.models import decode, stripped
from selfeval.reading import thinking
from selfeval.reading.parsing import name_key
from selfeval.records.tables import (
    Rows,
    called_otherwise,
    corpus_to_read,
    headings,
    is_file,
    path_to_read,
    rows_of,
)

PUBLISHED_CORPUS = ("text", "model", "model_display_name", "prompt")
LONGEST_TURN = 1000  # characters; a chat with a longer turn, a link or a tag is left out
MARKUP = re.compile(r"https?://|www\.|<[^>]*>")


def read_prompts(source: Rows | Sequence[str], limit: int = 0) -> list[dict]:
    """Return writing prompts, rows with `prompt_id` and `prompt`, ids unique.

    Of a file, a DataFrame, rows or a list of texts. A prompt without an id gets one from its words.
    limit: only the first `limit`; 0 = all. Raises `InputError` that names the place where the form
    is broken.
    """
    check_whole("limit", limit)
    if not isinstance(source, str | Path | pd.DataFrame | Mapping) and isinstance(source, Iterable):
        source = [
            {"prompt_id": prompt_id_of(row), "prompt": row} if isinstance(row, str) else row
            for row in source
        ]
    where: str | Path = "`prompts`"
    if is_file(source):
        if isinstance(source, str) and " " in source and not Path(source).suffix:
            raise InputError(f"`prompts` names no file: write one prompt as [{source!r}].")
        where = source = path_to_read(source)
    rows = _with_our_fields(where, rows_of(source), "prompts")
    seen: dict = {}
    for number, row in enumerate(rows, 1):
        with _placed(where, number):
            _check_texts(row, "prompt")
            row["prompt_id"] = stripped(row.get("prompt_id"))
            if row["prompt_id"] in (None, ""):
                row["prompt_id"] = prompt_id_of(row["prompt"])
            if not isinstance(row["prompt_id"], str | int):
                raise InputError(
                    f"`prompt_id` must be a text or a number, got {row['prompt_id']!r:.80}."
                )
            if row.get("words") is not None:
                row["words"] = decode(int, row["words"], "the prompt", "words")
            _check_new(seen, row, "prompt", number)
    return rows[: limit or None]


@contextlib.contextmanager
def _placed(where: str | Path, number: int) -> Iterator[None]:
    """Say of what is wrong in a record where it stands."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}, record {number}: {error}") from error


def _check_texts(row: Mapping, *wanted: str) -> None:
    """Raise `InputError` unless these fields of a record are non-empty texts.

    "author/model" is either.
    """
    for names in wanted:
        given = [name for name in names.split("/") if name in row]
        if not given:
            needs = ", ".join(map(_either, wanted))
            has = ", ".join(map(str, row))
            rule = f"wanted are {needs}, and there are {has}; rename the fields"
            raise InputError(f"there is no {_either(names)}: {rule}.")
        name = next((name for name in given if row[name]), given[0])
        value = row[name]
        if is_text(value):
            continue
        remedy = f"{value!r:.80}; write a text"
        if value is None or not str(value).strip():
            remedy = "empty; fill it in"
        raise InputError(f"`{name}` is {remedy}, or delete the record.")


def _either(names: str) -> str:
    """Write "author/model" as `author` or `model`."""
    return "`" + names.replace("/", "` or `") + "`"


def _check_new(seen: dict, row: Mapping, field: str, number: int) -> None:
    """Raise `InputError` where an earlier prompt or text has this id.

    seen: {id: number of its record}.
    """
    first = seen.setdefault(row[f"{field}_id"], number)
    if first != number:
        said = f"the {field} {row[field]!r:.80} has the same `{field}_id` as record {first}"
        raise InputError(f"{said}; delete one, or give it a `{field}_id` of its own.")


def prompt_id_of(prompt: str) -> str:
    """Return an id for a prompt without one: a hash of its text, without blanks around it."""
    return hashlib.sha256(stripped(prompt).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def check_spellings(where: str | Path, kind: str, names: Iterable[str]) -> None:
    """Raise `InputError` where two names differ in typing alone: case, blanks, hyphens, width."""
    known: dict[str, str] = {}
    for name in sorted(names):
        other = known.setdefault(name_key(name) or name, name)
        if other != name:
            raise InputError(
                f"{where} spell one {kind} in two ways, {other!r} and {name!r}; rename one "
                f"(in predictions authors={{{name!r}: {other!r}}} does that)."
            )


def read_texts(corpus: Rows, limit: int = 0) -> list[dict]:
    """Return the text records of a corpus.

    Ours, the published format, or a table with author, prompt, text. corpus: a name below
    data/corpora/, a path, a DataFrame or rows. limit: only the first `limit` prompts, with all
    texts on them; 0 = all. Raises `InputError` for a file that is missing, empty, broken, or has
    two texts with one id, or two spellings of an author.
    """
    check_whole("limit", limit)
    where: str | Path = "`texts`"
    if is_file(corpus):
        where = corpus = corpus_to_read(corpus)
    rows = _with_our_fields(where, rows_of(corpus), "texts")
    texts = []
    seen: dict = {}
    for number, row in enumerate(rows, 1):
        with _placed(where, number):
            text = _text_record(row)
            _check_new(seen, text, "text", number)
        texts.append(text)
    check_spellings(f"The texts of {where}", "author", {text["author"] for text in texts})
    _say_two_authors(where, texts)
    chosen = [*dict.fromkeys(text["prompt_id"] for text in texts)][: limit or None]
    return [text for text in texts if text["prompt_id"] in chosen]


def _with_our_fields(where: str | Path, rows: list[dict], kind: str) -> list[dict]:
    """Return rows in which fields that others call otherwise have our names, without blanks."""
    rows = [{str(name).strip(): value for name, value in row.items()} for row in rows]
    ours = called_otherwise(where, rows[0], headings(kind))
    return [{ours.get(name, name): value for name, value in row.items()} for row in rows]


def _say_two_authors(where: str | Path, texts: Sequence[dict]) -> None:
    """Say of how many texts two authors wrote the same words.

    Nobody can tell whose such a text is.
    """
    authors_of = {}
    for text in texts:
        authors_of.setdefault(text["text"].strip(), {})[text["author"]] = None
    shared = [words for words, authors in authors_of.items() if len(authors) > 1]
    if not shared:
        return
    first, second, *_ = authors_of[shared[0]]
    number = "1 text" if len(shared) == 1 else f"{len(shared)} texts"
    print(
        f"{where}: {number} of two authors each in the same words (the first, {shared[0][:40]!r}, "
        f"of {first!r} and {second!r}): nobody can tell whose these are; leave them out if that is "
        "a slip."
    )


def _text_record(row: Mapping) -> dict:
    _check_texts(row, "author/model", "prompt", "text")
    author = stripped(row.get("author") or row["model"])
    prompt = row["prompt"]
    thought, text = thinking.split(row["text"])
    _check_texts({"text": text}, "text")
    display = row.get("author_display") or row.get("model_display_name") or author
    prompt_id = stripped(row.get("prompt_id")) or prompt_id_of(prompt)
    _check_texts({"author_display": display}, "author_display")
    check_name("author", author)
    check_name("author_display", display)
    if not isinstance(prompt_id, str | int | float):
        raise InputError(f"`prompt_id` must be a text or a number, got {prompt_id!r:.80}.")
    sample = decode(int, row.get("sample") or 0, "the record", "sample")
    first = text_fields(author, display, str(prompt_id), prompt, sample, text)
    if row.get("text_id") is not None:
        first["text_id"] = decode(int, row["text_id"], "the record", "text_id")
    if thought:
        first["reasoning"] = thought
    return first | {k: v for k, v in row.items() if k not in first and k not in PUBLISHED_CORPUS}


def is_text(value) -> bool:
    """Tell whether a value is a non-empty text."""
    return isinstance(value, str) and bool(value.strip())


def text_fields(
    author: str, display: str, prompt_id: str, prompt: str, sample: int, text: str
) -> dict:
    """Return what every text record begins with.

    The id (52 bits) does not depend on the rest of the corpus.
    """
    identity = json.dumps([author, prompt_id, sample, text])
    text_id = int(hashlib.sha256(identity.encode()).hexdigest()[:13], 16)
    first = {"text_id": text_id, "prompt_id": prompt_id, "prompt": prompt, "sample": sample}
    return first | {
        "author": author,
        "author_display": display,
        "text": text,
        "words": len(text.split()),
    }


# chats


@cache
def chats() -> tuple[dict, ...]:
    """Return what people wrote.

    The usable of the 7,168 chats in `chitchat-dataset` (MIT), a competition of 2018. In the
    dataset's order: `chat_id`, `topic` (what the site proposed, or "") and `turns` of `speaker` (A
    spoke first), `text` and `timestamp` (of the first message, UTC). Speakers and times are real.
    Read as they are, the chats hold surprises: 3,150 have a single message, 33 messages are blank,
    a speaker often sends several in a row, and in quick chats questions and answers cross. A chat
    here has two speakers; messages in a row are one turn, joined by line breaks; blank ones are
    left out, and chats with a turn of more than LONGEST_TURN characters, a link or a tag are not
    used. Nothing is corrected, and nothing rude is taken out.
    """
    package: Any = find_spec("chitchat_dataset")
    path = Path(package.origin).with_name("dataset.json")
    raw = json.loads(path.read_text(encoding="utf-8"))
    usable = []
    for chat_id, chat in raw.items():
        turns = _turns(chat)
        if _is_usable(turns):
            usable.append({"chat_id": chat_id, "topic": chat.get("prompt") or "", "turns": turns})
    return tuple(usable)


def _turns(chat: dict) -> list[dict]:
    said = [message for group in chat["messages"] for message in group if message["text"].strip()]
    speakers = dict(zip(dict.fromkeys(message["sender"] for message in said), "AB", strict=False))
    turns = []
    for sender, group in itertools.groupby(said, lambda message: message["sender"]):
        messages = [*group]
        text = "\n".join(message["text"].strip() for message in messages)
        turns.append(
            {"speaker": speakers.get(sender), "text": text, "timestamp": messages[0]["timestamp"]}
        )
    return turns


def _is_usable(turns: list[dict]) -> bool:
    if {turn["speaker"] for turn in turns} != {"A", "B"}:
        return False
    texts = [turn["text"] for turn in turns]
    return max(map(len, texts)) <= LONGEST_TURN and not any(map(MARKUP.search, texts))
