"""What is sent to a provider, and what is sent otherwise after it has refused something in its own words."""

import json

import pytest
from aiohttp import web
from conftest import KEY
from fake_server import FakeServer, completion, error
from test_client import Clock, ask, mine, questions
from test_store import count

import selfeval as se
from selfeval.providers import askers, batches, endpoint, replies
from selfeval.providers.models import get
from selfeval.providers.request import choice_format

SCHEMA = {"response_format": choice_format({"answer": ["YES", "NO"]})}
TEXTS = [{"author": f"mine/{author}", "prompt": "Say it.", "text": f"This is by {author}."} for author in "ab"]
DESERIALIZE = "Failed to deserialize the JSON body: response_format.type `json_schema` is unavailable now"
NO_ENDPOINT = "No endpoints found that can handle the requested parameters."


class Refusing(FakeServer):
    """Refuses what `self.refuses(body)` returns: None, or (status, what it says: a body, or bare words)."""

    async def _handle(self, request):
        body = await request.json()
        self.ledger.append({"body": body, "headers": dict(request.headers), "url": str(request.rel_url)})
        refusal = self.refuses(body)
        if refusal is None:
            return web.json_response(completion(body, "YES"))
        status, words = refusal
        text = words if isinstance(words, str) else json.dumps(words)
        return web.Response(status=status, text=text)


def refusing(refuses):
    server = Refusing()
    server.refuses = refuses
    return server


@pytest.mark.parametrize(
    "refusal",
    [
        (400, error("This response_format type is unavailable now")),
        (422, DESERIALIZE),
        (400, error("This model does not support response format `json_schema`. See the supported models.")),
        (400, error("Structured outputs: 此模型暂不提供")),
        (404, error(NO_ENDPOINT, 404)),
    ],
)
def test_a_schema_refused_in_any_words_is_left_out_once_and_that_is_remembered(refusal, store, registry):
    with refusing(lambda body: refusal if "response_format" in body else None) as server:
        model = mine(registry, server)
        responses, tally = ask(store, questions(model, 5, **SCHEMA))
    assert [response.text for response in responses] == ["YES"] * 5 and tally.failed == 0
    assert [("response_format" in entry["body"]) for entry in server.ledger] == [True] + [False] * 5
    assert responses[-1].adapted == {"response_format": None}


def test_what_is_refused_with_and_without_a_schema_is_no_matter_of_the_schema(store, registry):
    def refuses(body):
        return (400, error("Invalid request")) if "question 0" in str(body) else None

    with refusing(refuses) as server:
        responses, _ = ask(store, questions(mine(registry, server), 3, **SCHEMA), concurrency=1)
    assert [response.status for response in responses] == ["error", "ok", "ok"]
    assert [response.adapted for response in responses[1:]] == [None, None], "the schema is sent again"
    assert len(server.ledger) == 4


def test_a_model_that_took_a_schema_once_is_not_asked_without_it(store, registry):
    def refuses(body):
        return (400, error("Invalid request")) if "question 1" in str(body) else None

    with refusing(refuses) as server:
        responses, _ = ask(store, questions(mine(registry, server), 3, **SCHEMA), concurrency=1)
    assert [response.status for response in responses] == ["ok", "error", "ok"] and len(server.ledger) == 3


@pytest.mark.parametrize("form", ["inline", "files"])
def test_a_batch_whose_schema_is_refused_goes_out_again_without(form, store, registry, monkeypatch):
    monkeypatch.setattr(batches, "POLL", 0.02)
    with FakeServer(faults=lambda i, body: "400" if "response_format" in body else None) as server:
        registry(f"providers: {{mine: {{base_url: '{server.url}', hosted: true, batch: {form}}}}}")
        responses, _ = ask(store, questions(get("mine:m"), 3, **SCHEMA), batch=True)
    assert {response.status for response in responses} == {"ok"} and not count(store, "claims")
    assert [len(batch["lines"]) for batch in server.batches] == [3, 3]


def test_what_a_model_does_not_take_is_said(registry, own_store, capsys):
    with refusing(lambda body: (400, error("no")) if "response_format" in body else None) as server:
        mine(registry, server, more=", json_schema: true")
        answers = se.collect_predictions(TEXTS, ["mine:a", "mine:b"], authors=AUTHORS, tasks="binary_self")
    assert set(answers["status"]) == {"ok"} and set(map(str, answers["adapted"])) == {"{'response_format': None}"}
    assert "mine:a does not take `response_format` as asked; see `adapted` in the records." in capsys.readouterr().out


AUTHORS = {"mine/a": "mine:a", "mine/b": "mine:b"}


@pytest.mark.parametrize(
    ("words", "sent"),
    [
        ("top_logprobs must be less than or equal to 5", [20, 5]),
        ("Invalid value for 'top_logprobs': must be between 0 and 8.", [20, 8]),
        ("logprobs is not supported", [20, None]),
        ("top_logprobs is not supported with this model", [20, None]),
    ],
)
def test_fewer_log_probabilities_than_asked_for_are_taken_as_told(words, sent, store, registry):
    def refuses(body):
        return (400, error(words)) if body.get("top_logprobs") == 20 else None

    with refusing(refuses) as server:
        [response], _ = ask(store, questions(mine(registry, server), 1, logprobs=True, top_logprobs=20))
    assert [entry["body"].get("top_logprobs") for entry in server.ledger] == sent
    assert response.status == "ok" and response.adapted["top_logprobs"] == sent[-1]
    assert bool(response.logprobs) == bool(sent[-1])


def test_a_wait_of_no_seconds_does_not_end_a_growing_pause(store, server, monkeypatch):
    clock = Clock()
    clock.put_into(monkeypatch, askers, endpoint, replies)
    server(faults=["429"] * 5, retry_after=0)
    [response], _ = ask(store, questions(get("openai:m"), 1))
    assert (response.status, response.attempts) == ("ok", 6) and clock.slept > 1 + 2 + 4 + 8 + 16


HEADERS = "headers: {api-key: $GATE_KEY, HTTP-Referer: 'https://example.org'}"


def test_headers_of_a_provider_are_sent_with_values_of_variables(store, registry, monkeypatch):
    monkeypatch.setenv("GATE_KEY", KEY)
    with refusing(lambda body: None) as server:
        address = f"{server.url}/deployments/gpt-4o?api-version=2024-10-21"
        registry(f"providers: {{gate: {{base_url: '{address}', {HEADERS}}}}}")
        [response], _ = ask(store, questions(get("gate:m"), 1))
    [entry] = server.ledger
    assert response.status == "ok"
    assert entry["url"] == "/v1/deployments/gpt-4o/chat/completions?api-version=2024-10-21"
    headers = {name.casefold(): value for name, value in entry["headers"].items()}
    assert (headers["api-key"], headers["http-referer"]) == (KEY, "https://example.org")
    assert "authorization" not in headers


@pytest.mark.parametrize("form", ["inline", "files"])
def test_headers_and_the_version_of_an_address_go_with_batches_too(form, store, registry, monkeypatch):
    monkeypatch.setenv("GATE_KEY", KEY)
    monkeypatch.setattr(batches, "POLL", 0.02)
    seen = []

    class Watched(FakeServer):
        async def _handle(self, request):
            seen.append((request.query_string, request.headers.get("api-key"), request.headers.get("Authorization")))
            return await super()._handle(request)

    with Watched() as server:
        how = f"hosted: true, batch: {form}, {HEADERS}"
        registry(f"providers: {{gate: {{base_url: '{server.url}?api-version=7', {how}}}}}")
        responses, _ = ask(store, questions(get("gate:m"), 2), batch=True)
    assert {response.status for response in responses} == {"ok"} and set(seen) == {("api-version=7", KEY, None)}


def test_a_header_whose_variable_is_not_set_is_refused_before_the_first_call(store, registry, monkeypatch):
    monkeypatch.delenv("GATE_KEY", raising=False)
    registry(f"providers: {{gate: {{base_url: 'http://127.0.0.1:9/v1', {HEADERS}}}}}")
    with pytest.raises(se.ProviderError, match="set GATE_KEY in the environment"):
        ask(store, questions(get("gate:m"), 1))


def test_the_value_of_a_header_is_in_no_reply_and_no_error(store, registry, monkeypatch):
    monkeypatch.setenv("GATE_KEY", KEY)
    with Refusing() as server:
        server.refuses = lambda body: (401, error(f"wrong key {KEY}")) if "question 1" in str(body) else None
        server.reply = f"Your key is {KEY}."
        registry(f"providers: {{gate: {{base_url: '{server.url}', {HEADERS}}}}}")
        responses, _ = ask(store, questions(get("gate:m"), 2), concurrency=1)
    assert KEY not in str(responses) and "wrong key [key]" in responses[1].error
