"""The fake server breaks what it says it breaks, as a plain HTTP client sees it."""

import http.client
import json
import urllib.error
import urllib.request

import pytest
from fake_server import ANSWERS, ECHOES, EDITS, FAULTS, FakeServer

BODY = {"model": "m", "messages": [{"role": "user", "content": "hello"}], "temperature": 0, "max_tokens": 5}


def post(server, body=BODY, timeout=5):
    request = urllib.request.Request(server.url + "/chat/completions", json.dumps(body).encode())
    request.add_header("Authorization", "Bearer a-key")
    with urllib.request.urlopen(request, timeout=timeout) as response:
        return response.read()


def test_good_replies_are_deterministic_and_the_ledger_has_them_all():
    with FakeServer(latency=0.01) as server:
        first, second = json.loads(post(server)), json.loads(post(server))
        assert first == second
        assert first["model"] == "m" and first["usage"]["total_tokens"] > 0
        schema = {"type": "object", "properties": {"answer": {"enum": ["A", "B"]}}}
        asked = json.loads(post(server, {**BODY, "response_format": {"json_schema": {"schema": schema}}}))
        assert asked["choices"][0]["message"]["content"] == '{"answer": "A"}'
        asked = json.loads(post(server, {**BODY, "logprobs": True, "top_logprobs": 5}))
        assert len(asked["choices"][0]["logprobs"]["content"][0]["top_logprobs"]) == 5
        assert [entry["body"]["model"] for entry in server.ledger] == ["m"] * 4
        assert all(entry["authorized"] for entry in server.ledger)


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_visible_once_and_then_gone(fault):
    with FakeServer(faults=[fault], hang=0.6, retry_after=2) as server:
        broken = (urllib.error.HTTPError, http.client.HTTPException, OSError, ValueError)
        if (fault in ANSWERS and ANSWERS[fault][0] != 200) or fault in ECHOES:
            with pytest.raises(urllib.error.HTTPError) as caught:
                post(server)
            assert str(caught.value.code) == fault[:3]
            assert ("Retry-After" in caught.value.headers) == (fault in ("429", "429-date", "429-hour"))
        elif fault in EDITS or fault in ("200-error", "null"):
            assert json.loads(post(server)) != json.loads(post(server))
        else:
            with pytest.raises(broken):
                json.loads(post(server))
        assert json.loads(post(server))["choices"][0]["message"]["content"].startswith("reply-")
        assert server.ledger[0]["fault"] == fault


def test_random_faults_depend_on_seed_and_attempt_not_on_order():
    bodies = [{"model": "m", "messages": [{"role": "user", "content": str(i)}]} for i in range(40)]

    def faults(order):
        with FakeServer(fault_rate=0.3, fault_names=["empty-content", "null"], seed=1) as server:
            for body in order:
                post(server, body)
            return {entry["body"]["messages"][0]["content"]: entry["fault"] for entry in server.ledger}

    drawn = faults(bodies)
    assert drawn == faults(bodies[::-1])
    assert {*drawn.values()} == {None, "empty-content", "null"}
