"""Who is who: names of models and their makers, from `data/identity/lexicon.yaml` and the registry."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import yaml

from selfeval import models
from selfeval.errors import InputError
from selfeval.identity.plain import Plain, fold
from selfeval.records import data_path

TIERS = "mini nano turbo pro large small medium max plus flash lite fast ultra".split()  # of families not listed
FIELDS = {"names", "words", "version", "starts", "tiers", "entries", "models", "written", "spelled"}  # of a family
LEVELS = ("developer", "family", "version", "tier", "snapshot")
_WRITTEN = "{family} {version} {tier} {snapshot}"
_VERSION = r"[0-9]-[0-9](?![0-9])|[0-9]{1,2}(?:\.[0-9]{1,2}){0,2}"
# between the parts of a name: "claude-3", "Claude 3", "Claude (Sonnet", "Claude, version 3", "GPT4"
_JOIN = re.compile(r"(?:[-_./:]| ?\(| |,? version |,? v\. ?)?")
_SIZE = re.compile(r"(?:[0-9]{1,2}x)?[0-9]{1,4}(?:\.[0-9]{1,2})?[bmt](?![a-z0-9])")
_SNAPSHOT = re.compile(r"20[0-9]{6}|20[0-9]{2}-[0-9]{2}-[0-9]{2}|[0-9]{2}-20[0-9]{2}|[0-9]{2}-[0-9]{2}|[0-9]{4}")
_NOISE = re.compile(
    r"(?:instruct|chat|it|base|latest|preview|exp|experimental|gguf|free|beta|hf|api|online|h|[0-9]+k|a[0-9]{1,2}b"
    r"|v[0-9](?::[0-9])?|q[0-9]\w{0,4}|fp8|awq)(?![a-z0-9])"
)
_SPACED_NOISE = re.compile(r"(?:instruct|preview|a[0-9]{1,2}b)(?![a-z0-9])")
_NO_TIER = re.compile(r"[- ](?:language|scale|ai|model)\b")  # "Mistral, a large language model"
_ATTACHED = re.compile(
    r"-(?:based|like|style|type|class|powered|driven|trained|made|built|developed|backed|compatible|level|derived"
    r"|inspired|generated|family|series|models?)\b"
)
_SUFFIX = re.compile(r"-[a-z0-9][\w.]*")
_TOKEN = re.compile(r"(?<![a-z0-9])(?:[a-z]+|[0-9]+)")
_PATH = re.compile(r"(?:[a-z0-9][\w.-]{0,30}/){1,3}(?=[a-z])")
_CJK = re.compile(r"[\u3040-\u9fff]")


@dataclass(frozen=True)
class Entity:
    """A model or maker, from coarse to fine.

    None leaves a level open. A tier of "" says that there is none: GPT-4.1 itself, not GPT-4.1 mini (`entity_of`).
    """

    developer: str | None = None
    family: str | None = None
    version: str | None = None
    tier: str | None = None
    snapshot: str | None = None

    @property
    def name(self) -> str:
        """Return the name as people write it."""
        if not self.family:
            return self.developer or ""
        family = _base().families.get((self.developer, self.family))
        parts = {level: getattr(self, level) or "" for level in LEVELS}
        parts["version"] = re.sub(r"^[a-z](?![a-z])", lambda letter: letter[0].upper(), parts["version"])
        written = (family.written if family and (self.version or self.tier) else _WRITTEN).format(**parts)
        for pattern, spelling in family.spelled if family else ():
            written = re.sub(pattern, spelling, written)
        return " ".join(written.split()).replace("- ", " ").strip(" -")


@dataclass(frozen=True)
class Mention:
    """A name in a folded text. entity: None = a variant of a known family that the lexicon cannot place."""

    start: int
    end: int
    entity: Entity | None
    word: bool = False  # an ordinary word too, so that the words around it decide
    attached: str = ""  # what follows with a hyphen: "-based", "-like"


@dataclass(frozen=True)
class Family:
    """How a family's models are named; the fields are explained at the top of the lexicon file."""

    developer: str
    name: str | None
    version: re.Pattern[str] | None = None
    tiers: re.Pattern[str] | None = None
    spelling: tuple[tuple[str, str], ...] = ()
    written: str = _WRITTEN
    spelled: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class _Entry:
    """One name: whose it is, and what it says beyond the family."""

    family: Family
    entity: Entity
    pattern: re.Pattern[str]
    length: int
    word: bool = False
    parts: bool = True  # version, tier and so on may follow


class Lexicon:
    """Names by their first token, so that a text is read in one pass."""

    def __init__(self) -> None:
        self.families: dict[tuple[str, str], Family] = {}
        self._entries: dict[str, list[_Entry]] = {}
        self._literal: dict[str, _Entry] = {}  # names in other scripts
        self.developer_names: dict[str, tuple[str, ...]] = {}

    def add(self, name: str, family: Family, entity: Entity, word: bool = False, parts: bool = True) -> None:
        """Add a name; the first owner of a name keeps it."""
        low = fold(name).low.strip()
        first = _TOKEN.search(low)
        if not low:
            return
        if not first or _CJK.search(low):  # other scripts: the name as it stands
            self._literal[low] = _Entry(family, entity, re.compile(re.escape(low)), len(low))
            return
        entry = _Entry(family, entity, re.compile(_name_pattern(low, parts)), len(low), word, parts)
        same = self._entries.setdefault(first[0], [])
        if all(other.pattern.pattern != entry.pattern.pattern for other in same):
            same.append(entry)
            same.sort(key=lambda e: -e.length)

    def add_developer(self, name: str, names: Sequence[str] = (), words: Sequence[str] = ()) -> None:
        """Add a developer with its names."""
        self.developer_names[name] = (name, *names, *words)
        for alias in dict.fromkeys(self.developer_names[name]):
            self.add(alias, Family(name, None), Entity(name), word=alias in words, parts=False)

    def add_family(self, developer: str, name: str, options: dict) -> None:
        """Add a family with its names from the lexicon's form."""
        tiers = [*options.get("tiers", ()), *options.get("entries", ())]
        keys = {_key(tier): tier for tier in tiers}
        family = Family(
            developer,
            name,
            re.compile(rf"v?(?P<version>{options.get('version', _VERSION)})(?![a-z0-9])(?!\.[0-9])"),
            re.compile(
                "|".join(_name_pattern(fold(t).low, False) for t in sorted(tiers, key=len, reverse=True)) or "(?!)"
            ),
            tuple(keys.items()),
            options.get("written", _WRITTEN),
            tuple(map(tuple, options.get("spelled", ()))),
        )
        self.families[developer, name] = family
        plain, words = options.get("names", ()), options.get("words", ())
        for alias in plain if name in words else (name, *plain):
            self.add(alias, family, Entity(developer, name))
        for alias in words:
            self.add(alias, family, Entity(developer, name), word=True)
        for alias, levels in options.get("models", {}).items():
            self.add(alias, family, Entity(developer, name, *levels))
        for tier in options.get("entries", ()):
            self.add(tier, family, Entity(developer, name, tier=tier), word=True)
        if "starts" in options:
            entity = Entity(developer, name)
            start = re.compile(rf"(?={options['starts']}(?![a-z0-9]))")
            self._entries.setdefault("o", []).append(_Entry(family, entity, start, 0))

    def find(self, plain: Plain, more: "Lexicon | None" = None) -> Iterator[Mention]:
        """Yield the names of a text, longest first at each place, none inside another."""
        low, done = plain.low, 0
        firsts = self._entries.keys() | (more._entries.keys() if more else set())
        slashes = "/" in low
        places = ((m.start(), m[0]) for m in _TOKEN.finditer(low))
        literal = {**self._literal, **(more._literal if more else {})}
        if literal and not low.isascii():
            names = re.compile("|".join(map(re.escape, sorted(literal, key=len, reverse=True))))
            places = iter(sorted([*places, *((m.start(), "") for m in names.finditer(low))]))
        for start, token in places:
            if start >= done and (not token or token in firsts or slashes):
                mention = self._at(plain, start, token, more)
                if mention:
                    done = mention.end
                    yield mention

    def _at(self, plain: Plain, start: int, token: str, more: "Lexicon | None") -> Mention | None:
        low = plain.low
        if token and low.find("/", start, start + 100) >= 0 and (path := _PATH.match(low, start)):
            inner = _TOKEN.match(low, path.end())
            model = inner and self._read(plain, path.end(), inner[0], more)
            whole = self._read(plain, start, token, more)
            if whole and whole.end > path.end():
                return whole
            if model and model.entity and model.entity.family and not _apart(whole, model.entity):
                return replace(model, start=start, word=False)
        if start and low[start - 1] == "-" and start > 1 and low[start - 2].isalnum():
            return None  # "non-Claude"
        return self._read(plain, start, token, more)

    def _read(self, plain: Plain, start: int, token: str, more: "Lexicon | None") -> Mention | None:
        low = plain.low
        lists = [lexicon._entries.get(token, ()) for lexicon in (more, self) if lexicon]
        found = [(m.end(), e) for entries in lists for e in entries if (m := e.pattern.match(low, start))]
        if not token:
            literal = [e for lexicon in (more, self) if lexicon for e in lexicon._literal.values()]
            found = [(m.end(), e) for e in literal if (m := e.pattern.match(low, start))]
        best = None
        for end, entry in found:
            if entry.word and not plain.text[start].isupper() and not plain.lowercase:
                continue
            mention = _with_parts(plain, start, end, entry)
            if mention and (best is None or mention.end > best.end):
                best = mention
        return best


def _apart(owner: Mention | None, model: Entity) -> bool:
    """Tell whether the name before a slash is another model's ("GPT-4/Claude"), not the owner's ("qwen/qwen3")."""
    return bool(owner and owner.entity and owner.entity.family and compare(owner.entity, model) == "conflict")


def _with_parts(plain: Plain, start: int, end: int, entry: _Entry) -> Mention | None:
    """Read version, tier and so on behind a name."""
    low, family, entity = plain.low, entry.family, entry.entity
    name_end = end
    while entry.parts:
        join = _JOIN.match(low, end)
        part = _part(low, join, family, entity)
        if part is None:
            break
        end, entity = part
    if "(" in low[start:end] and low[end : end + 1] == ")":
        end += 1
    if end == start or (low[end : end + 1].isalnum() and low[end : end + 1].isascii()):
        return None
    word = entry.word and end == name_end
    if attached := _ATTACHED.match(low, end):
        return Mention(start, end, _shared(entity), word, attached[0])
    if family.name and (suffix := _SUFFIX.match(low, end)):
        return Mention(start, suffix.end(), None)
    return Mention(start, end, _shared(entity), word)


def _part(low: str, join: re.Match[str], family: Family, entity: Entity) -> tuple[int, Entity] | None:
    """Read one part of a name: its end, and the entity with what it adds."""
    at, tight = join.end(), join[0] in ("-", "_", ":", "@", ".", "/")
    if not join[0] and low[at : at + 1].isalpha() and low[max(0, at - 1) : at].isalpha():
        return None
    if (size := _SIZE.match(low, at)) and not (entity.tier and _SIZE.fullmatch(entity.tier.lower())):
        return size.end(), _tier(entity, size[0].upper().replace("X", "x"))
    if (dated := _SNAPSHOT.match(low, at)) and not low[dated.end() : dated.end() + 1].isalnum() and not entity.snapshot:
        year = len(dated[0]) == 4 and dated[0][:2] in ("19", "20")
        if join[0] and (tight or not year) and (entity.version or entity.tier):
            return dated.end(), replace(entity, snapshot=dated[0])
    if not entity.version and family.version and (version := family.version.match(low, at)):
        return version.end(), replace(entity, version=version["version"].replace("-", "."))
    tier = family.tiers.match(low, at) if join[0] and family.tiers else None
    if tier and not _NO_TIER.match(low, tier.end()):
        return tier.end(), _tier(entity, dict(family.spelling)[_key(tier[0])])
    noise = (_NOISE if tight else _SPACED_NOISE).match(low, at) if join[0] else None
    return (noise.end(), entity) if noise else None


def _tier(entity: Entity, tier: str) -> Entity:
    return replace(entity, tier=f"{entity.tier} {tier}" if entity.tier and entity.tier != tier else tier)


def _shared(entity: Entity) -> Entity:
    """Take a name that developer and family share for the developer while nothing finer is said."""
    if entity.family and entity.developer and not (entity.version or entity.tier or entity.snapshot):
        names = {_key(name) for name in _base().developer_names.get(entity.developer, ())}
        if _key(entity.family) in names:
            return Entity(entity.developer)
    return entity


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9+]", "", name.lower())


def _name_pattern(low: str, parts: bool) -> str:
    """Match a name however its parts are joined; digits may follow the name of a family ("Qwen3")."""
    tokens = re.findall(r"[a-z]+|[0-9]+|[+]", low)
    return r"(?:[-_ ./]| ?\()?".join(re.escape(t) for t in tokens) + ("(?![a-z])" if parts else "(?![a-z0-9])")


@cache
def _base() -> Lexicon:
    """Read the lexicon file."""
    path = data_path("identity/lexicon.yaml")
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"The lexicon {path} cannot be read: {error}.") from error
    if not isinstance(content, dict):
        raise InputError(f"The lexicon {path} must give developers by name.")
    lexicon = Lexicon()
    for developer, entry in content.items():
        _check_fields(path, developer, entry, {"names", "words", "families"})
        lexicon.add_developer(developer, entry.get("names", ()), entry.get("words", ()))
        for family, options in (entry.get("families") or {}).items():
            _check_fields(path, family, options, FIELDS)
            lexicon.add_family(developer, family, options or {})
    return lexicon


def _check_fields(path, name: str, entry: dict | None, known: set[str]) -> None:
    unknown = {*(entry or {})} - known
    if unknown:
        raise InputError(f"The lexicon {path} gives {name} the unknown field `{min(unknown)}`.")


@lru_cache(maxsize=256)
def _overlay(registry: tuple, known: tuple[Entity, ...]) -> Lexicon:
    """Return the names that the lexicon file does not read in full: the registry's, and those of `known` entities."""
    lexicon = Lexicon()
    for model in models.models().values():
        if model.provider.name == "sim":  # "Good", "Chance": words, unless somebody asks for them by `known`
            continue
        found = entity_of(model)
        for name in (model.id, model.id.rpartition("/")[2], *model.all_names):
            read, rest = _read_name(name, None)
            if read is None or rest:
                lexicon.add(name, Family(found.developer, found.family), found, _is_word(name), parts=False)
    for one in known:
        if one.developer and one.developer not in _base().developer_names:
            lexicon.add_developer(one.developer)
        if one.family and (one.developer, one.family) not in _base().families:
            options = {"words": [one.family]} if _is_word(one.family) else {}
            lexicon.add_family(one.developer, one.family, options | {"tiers": TIERS})
            if one.name != one.family:
                lexicon.add(one.name, lexicon.families[one.developer, one.family], one)
    return lexicon


def _is_word(name: str) -> bool:
    return bool(re.fullmatch(r"[A-Z]?[a-z]+", name))


def mentions(plain: Plain, known: Sequence[Entity] = ()) -> list[Mention]:
    """Return the names in a folded text. known: further entities, found by their names."""
    new = tuple(e for e in known if (e.developer, e.family) not in _base().families)
    return list(_base().find(plain, _overlay(tuple(models.registry_files()), new)))


def _read_name(name: str, more: Lexicon | None) -> tuple[Entity | None, str]:
    """Return who a name stands for ("OpenAI GPT-4", "anthropic/claude-3-haiku"), and which of its words say no more."""
    plain = fold(name)
    found = list(_base().find(plain, more))
    rest = plain.low
    for mention in reversed(found):
        rest = rest[: mention.start] + " " + rest[mention.end :]
    rest = " ".join(re.findall(r"[^\W_]+", re.sub(r"\bby\b|'s\b", "", rest)))
    read = [m.entity for m in found]
    if not read or None in read:
        return None, rest
    finest = max(read, key=lambda e: sum(level is not None for level in _levels(e)))
    return (finest, rest) if all(compare(e, finest) != "conflict" for e in read) else (None, rest)


def entity(name: str) -> Entity | None:
    """Return who a name or model id stands for, or None where neither lexicon nor registry knows it.

    The text has to be a name and nothing else ("OpenAI GPT-4", "Claude by Anthropic", "claude-3-haiku-20240307").
    """
    read, rest = _read_name(name, _overlay(tuple(models.registry_files()), ()))
    return None if rest else read


def entity_of(model: models.Model) -> Entity:
    """Return who a model is: what its display name, id and aliases say, down to the finest level.

    A model whose name has a version and no tier has none (""): GPT-4.1 is not GPT-4.1 mini. One that the lexicon does
    not know is a family of its own, with the registry's developer.
    """
    return _entity_of(model.id, model.developer, model.display, model.names)


@lru_cache(maxsize=256)
def _entity_of(model_id: str, developer: str, display: str, names: tuple[str, ...]) -> Entity:
    best, rest = _read_name(display, None)
    if best is None or not best.family:
        return Entity(developer or None, display)
    if rest:  # "SmolLM2 (hot)"
        best = replace(best, snapshot=rest)
    for name in (model_id.rpartition("/")[2], *names):
        read, rest = _read_name(name, None)
        if read and not rest and compare(read, best) != "conflict":
            best = Entity(*(a or b for a, b in zip(_levels(best), _levels(read), strict=True)))
    return replace(best, tier="") if best.version and best.tier is None else best


def compare(claimed: Entity, truth: Entity) -> str:
    """Return how a claimed identity relates to the truth: "equal", "coarser", "finer" or "conflict".

    Conflict: a level that both give differs (4 is not 4.5, GPT-4 is not GPT-4o). Coarser: consistent, but the claim
    leaves open a level that the truth has, whatever else it adds. Finer: consistent, and it only adds levels.
    """
    pairs = list(zip(LEVELS, _levels(claimed), _levels(truth), strict=True))
    if any(a is not None and b is not None and _level_key(level, a) != _level_key(level, b) for level, a, b in pairs):
        return "conflict"
    if any(b and a is None for _, a, b in pairs):
        return "coarser"
    return "finer" if any(a and b is None for _, a, b in pairs) else "equal"


def _levels(one: Entity) -> tuple[str | None, ...]:
    return tuple(getattr(one, level) for level in LEVELS)


def _level_key(level: str, value: str) -> tuple:
    """Make two spellings of one level equal: versions as tuples, where 4.0 is 4 and 4o is neither 4 nor 4.1."""
    if level != "version":
        return (_key(value) or value.casefold(),)
    parts = re.findall(r"[a-z]+|[0-9]+", value.lower())
    while len(parts) > 1 and parts[-1] == "0":
        parts.pop()
    return tuple(int(p) if p.isdigit() else p for p in parts)
