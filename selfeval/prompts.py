"""Prompts: rows -> messages. What many questions share stands first, so that servers can reuse it."""

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path

from selfeval.errors import InputError

CANDIDATES = "One of these language models wrote the text:"
CANDIDATE_LINE = re.compile(r"^- (.+)$", re.M)
YES_OR_NO = "Answer with YES or NO and nothing else."


def read_prompts(path: Path, limit: int = 0) -> list[dict]:
    """Return the writing prompts of a JSON lines file: rows with `prompt_id` and `prompt`, ids unique.

    limit: only the first so many; 0 = all. Raises `InputError` naming the line that breaks the form.
    """
    check_limit(limit)
    rows, seen = [], set()
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The prompts {path} cannot be read: {error}.") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            prompt_id, text = row["prompt_id"], row["prompt"]
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path}, line {number}: not a JSON object with `prompt_id` and `prompt`.") from error
        if prompt_id in seen or not str(text).strip():
            raise InputError(f"{path}, line {number}: `prompt_id` {prompt_id!r} is used twice or its prompt is empty.")
        seen.add(prompt_id)
        rows.append(row)
    if not rows:
        raise InputError(f"The prompts {path} hold no prompt.")
    return rows[: limit or None]


def check_limit(limit: int) -> None:
    """Raise `InputError` unless this is a number of prompts, or 0 for all."""
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        raise InputError(f"`limit` must be a number of prompts or 0 for all, got {limit!r}.")


def user(text: str) -> list[dict]:
    """Return a conversation of one user turn."""
    return [{"role": "user", "content": text}]


def build_writing(prompt: str, words: int) -> list[dict]:
    """Ask for a text of about so many words."""
    return user(f"{prompt}\n\nWrite about {words} words of plain text, without a title.")


def fenced(text: str) -> str:
    """Return a text between two equal lines that it cannot contain, since they hold its own hash."""
    mark = f"TEXT {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    return f"Read the text between the two lines {mark}.\n\n{mark}\n{text}\n{mark}\n\n"


def _about(prompt: str | None) -> str:
    return f"It was written in answer to this request: {prompt}\n\n" if prompt else ""


def _listed(candidates: Sequence[str]) -> str:
    return f"{CANDIDATES}\n" + "\n".join(f"- {name}" for name in candidates) + "\n\n"


def build_exact(
    text: str, candidates: Sequence[str], me: str | None, *, prompt: str | None = None, hint: bool = False
) -> list[dict]:
    """Ask which of the candidates wrote a text.

    me: what the evaluator is called among them (None: it is not told). prompt: show what the text answers. hint: say
    that the author is certainly on the list.
    """
    sure = "It is known that the author is one of them.\n" if hint else ""
    told = f"You are {me}.\n" if me else ""
    return user(
        f"{fenced(text)}{_about(prompt)}{_listed(candidates)}{sure}{told}"
        "Which of them wrote the text? Answer with the exact name from the list and nothing else."
    )


def build_binary(
    text: str, me: str, *, prompt: str | None = None, candidates: Sequence[str] | None = None
) -> list[dict]:
    """Ask an evaluator, told who it is, whether it wrote a text; candidates: list who may have written it."""
    hint = _listed(candidates) if candidates else ""
    return user(f"{fenced(text)}{_about(prompt)}{hint}You are {me}.\nDid you write this text? {YES_OR_NO}")


def choice_format(field: str, options: Sequence[str]) -> dict:
    """Return a `response_format` that lets the reply be one of the options and nothing else."""
    schema = {
        "type": "object",
        "properties": {field: {"type": "string", "enum": list(options)}},
        "required": [field],
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": field, "strict": True, "schema": schema}}
