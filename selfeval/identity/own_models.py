"""Models of the published form: what a script hands over as one that can be asked, and mocks."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from selfeval.errors import SelfevalError, check_one_of
from selfeval.identity.fields import Fields
from selfeval.providers.models import Model, check_part, from_callable, get, models
from selfeval.providers.request import Response


class Message(Fields):
    """One turn of a conversation: `message.content` or `message["content"]`."""

    def __init__(self, role: str, content: str):
        super().__init__(role=role, content=content)

    @classmethod
    def from_dict(cls, turn: Mapping) -> "Message":
        """Return the turn that `to_dict` wrote."""
        return cls(turn["role"], turn["content"])


class ModelResponse(Fields):
    """What a provider may return instead of a text."""

    def __init__(self, content: str, metadata: Mapping | None = None):
        super().__init__(content=content, metadata=metadata or {})


class Provider:
    """A model of your own: any class with `generate(messages, **kwargs)` will do.

    config: what else it was made with.
    """

    def __init__(self, model_id: str, **config):
        self.model_id = model_id
        self.config = config

    @property
    def name(self) -> str:
        """Return what the provider is called."""
        return type(self).__name__

    def generate(self, messages: Sequence[Message], **kwargs) -> ModelResponse | str:
        """Return the reply to a conversation; kwargs: temperature, max_tokens."""
        raise NotImplementedError


MODES = {  # of a mock model: what it says
    "correct": "I'm {name}, specifically {id} from {maker}.",
    "wrong_model": "I'm {other}.",
    "confused": "I'm {name}. Or am I? Perhaps I'm some other model.",
    "refuses": "I can't say which model I am.",
    "custom": "{custom}",
}


class MockProvider(Provider):
    """A model that always says the same.

    response_mode: of `MODES`; custom_response: what it says in the mode `custom`. Both may be set
    at any time. model_config: its entry of `model_configs`.
    """

    def __init__(
        self,
        model_id: str,
        response_mode: str = "correct",
        custom_response: str | None = None,
        model_config: Mapping | None = None,
    ):
        super().__init__(model_id)
        check_one_of("response_mode", response_mode, MODES)
        self.response_mode = response_mode
        self.custom_response = custom_response
        self.model_config = model_config or {}

    def generate(self, messages: Sequence[Message], **kwargs) -> ModelResponse:
        """Return what the model says to a conversation."""
        check_one_of("response_mode", self.response_mode, MODES)
        expected = self.model_config.get("expected_answers", {})
        name = expected.get("model_names", [self.model_id])[0]
        said = MODES[self.response_mode].format(
            name=name,
            id=self.model_id,
            maker=expected.get("provider_name", "mock"),
            other="Claude Sonnet 4.5" if "gpt" in name.casefold() else "GPT-4",
            custom=self.custom_response or "",
        )
        return ModelResponse(said, {"model_id": self.model_id, "response_mode": self.response_mode})


CORRECTS = re.compile(
    r"\bno, you(?:'re| are)\b|\byou(?:'re| are) (?:actually|wrong)\b|\bnot right\b", re.I
)


class AdversarialMockProvider(MockProvider):
    """A model whose mode depends on the conversation, anew for each reply.

    susceptible_to_fake_switch: it is confused, though it names itself, where anybody speaks of a
    switch. accepts_false_corrections: it takes itself for another where a user corrects what was
    said before. correct_on_direct: elsewhere it is correct, without it confused.
    """

    def __init__(
        self,
        model_id: str,
        correct_on_direct: bool = True,
        susceptible_to_fake_switch: bool = False,
        accepts_false_corrections: bool = False,
        **kwargs,
    ):
        super().__init__(model_id, **kwargs)
        self.correct_on_direct = correct_on_direct
        self.susceptible_to_fake_switch = susceptible_to_fake_switch
        self.accepts_false_corrections = accepts_false_corrections

    def generate(self, messages: Sequence[Message], **kwargs) -> ModelResponse:
        """Return what the model says to a conversation."""
        said = "\n".join(message["content"] for message in messages)
        switched = "switch" in said.casefold()
        corrected = CORRECTS.search(said.replace("’", "'"))
        if switched and self.susceptible_to_fake_switch:
            self.response_mode = "confused"
        elif corrected and self.accepts_false_corrections:
            self.response_mode = "wrong_model"
        else:
            self.response_mode = "correct" if self.correct_on_direct else "confused"
        return super().generate(messages, **kwargs)


Who = str | Model | Callable | Provider


def as_model(model: Any, model_id: str | None) -> tuple[Model, str | None]:
    """Return the model that is meant, and whose expected answers hold for it where that is said."""
    generate = getattr(model, "generate", model)
    if not callable(generate):
        return check_part(get(model), "say which model they are"), model_id
    called = getattr(model, "__name__", type(model).__name__)
    name = str(model_id or getattr(model, "model_id", called))
    if name in models():
        model_id = name
    return from_callable(_answering(generate), name), model_id


def _answering(generate: Callable) -> Callable:
    """Return a callable that answers as `generate` does.

    An error of this package that it raises costs one reply. From elsewhere such an error ends the
    run, but published providers raise `ProviderError` for every failure. Errors of other kinds cost
    one reply wherever they arise (`request.ask_callable`).
    """
    answer: Any = from_callable(generate, "provider").call  # with the parameters that it takes

    async def call(messages: list[dict], **parameters):
        try:
            said = answer([Message.from_dict(message) for message in messages], **parameters)
            said = await said if inspect.isawaitable(said) else said
        except SelfevalError as error:
            return Response(status="error", error=f"{type(error).__name__}: {error}")
        return getattr(said, "content", said)

    return call
