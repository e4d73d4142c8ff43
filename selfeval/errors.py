"""Errors that a person reads: one sentence with the thing, the rule, the value and the remedy."""


class SelfevalError(Exception):
    """Base of all errors of this package; the command line prints its text and exits with status 1."""


class InputError(SelfevalError, ValueError):
    """A parameter, file or name that breaks a rule."""
