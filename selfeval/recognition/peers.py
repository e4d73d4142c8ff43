"""What the other evaluators say of the same texts: is a text claimed because it is its own?

An evaluator that never looks at who wrote a text, and finds some authors' texts more claimable than
others, claims its own more wherever these are among them. What it shares with other evaluators is
taste; recognition is what it has beyond them. Each was asked its own question ("Did you write
this?"). A peer is another evaluator that was asked about texts of the evaluator's and of third
authors, who are neither of the two.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from selfeval.recognition.counts import Tally
from selfeval.records.tasks import CLAIMS
from selfeval.statistics.tests import cell_p

# Authors below which a taste of one evaluator alone may well favour its own texts.
FEW_AUTHORS = 20


def claims_p(tally: Tally, claims, where) -> np.ndarray:
    """Return for some evaluators (a mask) the one-sided p of claims of own texts, beyond the peers.

    claims: of a text as its own, by prompt, evaluator and author. It is the largest of what both
    policies give, for to leave others' texts unanswered is no claim of own ones; and where authors
    are named, of two questions: peers may claim these texts as well, or know whose they are.
    """
    claims = claims.astype(float)
    shown = [tally.count().astype(float)]
    is_answered = tally.answer >= 0
    if not is_answered.all():
        shown.append(tally.count(is_answered).astype(float))
    p = np.full(len(tally.own), np.nan)
    for e in np.flatnonzero(where):
        hits = [claims]
        if tally.task not in CLAIMS:
            hits.append(tally.count(tally.answer == tally.own[e]).astype(float))
        each = [beyond_peers_p(of, n, tally.own, int(e)) for of, n in product(hits, shown)]
        p[e] = np.fmax.reduce(each)
    return p


def beyond_peers_p(hits, n, own: np.ndarray, evaluator: int) -> float:
    """Return the one-sided p of an evaluator's hits on its own texts; NaN without peers.

    What peers say of their own texts is left out, and from one constant answer nothing is learned.
    """
    author = own[evaluator]
    total = hits.sum((0, 2))
    varies = (total > 0) & (total < n.sum((0, 2)))
    is_own = np.arange(n.shape[2]) == own[:, None]
    used = (n.sum(0) > 0) & ~is_own & varies[:, None]
    is_third = used & used[evaluator]
    used &= (used[:, author] & is_third.any(1))[:, None]
    if not used.any():
        return np.nan
    used[evaluator] = n[:, evaluator].any(0)
    return cell_p(hits, n, used, evaluator, author)
