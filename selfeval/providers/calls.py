"""A call with its parameters, and what is known of the model that it goes to."""

import asyncio
from dataclasses import dataclass, field

from selfeval.providers.budget import Ceiling
from selfeval.providers.leases import own_name
from selfeval.providers.models import Model
from selfeval.providers.replies import Failure, NoEndpoint, adaptation
from selfeval.providers.request import Request, estimate, stored_key

SCHEMA = "response_format"
UNPROVEN = 3  # failed calls after which a model that never answered is given up
IN_A_ROW = 8  # failed calls after which a model that did answer is given up


@dataclass(eq=False)
class Call:
    """One call with its attempts.

    key: of its reply. given: its parameters, with room for thinking where the model thinks. amount:
    US dollars, at most. owner: of its lease. sent: the parameters that are sent. adapted: what of
    them is otherwise than asked.
    """

    key: str
    model: Model
    messages: list[dict]
    parameters: dict
    given: dict
    amount: float = 0.0
    attempts: int = 0
    seconds: float = 0.0  # of the provider's deadline, which attempts and back-off took
    owner: str = field(default_factory=own_name)
    sent: dict = field(default_factory=dict)
    adapted: dict | None = None

    def leave_out(self, refused: dict[str, str | int | None]) -> None:
        """Set what is sent where the model takes some parameters otherwise, or not at all."""
        self.sent = {}
        adapted = {}
        for name, value in self.given.items():
            change = refused.get(name, name)
            if name in refused:
                adapted[name] = change
            if isinstance(change, int):
                self.sent[name] = change
            elif change is not None:
                self.sent[change] = value
                if value != self.parameters[name]:
                    adapted[change] = value
        self.adapted = adapted or None

    def body(self) -> dict:
        """Return what goes to the API."""
        return {"model": self.model.api_name, "messages": self.messages, **self.sent}


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

    def call(self, request: Request, number: int, ceiling: Ceiling | None) -> Call:
        """Return a request as a call: with room for thinking where the model thinks.

        number: of earlier replies to it. Raises `Failure` where no further call makes sense.
        """
        self.check()
        model = request.model
        messages, parameters = request.full()
        given = parameters
        if model.reasoning or self.thinks:
            given = model.with_room(parameters)
        key = stored_key(request.key, number)
        amount = 0.0
        if ceiling:
            amount = ceiling.at_most(model, *estimate(messages, given, model))
        return Call(key, model, messages, parameters, given, amount)

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

    def prepare(self, call: Call) -> None:
        """Set what a call sends; raise `Failure` where no further call makes sense."""
        self.check()
        call.leave_out(self.refused)

    def adapt(self, call: Call, failure: Failure) -> bool:
        """Change what is sent where the model refuses a parameter of a call.

        Returns whether there is something to change.
        """
        if failure.outcome == "rejected":
            if change := adaptation(failure, call.sent):
                self.refused |= change
                return True
            if call.given != call.parameters and not call.model.reasoning:
                call.given = call.parameters  # its server has no room for thinking
                self.thinks = False
                return True
        return self._try_in_words(call.sent, failure)

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

    def succeed(self, call: Call) -> None:
        """Take note of a reply to a call, which was sent with a schema or without."""
        self.learn(None)
        if SCHEMA in call.sent:
            self.schema = "taken"
        elif self.schema == "tried without":
            self.schema = "refused"
