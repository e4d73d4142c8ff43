"""Texts: models write on prompts, or rewrite what others wrote."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from selfeval.asking.client import Client
from selfeval.asking.request import Request, Response
from selfeval.errors import ProviderError, check_at_least, check_whole
from selfeval.models import Model
from selfeval.recognition import prompts
from selfeval.records import call_fields, data_path, text_id

MISSING = {  # what helps where a reply is no text
    "error": "run again to make only these calls",
    "length": 'its tokens were used up before a text began: `again = "length"` asks once more, and `reasoning: true` '
    "in its entry of data/models.yaml gives it room to think",
    "empty": '`again = "empty"` asks once more',
    "filtered": '`again = "filtered"` asks once more',
}


def writing_prompts(source: str, limit: int = 0, *, words: int = 25, seed: int = 0) -> tuple[list[dict], list[dict]]:
    """Return (prompts, human texts) of a source: a file of prompts, or `chats`, beginnings of chats between people.

    For chats the human texts are what people wrote next, of about the length that the models are asked for, so that
    all authors answer the same prompts; for a file there are none. limit: the first so many prompts, 0 = all of a file;
    chats need a number.
    """
    if source != "chats":
        return prompts.read_prompts(data_path(source), limit), []
    from selfeval.recognition.humans import human_texts

    check_whole("limit", limit, 1)
    asked, texts = human_texts(limit, words=words, seed=seed)
    return asked, [text | {"words_asked": words} for text in texts]


async def generate_texts(
    client: Client,
    models: Sequence[Model],
    writing_prompts: Sequence[dict],
    *,
    samples: int = 1,
    words: int = 100,
    temperature: float = 0.7,
    seed: int = 0,
) -> tuple[list[dict], list[dict]]:
    """Have every model write on every prompt; return (text records, failures), both in the order of the design.

    words: the length asked for, where a prompt has no `words` of its own. temperature: for models whose registry entry
    has none of its own. A reply without text or with an error is a failure: it is no text, and it is not asked for
    again.
    """
    check_whole("samples", samples, 1)
    check_whole("words", words, 1)
    check_whole("seed", seed, 0)
    check_at_least("temperature", temperature, 0)
    design = [(p, p.get("words", words), s, m) for p in writing_prompts for s in range(samples) for m in models]
    requests = [
        # Room for the length asked for and a model that runs over; also what a cut-off text is compared with.
        Request(
            m,
            prompts.build_writing(p["prompt"], asked),
            {"temperature": temperature, "max_tokens": max(256, 4 * asked)} | m.parameters,
            s,
            seed,
            cut_counts=True,
        )
        for p, asked, s, m in design
    ]
    responses = await client.chat_all(requests, "texts")
    texts, failures = [], []
    for (prompt, asked, sample, model), request, response in zip(design, requests, responses, strict=True):
        record = _text_record(prompt, asked, sample, model, request, response)
        (texts if _has_text(response) else failures).append(record)
    return texts, failures


def _has_text(response: Response) -> bool:
    return response.status in ("ok", "length") and bool(response.text.strip())


def _text_record(prompt: dict, asked: int, sample: int, model: Model, request: Request, response: Response) -> dict:
    return {
        "text_id": text_id(model.id, prompt["prompt_id"], sample, response.text),
        "prompt_id": prompt["prompt_id"],
        "prompt": prompt["prompt"],
        "sample": sample,
        "author": model.id,
        "author_display": model.display,
        "text": response.text,
        "words": len(response.text.split()),
        "words_asked": asked,
        "status": response.status,
        "finish_reason": response.finish_reason,
        "usage": response.usage,
        "parameters": request.full()[1],
        "request_id": response.request_id,
        "error": response.error,
        **call_fields(request, response),
    }


def missing_texts(texts: Sequence[Mapping], failures: Sequence[Mapping]) -> list[str]:
    """Say for each author how many requests brought no text, why, and what helps; raise `ProviderError` if all did."""
    grouped = defaultdict(list)
    for failure in failures:
        grouped[failure["author"], failure["status"]].append(failure)
    sentences = []
    for (author, status), failed in grouped.items():
        why = f"{status}; the first: {failed[0]['error']}" if status == "error" else status
        remedy = MISSING.get(status, "ask another model, or on other prompts")
        sentences.append(f"{author} wrote no text for {len(failed)} of its requests ({why}): {remedy}.")
    if not texts:
        raise ProviderError(f"No author wrote a text. {' '.join(sentences)}")
    return sentences


async def paraphrase(
    client: Client, texts: Sequence[dict], model: Model, *, temperature: float = 0.7, seed: int = 0
) -> tuple[list[dict], list[dict]]:
    """Have one model rewrite every text; return (records with the new text and their old author, failures).

    The author stays who wrote the original: what an evaluator still recognises is not the author's wording. The
    records keep `text_id` and who served the author, and name the model under `paraphrased_by`.
    """
    parameters = {"temperature": temperature, "max_tokens": max(256, 4 * max(t["words"] for t in texts))}
    requests = [
        Request(model, prompts.build_paraphrase(text["text"]), parameters, seed=seed, cut_counts=True) for text in texts
    ]
    responses = await client.chat_all(requests, "paraphrases")
    done, failed = [], []
    for text, request, response in zip(texts, requests, responses, strict=True):
        new = {"text": response.text, "words": len(response.text.split()), "paraphrased_by": model.id}
        new |= {"status": response.status, "usage": response.usage, "request_id": response.request_id}
        served = {name: text.get(name) for name in ("served_model", "served_by")}
        new |= {"error": response.error} | call_fields(request, response) | served
        (done if _has_text(response) else failed).append(text | new)
    return done, failed
