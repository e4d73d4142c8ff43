"""What a secret looks like: the keys that this environment holds, and the shapes of well-known ones."""

import os
import re
from urllib.parse import urlsplit

SHORTEST = 8  # letters of a value that can be searched for; shorter ones stand in every file
WORDS = {"key", "apikey", "token", "secret", "secrets", "password", "passwords", "passwd", "credentials"}
KINDS = {  # kind: (how it begins, how it goes on)
    "API key (sk-)": ("sk- pk- rk- sk_ pk_ rk_", r"(?=(?:[\w-]{0,60}?\d){3})[\w-]{16,}"),
    "Google API key": ("AIza", r"[\w-]{30,}"),
    "Hugging Face token": ("hf_", "[A-Za-z0-9]{16,}"),
    "GitHub token": ("ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"\w{16,}"),
    "GitLab token": ("glpat-", r"[\w-]{16,}"),
    "Slack token": ("xoxb- xoxp- xoxa- xoxe- xoxo- xoxr- xoxs-", r"[\w-]{16,}"),
    "Groq or xAI key": ("gsk_ xai-", r"\w{16,}"),
    "NVIDIA key": ("nvapi-", r"[\w-]{20,}"),
    "AWS access key": ("AKIA ASIA", r"[0-9A-Z]{16}\b"),
    "JSON web token": ("eyJ", r"[\w-]{10,400}\.eyJ[\w-]{10,2000}\.[\w-]{10,}"),
    "bearer token": ("Bearer", r" (?=[\w.~+/=-]*?\d)[\w.~+/=-]{16,}"),
    "private key": ("-----BEGIN", r" (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"),
}
# One pattern for each beginning, literal first: that is searched for twenty times as fast as one after a `\b`.
SHAPES = [(kind, rf"{begin}(?<!\w{begin}){rest}") for kind, (begins, rest) in KINDS.items() for begin in begins.split()]
SECRET_VALUE = re.compile("|".join(shape for _, shape in SHAPES), re.ASCII)
_read: set[str] = set()  # keys that a provider of the registry was asked for, whatever their variable is called


def is_secret_name(name: str) -> bool:
    """Tell whether a name (of a parameter, of a variable) says that its value is a secret."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", str(name))
    return bool(WORDS & {*map(str.lower, words)})


def remember(value: str) -> str:
    """Return a key that was read, and keep it out of what is shown from now on."""
    if len(value) >= SHORTEST:
        _read.add(value)
    return value


def values(more: dict[str, str] | None = None) -> dict[str, str]:
    """Return {name: value} of the secrets in this environment (`.env` is part of it), also passwords in addresses.

    more: further variables by name, such as those that the registry's providers name.
    """
    found = {}
    for name, text in (os.environ | (more or {})).items():
        text = text.strip()
        random = re.search(r"\d", text) and re.search("[A-Za-z]", text)  # `KEY=notebook` is no secret
        if len(text) >= SHORTEST and (name in (more or {}) or (random and is_secret_name(name))):
            found[name] = text
        if "@" in text and (password := _password(text)):
            found[f"{name} (password)"] = password
    return found


def _password(text: str) -> str | None:
    try:
        password = urlsplit(text).password
    except ValueError:
        return None
    return password if password and len(password) >= SHORTEST else None


def redact(text: str, shapes: bool = True) -> str:
    """Return a text without the keys in use, and without what looks like a key."""
    for value in sorted({*values().values(), *_read}, key=len, reverse=True):
        text = text.replace(value, "[key]")
    return SECRET_VALUE.sub("[key]", text) if shapes else text
