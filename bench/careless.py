"""Careless changes, one at a time, to see whether the tests notice: `.venv/bin/python bench/careless.py [NUMBER ...]`.

Each is a slip that somebody could make and that changes a result, a cost or a file. The list was written from the
package alone, before looking at the tests. A change is made in a work tree of its own; first the tests of its file are
run, then those of its room, then, if they pass, all others without the notebooks. What is printed at the end was not
noticed. It takes four to five hours on two idle cores and is not part of `make test`; that each change still fits the
code is (`bench/test_careless.py`). A run of tests that could not be made, such as of a file that is not there, is no
notice: it is listed as broken.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = {  # the tests that are run first
    "providers": "client again batches limits store said likelihood models options",
    "statistics": "small stats intervals contrasts pairs identity_stats jury_stats likelihood existence foreign",
    "recognition": "small recognition authors scoring simulated style likelihood foreign stats contrasts pairs",
    "identity": "identity identity_suite identity_claims identity_stats attack",
    "existence": "existence",
    "roleplay": "roleplay jury roleplay_commands jury_stats",
    "reading": "patterns scoring forms jury existence foreign servers",
    "records": "records foreign folders",
    "estimates": "tables display compare report",
    "figures": "figures tables display cards paper_figures",
    "profiles": "profile",
    "cli": "options cli studies roleplay_commands store faults_secrets",
    "sweep": "sweep sweep_dry folders kernels studies report cluster",
    "notebooks": "parameters paper_figures notebooks",
    "": "hostile strangers records foreign scoring models faults_secrets faults_text cli options face pages docs house",
}
FILES = {  # and those before them
    "providers/store": "store",
    "providers/dry_runs": "sweep_dry face",
    "providers/models": "models",
    "providers/": "client",
    "statistics/intervals": "intervals stats",
    "statistics/tests": "stats contrasts",
    "statistics/": "stats",
    "recognition/contrasts": "contrasts",
    "recognition/texts": "recognition likelihood",
    "recognition/": "recognition",
    "existence/": "existence",
    "identity/run": "identity_suite",
    "identity/claims": "identity_claims",
    "identity/scoring": "identity_claims",
    "identity/measures": "identity_stats",
    "identity/": "identity",
    "roleplay/run": "jury golden",
    "roleplay/measures": "jury_stats",
    "roleplay/votes": "jury_stats identity_stats",
    "roleplay/": "roleplay",
    "reading/": "recognition",
    "records/fields": "foreign",
    "records/foreign": "foreign",
    "records/names": "foreign",
    "records/values": "foreign",
    "records/": "records",
    "estimates/": "tables",
    "figures/plots": "figures",
    "figures/": "tables",
    "sweep/": "sweep",
    "cli/": "cli",
    "profiles/": "profile",
    "results": "tables",
    "condition": "records",
    "secrets": "faults_secrets",
    "paths": "records",
    "": "records",
}
NBVAL = "--nbval --nbval-current-env --nbval-sanitize-with tests/nbval.cfg tests/test_style.py"
CHANGES = [  # file below selfeval/ or of notebooks/, what stands there, what somebody wrote instead
    # asking
    ("providers/replies.py", "float(reset) / 1000 - time.time()", "float(reset) - time.time()"),
    ("providers/replies.py", 'status = "refusal"', 'status = "ok"'),
    (
        "providers/replies.py",
        '_dict(raw.get("completion_tokens_details")).get("reas',
        '_dict(raw.get("prompt_tokens_details")).get("reas',
    ),
    ("providers/replies.py", 'float(raw["cost"])', 'float(raw["cost"]) / 1e6'),
    ("providers/request.py", "(own | self.parameters)", "(self.parameters | own)"),
    (
        "providers/request.py",
        "unlimited = model.provider.answer_tokens + model.reasoning * model.reasoning_tokens",
        "unlimited = model.provider.answer_tokens",
    ),
    (
        "providers/store.py",
        '"INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?)", values',
        '"INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?)", values',
    ),
    (
        "providers/store.py",
        "not in UNANSWERED:\n                    break",
        "in UNANSWERED:\n                    break",
    ),
    ("providers/calls.py", "IN_A_ROW if self.answered else UNPROVEN", "UNPROVEN"),
    ("providers/endpoint.py", "max(self.open_at, now + wait)", "now + wait"),
    (
        "providers/askers.py",
        'return not (request.cut_counts and response.status == "length" and response.text.strip())',
        "return True",
    ),
    ("providers/dry_runs.py", 'for end in ("low", "high"):', 'for end in ("high", "high"):'),
    # stats
    (
        "statistics/intervals.py",
        "return Rate(value, (self.contrib * w).sum(axis), n,",
        "return Rate(value, self.contrib.mean(axis), n,",
    ),
    (
        "statistics/intervals.py",
        "return a - b - root(a - a_low, b_high - b), a - b + root(a_high - a, b - b_low)",
        "return a - b - root(a - a_low, b - b_low), a - b + root(a_high - a, b_high - b)",
    ),
    ("statistics/intervals.py", "sizes / (sizes - 1) * (k - 1) / k", "sizes / (sizes - 1)"),
    ("statistics/intervals.py", "-(k - 1) / k * change", "-change"),
    ("statistics/tests.py", "np.arange(len(order), 0, -1)", "len(order)"),
    ("statistics/tests.py", "ndtri(np.asarray((h + a) / (n1 + 2 * a)))", "ndtri(np.asarray((h + a) / (n1 + a)))"),
    (
        "recognition/measures.py",
        "return rate_for_name.mean(is_peer & self.wrote, axis=-2)",
        "return rate_for_name.mean(self.wrote, axis=-2)",
    ),
    ("recognition/contrasts.py", "sides = common_rows([other, weights])", "sides = [other, weights]"),
    ("roleplay/votes.py", "1 - observed / given.var(ddof=1)", "1 - observed / given.var()"),
    ("roleplay/measures.py", "groupby(cluster).mean().dropna()", "groupby(cluster).first().dropna()"),
    ("roleplay/votes.py", "known.sum(1, keepdims=True) - known", "known.sum(1, keepdims=True)"),
    ("identity/measures.py", "np.logical_or.accumulate(is_flip, axis=1)", "is_flip"),
    ("identity/measures.py", "times * (times - 1)", "times * times"),
    (
        "recognition/measures.py",
        "groupby(prompt).rank().to_numpy(float)",
        'groupby(prompt).rank("first").to_numpy(float)',
    ),
    # recognition
    (
        "recognition/run.py",
        'orders[text["text_id"]] = order[start:] + order[:start]',
        'orders[text["text_id"]] = order',
    ),
    (
        "recognition/texts.py",
        'shortest[on] = min(shortest.get(on, text["words"]), text["words"])',
        'shortest[on] = text["words"]',
    ),
    (
        "recognition/texts.py",
        "own - logsumexp(others, axis=1) + np.log(others.shape[1])",
        "own - others.max(axis=1)",
    ),
    ("recognition/texts.py", "score=expit(score)", "score=score"),
    ("existence/run.py", "invented_names()[: len(existing)]", "invented_names()"),
    ("recognition/scoring.py", "count[parsing.name_key(label)] < 2", "count[parsing.name_key(label)] < 3"),
    # identity
    ("identity/run.py", '_in_turns(pools["false-far"], "maker", FEW)', 'pools["false-far"][:1]'),
    ("identity/run.py", "siblings = family if len(family) >= FEW else own", "siblings = own"),
    ("identity/run.py", '"temperature": 0.0}', '"temperature": temperature}'),
    (
        "identity/replies.py",
        "known += [(foil, other), (foil_id or foil, other)]",
        "known += [(foil, other)]",
    ),
    (
        "identity/claims.py",
        'turns = words & WORDS["turns_to_affirm"] and not words',
        'turns = words & WORDS["turns_to_affirm"] or not words',
    ),
    (
        "identity/published.py",
        'total = math.fsum(test["details"]["weight"] for test in scored)',
        'total = math.fsum(test["details"]["weight"] for test in tests)',
    ),
    # role-play
    (
        "roleplay/run.py",
        'latin_row(len(members), "order", index, turn - 1, self.seed)',
        'latin_row(len(members), "order", 0, 0, self.seed)',
    ),
    (
        "roleplay/run.py",
        "for other in order[place + 1 :] + order[:place] if turns[other]",
        "for other in order[place:] + order[:place] if turns[other]",
    ),
    ("roleplay/scoring.py", "and 0 <= float(number) <= 1:", "and 0 <= float(number):"),
    ("roleplay/scoring.py", "return own[-1]", "return own[0]"),
    (
        "roleplay/scoring.py",
        "sum(score > 0.5 for score in scores) > half",
        "sum(score > 0.5 for score in scores) >= half",
    ),
    ("roleplay/conversation.py", "text = turn.text if turn.text.strip() else NO_REPLY", "text = turn.text"),
    (
        "roleplay/transcripts.py",
        "enumerate(by_person[: len(shown) - 1])",
        "enumerate(by_person[: len(shown)])",
    ),
    # figures and tables
    ("figures/plots.py", 'rows["claims"] / rows["n"]', 'rows["n"] / rows["claims"]'),
    ("results.py", '"< 0.001" if p < 0.001 else f"{p:.3f}"', 'f"{p:.3f}"'),
    # sweep
    ("sweep/execute.py", "if ended > max(changes, default=0):", "if ended:"),
    ("sweep/file.py", "len(stages) < len(parts) or", "len(stages) > len(parts) or"),
    ("sweep/execute.py", "graph.add(run, *run.needs)", "graph.add(run)"),
    # above the rooms
    ("reading/parsing.py", "DOUBTFUL = 1 / 5", "DOUBTFUL = 1 / 2"),
    (
        "records/texts.py",
        'return [text for text in texts if text["prompt_id"] in chosen]',
        "return texts[: limit or None]",
    ),
    (
        "secrets.py",
        "for value in sorted({*values().values()}, key=len, reverse=True):",
        "for value in sorted({*values().values()}, key=len):",
    ),
    (
        "paths.py",
        "        with contextlib.suppress(OSError):\n            temporary.unlink(missing_ok=True)",
        "        pass",
    ),
    # a second list, over all rooms and notebooks
    ("providers/askers.py", "self.cost += response.cost or 0.0", "self.cost = response.cost or 0.0"),
    ("providers/askers.py", "self.unpriced += response.cost is None", "self.unpriced += not response.cost"),
    (
        "providers/askers.py",
        "            or len(response.earlier) >= self.times\n",
        "            or len(response.earlier) > self.times\n",
    ),
    (
        "providers/askers.py",
        "earlier = [*before.earlier, before.status] if before else []",
        "earlier = [before.status] if before else []",
    ),
    ("providers/askers.py", "cost = call.amount\n", "cost = 0.0\n"),
    ("providers/client.py", "if len(names) > 1:\n            several", "if len(names) > 2:\n            several"),
    ("providers/batches.py", "call.amount /= 2", "call.amount /= 1"),
    ("providers/batches.py", "waiting.remove(call)", "pass"),
    ("providers/batches.py", "call.model.in_batches(), attempts=1", "call.model, attempts=1"),
    ("providers/batches.py", "status != 408):  # it was not taken", "status != 409):  # it was not taken"),
    ("providers/replies.py", "reasoning=apart or in_parts or marked", "reasoning=in_parts or marked"),
    (
        "providers/replies.py",
        'elif ended in ("filtered", "length", "refusal"):',
        'elif ended in ("filtered", "refusal"):',
    ),
    (
        "providers/replies.py",
        "status = int(code) if code.isdigit() else NUMBERS.get(code, 502)",
        "status = int(code) if code.isdigit() else 400",
    ),
    ("providers/store.py", "FROM replies ORDER BY key", "FROM replies"),
    ("providers/store.py", "WHERE purse = ? AND owner <> ?", "WHERE purse = ? AND owner = ?"),
    ("providers/dry_runs.py", "paid = 1 - share_in_batches / 2", "paid = 1 - share_in_batches"),
    ("providers/dry_runs.py", 'if line["to_buy"] or line["key"] not in requests:', 'if line["key"] not in requests:'),
    ("providers/models.py", "return [given] if isinstance(given, str) else list(given)", "return list(given)"),
    ("recognition/counts.py", "known < SCORED * rows", "known <= rows"),
    (
        "recognition/counts.py",
        "np.choose(self.position, [np.nan, self.score, 1 - self.score])",
        "np.choose(self.position, [np.nan, self.score, self.score])",
    ),
    ("recognition/counts.py", 'name.mask(name == "")', "name"),
    (
        "recognition/counts.py",
        'is_another_name = (answer < 0) & rows["named"].notna()',
        "is_another_name = answer < -1",
    ),
    ("recognition/measures.py", "return rate.mean(self.valid & ~self.is_own)", "return rate.mean(self.valid)"),
    (
        "recognition/measures.py",
        "few = evaluators.isin(evaluators[is_doubtful]) & ~is_rate & ~rests_on_scores",
        "few = evaluators.isin(evaluators[is_doubtful]) & ~is_rate",
    ),
    (
        "recognition/measures.py",
        'in ("better", "good")',
        'in ("better",)',
    ),
    ("statistics/table.py", "return np.abs(side) == 1, ", "return side == 1, "),
    (
        "recognition/measures.py",
        "is_other = np.arange(self.n.shape[2]) != self.own_author[:, None]",
        "is_other = np.arange(self.n.shape[2]) >= 0",
    ),
    ("recognition/pairs.py", "return ~unknown & (first ^ second)", "return ~unknown & first"),
    ("recognition/pairs.py", "without_habit = values[rows] - side[rows] * habit", "without_habit = values[rows]"),
    ("recognition/pairs.py", "alike = one * other + (1 - one) * (1 - other)", "alike = one * other"),
    (
        "recognition/pairs.py",
        "bias = first_rate.mapped(lambda rate: rate - 0.5)",
        "bias = first_rate.mapped(lambda rate: 0.5 - rate)",
    ),
    ("recognition/pairs.py", "shared = tally.kept(np.isin(tally.pair, against.pair))", "shared = tally"),
    (
        "recognition/run.py",
        "sets = _pairs(group, evaluator, peers or evaluator.id not in authors)",
        "sets = _pairs(group, evaluator, peers)",
    ),
    (
        "recognition/run.py",
        "sets: Iterable = [_rotated(group, turn, seed)]",
        "sets: Iterable = [_rotated(group, 0, seed)]",
    ),
    (
        "recognition/scoring.py",
        'if condition.get("about"):\n        yes = None',
        'if condition.get("about"):\n        yes = True',
    ),
    (
        "recognition/scoring.py",
        "return None, chosen == place if chosen and place else None",
        "return None, chosen == place if chosen else None",
    ),
    ("identity/measures.py", "is_unpaired = known.any(0) & ~has_all", "is_unpaired = ~has_all"),
    (
        "identity/measures.py",
        "np.isin(accepted.a.value + accepted.b.value, (0, 2))",
        "np.isin(accepted.a.value + accepted.b.value, (0, 1))",
    ),
    ("identity/measures.py", 'adopted = replies["stance"] == "foil"', 'adopted = replies["stance"] != "truth"'),
    (
        "identity/measures.py",
        'both = share.unstack("arm").reindex(columns=[*FALSE]).dropna()',
        'both = share.unstack("arm").reindex(columns=[*FALSE]).fillna(0)',
    ),
    (
        "identity/attack.py",
        "open_forks = [fork for fork in forks if fork.turn < turns]",
        "open_forks = [fork for fork in forks if fork.turn <= turns]",
    ),
    (
        "identity/attack.py",
        "foil = pool[len(design) // len(strategies) % len(pool)]",
        "foil = pool[len(design) % len(pool)]",
    ),
    (
        "identity/attack.py",
        'speaker = "A" if message["role"] == "user" else "B"',
        'speaker = "B" if message["role"] == "user" else "A"',
    ),
    (
        "identity/attacked.py",
        'of_model["strategy"].isna() & of_model["arm"].isin(FALSE)',
        'of_model["strategy"].isna()',
    ),
    ("identity/attacked.py", "if not is_paired:", "if is_paired:"),
    (
        "identity/published.py",
        'return response.status not in ("error", "length") and',
        'return response.status != "error" and',
    ),
    ("identity/own_models.py", 'other="Claude Sonnet 4.5" if "gpt" in name.casefold() else "GPT-4"', 'other="GPT-4"'),
    (
        "roleplay/measures.py",
        'within=SHARE)\n        yield Measure("mean_score"',
        'within=None)\n        yield Measure("mean_score"',
    ),
    (
        "roleplay/measures.py",
        'seats = (votes.seats == evaluator) | (evaluator == "")',
        "seats = votes.seats == votes.seats",
    ),
    (
        "roleplay/votes.py",
        'frame["cluster"] = frame["pair"].where(frame["pair"] != "", frame["conversation_id"])',
        'frame["cluster"] = frame["conversation_id"]',
    ),
    ("roleplay/votes.py", 'frame = frame[frame["role"] == "juror"]', 'frame = frame[frame["role"] != "judge "]'),
    ("roleplay/votes.py", "return self.score[:, :, -1]", "return self.score[:, :, 0]"),
    (
        "roleplay/run.py",
        "return [symbols[(place + row + column) % size] for place in places]",
        "return [symbols[(place + row) % size] for place in places]",
    ),
    (
        "roleplay/run.py",
        'if arm == "independent":\n            return seats',
        'if arm in ("independent", "reask"):\n            return seats',
    ),
    ("roleplay/scoring.py", 'if match["revised"] or _says_two(line):', 'if match["revised"]:'),
    ("roleplay/scoring.py", 'if not line.lstrip().startswith((">", "＞"))]', "]"),
    (
        "roleplay/scoring.py",
        "own = [score for score, is_repeated in valid if not is_repeated]",
        "own = [score for score, is_repeated in valid]",
    ),
    ("existence/measures.py", "difference.kish = real.kish + invented.kish", "difference.kish = real.kish"),
    (
        "records/foreign.py",
        'files[file] = {"hints": True, **files[file]}',
        'files[file] = {**files[file], "hints": True}',
    ),
    (
        "records/foreign.py",
        'pooled = rows[texts.transform("nunique") > 1]',
        'pooled = rows[texts.transform("nunique") > 2]',
    ),
    ("records/foreign.py", "unused -= set(table)", "unused -= set(headings)"),
    ("estimates/summaries.py", "rows = rows[is_juror == jurors]", "rows = rows[is_juror]"),
    ("profiles/run.py", "if price > SHARE * max_cost:", "if price > max_cost:"),
    (
        "profiles/run.py",
        'dollars = dry_runs.prices(counts)["usd_low"]',
        'dollars = dry_runs.prices(counts)["usd_high"]',
    ),
    ("sweep/execute.py", 'name == "AssertionError" and "run again" in text', '"run again" in text'),
    ("sweep/execute.py", '[folder / name, *(folder / name).glob("*.jsonl")]', "[folder / name]"),
    ("sweep/execute.py", 'return 1 if counts["failed"] else 3', "return 1"),
    ("sweep/execute.py", 'if run.status not in ("done", "not started"):', 'if run.status == "ok":'),
    ("figures/plots.py", 'is_silent = counts["predicted"] == NONE', 'is_silent = counts["predicted"] != NONE'),
    ("figures/plots.py", 'null = rows["statistic"].map(dict.fromkeys(differences, 0.0))', "null = 0.0"),
    ("figures/papers.py", "if group != last:", "if not body:"),
    (
        "notebooks/03_self_recognition.ipynb",
        'of_others = by_author[by_author[\\"own\\"] == 0].mean()',
        "of_others = by_author.mean()",
    ),
    ("notebooks/04_identity.ipynb", "limit=limit, **design)", "limit=0, **design)"),
    ("notebooks/06_jury.ipynb", "higher.mean() + equal.mean() / 2", "higher.mean()"),
    (
        "notebooks/06_jury.ipynb",
        "half = stats.t.ppf(0.95, df) * standard_error",
        "half = stats.t.ppf(0.975, df) * standard_error",
    ),
    (
        "notebooks/09_paper_figures.ipynb",
        'bootstrap = table[table[\\"method\\"] == \\"percentile\\"]',
        'bootstrap = table[table[\\"method\\"] != \\"percentile\\"]',
    ),
    (
        "notebooks/09_paper_figures.ipynb",
        'FOILS = {\\"a sibling\'s\\": \\"sibling\\", \\"another maker\'s\\": \\"another maker\\"}',
        'FOILS = {\\"another maker\'s\\": \\"sibling\\", \\"a sibling\'s\\": \\"another maker\\"}',
    ),
    (
        "notebooks/09_paper_figures.ipynb",
        'is_persona = study[\\"evaluator\\"].str.endswith(\\"-writer\\")\\n",\n    "study = study[~is_persona]',
        'is_persona = study[\\"evaluator\\"].str.endswith(\\"-writer\\")\\n",\n    "study = study[:]',
    ),
    ("notebooks/14_interrogation.ipynb", "survival *= kept.loc[at_risk, turn].mean()", "survival *= kept[turn].mean()"),
    ("notebooks/07_existence.ipynb", '{\\"names\\": names,', '{\\"names\\": 6,'),
    ("notebooks/01_generate_texts.ipynb", 'errors.append(failure[\\"error\\"])', "pass"),
    # by two more who had not seen a test
    ("providers/replies.py", "if end > start] or None", "if end >= start] or None"),
    (
        "providers/batches.py",
        "read_reply(answer, call.model.in_batches(), attempts=1, adapted=call.adapted)",
        "read_reply(answer, call.model, attempts=1, adapted=call.adapted)",
    ),
    ("providers/budget.py", 'f"sweep-{uuid.uuid4().hex}:{max_cost / hosts}"', 'f"sweep-{uuid.uuid4().hex}:{max_cost}"'),
    ("providers/models.py", "is_own = not self.hosted or self.url != self.base_url", "is_own = not self.hosted"),
    ("recognition/texts.py", "+ np.log(others.shape[1])", "- np.log(others.shape[1])"),
    ("recognition/texts.py", 'written | {"status": "ok", "words_asked": words}', 'written | {"status": "ok"}'),
    (
        "recognition/run.py",
        "[question.request(seed) for question in questions]",
        "[question.request() for question in questions]",
    ),
    ("identity/measures.py", 'situations["ordered_pairs"] / (n * (n - 1))', 'situations["ordered_pairs"] / (n * n)'),
    (
        "identity/measures.py",
        'replies = replies[replies["final"] & replies["stance"].notna() & replies["counts"]]',
        'replies = replies[replies["stance"].notna() & replies["counts"]]',
    ),
    (
        "identity/run.py",
        'random.Random(f"{seed}/{arm}/{truth.name}").shuffle(pool)',
        'random.Random(f"{arm}/{truth.name}").shuffle(pool)',
    ),
    (
        "identity/published.py",
        "foreign = [name for name in foreign if len(name) > 3]",
        "foreign = [name for name in foreign if len(name) >= 3]",
    ),
    ("roleplay/run.py", 'row["position"] != position and row["score"] is not None:', 'row["score"] is not None:'),
    ("roleplay/measures.py", 'if scope == "turn" else answers[:turn]', 'if scope == "turn" else answers'),
    ("existence/run.py", "leanings.add((place > 3) - (place < 3))", "leanings.add((place >= 3) - (place < 3))"),
    (
        "existence/measures.py",
        'adjust_p(table, ["condition", "statistic"], chance=',
        'adjust_p(table, ["statistic"], chance=',
    ),
    ("records/tables.py", 'DIVIDES = re.compile("([;\\t\\n])")', 'DIVIDES = re.compile("([;\\n])")'),
    ("reading/thinking.py", 'if "</s>" in last[0] and "<s>" in text:', 'if "</s>" in last[0] or "<s>" in text:'),
    (
        "statistics/table.py",
        'larger = table[["p", "p_permutation"]].max(axis=1).where(is_tested)',
        'larger = table["p"].where(is_tested)',
    ),
    (
        "statistics/tests.py",
        "1 - 0.025 / np.maximum(tests, 1))",
        "0.975)",
    ),
    (
        "statistics/tests.py",
        "return (1 + beyond) / (1 + DRAWS), 1 / (1 + DRAWS)",
        "return beyond / DRAWS, 1 / (1 + DRAWS)",
    ),
    ("estimates/saved.py", "(several | own).items()", "(own | several).items()"),
    (
        "estimates/summaries.py",
        'lowest = rates.groupby("evaluator")["estimate"].min()',
        'lowest = rates.groupby("evaluator")["estimate"].max()',
    ),
    ("figures/forms.py", 'excludes = (marks["low"] > null) | (marks["high"] < null)', 'excludes = marks["low"] > null'),
    (
        "figures/plots.py",
        'sums / sums.groupby(["panel", "line"]).transform("sum")',
        'sums / sums.groupby(["panel", "column"]).transform("sum")',
    ),
    ("figures/papers.py", 'for sign in "&%$#_{}"}', 'for sign in "&%$_{}"}'),
    ("profiles/run.py", "allow ${price / SHARE:,.2f}", "allow ${price * SHARE:,.2f}"),
    (
        "profiles/profile.py",
        'asking | {"max_cost": max(self.most - self.so_far().cost, 0)}',
        'asking | {"max_cost": self.most}',
    ),
    (
        "sweep/execute.py",
        '("SELFEVAL_REPLAY", "SELFEVAL_MODELS", "SELFEVAL_BATCH")',
        '("SELFEVAL_REPLAY", "SELFEVAL_MODELS")',
    ),
    ("sweep/execute.py", "max(latest.get(run.stage, 0), run.ended)", "run.ended"),
    ("sweep/report.py", "key=len, reverse=True)", "key=len)"),
    ("api.py", '"paired": stats.paired_models(counted, level=level)', '"paired": stats.paired_models(counted)'),
    (
        "condition.py",
        'return ";".join(sorted(map(_with_plain_truth, parts)))',
        'return ";".join(map(_with_plain_truth, parts))',
    ),
    ("results.py", 'lost = change["removed"] + change["changed"]', 'lost = change["removed"]'),
    ("secrets.py", "if len(value) >= SHORTEST}", "if len(value) > SHORTEST}"),
    (
        "errors.py",
        "_is_number(value, int) and least <= value <= most:",
        "_is_number(value, int) and least <= value < most:",
    ),
    (
        "bounds.py",
        "return max(UNPACKED, RATIO * path.stat().st_size)",
        "return min(UNPACKED, RATIO * path.stat().st_size)",
    ),
    (
        "notebooks/00_profile.ipynb",
        "max_cost=max_cost,",
        "max_cost=None,",
    ),
    (
        "notebooks/01_generate_texts.ipynb",
        'asking = {\\"again\\": again, \\"concurrency\\": concurrency}',
        'asking = {\\"concurrency\\": concurrency}',
    ),
    (
        "notebooks/02_collect_predictions.ipynb",
        'has_leak = answers.drop_duplicates(\\"text_id\\")[\\"leak\\"].eq(True)',
        'has_leak = answers[\\"leak\\"].eq(True)',
    ),
    (
        "notebooks/03_self_recognition.ipynb",
        'is_other=records[\\"evaluator_model\\"] != evaluator',
        'is_other=records[\\"evaluator_model\\"] == evaluator',
    ),
    ("notebooks/04_identity.ipynb", '\\"abstain\\", \\"none\\", \\"no reply\\"]', '\\"abstain\\", \\"no reply\\"]'),
    (
        "notebooks/05_role_play.ipynb",
        'part_of.get(\\"text\\").str.split().str.len()',
        'part_of.get(\\"text\\").str.len()',
    ),
    (
        "notebooks/08_validation.ipynb",
        'power_of_areas = large.groupby([\\"authors\\", \\"rows\\", \\"prompts\\"])[\\"rejected\\"].min()',
        'power_of_areas = large.groupby([\\"authors\\", \\"rows\\", \\"prompts\\"])[\\"rejected\\"].max()',
    ),
    (
        "notebooks/09_paper_figures.ipynb",
        'rows[\\"p_holm\\"].map(se.figures.p_text)',
        'rows[\\"p\\"].map(se.figures.p_text)',
    ),
    ("notebooks/10_implicit_explicit.ipynb", 'ranks = wide.groupby(\\"prompt_id\\").rank()', "ranks = wide.rank()"),
    (
        "notebooks/12_words_and_weights.ipynb",
        'scores[\\"own likelihood, per token\\"] = here[name] / n_tokens',
        'scores[\\"own likelihood, per token\\"] = here[name] / length',
    ),
    ("notebooks/14_interrogation.ipynb", "last = by_conversation.tail(1)", "last = by_conversation.head(1)"),
    (
        "notebooks/15_identity_details.ipynb",
        'gap = by_template[\\"other\\"] - by_template[\\"English\\"]',
        'gap = by_template[\\"English\\"] - by_template[\\"other\\"]',
    ),
    (
        "providers/store.py",
        "self._end(connection, key, owner, purse, amount)",
        "self._end(connection, key, owner, purse, None)",
    ),
    ("providers/dry_runs.py", 'value[:1] not in ("/", "~")', 'value[:1] != "/"'),
    ("providers/batches.py", "each = cost / replies if", "each = cost if"),
    ("providers/models.py", "price=None, call=None)", "call=None)"),
    (
        "recognition/contrasts.py",
        "(minuend.answer < 0).any() or (subtrahend.answer < 0).any()",
        "(minuend.answer < 0).any() and (subtrahend.answer < 0).any()",
    ),
    ("recognition/scoring.py", "had & (~has_reply | (keep & taken_back))", "had & (keep & taken_back)"),
    ("identity/measures.py", 'said["stance"].replace("coarse", "truth")', 'said["stance"]'),
    ("identity/attack.py", 'goal=given.get("goal", PLAN["goal"]).format(**foil)', 'goal=PLAN["goal"].format(**foil)'),
    ("roleplay/measures.py", "(before - 0.5) * (after - 0.5) < 0", "(before - 0.5) * (after - 0.5) <= 0"),
    (
        "roleplay/scoring.py",
        "if sum(score > 0.5 for score in scores) > half:",
        "if sum(score > 0.5 for score in scores) >= half:",
    ),
    ("roleplay/run.py", "costs = [call.cost for call in calls]", "costs = [counted.cost]"),
    ("existence/run.py", 'lines = marked[-1:] or text.split("\\n")', 'lines = marked[:1] or text.split("\\n")'),
    ("records/values.py", "alike.index[alike.duplicated()]", "alike.index[alike.duplicated(keep=False)]"),
    (
        "reading/thinking.py",
        "return before in _QUOTES and after in _QUOTES",
        "return before in _QUOTES or after in _QUOTES",
    ),
    (
        "statistics/table.py",
        'fails_holm = adjusted.fillna(1) > 1 - table["level"]',
        "fails_holm = adjusted.fillna(1) > 0.05",
    ),
    (
        "figures/forms.py",
        'ends = rows[["estimate", "low", "high"]].to_numpy(float)',
        'ends = rows[["estimate"]].to_numpy(float)',
    ),
    (
        "profiles/display.py",
        "found = f\"{form['chance'] + row['detectable']:.2f}\"",
        "found = f\"{row['detectable']:.2f}\"",
    ),
    ("sweep/execute.py", 'for folder in (Path.cwd(), DATA, DATA / "corpora"):', "for folder in (Path.cwd(), DATA):"),
    ("api.py", "client, played, elsewhere, persona=persona, **sampling", "client, played, elsewhere, **sampling"),
    ("errors.py", "if value not in known or list(values).count(value) > 1:", "if value not in known:"),
    ("providers/ends.py", 'str(reason).partition(":")[0].lower()', 'str(reason).rpartition(":")[2].lower()'),
    ("identity/attacked.py", '"denies": ["denied", "other"]', '"denies": ["denied"]'),
    (
        "recognition/pairs.py",
        "has_both = _orders_seen(tally, known)[:, 1:].all(1)",
        "has_both = _orders_seen(tally, known)[:, 1:].any(1)",
    ),
    (
        "recognition/doubts.py",
        'both = said.notna() & right.notna() & frame["recorded"].isna()',
        "both = said.notna() & right.notna()",
    ),
    (
        "reading/thinking.py",
        'is_thought = is_thought or part.get("thought") is True or bool(_REASONS.search(kind))',
        "is_thought = is_thought or bool(_REASONS.search(kind))",
    ),
    (
        "reading/parsing.py",
        "numbered = any(key[-1].isdecimal() for key, _ in said)",
        "numbered = all(key[-1].isdecimal() for key, _ in said)",
    ),
    ("figures/estimates.py", 'keys = ["evaluator", "task", "condition"]', 'keys = ["evaluator", "task"]'),
    (
        "profiles/display.py",
        'form["missed"].format(form["chance"] + row["detectable"])',
        'form["missed"].format(row["detectable"])',
    ),
    (
        "cli/studies.py",
        'names = {row["author"] for row in rows} | {row["author_display"] for row in rows}',
        'names = {row["author"] for row in rows}',
    ),
    (
        "figures/forms.py",
        "return finish(fig, axes_labels[1], axes_labels[0])",
        "return finish(fig, axes_labels[0], axes_labels[1])",
    ),
    ("notebooks/01_generate_texts.ipynb", "{len(failures)} of {by_models}", "{len(failures)} of {len(texts)}"),
    # by five more
    ("api.py", 'asked = frame[frame["control_of"].isna()]', "asked = frame"),
    (
        "api.py",
        "conversation.human_conversations(people, exchanges=exchanges, seed=seed)",
        "conversation.human_conversations(people, exchanges=exchanges)",
    ),
    ("cli/running.py", "if status in (0, 3):", "if status == 0:"),
    (
        "condition.py",
        "parts = [f\"{name}={'' if value is None else value}\" for name, value in condition.items()]",
        'parts = [f"{name}={value}" for name, value in condition.items()]',
    ),
    ("estimates/summaries.py", "last = turns.astype(int).max()", "last = turns.max()"),
    (
        "identity/claims.py",
        'if polarity in (*AFFIRMED, "hedge") and words & WORDS["turns_to_deny"]:',
        'if polarity in AFFIRMED and words & WORDS["turns_to_deny"]:',
    ),
    (
        "identity/replies.py",
        "own, others = found_names(without_thinking(text), sides.own, sides.others, scoring)",
        "own, others = found_names(text, sides.own, sides.others, scoring)",
    ),
    (
        "profiles/display.py",
        "drawn.loc[is_jury, BOUNDS] = 2 * drawn.loc[is_jury, BOUNDS] - 1",
        'drawn.loc[is_jury, "estimate"] = 2 * drawn.loc[is_jury, "estimate"] - 1',
    ),
    (
        "providers/addresses.py",
        'return host == "localhost" or host.endswith(".localhost")',
        'return host == "localhost"',
    ),
    (
        "providers/addresses.py",
        'return "@" in address.partition("://")[2].partition("/")[0]',
        'return ":" in address.partition("://")[2].partition("/")[0]',
    ),
    ("providers/addresses.py", "return any(number in network for network in PRIVATE)", "return number.is_private"),
    ("providers/batches.py", "since) < since - 86_400:", "since) < since + 86_400:"),
    ("providers/budget.py", "max(self._dearest.get(model.id, 0.0), cost or 0.0)", "cost or 0.0"),
    ("reading/thinking.py", "if closes and this == kind:", "if closes:"),
    ("recognition/scoring.py", "beside = had & has_reply & is_complete", "beside = had & has_reply"),
    ("records/foreign.py", "frame = frame.drop(index=again).reset_index(drop=True)", "frame = frame.drop(index=again)"),
    (
        "records/names.py",
        'if len(counts) > 9:\n        text += f" and {len(counts) - 9} more"',
        'if len(counts) > 9:\n        text += f" and {len(counts)} more"',
    ),
    (
        "records/texts.py",
        "return max(map(len, texts)) <= LONGEST_TURN and",
        "return min(map(len, texts)) <= LONGEST_TURN and",
    ),
    ("records/texts.py", 'stripped(row.get("author") or row["model"])', 'stripped(row.get("model") or row["author"])'),
    (
        "records/values.py",
        'return 0 <= pd.to_numeric(value, errors="coerce") <= 1',
        'return 0 < pd.to_numeric(value, errors="coerce") < 1',
    ),
    (
        "records/values.py",
        "if str(known[name]).lower() != str(parts[name]).lower():",
        "if str(known[name]) != str(parts[name]):",
    ),
    ("roleplay/shown.py", 'return "no score" if score is None else', 'return "no score" if not score else'),
    ("roleplay/votes.py", "contrib = kappa.contrib * (1 - expected)", "contrib = kappa.contrib"),
    ("statistics/classifier.py", "columns=np.unique(labels))", "columns=pd.unique(labels))"),
    ("statistics/intervals.py", "contrib=-self.contrib, at=at)", "contrib=self.contrib, at=at)"),
    ("api.py", "if len(called) == 1:", "if called:"),
    (
        "api.py",
        "pairs = stats.paired_comparison(asked, statistics=claims, **bootstrap)",
        "pairs = stats.paired_comparison(frame, statistics=claims, **bootstrap)",
    ),
    (
        "cli/running.py",
        "digest = hashlib.sha256(json.dumps([str(file), *ids, *asked]).encode()).hexdigest()",
        "digest = hashlib.sha256(json.dumps([str(file), *ids]).encode()).hexdigest()",
    ),
    ("providers/store.py", 'cost = response.get("cost") if new else None', 'cost = response.get("cost")'),
    ("reading/languages.py", "small = text.casefold()", "small = text"),
    (
        "records/columns.py",
        'names = [str(value).removesuffix(".0") for value in unique]',
        "names = [str(value) for value in unique]",
    ),
]


class BrokenError(Exception):
    """A change that does not fit the code, or tests that could not be run."""


def main() -> None:
    """Make each change, or those with these numbers, and say which of them no test noticed."""
    chosen = [*map(int, sys.argv[1:])] or range(len(CHANGES))
    unnoticed, broken = [], []
    with tempfile.TemporaryDirectory(prefix="selfeval-careless-") as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "--detach", "--quiet", tree], cwd=ROOT, check=True)
        try:
            for number in chosen:
                try:
                    said = _noticed(tree, *CHANGES[number])
                    unnoticed += [] if said else [number]
                except BrokenError as error:
                    said = f"BROKEN: {error}"
                    broken.append(number)
                print(f"{number} {CHANGES[number][0]}: {said or 'NOT NOTICED'}", flush=True)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)
    print(f"{len(unnoticed)} of {len(chosen)} were not noticed: {unnoticed}")
    print(f"{len(broken)} could not be tried: {broken}")
    sys.exit(1 if unnoticed or broken else 0)


def path_of(file: str) -> str:
    """Return where a file stands, from the root."""
    return file if file.startswith("notebooks/") else f"selfeval/{file}"


def tests_first(file: str) -> tuple[str, str]:
    """Return the tests that are run first for a file, those of its own and those of its room."""
    if file.startswith("notebooks/"):
        return f"{NBVAL} {file}", ROOMS["notebooks"]
    own = next(tests for name, tests in FILES.items() if file.startswith(name))
    return own, ROOMS[file.partition("/")[0] if "/" in file else ""]


def _noticed(tree: Path, file: str, before: str, after: str) -> str:
    """Return the test that fails with a change, "" where none does."""
    path = tree / path_of(file)
    text = path.read_text("utf-8")
    if text.count(before) != 1:
        raise BrokenError(f"{file} has {text.count(before)} times, and not once, what is to be changed: {before!r}")
    path.write_text(text.replace(before, after), "utf-8")
    try:
        for words in (*tests_first(file), ""):
            if failing := _failing(tree, words):
                return failing
        return ""
    finally:
        path.write_text(text, "utf-8")


def _failing(tree: Path, words: str) -> str:
    """Return the first test that fails in these files of tests, in all for none; "" where all pass."""
    tests = words.split()
    several = ["-n", "0"]  # the cells of a notebook share a kernel
    if not words.startswith("--"):
        tests = [f"tests/test_{word}.py" for word in tests] or ["tests", "bench"]
        several = ["-n", "2", "--dist", "worksteal"]
    # Without -x: a run in several processes that is stopped at its first failure ends as interrupted.
    command = [sys.executable, "-m", "pytest", "-q", *several, "-m", "not model", *tests]
    done = subprocess.run(command, cwd=tree, env=os.environ | {"PYTHONPATH": str(tree)}, capture_output=True, text=True)
    if done.returncode == 0:
        return ""
    # the second: what notebooks write is held against the committed files at the end of a run
    found = re.search(r"^FAILED \S+|^what the tests wrote is not what is committed:\n\S+", done.stdout, re.M)
    if done.returncode != 1 or not found:  # 1: tests were run, and some failed
        raise BrokenError(f"pytest ended with {done.returncode}: {done.stdout[-300:]}{done.stderr[-300:]}")
    return found[0]


if __name__ == "__main__":
    main()
