"""What is known of one model: whether it is worth another call, and which parameters it takes."""

import asyncio
from dataclasses import dataclass, field

from selfeval.providers.budget import Ceiling
from selfeval.providers.endpoint import Call
from selfeval.providers.replies import Failure, NoEndpoint, adaptation
from selfeval.providers.request import Request, estimate

SCHEMA = "response_format"
UNPROVEN = 3  # failed calls after which a model that never answered is given up
IN_A_ROW = 8  # failed calls after which a model that did answer is given up


@dataclass
class Experience:
    """What is known of one model: whether it is worth another call, and what it takes.

    Until a first call succeeds its calls go one at a time, so that a bad key costs one request. A
    model that keeps failing is given up for the rest of this client's life.
    """

    answered: bool = False
    failed: int = 0  # calls in a row
    given_up: str | None = None  # why no further call makes sense
    # parameter -> its other name or value, None: left out
    refused: dict[str, str | int | None] = field(default_factory=dict)
    # whether it takes a schema: unknown, taken, or tried without one, since then
    schema: str = "unknown"
    # though it is not marked as such; False: its server has no room for it
    thinks: bool | None = None
    # held by the one call to a model that never answered
    first: asyncio.Lock = field(default_factory=asyncio.Lock)

    def check(self) -> None:
        """Raise `Failure` where no further call makes sense."""
        if self.given_up:
            raise Failure("given_up", self.given_up)

    def learn(self, failure: Failure | None) -> None:
        """Count how a call ended: with a reply (None) or not."""
        # that request alone: the service is there
        if failure is None or failure.outcome == "rejected":
            self.answered = self.answered or failure is None
            self.failed = 0
            return
        self.failed += 1
        if failure.outcome != "transient" or self.failed >= (
            IN_A_ROW if self.answered else UNPROVEN
        ):
            self.given_up = failure.detail

    def call(self, key: str, request: Request, ceiling: Ceiling | None) -> Call:
        """Return a request as a call: with room for thinking where the model thinks.

        Raises `Failure` where no further call makes sense.
        """
        self.check()
        model = request.model
        messages, parameters = request.full()
        given = parameters
        if model.reasoning or self.thinks:
            given = model.with_room(parameters)
        tokens = estimate(messages, given, model)
        amount = ceiling.at_most(model, *tokens) if ceiling else 0.0
        return Call(key, model, messages, parameters, given, sum(tokens), amount, request.shared)

    def make_room(self, call: Call) -> bool:
        """Give the model room for thinking from now on.

        Returns whether that changes what it is sent.
        """
        model = call.model
        if (
            model.provider.embedded
            or self.thinks is False
            or model.with_room(call.parameters) == call.parameters
        ):
            return False
        self.thinks = True
        return True

    def sent(self, call: Call) -> tuple[dict, dict | None]:
        """Return the parameters that are sent, and what of them is otherwise than asked."""
        return adapted_parameters(self.refused, call.parameters, call.given)

    def adapt(self, call: Call, sent: dict, failure: Failure) -> bool:
        """Change what is sent where the model refuses a parameter.

        Returns whether there is something to change.
        """
        if failure.outcome == "rejected":
            if change := adaptation(failure, sent):
                self.refused |= change
                return True
            if call.given != call.parameters and not call.model.reasoning:
                call.given = call.parameters  # its server has no room for thinking
                self.thinks = False
                return True
        return self._try_in_words(sent, failure)

    def _try_in_words(self, sent: dict, failure: Failure) -> bool:
        """Leave out the JSON schema of one that never took it; return whether to send again.

        Servers refuse it in words of their own. Where the same is refused without it, it was
        something else, and the schema is sent again.
        """
        if failure.status not in (400, 404, 422) or isinstance(failure, NoEndpoint):
            return False
        if SCHEMA in sent and self.schema != "taken":
            self.schema = "tried without"
            self.refused[SCHEMA] = None
            return True
        if self.schema == "tried without":
            self.schema = "taken"
            self.refused.pop(SCHEMA)
        return False

    def note_schema(self, sent: dict) -> None:
        """Take note of a reply to what was sent, with a schema or without."""
        if SCHEMA in sent:
            self.schema = "taken"
        elif self.schema == "tried without":
            self.schema = "refused"


def adapted_parameters(refused: dict, parameters: dict, allowed: dict) -> tuple[dict, dict | None]:
    """Return the parameters that are sent, and what of them is otherwise than asked."""
    sent = {}
    adapted = {}
    for name, value in allowed.items():
        change = refused.get(name, name)
        if name in refused:
            adapted[name] = change
        if isinstance(change, int):
            sent[name] = change
        elif change is not None:
            sent[change] = value
            if value != parameters[name]:
                adapted[change] = value
    return sent, adapted or None
