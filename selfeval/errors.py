"""Errors that a person reads (one sentence: the thing, the rule, the value, the remedy) and checks that raise them."""


class SelfevalError(Exception):
    """Base of all errors of this package; the command line prints its text and exits with status 1."""


class InputError(SelfevalError, ValueError):
    """A parameter, file or name that breaks a rule."""


class ProviderError(SelfevalError):
    """A provider that cannot be used at all: no key, no server, no such model, no credit."""


class BudgetError(SelfevalError):
    """A call that could cost more than the ceiling leaves."""


class StoreError(SelfevalError):
    """The response store cannot be read or written."""


class ReplayMiss(SelfevalError):
    """A request that the recorded replies do not hold, in replay mode."""


def check_whole(name: str, value, least: int = 0) -> None:
    """Raise `InputError` unless a parameter is a whole number of at least so much."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InputError(f"`{name}` must be a whole number of at least {least}, got {value!r}.")


def check_at_least(name: str, value, least: float = 0) -> None:
    """Raise `InputError` unless a parameter is a number of at least so much."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
        raise InputError(f"`{name}` must be a number of at least {least}, got {value!r}.")


def check_one_of(name: str, value, known) -> None:
    """Raise `InputError` unless a parameter is one of the known values."""
    if value not in known:
        raise InputError(f"`{name}` must be one of {', '.join(known)}, got {value!r}.")


def check_flag(name: str, value) -> None:
    """Raise `InputError` unless a parameter is True or False; papermill's -p passes other words as text."""
    if not isinstance(value, bool):
        raise InputError(f"`{name}` must be true or false, got {value!r}; papermill takes `-p {name} False`.")
