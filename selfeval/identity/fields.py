"""Results whose entries are attributes too, and what files hold of them."""

import json
from collections.abc import Mapping, Sequence


class Fields(dict):
    """A dictionary whose entries are attributes too.

    `result.overall_score` or `result["overall_score"]`. So are those of the dictionaries within it:
    `result.test_results[0].details.weight`.
    """

    def __init__(self, *entries, **named):
        super().__init__(*entries, **named)
        for name, value in self.items():
            self[name] = _with_fields(value)

    def __getattr__(self, name: str):
        if name in self:
            return self[name]
        raise AttributeError(f"There is no {name!r}; found {', '.join(self)}.")

    def to_dict(self) -> dict:
        """Return plain dictionaries and lists, as the file has them.

        A score that is no number is None.
        """
        return json.loads(self.to_json())

    def to_json(self) -> str:
        """Return the content of the file that `save_results` writes."""
        return as_json(self)


def _with_fields(value):
    """Return a value with `Fields` in the place of the dictionaries in it."""
    if isinstance(value, Mapping):
        return Fields(value)
    if isinstance(value, list):
        return [_with_fields(each) for each in value]
    return value


def as_json(content: dict | Sequence) -> str:
    """Return results as JSON, which has no NaN: no score is null."""
    plain = json.loads(json.dumps(content), parse_constant=lambda constant: None)
    return json.dumps(plain, indent=2)
