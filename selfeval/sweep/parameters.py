"""What a parameter in a sweep file may be: a plain literal that the notebook declares, of its type, and no secret."""

import difflib
import json
import keyword
import math
import re

from selfeval.keys import SECRET_VALUE, is_secret_name


def declared_parameters(notebook):
    """Return the parameters of a notebook as papermill sees them: {name: its annotation, default and help}."""
    from papermill import inspect_notebook

    return inspect_notebook(str(notebook))


def parameter_fault(name, value, declared):
    """Return what forbids to pass a parameter on: papermill injects names as code and stores values three times."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        return f"{str(name)[:60]!r} is no parameter name"
    leaves = [*_leaves(name, value)]
    if any(_is_secret(*leaf) for leaf in leaves):
        return f"`{name}` looks like a secret; keys come from the environment (or .env), never from parameters"
    if declared is not None and name not in declared:
        listed = ", ".join(declared) or "none"
        return f"the notebook has no parameter {name!r}{suggest(name, declared)}; it declares {listed}"
    for key, leaf in leaves:
        finite = not isinstance(leaf, float) or math.isfinite(leaf)
        if not isinstance(key, str) or not isinstance(leaf, str | int | float | None) or not finite:
            return f"`{name}` has {leaf or key!s:.40}, which is no plain literal; quote it if text is meant"
    return None


def _leaves(name, value):
    """Yield (name, value) for each scalar inside a parameter, and (key, None) for each key of a mapping."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield key, None
            yield from _leaves(key, part)
    elif isinstance(value, list):
        for part in value:
            yield from _leaves(name, part)
    else:
        yield name, value


def _is_secret(name, value):
    return is_secret_name(name) or bool(isinstance(value, str) and SECRET_VALUE.search(value))


def type_fault(value, kind):
    """Return how a value breaks its annotation, with the trap of YAML that it fell into; None when it keeps it."""
    outer, _, inner = kind.replace(" ", "").partition("[")
    if outer == "list":
        if not isinstance(value, list):
            return None if isinstance(value, str) else _mismatch(value, "a list or one string")
        faults = (type_fault(part, inner.removesuffix("]") or "plain") for part in value)
        return next(filter(None, faults), None)
    types = {"int": int, "float": int | float, "str": str, "bool": bool, "dict": dict, "plain": object}
    fits = isinstance(value, types.get(outer, object))
    if fits and (outer in ("bool", "dict", "str") or outer not in types or not isinstance(value, bool)):
        return None
    return _mismatch(value, "text or a number" if outer == "plain" else outer)


def _mismatch(value, kind):
    text = f"is {json.dumps(value, default=str)[:60]}, but must be {kind}"
    if kind in ("int", "float") and isinstance(value, str):
        if match := re.fullmatch(r"([+-]?\d+)(\.\d*)?[eE]([+-]?)(\d+)", value):
            whole, part, sign, power = match.groups()
            return f"{text}: YAML 1.1 reads {value} as text, write {whole}{part or '.0'}e{sign or '+'}{power}"
        return f"{text}: write it without quotes"
    if kind in ("int", "float", "bool", "dict") or not isinstance(value, int | float):
        return text
    return f"{text}: {'YAML reads no, yes, on and off as booleans, ' * isinstance(value, bool)}quote it"


def suggest(name, known):
    """Return `; did you mean ...?` where a known name is near, else nothing."""
    near = difflib.get_close_matches(str(name), [*known], 1, 0.5)
    return f"; did you mean {near[0]!r}?" if near else ""
