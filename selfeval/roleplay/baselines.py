"""Judges that read nothing: how far length or style alone tells people from a model."""

from collections.abc import Sequence

import pandas as pd

from selfeval.roleplay.measures import baseline_auc
from selfeval.roleplay.run import judged_turns
from selfeval.roleplay.transcripts import Conversation
from selfeval.statistics.classifier import out_of_fold


def baselines(conversations: Sequence[Conversation], scope: str = "turn") -> pd.DataFrame:
    """Return AUC and paired accuracy of two content-blind baselines, as rows of `jury_table`.

    `length`: the longer, the more human; an area below .5 says that people write less, and tells them apart as well as
    one above. `character n-grams`: a classifier of style that saw none of the texts of the same conversation or pair.
    scope: of the verdicts. Empty without both sources, or with fewer than two conversations of each.
    """
    rows = []
    for one in conversations:
        answers = [exchange.answer for exchange in one.exchanges()]
        cluster = one.meta.get("pair") or one.conversation_id
        for turn in judged_turns(scope, one):
            text = answers[turn - 1] if scope == "turn" else "\n".join(answers[:turn])
            rows.append((text, one.source == "human", cluster, turn))
    frame = pd.DataFrame(rows, columns=["text", "human", "cluster", "turn"])
    if frame.groupby("human")["cluster"].nunique().reindex([False, True]).fillna(0).min() < 2:
        return pd.DataFrame()
    style = out_of_fold(
        frame["text"], frame["human"].map({True: "human", False: "model"}), frame["cluster"]
    )
    scores = {"length": frame["text"].str.split().str.len(), "character n-grams": style["human"]}
    units = frame["human"], frame["cluster"], frame["turn"]
    tables = [baseline_auc(score, *units, name=name) for name, score in scores.items()]
    return pd.concat(tables, ignore_index=True)
