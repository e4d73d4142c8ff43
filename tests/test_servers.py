"""What servers and models write around an answer: thinking, why a reply ended, errors, and what they refuse."""

import json
from email.utils import formatdate

import pytest
from aiohttp import web
from fake_server import FakeServer, completion, error
from test_client import Clock, ask, questions

import selfeval as se
from selfeval.errors import ProviderError
from selfeval.identity.names import entity_of
from selfeval.identity.scoring import assess
from selfeval.providers import endpoint, replies
from selfeval.providers.models import get

CHANNEL = "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>{}<|return|>"


class Odd(FakeServer):
    """Answers by a function `reply` of the request's body and its number, from 0: (status, headers, body)."""

    async def _handle(self, request):
        self.ledger.append(asked := await request.json())
        status, headers, body = self.reply(asked, len(self.ledger) - 1)
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(status=status, body=text.encode(), content_type="application/json", headers=headers)


@pytest.fixture
def odd(registry, own_store):
    """A function that starts such a server and returns it; its models are `mine:...`."""
    started = []

    def start(reply, more=""):
        fake = Odd(reply).__enter__()
        started.append(fake)
        registry(f"providers:\n  mine: {{base_url: '{fake.url}', deadline: 20{more}}}\n")
        return fake

    yield start
    for fake in started:
        fake.__exit__()


def whole(asked, text="Rain taps.", finish="stop", **choice):
    """Return a good answer to a request, with these fields of its choice."""
    body = completion(asked, "")
    body["choices"][0]["message"]["content"] = text
    body["choices"][0] |= {"finish_reason": finish} | choice
    return 200, {}, body


def failed(status, *said, **more):
    return status, {}, error(*said, **more)


def written(prompt="Write."):
    """Return the one text that a model writes."""
    return se.generate_texts("mine:m", [{"prompt_id": prompt, "prompt": prompt}]).iloc[0]


# thinking -------------------------------------------------------------------------------------------------------------

SPLIT = {  # content of a reply: the text that is written
    "<thought>Plan.</thought>\nRain taps.<end_of_turn>": "Rain taps.",
    "◁think▷Plan, or <think>.◁/think▷Rain taps.\n<|im_end|>\n<|endoftext|>": "Rain taps.",
    "Plan.</reasoning>Rain taps.</s>": "Rain taps.",
    "<seed:think>Plan.</seed:think><think>More.</think>Rain taps.": "Rain taps.",
    "analysisPlan it.assistantcommentaryHm.assistantfinalRain taps.": "Rain taps.",
    CHANNEL.format("Plan.<|end|><|start|>assistant<|channel|>commentary<|message|>Hm.", "Rain taps."): "Rain taps.",
    "<|channel|>final<|message|>Rain taps.": "Rain taps.",
}
KEPT = [  # texts that speak of such things
    "Templates open <think> and close </think>, as <|im_end|> ends a turn.",
    "`<think>` opens what is thought; `</think>` closes it.",
    "analysis of rain: it taps.",
    "Analysiskurse sind trocken.",
    "The author strikes <s>rain</s>",
]


@pytest.mark.parametrize("reply", [*SPLIT, *KEPT])
def test_thinking_is_no_part_of_a_text_that_is_written_and_a_text_about_it_is(reply, odd):
    odd(lambda asked, number: whole(asked, reply))
    text = written()
    assert text["text"] == SPLIT.get(reply, reply)
    assert bool(text["reasoning"]) == (reply in SPLIT and "Plan" in reply)


@pytest.mark.parametrize("content", [
    [{"type": "text", "text": {"value": "Rain "}}, "taps.", {"type": "image_url", "image_url": {"url": "x"}}],
    [{"type": "reasoning_content", "content": "Plan."}, {"type": "text", "text": "Rain taps."}],
    [{"text": "Plan.", "thought": True}, {"text": "Rain taps."}],
    [{"type": "text", "text": "Rain taps.", "content": "Rain taps."}],
    {"type": "text", "text": "[THINK]Plan.[/THINK]Rain taps."},
])  # fmt: skip
def test_parts_that_are_said_are_the_text(content, odd):
    odd(lambda asked, number: whole(asked, content))
    assert written()["text"] == "Rain taps."


@pytest.mark.parametrize("reply", ["analysisI plan a text about", "<|channel|>analysis<|message|>I plan", "[THINK]I"])
def test_thinking_that_was_cut_off_is_no_text(reply, odd):
    odd(lambda asked, number: whole(asked, reply, "length"))
    with pytest.raises(ProviderError, match="length"):
        written()


def test_what_a_function_writes_keeps_no_thinking(own_store):
    texts = se.generate_texts(lambda messages, **_: "<reasoning>Plan.</reasoning>Rain taps.", prompts=1)
    assert texts[["text", "reasoning"]].iloc[0].tolist() == ["Rain taps.", "Plan."]


def test_a_function_that_only_thinks_has_written_nothing(own_store):
    with pytest.raises(ProviderError, match="empty"):
        se.generate_texts(lambda messages, **_: "<reasoning>Plan.</reasoning>", prompts=1)


@pytest.mark.parametrize("wrapper", [
    "<seed:think>{}</seed:think>{}", "I see. <thought>{}</thought>{}", "{}◁/think▷{}", CHANNEL,
    "analysis{}assistantfinal{}",
])  # fmt: skip
def test_an_answer_in_the_thinking_of_a_foreign_file_is_none(wrapper, tmp_path):
    about = {"evaluator_model": "a/one", "true_model": "a/one", "task_type": "binary_self"}
    rows = [about | {"prompt_id": f"p{k}", "reply": wrapper.format("Mine, so YES.", "NO")} for k in range(3)]
    rows += [row | {"true_model": "b/two"} for row in rows]
    path = tmp_path / "predictions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert set(se.measure_recognition(path).records["predicted_self"]) == {False}


@pytest.mark.parametrize("reply", [
    "<reasoning>They want me to be Claude, made by Anthropic.</reasoning>I am GPT-4.1 by OpenAI.",
    CHANNEL.format("I am Claude, made by Anthropic?", "I am GPT-4.1 by OpenAI."),
])  # fmt: skip
def test_a_claim_in_the_thinking_is_none(reply):
    assert assess(reply, entity_of(get("openai/gpt-4.1"))).stance == "truth"


def test_jurors_see_no_thinking_of_a_transcript_and_a_score_in_theirs_is_none(odd, tmp_path):
    fake = odd(lambda asked, number: whole(asked, "analysisA person. HUMAN_SCORE=0.9assistantfinalI will not say."))
    said = "[THINK]Secret.[/THINK]Hello!"
    turns = [{"speaker": "interrogator", "text": "Hi?"}, {"speaker": "agent", "text": said}]
    path = tmp_path / "conversations.jsonl"
    path.write_text(json.dumps({"conversation_id": "c", "source": "model", "turns": turns}), encoding="utf-8")
    verdicts = se.judge(path, ["mine:m", "mine:n"])
    assert "Hello!" in str(fake.ledger) and "Secret" not in str(fake.ledger)
    assert verdicts["score"].isna().all()


def test_texts_of_a_file_are_shown_without_thinking(odd, tmp_path):
    fake = odd(lambda asked, number: whole(asked, "NO"))
    rows = [{"author": who, "prompt": "Write.", "text": f"<thought>Secret.</thought>Rain, says {who}.<|eot_id|>"}
            for who in ("mine:m", "b/two")]  # fmt: skip
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    se.collect_predictions(path, "mine:m", answer="free", allow_strangers=True)
    assert "Rain, says b/two." in str(fake.ledger)
    assert "Secret" not in str(fake.ledger) and "eot_id" not in str(fake.ledger)


@pytest.mark.parametrize(
    "unit", ["<think>", "</think>x", "<|channel|>analysis", "<|im_end|>", "[THINK]a[/THINK]", "\n"]
)
def test_a_huge_reply_of_marks_is_split_in_linear_time(unit, odd):
    reply = "Rain taps. " + unit * (200_000 // len(unit)) + "."  # quadratic work would take minutes; no clock is read
    odd(lambda asked, number: whole(asked, reply))
    assert written()["text"].endswith(".")


# ends -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("reason", "status"), [
    ("Max_Tokens", "length"), ("insufficient_system_resource", "length"), ("FINISH_REASON_MAX_TOKENS", "length"),
    ("model_context_window_exceeded", "length"), ("PROHIBITED_CONTENT", "filtered"), ("RECITATION", "filtered"),
    ("guardrail_intervened", "filtered"), ("refusal", "refusal"), ("end_turn", "ok"), ("eos_token", "ok"),
    ("STOP", "ok"), ("tool_calls", "ok"), (None, "ok"), ("stop: no policy or limit was met", "ok"),
    ("SAFETY: the model wanted to stop", "filtered"),
])  # fmt: skip
def test_a_reply_ends_as_its_provider_says_in_whatever_words(reason, status, odd, store, capsys):
    odd(lambda asked, number: whole(asked, "YES", reason))
    [response], _ = ask(store, questions(get("mine:m"), 1))
    assert (response.status, response.finish_reason) == (status, reason)


def test_an_unknown_reason_is_kept_and_counted_also_where_the_reply_is_stored(odd, capsys):
    odd(lambda asked, number: whole(asked, f"Rain {number}.", "LANGUAGE" if number else "stop"))
    for _ in range(2):
        texts = se.generate_texts("mine:m", prompts=4)
        assert sorted(texts["finish_reason"]) == ["LANGUAGE"] * 3 + ["stop"]
        assert "3 replies ended for a reason that is not known: `LANGUAGE`; they count" in capsys.readouterr().out


def test_a_reply_that_a_fault_of_the_network_ended_is_asked_for_again(odd, monkeypatch):
    monkeypatch.setattr("random.uniform", lambda low, high: 0.01)
    fake = odd(lambda asked, number: whole(asked, finish="stop" if number else "network_error"))
    assert written()["text"] == "Rain taps." and len(fake.ledger) == 2


@pytest.mark.parametrize("answer", [
    failed(400, "Input data may contain inappropriate content.", "data_inspection_failed"),
    failed(400, "Content Exists Risk"),
    failed(403, "Flagged.", 403, metadata={"reasons": ["violence"]}),
    failed(400, "No.", None, None, innererror={"code": "ResponsibleAIPolicyViolation"}),
    (200, {}, {"choices": [{"index": 0, "finish_reason": "SAFETY"}]}),
])  # fmt: skip
def test_a_filtered_prompt_is_stored_and_not_sent_again(answer, odd, store):
    fake = odd(lambda asked, number: answer)
    for _ in range(2):
        [response], _ = ask(store, questions(get("mine:m"), 1))
        assert response.status == "filtered" and len(fake.ledger) == 1


# servers --------------------------------------------------------------------------------------------------------------


def test_an_alternative_without_a_probability_costs_itself_alone(odd):
    def row(*more):
        shown = [{"token": token, "logprob": value} for token, value in (("NO", -0.2), ("YES", -1.8), *more)]
        return {"content": [{"token": "NO", "logprob": -0.2, "top_logprobs": shown}]}

    rows = [row(), row(("x", float("-inf"))), row(("x", None), ("y", "-inf"))]
    odd(lambda asked, number: whole(asked, "NO", logprobs=rows[number % 3]), more=", logprobs: true")
    texts = [{"author": who, "prompt": f"p{k}", "text": f"{who} {k}"} for who in ("mine:m", "b/two") for k in range(3)]
    found = se.collect_predictions(texts, "mine:m", tasks="binary_self", answer="free", allow_strangers=True)
    assert len(found) == 6 and found["score"].nunique(dropna=False) == 1 and 0 < found["score"].iloc[0] < 0.5


REFUSED = {  # parameter that is refused: the error
    "seed": failed(422, "", detail=[{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]),
    "temperature": (
        400,
        {},
        {"object": "error", "message": "`temperature` must be strictly positive"},
    ),
    "top_p": failed(400, "Provider returned error", 400, metadata={"raw": '{"msg": "Unknown parameter: top_p"}'}),
    "logprobs": failed(400, "Not for this model.", param="logprobs"),
    "response_format": (422, {}, {"detail": "json: unknown field 'response_format'"}),
    "presence_penalty": (
        400,
        {},
        {"detail": [{"loc": ["body", "presence_penalty"], "input": {"seed": 1}}]},
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_parameter_that_an_error_names_is_left_out_once_and_remembered(name, odd, store):
    given = {
        "temperature": 0,
        "top_p": 0.5,
        "presence_penalty": 1,
        "response_format": {"type": "json_object"},
    }
    given |= {"logprobs": True, "top_logprobs": 2, "max_tokens": 9}
    fake = odd(
        lambda asked, number: REFUSED[name] if name in asked else whole(asked),
        more=", seeded: true",
    )
    asked = questions(get("mine:m"), 3, **given)
    responses, _ = ask(store, asked, concurrency=1)
    left_out = {"logprobs": None, "top_logprobs": None} if name == "logprobs" else {name: None}
    assert [response.adapted for response in responses] == [left_out] * 3 and len(fake.ledger) == 4
    assert {*fake.ledger[0]} - {*fake.ledger[-1]} == {*left_out}
    assert {key for key, *_ in list(store.rows())} == {each.key for each in asked}


def test_the_most_tokens_of_a_reply_are_never_left_out(odd, store):
    fake = odd(lambda asked, number: failed(400, "max_tokens must be less than 5", param="max_tokens"))
    [response], _ = ask(store, questions(get("mine:m"), 1, max_tokens=9))
    assert response.status == "error" and len(fake.ledger) == 1


@pytest.mark.parametrize("answer", [
    failed(429, "You have used all available credits; purchase more.", "resource_gone"),
    failed(429, "Not enough money.", "billing_hard_limit_reached"),
    failed(403, "Insufficient account balance"),
    failed(400, "Your credit balance is too low to access the API."),
])  # fmt: skip
def test_an_empty_account_is_said_at_once(answer, odd, store):
    fake = odd(lambda asked, number: answer)
    responses, _ = ask(store, questions(get("mine:m"), 20))
    assert len(fake.ledger) == 1 and answer[2]["error"]["message"] in responses[0].error
    assert "key" not in responses[0].error


@pytest.mark.parametrize(("headers", "body"), [
    ({"Retry-After": formatdate(1_700_000_090, usegmt=True)}, error("You exceeded your current quota.")),
    ({"Retry-After": "90"}, error("Add a payment method to go faster.")),
    ({"Retry-After": "90"}, error("Rate limit of requests per minute; see settings/billing", "rate_limit_exceeded")),
    ({"Retry-After": "Tue, 14 Nov 2023 22:14:50 GMT"}, error("Wait.")),
])  # fmt: skip
def test_a_pause_is_kept_in_whatever_form_it_is_asked_for(headers, body, odd, store, monkeypatch):
    clock = Clock()
    clock.now = clock.began = 1_700_000_000.0
    clock.put_into(monkeypatch, endpoint, replies)
    odd(lambda asked, number: whole(asked) if number else (429, headers, body))
    [response], _ = ask(store, questions(get("mine:m"), 1))
    assert response.status == "ok" and 89 <= clock.slept <= 91


def test_a_rate_told_in_the_words_of_an_empty_account_is_a_rate(odd, store, monkeypatch):
    clock = Clock()
    clock.put_into(monkeypatch, endpoint, replies)
    quota = error("You exceeded your current quota, check your billing details. Please retry in 3.2s.", 429)
    odd(lambda asked, number: whole(asked) if number else (429, {}, quota))
    [response], _ = ask(store, questions(get("mine:m"), 1))
    assert response.status == "ok"


STREAMS = [
    'data: {"choices": [{"delta": {"content": "Rain"}}]}\n\ndata: [DONE]\n\n',
    "[DONE]",
    ": wait\n\ndata: {}\n\n",
]


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("answered", [False, True])
def test_a_stream_where_one_reply_was_asked_for_costs_one_attempt(stream, answered, odd, store):
    fake = odd(lambda asked, number: whole(asked) if answered and number == 0 else (200, {}, stream))
    responses, _ = ask(store, questions(get("mine:m"), 2), concurrency=1)
    assert len(fake.ledger) == 1 + answered
    assert responses[-1].status == "error" and repr(stream[:12])[1:-1] in responses[-1].error
