"""Who is who: names of models and makers in a text, by `data/identity/lexicon.yaml`.

A text is folded first, so that typing does not matter; every name keeps the way back to what was
typed. The longest name at a place counts, and what follows it is read as version, tier, size and
date.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import yaml

from selfeval.paths import shipped
from selfeval.providers.models import Model, get

_WRITTEN = "{family} {version} {tier} {snapshot}"
_VERSION = r"[0-9]-[0-9](?![0-9])|[0-9]{1,2}(?:\.[0-9]{1,2}){0,2}"
_END = r"(?![a-z0-9])"
# between the parts of a name: "claude-3", "Claude 3", "Claude (Sonnet", "Claude, version 3", "GPT4"
_JOIN = re.compile(r"(?:[-_./:]| ?\(| |,? version |,? v\. ?)?")
_SIZE = re.compile(rf"(?:[0-9]{{1,2}}x)?[0-9]{{1,4}}(?:\.[0-9]{{1,2}})?[bmt]{_END}")
_SNAPSHOT = re.compile(
    rf"(?:20[0-9]{{6}}|20[0-9]{{2}}-[0-9]{{2}}-[0-9]{{2}}|[0-9]{{2}}-20[0-9]{{2}}|"
    rf"[0-9]{{2}}-[0-9]{{2}}|[0-9]{{4}}){_END}"
)
# what says nothing on who it is; of these, spaces stand before the last ones alone
_NOISE = re.compile(
    r"(?:(?<=[-_:./])(?:chat|it|base|latest|exp|experimental|gguf|free|beta|hf|api|online|h"
    r"|[0-9]+k|v[0-9](?::[0-9])?"
    rf"|q[0-9]\w{{0,4}}|fp8|awq)|instruct|preview|a[0-9]{{1,2}}b){_END}"
)
_ATTACHED = re.compile(
    r"-(?:based|like|style|type|class|powered|driven|trained|made|built|developed|backed"
    r"|compatible|level|derived"
    r"|inspired|generated|family|series|models?)\b"
)
_SUFFIX = re.compile(r"-[a-z0-9](?:[\w.]*\w)?")
# "Flash-Lite" before "Flash"
_TIERS = [re.compile(rf"[a-z][a-z0-9]*{more}{_END}") for more in ("[- ]?[a-z]+", "")]
_TOKEN = re.compile(r"[a-z]+|[0-9]+|[+]|[^\W\d_a-z]")  # of names in other scripts each letter
_BETWEEN = re.compile(r"(?:[-_ ./]| ?\()?")
_HTAP = re.compile(r"(?:/[\w.-]{0,30}[a-z0-9]){1,3}")  # "openai/" before a name, read backwards

# one typed character -> what it means here; a dash between thoughts is never part of a name
_MARKS = {
    **{
        "—": " - ",
        "―": " - ",
        "。": ". ",
        "，": ", ",
        "、": ", ",
        "！": "! ",
        "？": "? ",
        "：": ": ",
        "；": "; ",
    },
    **{"،": ", ", "؛": "; ", "؟": "? "},
    **{"（": " (", "）": ") ", "−": "-", "⁄": "/", "\u2028": "\n", "\u2029": "\n", "\x85": "\n"},
    **dict.fromkeys("‘’‚‛′´ʼ", "'"),
    **dict.fromkeys("“”„‟″«»「」『』", '"'),
}
_TYPED = re.compile(
    r"((?<![^\n])[ \t]{0,3}(?:#{1,6} +|[*+•] +)"  # headings and bullets
    r"|[^\x00-\x7f]|\r\n?|[^\S\n]{2,}|[\t\v\f]"
    r"|\*+|(?<!`)`{1,2}(?!`)|~~|(?<![^\W_])_+|_+(?![^\W_]))"  # emphasis and code, but no fence
)


class Entity(NamedTuple):
    """A model or maker, from coarse to fine.

    None leaves a level open. A tier of "" says that there is none: GPT-4.1 itself, not GPT-4.1 mini
    (`entity_of`).
    """

    developer: str | None = None
    family: str | None = None
    version: str | None = None
    tier: str | None = None
    snapshot: str | None = None

    @property
    def name(self) -> str:
        """Return the name as people write it."""
        return _written(self)


@lru_cache(maxsize=4096)
def _written(one: Entity) -> str:
    if not one.family:
        return one.developer or ""
    family = _base().families.get((one.developer, one.family), {})
    parts = {level: name or "" for level, name in one._asdict().items()}
    parts["version"] = re.sub(
        r"^[a-z](?![a-z])", lambda letter: letter[0].upper(), parts["version"]
    )
    form = family.get("written", _WRITTEN) if one.version or one.tier else _WRITTEN
    written = form.format(**parts)
    for pattern, spelling in family.get("spelled", ()):
        written = re.sub(pattern, spelling, written)
    return " ".join(written.split()).replace("- ", " ").strip(" -")


Names = tuple[tuple[str, Entity], ...]  # names that the lexicon lacks, and whose they are


class Mention(NamedTuple):
    """A name in a folded text.

    entity: None is a variant of a known family that the lexicon cannot place.
    """

    start: int
    end: int
    entity: Entity | None
    attached: str = ""  # what follows with a hyphen: "-based", "-like"


class Plain(NamedTuple):
    """A folded text. `low` is `text` in lower case and as long.

    `at` says where each character was typed.
    """

    text: str
    low: str
    at: Sequence[int]


def fold(text: str) -> Plain:
    """Fold width, hyphens, quotes, accents, invisible characters, markdown and spacing.

    Case and line breaks stay.
    """
    plain = ""
    start = 0
    at: list[int] = []
    for number, typed in enumerate(_TYPED.split(text)):  # what stays and what is folded take turns
        piece = _folded(typed) if number % 2 else typed
        at += [start] * len(piece) if number % 2 else range(start, start + len(piece))
        plain += piece
        start += len(typed)
    return Plain(plain, plain.lower(), at)


@lru_cache(maxsize=4096)
def _folded(typed: str) -> str:
    if typed in _MARKS:
        return _MARKS[typed]
    if typed[0] in "\r\n" or typed.isspace():
        return "\n" if typed[0] in "\r\n" else " "
    if typed.isascii() or len(typed) > 1:  # markdown; of bullets a dash stays
        return "- " if typed.endswith(" ") and "#" not in typed else ""
    category = unicodedata.category(typed)
    if category in ("Cf", "Mn", "Pd"):
        return "-" if category == "Pd" else ""
    parts = unicodedata.normalize("NFKD", typed)
    accented = len(parts) == 2 and parts[0].isascii() and unicodedata.combining(parts[1])
    return parts[0] if accented else unicodedata.normalize("NFKC", typed)


# --- the lexicon


class _Alias(NamedTuple):
    """One name and whose it is.

    word: counts only with a capital letter. shared: developer and family have this name, which
    means the developer while nothing finer is said ("DeepSeek").
    """

    entity: Entity
    word: bool = False
    shared: bool = False


class Lexicon:
    """Names by their key. families: the options of the lexicon's file, by developer and family."""

    def __init__(self, base: "Lexicon | None" = None) -> None:
        self.families: dict[tuple[str | None, str | None], dict] = (
            dict(base.families) if base else {}
        )
        self.aliases: dict[str, _Alias] = dict(base.aliases) if base else {}
        # first token: tokens of its longest name
        self.longest: dict[str, int] = dict(base.longest) if base else {}

    def add(self, name: str, entity: Entity, word: bool = False) -> None:
        """Add a name; the last owner of a name has it."""
        tokens = _TOKEN.findall(fold(name).low)
        if not tokens:
            return
        key = "".join(tokens)
        shared = (
            entity.family
            and key in self.aliases
            and self.aliases[key].entity == Entity(entity.developer)
        )
        self.aliases[key] = _Alias(entity, word, bool(shared))
        self.longest[tokens[0]] = max(len(tokens), self.longest.get(tokens[0], 0))

    def add_family(self, developer: str, name: str, options: dict) -> None:
        """Add a family with its names from the lexicon's form."""
        tiers = {
            key_of(tier): tier for tier in (*options.get("tiers", ()), *options.get("entries", ()))
        }
        version = re.compile(rf"v?({options.get('version', _VERSION)}){_END}(?!\.[0-9])")
        self.families[developer, name] = options | {"tiers": tiers, "version": version}
        words = options.get("words", ())
        for alias, levels in options.get("models", {}).items():
            self.add(alias, Entity(developer, name, *levels))
        for alias in (name, *options.get("names", ()), *words):
            self.add(alias, Entity(developer, name), alias in words)
        for tier in options.get("entries", ()):
            self.add(tier, Entity(developer, name, tier=tier), word=True)

    def find(self, plain: Plain, most: int | None = None) -> list[Mention]:
        """Return the names of a text, longest first at each place.

        "openai/gpt-4" is one, "GPT-4/Claude" are two. most: stop behind so many.
        """
        tokens = list(_TOKEN.finditer(plain.low))
        found: list[Mention] = []
        for number, token in enumerate(tokens):
            if len(found) == most:
                break
            start = token.start()
            if found and start < found[-1].end:
                continue
            if token[0] not in self.longest or _inside_word(plain.low, start):
                continue
            mention = self._longest(plain, tokens[number : number + self.longest[token[0]]])
            if mention:
                self._add_with_path(found, plain, mention)
        return found

    def _add_with_path(self, found: list[Mention], plain: Plain, mention: Mention) -> None:
        """Add a name to those found, with a path before it ("openai/") that is not another's."""
        if mention.entity and mention.entity.family:
            start = mention.start
            path = _HTAP.match(plain.low[max(0, start - 100) : start][::-1])
            begin = start - path.end() if path else start
            if path and not _inside_word(plain.low, begin):
                inside = [other for other in found[-40:] if other.end > begin]
                if all(_agree(mention.entity, other.entity) for other in inside):
                    del found[len(found) - len(inside) :]
                    mention = mention._replace(start=begin)
        found.append(mention)

    def _longest(self, plain: Plain, tokens: Sequence[re.Match[str]]) -> Mention | None:
        start = tokens[0].start()
        key = ""
        best = None
        end = tokens[0].start()
        for token in tokens:
            if not _BETWEEN.fullmatch(plain.low, end, token.start()):
                break
            key = key + token[0]
            end = token.end()
            alias = self.aliases.get(key)
            if alias and (not alias.word or plain.text[start].isupper() or plain.text == plain.low):
                found = self._with_parts(plain.low, start, end, alias)
                best = found if found and (best is None or found.end >= best.end) else best
        return best

    def _with_parts(self, low: str, start: int, end: int, alias: _Alias) -> Mention | None:
        """Read version, tier and so on behind a name."""
        entity = alias.entity
        family = self.families.get((entity.developer, entity.family), {})
        while entity.family and (part := _part(low, end, family, entity)):
            end, entity = part
        if "(" in low[start:end] and low[end : end + 1] == ")":
            end += 1
        if re.match(r"[a-z0-9]", low[end : end + 1]) and low[end - 1].isascii():
            return None
        if alias.shared and entity == alias.entity:
            entity = Entity(entity.developer)
        attached = _ATTACHED.match(low, end)
        if not attached and entity.family and (suffix := _SUFFIX.match(low, end)):
            return Mention(start, suffix.end(), None)
        return Mention(start, end, entity, attached[0] if attached else "")


def _agree(entity: Entity, other: Entity | None) -> bool:
    """Tell whether a part of a path may name the same."""
    return other is not None and compare(entity, other) != "conflict"


def _inside_word(low: str, start: int) -> bool:
    """Tell whether a word began before: "xGPT", "non-Claude"."""
    before = low[max(0, start - 2) : start]
    return bool(re.search(r"[a-z0-9]-?\Z", before)) and low[start].isascii()


def _part(low: str, end: int, family: dict, entity: Entity) -> tuple[int, Entity] | None:
    """Read one part of a name behind `end`: its own end, and the entity with what it adds."""
    join: Any = _JOIN.match(low, end)  # it may be empty
    at = join.end()
    tight = join[0] in ("-", "_", ":", ".", "/")
    if (size := _SIZE.match(low, at)) and not (
        entity.tier and _SIZE.fullmatch(entity.tier.lower())
    ):
        return size.end(), _with_tier(entity, size[0].upper().replace("X", "x"))
    dated = _SNAPSHOT.match(low, at)
    year = dated and not tight and re.fullmatch(r"(?:19|20)\d\d", dated[0])
    if dated and join[0] and not year and not entity.snapshot and (entity.version or entity.tier):
        return dated.end(), entity._replace(snapshot=dated[0])
    version = family["version"].match(low, at) if family and not entity.version else None
    if version:
        return version.end(), entity._replace(version=version[1].replace("-", "."))
    if join[0] and family.get("tiers"):
        for pattern in _TIERS:
            tier = pattern.match(low, at)
            if tier and key_of(tier[0]) in family["tiers"]:
                return tier.end(), _with_tier(entity, family["tiers"][key_of(tier[0])])
    noise = _NOISE.match(low, at) if join[0] else None
    return (noise.end(), entity) if noise else None


def _with_tier(entity: Entity, tier: str) -> Entity:
    return entity._replace(
        tier=f"{entity.tier} {tier}" if entity.tier and entity.tier != tier else tier
    )


def key_of(name: str) -> str:
    """Return the letters and digits of a name in lower case, which all its spellings share."""
    return "".join(_TOKEN.findall(fold(name).low))


@cache
def content(name: str) -> dict:
    """Return what a file of `data/identity/` holds."""
    return yaml.safe_load(shipped(f"identity/{name}.yaml").read_text(encoding="utf-8"))


@cache
def _base() -> Lexicon:
    """Read the lexicon file."""
    lexicon = Lexicon()
    for developer, entry in content("lexicon").items():
        words = entry.get("words", ())
        for name in (developer, *entry.get("names", ()), *words):
            lexicon.add(name, Entity(developer), name in words)
        for family, options in (entry.get("families") or {}).items():
            lexicon.add_family(developer, family, options or {})
    return lexicon


@lru_cache(maxsize=1024)
def _lexicon(further: Names) -> Lexicon:
    """Return the lexicon with the names that its file does not read, or not as this very model."""
    lexicon = Lexicon(_base())
    for name, who in further:
        read, rest = _read_name(name, _base())
        if rest or read is None or not is_whole(read, who):
            lexicon.add(name, who, word=bool(re.fullmatch(r"[A-Z]?[a-z]+", name)))
        if who.developer and who.developer not in content("lexicon"):
            lexicon.add(who.developer, Entity(who.developer))
    return lexicon


def mentions(plain: Plain, names: Names = (), most: int | None = None) -> list[Mention]:
    """Return the names in a folded text.

    names: further ones, and whose they are. most: stop behind so many.
    """
    return _lexicon(names).find(plain, most)


def _read_name(name: str, lexicon: Lexicon) -> tuple[Entity | None, str]:
    """Return who a name stands for, and which of its words say no more."""
    plain = fold(name)
    found = lexicon.find(plain)
    rest = plain.low
    for mention in reversed(found):
        rest = rest[: mention.start] + " " + rest[mention.end :]
    rest = " ".join(re.findall(r"[^\W_]+", re.sub(r"\bby\b|'s\b", "", rest)))
    read = [mention.entity for mention in found if mention.entity is not None]
    if not read or len(read) < len(found):
        return None, rest
    finest = max(read, key=lambda e: sum(level is not None for level in e))
    return (finest, rest) if all(compare(e, finest) != "conflict" for e in read) else (None, rest)


def entity(name: str, names: Names = ()) -> Entity | None:
    """Return who a name or model id stands for, None for an unknown one.

    The lexicon and `names` say who. The text has to be a name and nothing
    else ("OpenAI GPT-4", "Claude by Anthropic", "claude-3-haiku-20240307").
    """
    read, rest = _read_name(name, _lexicon(names))
    return None if rest else read


def entity_of(model: Model) -> Entity:
    """Return who a model is.

    What its display name, id and aliases say, down to the finest level; see `who_is`.
    """
    return who_is(model.display, model.developer, (model.id.rpartition("/")[2], *model.names))


def model_played(model: Model) -> Model:
    """Return the model whose identity a model has.

    Its own, or the one that a simulated model plays.
    """
    simulation = model.simulation or {}
    return get(simulation["plays"]) if "plays" in simulation else model


def who_is(name: str, maker: str, aliases: Sequence[str] = ()) -> Entity:
    """Return whom a name, its maker and further names describe.

    A name with a version and no tier has tier "": GPT-4.1 is not GPT-4.1 mini. One that the lexicon
    does not know is a family of its own, of that maker.
    """
    best, _ = _read_name(name, _base())
    if best is None or not best.family:
        return Entity(maker or None, name)
    for alias in aliases:
        read, rest = _read_name(alias, _base())
        if read and not rest and compare(read, best) != "conflict":
            best = Entity(*(a or b for a, b in zip(best, read, strict=True)))
    return best._replace(tier="") if best.version and best.tier is None else best


@lru_cache(maxsize=4096)
def compare(claimed: Entity, truth: Entity) -> str:
    """Return how a claimed identity relates to the truth.

    "equal", "coarser", "finer" or "conflict". Conflict: a level that both give differs (4 is not
    4.5, GPT-4 is not GPT-4o). Coarser: consistent, but the claim leaves open a level that the truth
    has, even if it adds others. Finer: consistent, and it only adds levels.
    """
    leaves_open = False
    adds = False
    for level, a, b in zip(Entity._fields, claimed, truth, strict=True):
        if a is not None and b is not None:
            if _spelling(level, a) != _spelling(level, b):
                return "conflict"
        elif b:
            leaves_open = True
        elif a:
            adds = True
    if leaves_open:
        return "coarser"
    return "finer" if adds else "equal"


def is_whole(claimed: Entity, truth: Entity) -> bool:
    """Tell whether a claim names the truth: nothing open but the snapshot."""
    return compare(claimed, truth._replace(snapshot=claimed.snapshot and truth.snapshot)) in (
        "equal",
        "finer",
    )


def _spelling(level: str, value: str) -> tuple:
    """Make two spellings of one level equal.

    Versions as tuples, where 4.0 is 4 and 4o is neither 4 nor 4.1.
    """
    if level != "version":
        return (key_of(value) or value.casefold(),)
    parts = re.findall(r"[a-z]+|[0-9]+", value.lower())
    while len(parts) > 1 and parts[-1] == "0":
        parts.pop()
    return tuple(int(p) if p.isdigit() else p for p in parts)
