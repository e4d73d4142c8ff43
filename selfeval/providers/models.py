"""The registry `data/models.yaml`: model id -> provider, names, parameters, price."""

import inspect
import math
import os
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import yaml
from annotated_types import Ge, Gt, Lt, MinLen, Predicate
from dotenv import dotenv_values

from selfeval.bounds import read_yaml
from selfeval.errors import InputError, check_name, did_you_mean
from selfeval.paths import HOME, INSTALLED, shipped
from selfeval.providers.gguf import checked_sha256
from selfeval.secrets import READ, is_secret_name, redact, tell

DEFAULT_PROVIDER = "openrouter"
PYTHON = "python"  # the provider of functions
GGUF = "gguf"  # the provider of files; each is a provider of its own
LIMITS = {"max_tokens", "max_completion_tokens"}  # parameters that bound a reply
STRANGERS = {"extra": "forbid"}  # fields that a class does not have, where a registry is read
Text = Annotated[str, MinLen(1)]
Variable = Annotated[str, Predicate(str.isidentifier)]
Count = Annotated[int, Gt(0)]
Amount = Annotated[float, Gt(0)]
Price = Annotated[float, Ge(0), Lt(math.inf)]  # one below 0 would pay for calls beyond the ceiling
# role of `simulation`: the parts that it plays; without a role a simulated model plays them all
PLAYS = {
    "attack": {"attack"},
    "existence": {"say which models exist"},
    "identity": {"say which model they are"},
    "recognition": {"write texts", "recognise texts", "play the agent", "play the interrogator"},
    "roleplay": {"play the agent", "play the interrogator", "judge"},
}


def _load_env(file: Path) -> None:
    """Take what a `.env` sets and the environment lacks.

    Of a working folder, which may be anybody's, keys alone. The one in a clone is as much the
    user's own as the code beside it.
    """
    for name, value in dotenv_values(file).items():
        if value is not None and (not INSTALLED or is_secret_name(name)):
            os.environ.setdefault(name, value)


_load_env(HOME / ".env")


@dataclass(frozen=True)
class Provider:
    """Who serves a model; the fields are explained at the top of `data/models.yaml`."""

    name: str
    base_url: str | None = None
    base_url_env: str | None = None
    keys: tuple[Variable, ...] = ()  # not the keys, but which variables may have them
    headers: dict[str, str] = field(default_factory=dict, hash=False)
    hosted: bool = False
    plain_http: bool = False
    concurrency: Count = math.inf  # type: ignore  # whole where a registry gives it
    deadline: Amount = 600.0
    answer_tokens: Count = 2000
    json_schema: bool = False
    logprobs: bool = False
    seeded: bool = False
    effort: bool = False
    prefill: bool = False
    batch: Literal["inline", "files"] | None = None
    likelihood: Literal["grammar"] | None = None
    embedded: dict = field(default_factory=dict, hash=False)
    __pydantic_config__ = STRANGERS

    def __repr__(self) -> str:
        return f"Provider({self.name!r})"

    @property
    def url(self) -> str | None:
        """Return the address in use, with the environment's override."""
        return (self.base_url_env and os.environ.get(self.base_url_env)) or self.base_url

    def read_key(self) -> str | None:
        """Return the API key, or None where none is set; from now on it is not shown."""
        name = self.key_variable
        if name is None:
            return None
        READ[name] = os.environ[name].strip()
        return READ[name]

    @property
    def header_variables(self) -> list[str]:
        """Return the names of the variables whose values `headers` sends ("$NAME")."""
        return [value[1:] for value in self.headers.values() if value.startswith("$")]

    def read_headers(self) -> dict[str, str]:
        """Return the headers to send; from now on the values of variables are not shown."""
        sent = {}
        for name, value in self.headers.items():
            if value.startswith("$"):
                variable = value[1:]
                value = READ[variable] = os.environ.get(variable, "").strip()
            sent[name] = value
        return sent

    def read_secrets(self) -> list[str]:
        """Return the key and the values of variables in headers, which no server should echo."""
        read = [self.read_key() or "", *self.read_headers().values()]
        return [value for value in read if value in READ.values()]

    @property
    def missing_variable(self) -> str | None:
        """Return the name of a variable that has to be set before anything is asked, or None."""
        key = self.read_key() or ""
        if self.keys and not (key and key.isascii()):
            return self.keys[0]
        for name in self.header_variables:
            value = os.environ.get(name, "").strip()
            if not (value and value.isascii()):
                return name
        return None

    @property
    def key_variable(self) -> str | None:
        """Return the name of the variable that has the API key, or None where none is set."""
        for name in self.keys:
            if os.environ.get(name, "").strip():
                return name
        return None

    @property
    def address(self) -> str:
        """Return the address in use as it may be shown and stored.

        A password in it is a key, and not part of it.
        """
        scheme, _, address = (self.url or "").rstrip("/").rpartition("://")
        return f"{scheme}://{address.rpartition('@')[2]}"

    def identity(self) -> dict:
        """Return what of the provider can change a reply.

        The base URL only for an endpoint of the user's own.
        """
        if self.embedded:
            return {
                "provider": self.embedded.get("provider", self.name),
                "sha256": self.embedded["sha256"],
                "engine": self.embedded["engine"],
                "settings": self.embedded["settings"],
            }
        identity = {"provider": self.name}
        is_own = not self.hosted or self.url != self.base_url
        if is_own and self.url:
            identity["base_url"] = self.address
        return identity


@dataclass(frozen=True)
class Model:
    """One model under study: what the API takes, what figures show, what a reply may call it."""

    id: Text
    provider: Provider
    api_name: str
    display: Text
    family: str = ""
    developer: str = ""
    names: tuple[str, ...] = ()
    system: str | None = None
    parameters: dict = field(default_factory=dict)
    reasoning: bool = False
    reasoning_tokens: Count = 16_000
    price: Annotated[dict[Literal["input", "output"], Price], MinLen(2)] | None = None
    simulation: dict | None = None
    call: Callable | None = None
    gguf: Text | None = None  # the path of its weights
    __pydantic_config__ = STRANGERS

    def __repr__(self) -> str:
        return f"Model({self.id!r})"

    @property
    def all_names(self) -> tuple[str, ...]:
        """Return the display name, then the aliases."""
        return (self.display, *self.names)

    def in_batches(self) -> "Model":
        """Return the model with half of its price, as batches have it."""
        if self.price is None:
            return self
        half = {part: usd / 2 for part, usd in self.price.items()}
        return replace(self, price=half)

    def with_room(self, parameters: dict) -> dict:
        """Return parameters whose most tokens of a reply leave room for thinking besides."""
        with_room = dict(parameters)
        for name in LIMITS & parameters.keys():
            with_room[name] += self.reasoning_tokens
        return with_room


# reading


@dataclass
class _Registry:
    providers: dict[str, dict | None] | None = None
    models: list[dict] | None = None
    __pydantic_config__ = STRANGERS


def registry_files() -> tuple[Path, ...]:
    """Return the registry's files: the project's, then the one that `SELFEVAL_MODELS` names."""
    own = os.environ.get("SELFEVAL_MODELS")
    return (shipped("models.yaml"), *([Path(own)] if own else []))


@cache
def _read(files: tuple[Path, ...]) -> tuple[dict[str, Provider], dict[str, Model]]:
    providers: dict[str, Provider] = {}
    models: dict[str, Model] = {}
    for path in files:
        file = f"The registry {path}"
        folder = path.absolute().parent if path in files[1:] else None
        try:
            content = read_yaml(path.read_text(encoding="utf-8")) or {}
        except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
            # 2026-13-45 is a ValueError
            raise InputError(f"{file} cannot be read: {error}.") from error
        registry = decode(_Registry, content, file)
        ours = dict(providers)
        for name, entry in (registry.providers or {}).items():
            fields = {"name": name, **(entry or {})}
            providers[name] = decode(Provider, fields, file, "providers", name)
            _say_what_moves(file, providers[name], ours)
        own = []
        for number, entry in enumerate(registry.models or ()):
            own.append(_model(entry, providers, file, number, folder))
        _check_distinct(own, file)
        models |= {model.id: model for model in own}
    for provider in providers.values():
        provider.read_key()  # from now on it is not shown
        provider.read_headers()
    # A provider that a later file replaces is replaced for the models of all files: no key goes
    # where it was before.
    for name, model in models.items():
        provider = providers.get(model.provider.name, model.provider)
        models[name] = replace(model, provider=provider)
    return providers, models


def _check_distinct(models: Sequence[Model], file: str) -> None:
    """Refuse two models of a file with one id or display name."""
    names = {
        "id": [model.id for model in models],
        "display": [model.display.strip().casefold() for model in models],
    }
    for what, given in names.items():
        twice = _twice(given)
        if twice:
            raise InputError(
                f"{file} gives the {what} {twice!r} to two models; each needs its own."
            )


def _say_what_moves(file: str, provider: Provider, ours: Mapping[str, Provider]) -> None:
    """Say where a file of the user's leads a provider, or a key, of our registry."""
    homes = {}
    for other in ours.values():
        if other.hosted:
            homes |= dict.fromkeys(other.keys, other.base_url)
    sent = [*provider.keys, *provider.header_variables]
    before = ours.get(provider.name)
    does = []
    if before and before.hosted and provider.url != before.base_url:
        does.append(f"asks `{provider.name}` at {provider.address} and not at {before.base_url}")
    keys = [key for key in sent if homes.get(key, provider.url) != provider.url]
    if keys:
        does.append(f"sends the key of {' or '.join(keys)} to {provider.address}")
    if does:
        remedy = "use it only if that is meant (docs/strangers.md)"
        print(f"{file} {', and '.join(does)}; {remedy}.", file=sys.stderr)


def _twice(names: list[str]) -> str | None:
    """Return the first name that stands there twice."""
    for name in names:
        if names.count(name) > 1:
            return name
    return None


def _model(
    entry: dict, providers: dict[str, Provider], file: str, number: int, folder: Path | None
) -> Model:
    """Return the model of an entry of a registry's file."""
    name = entry.get("id")
    provider, api_name = _split(str(name), providers)
    if "provider" in entry:
        provider = providers.get(str(entry["provider"]))
        api_name = str(name)
    fields = dict(entry)
    fields["provider"] = provider
    fields["api_name"] = fields.pop("model", api_name)
    if "gguf" in entry:
        base = folder or shipped("models.yaml").parent
        fields |= _file_entry(entry, providers[GGUF], file, base)
    return decode(Model, fields, file, "models", str(entry.get("id", number)))


def _file_entry(entry: dict, provider: Provider, file: str, folder: Path) -> dict:
    """Return the fields of a model that is a GGUF file.

    Its path goes on from the registry's folder.
    """
    if not isinstance(entry.get("gguf"), str) or {"provider", "model"} & entry.keys():
        rule = "an embedded file has `gguf: path`, and no `provider` or `model`"
        where = f"models.{entry.get('id')}"
        raise InputError(f"{file} is wrong at {where}: {rule}; take one or the other out.")
    return {"provider": provider, "api_name": GGUF, "gguf": str(folder / entry["gguf"])}


def decode(kind: type, entry, file: str, *place: str):
    """Return a part of a file as an object of its class.

    Raises `InputError` that names the field which is wrong.
    """
    from pydantic import ValidationError

    try:
        return _decoder(kind).validate_python(entry)
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
    value = wrong["input"]
    rule = wrong["msg"].removeprefix("Value error, ")
    if wrong["type"] == "unexpected_keyword_argument":
        known = [each.name for each in fields(kind)]
        rule = f"unknown field{did_you_mean(wrong['loc'][-1], known)}; known are {', '.join(known)}"
    elif isinstance(value, str | int | float):  # what is more may be without end
        rule = f"{rule}, got {value!r}"
    path = ".".join((*place, *map(str, wrong["loc"])))
    where = f" at {path}" if path else ""
    raise InputError(redact(f"{file} is wrong{where}: {rule}."))


@cache
def _decoder(kind: type):
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _split(model_id: str, providers: dict[str, Provider]) -> tuple[Provider | None, str]:
    """Return provider and API name of an id.

    `provider:name`, `local/...`, `sim/...`, or `developer/name`.
    """
    head, colon, rest = model_id.partition(":")
    if colon and head in providers:
        return providers[head], rest
    head, slash, rest = model_id.partition("/")
    if slash and head in ("local", "sim"):
        return providers[head], rest
    return (providers[DEFAULT_PROVIDER] if slash else None), model_id


# asking


def providers() -> dict[str, Provider]:
    """Return all providers by name."""
    return _read(registry_files())[0]


def models() -> dict[str, Model]:
    """Return all listed models by id, in the registry's order."""
    return _read(registry_files())[1]


def get(model_id: str | Model | Callable) -> Model:
    """Return the model with this id.

    One that is not listed is used by its id if that names a provider. A `Model` or a Python
    function, whose name is its id, answers to that id from then on. Raises `InputError` for an id
    that is neither listed nor of the form `developer/model` or `provider:model`, and for an object
    whose id is another model's.
    """
    if isinstance(model_id, Model):
        return _given(model_id)
    if callable(model_id):
        return _function_model(getattr(model_id, "__name__", type(model_id).__name__), model_id)
    if not isinstance(model_id, str):
        raise InputError(
            f"A model must be an id (a text) or a Python function, got {model_id!r:.80}."
        )
    listed = models()
    if model_id in listed or model_id in GIVEN:
        return _with_weights(listed.get(model_id) or GIVEN[model_id])
    provider, api_name = _split(model_id, providers())
    if provider and provider.name == GGUF and provider.embedded:
        path = Path(api_name).absolute()
        return _with_weights(Model(model_id, provider, GGUF, display=path.stem, gguf=str(path)))
    is_whole = all(part.strip() for part in api_name.split("/"))
    if provider is None or provider.name in ("local", "sim") or not is_whole:
        raise InputError(
            f"Unknown model {model_id!r}{did_you_mean(model_id, listed)}; `selfeval models` lists "
            "the registry; others are written `developer/model` (OpenRouter) or `provider:model` "
            f"(by {', '.join(providers())})."
        )
    twin = listed.get(api_name) or listed.get(f"{provider.name}/{api_name}")
    if twin is None:
        return Model(model_id, provider, api_name, display=api_name.rpartition("/")[2])
    if twin.provider == provider:
        return twin
    # The same model from another provider: its names hold, its price need not.
    return replace(twin, id=model_id, provider=provider, api_name=api_name, price=None, call=None)


def _with_weights(model: Model) -> Model:
    """Return a model of a GGUF file with the hash of its bytes.

    It from now on are a provider of their own.
    """
    embedded = model.provider.embedded
    if model.gguf is None or "sha256" in embedded:
        return model
    sha256 = checked_sha256(Path(model.gguf))
    embedded = embedded | {
        "file": model.gguf,
        "sha256": sha256,
        "alias": f"sha256:{sha256}",
    }
    name = f"{GGUF} {sha256[:16]}"
    return replace(model, provider=replace(model.provider, name=name, embedded=embedded))


def from_callable(call: Callable, model_id: str, display: str | None = None) -> Model:
    """Return a model that a Python callable serves.

    `call(messages, **parameters)`, plain or asynchronous. It is given those parameters
    (temperature, max_tokens, ...) that it takes, and returns a `request.Response` or a
    text; anything else is an error of that call. Its replies are not stored: only you know when the
    callable changes.
    """
    return Model(
        model_id, Provider(PYTHON), model_id, display or model_id, call=_filter_parameters(call)
    )


GIVEN: dict[str, Model] = {}  # id: the object or function that was given under it


def _function_model(name: str, call: Callable) -> Model:
    """Return a function of the user's as a model of this name."""
    name = name.strip("<>")  # of a lambda
    return _given(replace(from_callable(call, name), developer=name))


def _given(model: Model) -> Model:
    """Return a model that was given as an object, to which its id leads from then on.

    Otherwise the next verb, which reads the id in a record, would ask somebody else. Raises
    `InputError` where the id leads to another model already.
    """
    model = _with_weights(model)
    listed = models().get(model.id)
    provider, colon, _ = model.id.partition(":")
    is_of_provider = model.call and colon and provider in providers()
    if is_of_provider or (listed and _with_weights(listed) != model):
        rule = "is that of another model in the registry or at a provider"
        raise InputError(f"The id {model.id!r} {rule}; give yours an id of its own.")
    GIVEN[model.id] = model
    return model


def _filter_parameters(call: Callable) -> Callable:
    """Return a callable that takes all parameters and hands on those that `call` takes."""
    takes = inspect.signature(call).parameters
    every = any(each.kind == each.VAR_KEYWORD for each in takes.values())

    def ask(messages: list[dict], **parameters):
        return call(
            messages,
            **{name: value for name, value in parameters.items() if every or name in takes},
        )

    return ask


def check_part(model: Model, part: str) -> Model:
    """Return a model that can play a part of `PLAYS`.

    Raises `InputError` for a simulated one whose role is another.
    """
    role = (model.simulation or {}).get("role")
    if role in PLAYS and part not in PLAYS[role]:
        raise InputError(f"{model.id} cannot {part}; sim/good can, which plays every part.")
    return model


def can_choose(models: Iterable[Model]) -> bool:
    """Tell whether all models can be given a choice in JSON, and print which of them cannot."""
    cannot = []
    for model in models:
        if not model.provider.json_schema and model.provider.name != "sim":
            cannot.append(repr(model.id))
    if cannot:
        rule = "cannot be given a choice in JSON (`json_schema`), so all are asked in words"
        tell([f"{', '.join(cannot)} {rule} (`answer` = 'free')."])
    return not cannot


def stripped(value):
    """Return a text without blanks around it, its accents composed.

    Other values, and such a text, as they are.
    """
    if not isinstance(value, str):
        return value
    bare = unicodedata.normalize("NFC", value.strip())
    return value if value == bare else bare


def get_all(
    ids: str | Model | Callable | Iterable[str | Model | Callable], part: str = ""
) -> list[Model]:
    """Return the models of a list of ids or functions, of one, or of functions by name ({name.

    Function}). A list may be written as JSON. part: of `PLAYS`, which they are to play. Raises
    `InputError` for an unknown id, an empty list, one model given twice, or a simulated one that
    cannot play the part.
    """
    chosen = _chosen(listed(ids, "models"))
    if not chosen:
        raise InputError("A list of models must name at least one, got [].")
    for model in chosen:
        check_name("models", model.id)
        name = stripped(model.id)
        if name != model.id:
            rule = f"`models` has the name {model.id!r:.80}, which files hold as {name!r:.80}"
            raise InputError(f"{rule}; write it so.")
    twice = _twice([model.id for model in chosen])
    if twice:
        called = (
            "; give functions as {name: function}" if twice in GIVEN and GIVEN[twice].call else ""
        )
        raise InputError(f"The model {twice!r} is in the list twice; name each once{called}.")
    if part:
        for model in chosen:
            check_part(model, part)
    return chosen


def _chosen(ids) -> list[Model]:
    """Return the models of a list, of one id or function, or of functions by name."""
    if isinstance(ids, Mapping):
        chosen = []
        for name, call in ids.items():
            chosen.append(_function_model(str(name), call) if callable(call) else get(call))
        return chosen
    if isinstance(ids, str | Model) or callable(ids) or not isinstance(ids, Iterable):
        return [get(ids)]
    return [get(one) for one in ids]


def several(given, name: str) -> list[str]:
    """Return names that are given as a list, as one of them alone, or as JSON (`listed`)."""
    given = listed(given, name)
    return [given] if isinstance(given, str) else list(given)


def listed(given, name: str):
    """Return the list that a text holds as JSON.

    As `papermill -p models '["a", "b"]'` passes it; else what is given. name: of the parameter, for
    the sentence on a text that only begins as a list.
    """
    if not isinstance(given, str) or not given.lstrip().startswith("["):
        return given
    with suppress(yaml.YAMLError):
        value = read_yaml(given)
        if isinstance(value, list):
            return value
    raise InputError(f"`{name}` is {given!r:.80}, which is no list; write it as ['a', 'b'].")


def display_names(ids: Iterable[str]) -> dict[str, str]:
    """Return {id: display name} of the ids that the registry lists."""
    registered = models()
    return {name: registered[name].display for name in ids if name in registered}
