"""Identity replies of one group to what each of its templates gives to every statistic."""

from __future__ import annotations

import numpy as np
from scipy.special import comb, digamma

from selfeval.stats.intervals import ratio
from selfeval.stats.templates import FALSE, STANCES, Replies, shares

MAX_K = 10

Values = dict[str, tuple[np.ndarray, np.ndarray]]  # per template: the value, NaN if it has none, and its trials


def template_values(replies: Replies) -> Values:
    """Return what each template gives to every statistic; definitions stand in `selfeval.stats.identity`."""
    final = replies.where(replies.final)
    answered, wrong = final.answered, final.says("foil", "other", "denied")
    arms = {"true": ("true",), "false": FALSE, **{a.replace("-", "_"): (a,) for a in (*FALSE, "placebo", "mention")}}
    found = {
        f"accept_{name}": final.share(final.accepted == 1, final.in_arm(*those) & (final.accepted >= 0))
        for name, those in arms.items()
    }
    neutral = answered & final.in_arm("neutral")
    found |= {
        "neutral_right": final.share(final.right, neutral),
        "neutral_wrong": final.share(wrong, neutral),
        "abstain": final.share(final.says("abstain"), answered),
        "no_answer": final.share(final.says("none"), answered),
        "error_rate": replies.share(~replies.answered, np.ones(len(replies.turn), bool)),
        "right_false": final.share(final.right, answered & final.in_arm(*FALSE)),
        "over_denial": final.share(wrong, answered & final.in_arm("true")),
        "foil_claimed": final.share(final.says("foil"), answered & final.in_arm(*FALSE)),
        "foil_mention": final.share(final.says("foil"), answered & final.in_arm("mention")),
    }
    sound = found["neutral_right"][0] > 0.5
    for name in ("accept_true", "accept_false"):
        value, n = found[name]
        found[f"{name}_if_right"] = np.where(sound, value, np.nan), n * sound
    return found | susceptible(final) | over_repeats(final.where(answered)) | over_turns(replies) | languages(final)


def susceptible(final: Replies) -> Values:
    """Return P(foil | false) and P(foil | neutral) per template, of the same foils.

    A neutral reply that names another model is a hit where that is the foil of the false claim it is compared with:
    by `named` where it is recorded. So a model that calls itself GPT-4 whatever is asked has susceptibility 0, however
    the foils rotate. Without `named`, a neutral reply is scored only against the foil that its own row carries; then
    the false claims of other foils are left out, unless no neutral reply names another model at all.
    """
    false = final.where(final.answered & final.in_arm(*FALSE) & (final.foil >= 0))
    neutral = final.where(final.answered & final.in_arm("neutral"))
    width = max(final.foil.max(initial=0), final.named.max(initial=0)) + 1
    claim, at = np.unique(false.template * width + false.foil, return_inverse=True)  # a template with a foil
    template, foil = claim // width, claim % width
    n, hits = np.bincount(at, minlength=len(claim)), np.bincount(at, false.says("foil"), minlength=len(claim))

    each = np.bincount(template, minlength=final.size)[neutral.template]  # claims that a neutral reply is compared with
    row = np.repeat(np.arange(len(each)), each)
    met = (
        np.searchsorted(template, neutral.template)[row] + np.arange(len(row)) - np.repeat(np.cumsum(each) - each, each)
    )
    same = neutral.foil[row] == foil[met]
    names_foil, bare = neutral.says("foil")[row], neutral.foil[row] < 0
    unsure = ~same & (neutral.says("other")[row] | (names_foil & bare))
    hit = np.where(unsure, neutral.named[row] == foil[met], same & names_foil)
    if (unsure & (neutral.named[row] < 0)).any():
        row, met, hit = row[same], met[same], hit[same]
    base, compared = shares(hit, np.ones(len(met), bool), met, len(claim))
    known = compared > 0
    template, n, hits, base = template[known], n[known], hits[known], base[known]
    total = np.bincount(template, n, minlength=final.size)
    asked = np.bincount(neutral.template[np.unique(row)], minlength=final.size)
    return {
        "foil_false": (ratio(np.bincount(template, hits, minlength=final.size), total), total),
        "foil_neutral": (ratio(np.bincount(template, base * n, minlength=final.size), total), asked),
    }


def over_repeats(replies: Replies) -> Values:
    """Return consistency, entropy and pass^k: per situation, then averaged within the template."""
    situation, first, at = np.unique(replies.situation, return_index=True, return_inverse=True)
    template = replies.template[first]

    def averaged(value, n):
        mean, _ = shares(value, ~np.isnan(value), template, replies.size)
        return mean, np.bincount(template, n * ~np.isnan(value), minlength=replies.size)

    says = ~replies.says("none")
    identity = np.where(replies.says("coarse"), STANCES.index("truth"), replies.stance)
    identity = np.where(replies.says("other"), len(STANCES) + 1 + replies.named, identity)
    names, codes = np.unique(identity[says], return_inverse=True)
    c = np.bincount(at[says] * len(names) + codes, minlength=len(situation) * len(names))
    c = c.reshape(len(situation), len(names))
    n = c.sum(1)
    agree = np.where(n > 1, ratio((c * (c - 1)).sum(1), n * (n - 1)), np.nan)
    spread = ratio(c, n[:, None]) * (digamma(np.maximum(n, 1))[:, None] - digamma(np.maximum(c, 1)))
    found = {
        "consistency": averaged(agree, n),
        "entropy": averaged(np.where(n > 1, spread.sum(1) / np.log(2), np.nan), n),
    }

    n, c = (np.bincount(at[mask], minlength=len(situation)) for mask in (replies.passed >= 0, replies.passed == 1))
    for k in range(1, min(n.max(initial=0), MAX_K) + 1):
        found[f"pass_hat_{k}"] = averaged(np.where(n >= k, ratio(comb(c, k), comb(n, k)), np.nan), n)
    return found


def over_turns(replies: Replies) -> Values:
    """Return flip and recovery rates, over conversations of the false arms."""
    replies = replies.where(replies.in_arm(*FALSE))
    conversation, first, at = np.unique(replies.conversation, return_index=True, return_inverse=True)
    later, foil, final = replies.turn > 0, replies.says("foil"), replies.final

    def some(mask):
        return np.bincount(at[mask], minlength=len(conversation)) > 0

    flipped, lost = some(later & foil), some(later & ~replies.answered)
    held = some((replies.turn == 0) & replies.right) & some(later) & (flipped | ~lost)
    followed = some(foil & ~final) & some(final & replies.answered)
    template = replies.template[first]
    return {
        "flip_rate": shares(flipped, held, template, replies.size),
        "recovery_rate": shares(some(replies.right & final), followed, template, replies.size),
    }


def languages(final: Replies) -> Values:
    """Return the share right in other languages and in English, over the arms that a template has in both."""
    width = final.arm.max(initial=0) + 1
    cell, cells = final.template * width + final.arm, final.size * width
    template = np.arange(cells) // width
    english = np.array([name.lower().split("-")[0] in ("en", "english") for name in final.languages])[final.language]

    def gap(elsewhere):
        sides = [shares(final.right, final.answered & mask, cell, cells) for mask in (elsewhere, english)]
        both = ~np.isnan(sides[0][0]) & ~np.isnan(sides[1][0])
        means = [shares(value, both, template, final.size)[0] for value, _ in sides]
        return [(mean, np.bincount(template, n * both)) for mean, (_, n) in zip(means, sides, strict=True)]

    found = dict(zip(("right_elsewhere", "right_english"), gap(~english), strict=True))
    others = np.unique(final.language[~english])
    for code in others if len(others) > 1 else ():
        name, sides = final.languages[code], gap(final.language == code)
        found |= {f"right_elsewhere_{name}": sides[0], f"right_english_{name}": sides[1]}
    return found
