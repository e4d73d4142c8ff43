"""Texts: models write on prompts, or rewrite what others wrote."""

from collections.abc import Sequence

from selfeval import prompts
from selfeval.client import Client, Request
from selfeval.errors import check_at_least, check_whole
from selfeval.models import Model
from selfeval.providers import Response
from selfeval.records import text_id


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
        "served_model": response.served_model,
        "parameters": request.full()[1],
        "request_id": response.request_id,
        "error": response.error,
    }


async def paraphrase(
    client: Client, texts: Sequence[dict], model: Model, *, temperature: float = 0.7, seed: int = 0
) -> tuple[list[dict], list[dict]]:
    """Have one model rewrite every text; return (records with the new text and their old author, failures).

    The author stays who wrote the original: what an evaluator still recognises is not the author's wording. The
    records keep `text_id`, and name the model under `paraphrased_by`.
    """
    parameters = {"temperature": temperature, "max_tokens": max(256, 4 * max(t["words"] for t in texts))}
    requests = [Request(model, prompts.build_paraphrase(text["text"]), parameters, seed=seed) for text in texts]
    responses = await client.chat_all(requests, "paraphrases")
    done, failed = [], []
    for text, response in zip(texts, responses, strict=True):
        new = {"text": response.text, "words": len(response.text.split()), "paraphrased_by": model.id}
        new |= {"status": response.status, "usage": response.usage, "request_id": response.request_id}
        (done if _has_text(response) else failed).append(text | new | {"error": response.error})
    return done, failed
