"""Batches from outside: both forms, what goes wrong on the way, kills, and that nothing is bought twice."""

import random

import pytest
from conftest import FULL, wait_for
from test_client import ask, process, questions

from selfeval.asking import batches
from selfeval.models import get

MODELS = """providers:
  inline: {{base_url: '{0}', hosted: true, batch: inline, answer_tokens: 100}}
  files: {{base_url: '{0}', hosted: true, batch: files, answer_tokens: 100}}
models:
  - {{id: 'inline:m', provider: inline, model: m, display: Inline, price: {{input: 1, output: 4}}}}
  - {{id: 'files:m', provider: files, model: m, display: Files, price: {{input: 1, output: 4}}}}"""


@pytest.fixture(params=["inline", "files"])
def batched(request, server, registry, monkeypatch):
    """A function that starts a server; returns it and a model of its form of batches."""
    for name, value in (("POLL", 0.02), ("MOST", {"inline": 40, "files": 40})):
        monkeypatch.setattr(batches, name, value)

    def start(**how):
        fake = server(**how)
        registry(MODELS.format(fake.url))
        return fake, get(f"{request.param}:m")

    return start


def test_a_study_in_batches_has_the_same_replies_at_half_the_price(store, batched, tmp_path):
    fake, model = batched()
    responses, tally = ask(store, questions(model, 100), batch=True)
    print(responses[0])
    assert len(fake.batches) == 3 and tally.calls == 100
    assert tally.cost == pytest.approx(fake.dollars)
