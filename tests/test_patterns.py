"""Every pattern of the readers finds something in its own examples, and nothing in those that it passes over."""

import re

import pytest

from selfeval.reading import patterns

ROWS = [(examples, text) for examples in patterns.EXAMPLES for text in examples.reads]
OTHERS = [(examples, text) for examples in patterns.EXAMPLES for text in examples.passes_over]


def found(examples, text):
    return examples.pattern.fullmatch(text) if examples.whole else examples.pattern.search(text)


@pytest.mark.parametrize(("examples", "text"), ROWS, ids=[text for _, text in ROWS])
def test_a_pattern_reads_its_example(examples, text):
    assert found(examples, text)


@pytest.mark.parametrize(("examples", "text"), OTHERS, ids=[text for _, text in OTHERS])
def test_a_pattern_passes_over_what_only_looks_alike(examples, text):
    assert not found(examples, text)


def test_every_pattern_has_an_example_of_each_kind():
    named = {name for name, value in vars(patterns).items() if isinstance(value, re.Pattern)}
    without = {"LEAD", "LIST_LINK"}  # what may stand between two words, also nothing
    kept = [each.pattern for each in patterns.EXAMPLES]
    assert {name for name in named if getattr(patterns, name) not in kept} == without
    assert all(each.reads and each.passes_over for each in patterns.EXAMPLES)
