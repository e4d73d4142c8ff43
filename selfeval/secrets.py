"""Keys and hostile text: what must not get out of here, and what must not act where it is shown.

Keys are known by value, those that this environment holds (`.env` is part of it), and by the shapes
of well-known ones. They are kept out of what a notebook kernel sends and of what a sweep tells.
Records keep every text as it was: `visible` stands where it is shown.
"""

import os
import re
from collections.abc import Iterable

# letters of a value that can be searched for; shorter ones stand in every file
SHORTEST = 8
# {variable: the key that a provider of the registry read there, whatever it is called}
READ: dict[str, str] = {}
# of the words of a name in small letters, joined by blanks; PWD alone is a folder, `pass` a verb
SECRET_NAME = re.compile(
    r"(?<!\w)(?:key|jwt|cookies?|webhook|credentials?|creds|connection string)(?!\w)"
    r"|(?:api|access|auth|secret|private|ssh)key(?!\w)"
    r"|(?:token|secrets?|passwords?|passwd|passphrase|passcode)(?!\w)"
    r"|\w (?:pass|pat|pwd|auth|dsn|sas)$"
)
# in an address
PASSWORD = re.compile(r"://[^:/@\s]*:([^/\s]+)@")
# {how keys begin: how they go on}
BEGINNINGS = {
    # OpenAI, OpenRouter, Anthropic, Stripe
    "sk- pk- rk- sk_ pk_ rk_": r"(?=(?:[\w-]{0,60}?\d){3})[\w-]{16,}",
    # GitHub, Groq, xAI
    "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ gsk_ xai-": r"\w{16,}",
    # Google, GitLab, NVIDIA, Slack
    "AIza glpat- nvapi- xoxb- xoxp- xoxa- xoxe- xoxo- xoxr- xoxs-": r"[\w-]{16,}",
    # Hugging Face
    "hf_": "[A-Za-z0-9]{16,}",
    # AWS
    "AKIA ASIA": r"[0-9A-Z]{16}\b",
    # a JSON web token
    "eyJ": r"[\w-]{10,400}\.eyJ[\w-]{10,2000}\.[\w-]{10,}",
    "Bearer": r" (?=[\w.~+/=-]*?\d)[\w.~+/=-]{16,}",
    "-----BEGIN": r" (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----",
}
# One pattern for each beginning, literal first: found twenty times as fast as one after a `\b`.
SHAPES = {}
for beginnings, rest in BEGINNINGS.items():
    for beginning in beginnings.split():
        SHAPES[beginning] = rf"{beginning}(?<!\w{beginning}){rest}"
SECRET_VALUE = re.compile("|".join(SHAPES.values()), re.ASCII)

# signs that nobody sees, or that turn a text round, for a pattern's brackets
HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f"
)
_HIDDEN = re.compile(f"[{HIDDEN}]")
_MARKS = {"\0": "‹NUL›", "\r": "‹CR›", "\x1b": "‹ESC›"}
# of these, what does harm
_ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text) -> str:
    """Return a text in which control characters, direction marks and lone surrogates are seen."""
    return _HIDDEN.sub(_mark, str(text).replace("\r\n", "\n"))


def _mark(match: re.Match) -> str:
    return _MARKS.get(match[0]) or f"‹U+{ord(match[0]):04X}›"


# keeping out


def plain(text: str) -> str:
    """Return at most 400 characters on one line without control characters.

    The text may come from a model.
    """
    printable = "".join(sign if sign.isprintable() else " " for sign in text)
    return " ".join(printable.split())[:400]


def is_secret_name(name: str) -> bool:
    """Tell whether a name (of a parameter, of a variable) says that its value is a secret."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", str(name))
    return bool(SECRET_NAME.search(" ".join(words).lower()))


def values() -> dict[str, str]:
    """Return {name: value} of the secrets in this environment, and of keys once read.

    Passwords in addresses are among them.
    """
    secrets = dict(READ)
    for name, text in os.environ.items():
        text = text.strip()
        is_mixed = re.search(r"[\d ]", text) and re.search("[A-Za-z]", text)
        if is_secret_name(name) and is_mixed:  # `KEY=notebook` is none
            secrets[name] = text
        password = PASSWORD.search(text)
        if password:
            secrets[f"{name} (password)"] = password[1]
    return {name: value for name, value in secrets.items() if len(value) >= SHORTEST}


def redact(text: str, shapes: bool = True) -> str:
    """Return a text without the keys in use, and without what looks like a key."""
    for value in sorted({*values().values()}, key=len, reverse=True):
        text = text.replace(value, "[key]")
    if not shapes:
        return text
    return PASSWORD.sub("://[key]@", SECRET_VALUE.sub("[key]", text))


def guard_kernel(shell) -> None:
    """Keep keys out of all that this notebook kernel sends.

    Outputs, tracebacks and the reply to a cell. shell: IPython's; in a terminal nothing is done. A
    verbose traceback shows local variables, and with them headers or the environment. A lone
    surrogate in an output ends the kernel's channel, so it is written as an escape; in tables and
    other displayed values (not in what is printed) so are escape sequences and marks that turn text
    round.
    """
    session = getattr(getattr(shell, "kernel", None), "session", None)
    if session is None:
        return
    pack = session.pack

    def guarded(message):
        return pack(message if "msg_id" in message else _clean(message))

    session.pack = guarded


def _clean(part, kind: str = ""):
    """Return a part of a message without keys; kind: its type, such as text/html."""
    if isinstance(part, str):
        if kind.startswith("text/"):
            part = _ACTS.sub(_mark, part)
        part = part.encode("utf-8", "backslashreplace").decode()
        return redact(part, shapes=False)
    if isinstance(part, dict):
        return {key: _clean(value, str(key)) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return [_clean(value) for value in part]
    return part


def tell(sentences: Iterable[str]) -> None:
    """Print sentences, harmless to show, for the user."""
    for sentence in sentences:
        print(visible(sentence))
