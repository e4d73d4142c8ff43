"""Ends: why a reply ended, and whether an error says that a prompt was filtered, in many words."""

import re
from functools import lru_cache

UNKNOWN = "unknown"
# status: what a reason has in it, in lower case and of letters alone; the first that is found
# counts
_STATUSES = {
    "refusal": re.compile("refus"),
    "filtered": re.compile(
        "filter|safety|sensitive|prohibit|recitation|blocklist|blacklist|blocked|spii|toxic|moderat"
        "|guardrail|policy|modelarmor|inspection"
    ),
    "length": re.compile(
        "length|max|limit|window|truncat|incomplete|abort|cancel|timeout|interrupt"
        "|insufficientsystemresource"
    ),
    "error": re.compile("error"),
    "ok": re.compile(
        "^(stop|eo[stm]|end|done|final|finish|complete|normal|tool|function|none|null)|statusfinal$"
    ),
}
_FAILED = re.compile(r"\s*(?:error|failed|failure|exception|timed? ?out|timeout)\b", re.I)
# in the code or type of an error, as of Azure, Alibaba and Moonshot
_FILTER_CODE = re.compile(
    "content.?(filter|policy)|responsible.?ai|data.?inspection|moderation.?block", re.I
)
_FILTER_WORDS = re.compile("content exists risk|content management policy", re.I)  # as of DeepSeek


def status_of(reason) -> str:
    """Return how a reply ended by its finish reason; what stands behind a colon explains it.

    `ok`, `length` (cut off), `filtered`, `refusal`, `error` (it is not whole), or UNKNOWN.
    """
    if reason is None or reason == "":
        return "ok"
    return _status_of(str(reason).partition(":")[0].lower())


@lru_cache(256)  # most replies of a study end for one of two reasons
def _status_of(reason: str) -> str:
    letters = re.sub("[^a-z]", "", reason)
    letters = re.sub("^(finish|stop)?reason", "", letters)
    for status, words in _STATUSES.items():
        if words.search(letters):
            return status
    return UNKNOWN


def of_status(status: str) -> str:
    """Return how a reply ended by the status that somebody else gave it.

    `error` for what failed or timed out, else as in `status_of`; `ok` where it says nothing of it.
    """
    if _FAILED.match(status):
        return "error"
    ended = status_of(status)
    return "ok" if ended == UNKNOWN else ended


def is_filter(error: dict, message: str) -> bool:
    """Tell whether an error of an API says that the prompt was filtered, as it would be again."""
    metadata = error.get("metadata")
    inner = error.get("innererror")
    if isinstance(metadata, dict) and "reasons" in metadata:  # OpenRouter's moderation
        return True
    codes = f"{error.get('code')} {error.get('type')}"
    if isinstance(inner, dict):
        codes += f" {inner.get('code')}"
    return bool(_FILTER_CODE.search(codes) or _FILTER_WORDS.search(message))
