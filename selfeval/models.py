"""The registry `data/models.yaml`: model id -> provider, names, parameters, price."""

import difflib
import inspect
import ipaddress
import math
import os
import reprlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from dotenv import load_dotenv

from selfeval import DATA, ROOT
from selfeval.errors import InputError
from selfeval.keys import NAMES, redact

DEFAULT_PROVIDER = "openrouter"
load_dotenv(ROOT / ".env")  # keys; what the environment already has stays


@dataclass(frozen=True)
class Provider:
    """Who serves a model; the fields are explained at the top of `data/models.yaml`."""

    name: str
    base_url: str | None = None
    base_url_env: str | None = None
    keys: tuple[str, ...] = ()
    hosted: bool = False
    concurrency: int = math.inf  # whole where a registry gives it
    deadline: float = 600.0
    requests_per_minute: float = math.inf
    tokens_per_minute: float = math.inf
    answer_tokens: int = 2000
    json_schema: bool = False
    logprobs: bool = False
    seeded: bool = False
    effort: bool = False
    embedded: dict | None = None

    def __post_init__(self):
        NAMES.update(self.keys)

    def __repr__(self) -> str:
        return f"Provider({self.name!r})"

    @property
    def url(self) -> str | None:
        """Return the address in use, with the environment's override."""
        return (self.base_url_env and os.environ.get(self.base_url_env)) or self.base_url

    @property
    def key(self) -> str | None:
        """Return the API key, or None where none is set."""
        return next((key for name in self.keys if (key := os.environ.get(name, "").strip())), None)

    @property
    def address(self) -> str:
        """Return the address in use as it may be shown and stored: a password in it is a key, and not part of it."""
        scheme, _, address = (self.url or "").rstrip("/").rpartition("://")
        return f"{scheme}://{address.rpartition('@')[2]}"

    @property
    def on_loopback(self) -> bool:
        """Tell whether the address in use is one of this machine."""
        try:
            host = urlsplit(self.url or "").hostname or ""
            return host == "localhost" or ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    def identity(self) -> dict:
        """Return what of the provider can change a reply: the base URL only for an endpoint of the user's own."""
        if self.embedded:
            return {"provider": self.name} | {k: self.embedded[k] for k in ("sha256", "engine", "settings")}
        own = not self.hosted or self.url != self.base_url
        return {"provider": self.name} | ({"base_url": self.address} if own and self.url else {})


@dataclass(frozen=True)
class Model:
    """One model under study: what the API takes, what figures show, what a reply may call it."""

    id: str
    provider: Provider
    api_name: str
    display: str
    family: str = ""
    developer: str = ""
    names: tuple[str, ...] = ()
    system: str | None = None
    parameters: dict = field(default_factory=dict)
    reasoning: bool = False
    reasoning_tokens: int = 16_000
    price: dict | None = None
    simulation: dict | None = None
    call: Callable | None = None
    listed: bool = True

    def __repr__(self) -> str:
        return f"Model({self.id!r})"

    @property
    def all_names(self) -> tuple[str, ...]:
        """Return the display name, then the aliases."""
        return (self.display, *self.names)

    def with_room(self, parameters: dict) -> dict:
        """Return parameters whose most tokens of a reply leave room for thinking besides."""
        limits = ("max_tokens", "max_completion_tokens")
        return parameters | {k: v + self.reasoning_tokens for k, v in parameters.items() if k in limits}


def registry_files() -> tuple[Path, ...]:
    """Return the registry's files: the project's, then the one that `SELFEVAL_MODELS` names."""
    return _files(os.environ.get("SELFEVAL_MODELS"))


@cache
def _files(own: str | None) -> tuple[Path, ...]:
    """Name the files once: a million candidates are looked up when a large file is scored anew."""
    return (DATA / "models.yaml", *([Path(own)] if own else []))


@cache
def _load(files: tuple[Path, ...]) -> tuple[dict[str, Provider], dict[str, Model]]:
    providers: dict[str, Provider] = {}
    models: dict[str, Model] = {}
    for path in files:
        try:
            content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:  # 2026-13-45 is a ValueError
            raise InputError(f"The registry {path} cannot be read: {error}.") from error
        parts = {"providers": dict, "models": list}
        if not isinstance(content, dict) or not all(isinstance(v, parts.get(k, ())) for k, v in content.items()):
            raise InputError(f"The registry {path} must have `providers` (by name) and `models` (a list) and no more.")
        for name, entry in (content.get("providers") or {}).items():
            if not isinstance(entry or {}, dict):
                raise InputError(f"The registry {path} must give the provider {name!r} fields, got {_shown(entry)}.")
            providers[name] = _entry(Provider, path, {"name": name, **(entry or {})})
        own = [_model(path, entry, providers) for entry in content.get("models") or []]
        for what, names in (("id", [m.id for m in own]), ("display", [m.display.strip().casefold() for m in own])):
            if twice := next((m for k, m in enumerate(own) if names[k] in names[:k]), None):
                raise InputError(
                    f"The registry {path} gives the {what} {getattr(twice, what)!r} to two models; each needs its own."
                )
        models |= {model.id: model for model in own}
    # A provider that a later file replaces is replaced for the models of all files: no key goes where it was before.
    return providers, {i: replace(model, provider=providers[model.provider.name]) for i, model in models.items()}


def _entry(kind: type, path: Path, entry: dict):
    known = {name: field.type for name, field in kind.__dataclass_fields__.items()}
    name = entry.get("name") or entry.get("id")
    for key, value in entry.items():
        if key not in known:
            near = difflib.get_close_matches(str(key), known, 1)
            raise InputError(
                f"The registry {path} has the unknown field `{key}` in {name!r}"
                + (f"; did you mean `{near[0]}`?" if near else f"; known are {', '.join(known)}.")
            )
        if not _fits(key, known[key], value):
            raise InputError(f"The registry {path} has in {name!r} a `{key}` of the wrong form: {_shown(value)}.")
    return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()})


def _fits(key: str, kind: type, value) -> bool:
    if kind == tuple[str, ...]:
        texts = isinstance(value, list | tuple) and all(isinstance(v, str) for v in value)
        return texts and (key != "keys" or all(map(str.isidentifier, value)))  # names of variables, not the keys
    if kind in (int, float):
        return _is_number(value, kind) and value > 0
    if key == "price" and isinstance(value, dict):  # one below 0 would pay for calls beyond the ceiling
        return {"input", "output"} == {k for k, v in value.items() if _is_number(v) and 0 <= v < math.inf}
    return isinstance(value, kind) and (key not in ("id", "display") or bool(value.strip()))


def _is_number(value, kind: type = float) -> bool:
    return isinstance(value, int | kind) and not isinstance(value, bool)


def _shown(value) -> str:
    """Return what stands in the registry's place, in short and without keys: some put them there."""
    brief = reprlib.Repr()
    brief.maxlevel, brief.maxstring = 3, 200
    return redact(brief.repr(value))


def _model(path: Path, entry: dict, providers: dict[str, Provider]) -> Model:
    if not isinstance(entry, dict) or not isinstance(entry.get("id"), str) or "display" not in entry:
        raise InputError(f"The registry {path} has a model without `id` or `display`: {_shown(entry)}.")
    entry = dict(entry)
    provider, api_name = _split(entry["id"], providers)
    if "provider" in entry:
        name, api_name = entry.pop("provider"), entry["id"]
        provider = providers.get(name) if isinstance(name, str) else None
    if provider is None:
        raise InputError(f"The registry {path} gives {entry['id']!r} a provider that it does not define.")
    return _entry(Model, path, entry | {"provider": provider, "api_name": entry.pop("model", api_name)})


def _split(model_id: str, providers: dict[str, Provider]) -> tuple[Provider | None, str]:
    """Return provider and API name of an id: `provider:name`, `local/...`, `sim/...`, or `developer/name`."""
    head, colon, rest = model_id.partition(":")
    if colon and head in providers:
        return providers[head], rest
    head, slash, rest = model_id.partition("/")
    if slash and head in ("local", "sim"):
        return providers[head], rest
    return (providers[DEFAULT_PROVIDER] if slash else None), model_id


def providers() -> dict[str, Provider]:
    """Return all providers by name."""
    return _load(registry_files())[0]


def models() -> dict[str, Model]:
    """Return all listed models by id, in the registry's order."""
    return _load(registry_files())[1]


def get(model_id: str) -> Model:
    """Return the model with this id; one that is not listed is used by its id if that names a provider.

    Raises `InputError` for an id that is neither listed nor of the form `developer/model` or `provider:model`.
    """
    if not isinstance(model_id, str) or not model_id.strip():
        raise InputError(f"A model id must be a non-empty text, got {model_id!r}.")
    listed = models()
    if model_id in listed:
        return listed[model_id]
    provider, api_name = _split(model_id, providers())
    if provider is None or provider.name in ("local", "sim") or not all(part.strip() for part in api_name.split("/")):
        head, colon, rest = model_id.partition(":")
        if colon and rest.strip() and "/" not in head and head not in providers():
            known = ", ".join(providers())
            raise InputError(f"Unknown model {model_id!r}: there is no provider {head!r}; known are {known}.")
        near = difflib.get_close_matches(model_id, listed, 1, 0.5) if not colon or rest.strip() else []
        raise InputError(
            f"Unknown model {model_id!r}: "
            + (f"did you mean {near[0]!r}? " if near else "")
            + "`selfeval models` lists the registry; other models are written `developer/model` (OpenRouter) or "
            "`provider:model`."
        )
    twin = listed.get(api_name) or listed.get(f"{provider.name}/{api_name}")
    if twin is None:
        return Model(model_id, provider, api_name, display=api_name.rpartition("/")[2], listed=False)
    if twin.provider == provider:
        return twin
    # The same model from another provider: its names hold, its price need not.
    return replace(twin, id=model_id, provider=provider, api_name=api_name, price=None)


def from_callable(call: Callable, model_id: str, display: str | None = None) -> Model:
    """Return a model that a Python callable serves: `call(messages, **parameters)`, plain or asynchronous.

    It is given those parameters (temperature, max_tokens, ...) that it takes, and returns a `providers.Response` or a
    text; anything else is an error of that call. Its replies are not stored: only you know when the callable changes.
    """
    if not callable(call):
        raise InputError(f"A model is made of a function of messages, got {call!r}.")
    return Model(model_id, Provider("python"), model_id, display or model_id, call=_Served(call), listed=False)


@dataclass(frozen=True)
class _Served:
    """A callable as the client asks it: with what it takes of the parameters, for a response or a text."""

    call: Callable

    async def __call__(self, messages: list[dict], **parameters):
        from selfeval.asking.request import Response  # which imports this module

        answer = self.call(messages, **self._taken(parameters))
        answer = await answer if inspect.isawaitable(answer) else answer
        if not isinstance(answer, str | Response):
            raise TypeError(f"the function must return a text or a Response, got {answer!r:.80}")
        return answer

    def _taken(self, parameters: dict) -> dict:
        try:
            takes = inspect.signature(self.call).parameters.values()
        except ValueError:  # of C
            return {}
        if any(each.kind == each.VAR_KEYWORD for each in takes):
            return parameters
        by_name = {each.name for each in takes if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD)}
        return {name: value for name, value in parameters.items() if name in by_name}


def get_all(ids: str | Model | list[str | Model]) -> list[Model]:
    """Return the models of a list of ids, or of one id.

    Raises `InputError` for an unknown id, an empty list, or one model given twice.
    """
    ids = [ids] if isinstance(ids, str | Model) else list(ids)
    if not ids:
        raise InputError("A list of models must name at least one, got [].")
    found = [i if isinstance(i, Model) else get(i) for i in ids]
    twice = next((m.id for k, m in enumerate(found) if m in found[:k]), None)
    if twice:
        raise InputError(f"The model {twice!r} is in the list twice; name each once.")
    return found


def is_known(model_id: str) -> bool:
    """Tell whether the registry lists this id (`human` and labels of foreign files are not in it)."""
    return model_id in models()


def display_names(ids: Iterable[str]) -> dict[str, str]:
    """Return {id: display name} of the ids that the registry lists."""
    return {i: get(i).display for i in ids if is_known(i)}
