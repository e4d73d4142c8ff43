"""Errors that a person reads: one sentence with the thing, the rule, the value and the remedy."""


class SelfevalError(Exception):
    """Base of all errors of this package; the command line prints its text and exits with status 1."""


class InputError(SelfevalError, ValueError):
    """A parameter, file or name that breaks a rule."""


class ProviderError(SelfevalError):
    """A provider that cannot be used at all: no key, no server, no such model, no credit."""


class StoreError(SelfevalError):
    """The response store cannot be read or written."""


class ReplayMiss(SelfevalError):
    """A request that the recorded replies do not hold, in replay mode."""
