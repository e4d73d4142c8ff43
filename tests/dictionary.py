"""The tables of a Markdown file as what they promise, and records held against them.

A section is a heading with a table `| field | type | null | meaning |`. A type is text, int, number, bool, list,
object or any; a link in it names the section that says what the object, or each item of the list, holds. A line with
"Also: [Section]" or "Also [Section]" adds that section's fields.
"""

import contextlib
import re
from collections import defaultdict
from dataclasses import dataclass, field

KINDS = {"text": str, "int": int, "number": (int, float), "bool": bool, "list": list, "object": dict, "any": object}
LINK = re.compile(r"\[[^\]]*\]\(#([^)]+)\)")


@dataclass
class Field:
    kind: str
    null: str
    links: list[str]
    nesting: str  # what follows the kind, without the link


@dataclass
class Section:
    title: str
    fields: dict[str, Field] = field(default_factory=dict)
    also: list[str] = field(default_factory=list)


def anchor(title):
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def read(text):
    """Return {anchor: section} of all headings of a Markdown text."""
    sections, section, is_table = {}, None, False
    for line in text.splitlines():
        if heading := re.match(r"#+ (.+)", line):
            section, is_table = sections.setdefault(anchor(heading[1]), Section(heading[1])), False
        elif line.startswith("| field | type | null |"):
            is_table = True
        elif is_table and line.startswith("| `"):
            names, kind, null, *_ = (cell.strip() for cell in line.strip("|").split("|"))
            word, _, rest = kind.partition(" ")
            assert word in KINDS, f"{section.title}: the type {kind!r} is none of {', '.join(KINDS)}"
            found = Field(word, null, LINK.findall(kind), LINK.sub("", rest).strip())
            section.fields |= dict.fromkeys(re.findall(r"`([^`]+)`", names), found)
        elif section and (also := re.search(r"\bAlso:? " + LINK.pattern, line)):
            section.also.append(also[1])
    return sections


class Dictionary:
    """Sections, what of them has been seen, and what was found that they do not say."""

    def __init__(self, text):
        self.sections = read(text)
        self.seen = defaultdict(set)
        self.wrong = []

    def fields(self, name):
        section = self.sections[name]
        return section.fields | {k: v for also in section.also for k, v in self.fields(also).items()}

    def hold(self, name, row, where=""):
        """Hold a record against a section: its fields, their types, and which of them may be null."""
        known = self.fields(name)
        where = where or name
        for key, value in row.items():
            if key not in known:
                self.wrong.append(f"{where}: `{key}` is not documented")
                continue
            self.seen[name].add(key)
            self._value(known[key], value, f"{where}.{key}")
        for also in self.sections[name].also:
            self.seen[also] |= self.seen[name] & set(self.sections[also].fields)

    def _value(self, promised, value, where):
        if value is None:
            if promised.null == "no":
                self.wrong.append(f"{where}: null, and documented as never null")
        elif not isinstance(value, KINDS[promised.kind]) or (isinstance(value, bool) and promised.kind != "bool"):
            if promised.kind != "any":
                self.wrong.append(f"{where}: {value!r:.60} is no {promised.kind}")
        elif len(promised.links) == 1:
            for item in _items(promised, value):
                self.hold(promised.links[0], item, where)

    def hold_csv(self, name, table):
        """Hold a table, read as text, against a section; its columns must be all of it."""
        known = self.fields(name)
        self.seen[name] |= set(table) & set(known)  # also of a table without rows
        for row in table.to_dict("records"):
            self.hold(name, {column: _cell(known.get(column), cell) for column, cell in row.items()})
        may_be_away = {column for column, promised in known.items() if promised.null == "left out"} - {*table}
        if missing := sorted((set(known) ^ set(table)) - may_be_away):
            self.wrong.append(f"{name}: documented or a column, and not both: {', '.join(missing)}")

    def unseen(self, name):
        """Return the documented fields of a section that no record had."""
        return sorted(set(self.sections[name].fields) - self.seen[name])


def _items(promised, value):
    if promised.nesting == "of lists":
        return [item for items in value for item in items]
    if promised.nesting == "of":
        return list(value.values())
    return [value] if promised.kind == "object" else value


def _cell(promised, text):
    """Return a CSV cell as a value of the promised kind, as it stands where it is none."""
    with contextlib.suppress(ValueError):
        return {"int": int, "number": float}.get(promised and promised.kind, str)(text) if text else None
    return text
