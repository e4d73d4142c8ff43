"""Judges that read nothing: how far length or style alone tells people from a model."""

from collections.abc import Sequence

import pandas as pd

from selfeval.records.columns import as_shown
from selfeval.roleplay.measures import baseline_auc
from selfeval.roleplay.run import judged_turns
from selfeval.roleplay.transcripts import Conversation
from selfeval.statistics.classifier import out_of_fold


def baselines(conversations: Sequence[Conversation], scope: str = "turn") -> pd.DataFrame:
    """Return AUC and paired accuracy of two content-blind baselines, as rows of `jury_table`.

    `length`: the longer, the more human; an area below .5 says that people write less, and tells
    them apart as well as one above. `character n-grams`: a classifier of style that saw none of the
    texts of the same conversation or pair. scope: of the verdicts. Empty without both sources, or
    with fewer than two conversations of each.
    """
    rows = []
    for conversation in conversations:
        answers = [exchange.answer for exchange in conversation.exchanges()]
        cluster = conversation.meta.get("pair") or conversation.conversation_id
        for turn in judged_turns(scope, conversation):
            judged = answers[turn - 1 : turn] if scope == "turn" else answers[:turn]
            text = "\n".join(judged)
            rows.append((text, conversation.source, cluster, turn, conversation.words))
    frame = pd.DataFrame(rows, columns=["text", "source", "cluster", "turn", "words"])
    frame["cluster"] = as_shown(frame["cluster"], frame["words"])
    is_human = frame["source"] == "human"
    clusters = frame.groupby(is_human)["cluster"].nunique()
    if clusters.reindex([False, True]).fillna(0).min() < 2:
        return pd.DataFrame()
    source = is_human.map({True: "human", False: "model"})
    style = out_of_fold(frame["text"], source, frame["cluster"])
    scores = {"length": frame["text"].str.split().str.len(), "character n-grams": style["human"]}
    tables = []
    for name, score in scores.items():
        table = baseline_auc(score, is_human, frame["cluster"], frame["turn"], name=name)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)
