"""Recompute the primary outcomes of docs/preregistration.md from the records: (a), and (b) with all its predictors.

python recompute.py TEXTS PREDICTIONS LIKELIHOODS [PRIMARY]     (JSON lines, .xz or not; primary.csv to compare with)
"""

import sys

import numpy as np
import pandas as pd
from scipy import special, stats
from sklearn import feature_extraction, linear_model, model_selection, pipeline

MODELS = ["local/smollm2-135m", "local/qwen2.5-coder-0.5b", "local/qwen2.5-coder-1.5b"]  # without the persona
ASKED = {"answer": "free", "show_prompt": True, "temperature": 0}
SAID = "(a) {:.6g}, {:.0f} pairs; (b) {:.6g} [{:.6g}, {:.6g}], {:.0f} texts"

texts, asked, likely = (pd.read_json(file, lines=True).set_index(["prompt_id", "text_id"]) for file in sys.argv[1:4])
asked = asked[[ASKED.items() <= condition.items() and "about" not in condition for condition in asked["condition"]]]
# a column for each evaluator and question (authored, good); unstack fails if something was asked twice
yes = asked.set_index(["evaluator_model", asked["condition"].str["question"]], append=True)["score"].unstack([2, 3])
likely = likely.query("show_prompt").eval("mean = logprob / characters").pivot(columns="candidate", values="mean")

# the style reader learns all four authors; its odds are among those of MODELS
letters = feature_extraction.text.TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True)
reader = pipeline.make_pipeline(letters, linear_model.LogisticRegression(C=10, max_iter=1000, class_weight="balanced"))
folds = model_selection.GroupKFold(5, shuffle=True, random_state=0).split(texts, groups=texts.index.droplevel(1))
shares = model_selection.cross_val_predict(reader, texts["text"], texts["author"], cv=folds, method="predict_proba")
style = pd.DataFrame(shares, texts.index, sorted(set(texts["author"])))[MODELS]

for place, model in enumerate(MODELS):
    table = texts.join(yes[model]).assign(style=style[model] / style.sum(axis=1)).query("author in @MODELS")
    gaps = table.merge(table, on="prompt_id").query("author_x == @model != author_y").eval("authored_x - authored_y")
    odds = special.logit(table[["style", "good", "authored"]].clip(1e-6, 1 - 1e-6))
    columns = likely[MODELS].assign(length=np.log(texts["text"].str.len())).join(odds).dropna()
    # centred, without what is constant within prompts; divided by the deviation within all, also where one is left out
    columns = (columns - columns.groupby("prompt_id").transform("mean")).loc[:, lambda centred: centred.std() > 1e-9]
    parts = [columns.drop(index=out) / columns.std() for out in [[], *columns.index.unique("prompt_id")]]  # first: all
    b, *without = (np.linalg.lstsq(part.drop(columns="authored"), part["authored"])[0][place] for part in parts)
    half = stats.t.ppf(0.975, len(without) - 1) * np.sqrt((len(without) - 1) * np.var(without))
    print(model, here := SAID.format(np.sign(gaps).mean() / 2 + 0.5, gaps.count(), b, b - half, b + half, len(columns)))
    # the tests that the registration names have a p_holm
    for a, b in (pd.read_csv(file).query("evaluator == @model and p_holm >= 0").itertuples() for file in sys.argv[4:]):
        if here != (there := SAID.format(a.estimate, a.n, b.estimate, b.low, b.high, b.n)):
            sys.exit(f"{model} differs from {sys.argv[4]}: {there}")
