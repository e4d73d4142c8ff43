"""What the jury's notebook needs: conversations to judge, verdicts, baselines, transcripts with scores, sentences."""

import html
from collections.abc import Mapping, Sequence

import pandas as pd

from selfeval.asking.client import Client
from selfeval.errors import InputError, check_whole
from selfeval.figures.tables import p_text, side_by_side
from selfeval.models import Model
from selfeval.records import data_path
from selfeval.roleplay.humans import forced_context, human_conversations
from selfeval.roleplay.jury import decide, hold, judged_turns
from selfeval.roleplay.panel import Jury, personas, relatives, warnings
from selfeval.roleplay.transcripts import Conversation, read_conversations, read_verdicts
from selfeval.stats import serving
from selfeval.stats.classifier import out_of_fold
from selfeval.stats.jury import JUROR, baseline_auc, default_rows, jury_table, seated
from selfeval.stats.jury import served as served_by_several

VERDICT = ["conversation_id", "turn", "arm"]
SHADES = ("#f3d9d4", "#f2f2f2", "#d5e6f0")  # a program, undecided, a person


def existing(
    verdicts: str | Sequence[str], conversations: str | Sequence[str], *, limit: int = 0, max_turns: int = 0, out: str
) -> tuple[list[Conversation], list[dict]] | None:
    """Return verdicts that exist, in files, as (conversations, statements); None where no file is named.

    The conversations are those that the statements are about, as far as they stand in these files, beside them, or in
    `conversations`; first file first. limit, max_turns: as in `docket`. Raises `InputError` where `out` is a folder
    that one of the files is in, since the notebook writes there.
    """
    files, talks = _listed(verdicts), _listed(conversations)
    check_whole("limit", limit)
    check_whole("max_turns", max_turns)
    written = {(data_path(out) / f"{name}.jsonl").resolve() for name in ("verdicts", "conversations")}
    for file in files + talks:
        if data_path(file).resolve() in written:
            raise InputError(f"`out` {out!r} is where {file} is, which is read here; choose another folder for `out`.")
    if not files:
        return None
    statements, found = read_verdicts(files)
    beside = [file for file in (data_path(file).with_name("conversations.jsonl") for file in files) if file.is_file()]
    texts = {one.conversation_id: one for one in reversed([*found, *read_conversations(beside + talks)])}
    judged = list(dict.fromkeys(row["conversation_id"] for row in statements))[: limit or None]
    kept = [r for r in statements if r["conversation_id"] in judged and r["turn"] <= (max_turns or r["turn"])]
    if not any(row["role"] == "juror" for row in kept):
        raise InputError(f"There is no juror's verdict in {', '.join(map(str, files))} on the answers to analyse.")
    return [texts[name].first(max_turns) for name in judged if name in texts], kept


def _listed(files: str | Sequence[str]) -> list[str]:
    return [files] if isinstance(files, str) else list(files)


async def hear(
    client: Client, jury: Jury, arms: Sequence[str], files: str | Sequence[str], **docketed
) -> tuple[list[Conversation], list[dict]]:
    """Have a jury judge what `docket` returns; return conversations and statements."""
    cases = await docket(client, files, **docketed)
    return cases, await hold(client, jury, cases, arms)


async def docket(
    client: Client, files: str | Sequence[str], *, humans: int = 0, exchanges: int = 2, agent: Model, seed: int = 0,
    limit: int = 0, max_turns: int = 0,
) -> list[Conversation]:  # fmt: skip
    """Return what a jury is to judge: the conversations of files, then so many human controls with their twins.

    A control is a chat between people, of so many exchanges; in its twin the agent answers in one person's place
    (`humans.forced_context`). limit: only the first so many conversations of the files, 0 = all. max_turns: only the
    first so many exchanges of each conversation, 0 = all. Raises `InputError` where there is nothing to judge.
    """
    if not isinstance(humans, int) or isinstance(humans, bool) or humans < 0:
        raise InputError(f"`humans` must be a number of control conversations, or 0 for none, got {humans!r}.")
    found = [one.first(max_turns) for one in (read_conversations(files) if files else [])[: limit or None]]
    if humans:
        people = [one.first(max_turns) for one in human_conversations(humans, exchanges=exchanges, seed=seed)]
        found += [*people, *await forced_context(client, agent, people, seed=seed)]
    if not found:
        raise InputError("There is nothing to judge: name files in `conversations`, or set `humans` above 0.")
    return found


def served(records: pd.DataFrame, conversations: Sequence[Conversation]) -> dict[str, dict[str, int]]:
    """Return the endpoints of the models that several of them served, as jurors or as agents of the conversations."""
    said = [
        [one.agent_model, turn.more.get("served_model"), turn.more.get("served_by")]
        for one in conversations
        for turn in one.turns
        if turn.speaker == one.agent and one.agent_model not in ("human", "")
    ]
    return served_by_several(pd.concat([records.filter(JUROR), pd.DataFrame(said, columns=JUROR)]))


def seating(jury: Jury, known: tuple[list, list[dict]] | None = None) -> pd.DataFrame:
    """Return who sits on the jury for the first conversation's first turn, in speaking order.

    known: verdicts that exist (`existing`): who sat there, in the last of the arms.
    """
    rows = [(place, seat.name, seat.persona) for place, seat in enumerate(jury.seats("debate", 0, 1), 1)]
    if known:
        said = pd.DataFrame(known[1]).query("role == 'juror'")
        said = said[said["arm"] == said["arm"].iloc[-1]]
        first = said[[*VERDICT, "round"]].eq(said[[*VERDICT, "round"]].iloc[0]).all(axis=1)
        rows = said.loc[first, ["position", "juror", "persona"]].itertuples(index=False)
    return pd.DataFrame([(*row, _title(row[2])) for row in rows], columns=["speaks", "juror", "persona", "title"])


def doubts(
    jury: Jury, agents: Sequence[str], arms: Sequence[str], known: tuple[list, list[dict]] | None = None
) -> list[str]:
    """Return a sentence for everything that weakens this jury (`panel.warnings`), or the one of verdicts that exist."""
    if not known:
        return warnings(jury, agents, arms)
    statements = [row for row in known[1] if row["role"] == "juror"]
    models = {row["juror"].partition(" #")[0] for row in statements}
    found = []
    if len(models) == 1 and {row["arm"] for row in statements} - {"independent"}:
        found.append(f"One model, {models.pop()}, sat in all seats: what looks like a debate is one model with itself.")
    for agent in dict.fromkeys(row["agent"] for row in statements):
        found += relatives(agent, [row["juror"] for row in statements if row["agent"] == agent and row["same_family"]])
    return found


def settings(jury: Jury, agent: str, known: tuple[list, list[dict]] | None = None) -> dict:
    """Return what a paper says of the jury; of verdicts that exist, as far as these say it."""
    how = {"aggregation": jury.aggregation, "seed": jury.seed}
    if not known:
        who = {"jurors": [model.id for model in jury.jurors], "personas": list(jury.personas), "agent": agent}
        who |= {"rounds": jury.rounds, "scope": jury.scope, "context": jury.context}
        return who | {"aggregation": jury.aggregation, "temperature": jury.temperature, "seed": jury.seed}
    statements = [row for row in known[1] if row["role"] == "juror"]
    each = {"jurors": "juror", "personas": "persona", "agents": "agent", "scope": "scope"}
    said = {name: [v for v in dict.fromkeys(row[field] for row in statements) if v] for name, field in each.items()}
    return said | {"rounds": max(row["round"] for row in statements)} | how


def verdicts(records: pd.DataFrame, aggregation: str = "mean") -> pd.DataFrame:
    """Return one row per verdict: conversation, turn, arm, source, agent, `score` (null without any valid score)."""
    rows = []
    for _, part in records.groupby(VERDICT, sort=False):
        first = part.iloc[0]
        score = decide(
            part.assign(score=part["score"].astype(object).where(part["score"].notna(), None)).to_dict("records"),
            aggregation,
        )
        rows.append({name: first[name] for name in (*VERDICT, "source", "agent", "pair")} | {"score": score})
    return pd.DataFrame(rows).astype({"score": float})


def summary(
    table: pd.DataFrame, statistics: Sequence[str], jurors: bool = False, display: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Return statistics of `jury_table` as text with intervals: a row per arm, source, round and juror that occur.

    jurors: the rows of single jurors instead of those of whole juries. n and n_conversations are those of the first
    statistic that a row has.
    """
    rows = default_rows(table, *statistics)
    rows = rows[(rows["juror"] != "") == jurors]
    rows = rows.assign(juror=[_label(juror, display) for juror in rows["juror"]])
    if rows.empty:
        return pd.DataFrame(columns=["arm", *statistics])
    text = rows.assign(shown=[_with_interval(row) for row in rows.itertuples()])
    keys = [k for k in ("arm", "source", "round", "juror") if text[k].astype(str).replace({"<NA>": ""}).nunique() > 1]
    text["round"] = text["round"].astype(object).where(text["round"].notna(), "")
    keys = keys or ["arm"]
    first = text.sort_values("statistic", key=lambda names: names.map(list(statistics).index), kind="stable")
    sizes = first.drop_duplicates(keys).set_index(keys)[["n", "n_conversations"]]
    return side_by_side(text, keys, statistics).join(sizes).reset_index()


def _with_interval(row) -> str:
    if pd.isna(row.estimate):
        return "-"
    digits = 0 if abs(row.estimate) >= 100 else 2
    value = f"{row.estimate:.{digits}f}"
    return value if pd.isna(row.low) else f"{value} [{row.low:.{digits}f}, {row.high:.{digits}f}]"


def first_attempts(records: pd.DataFrame, table: pd.DataFrame, **options) -> pd.DataFrame:
    """Show the mean scores of `jury_table(records)` beside those where a statement that was asked again has no score.

    Empty unless a juror was asked again for more than `serving.WORTH_SAYING` of its statements.
    """
    if not (serving.asked_again(records, ["juror"]) > serving.WORTH_SAYING).any():
        return pd.DataFrame()
    first = jury_table(serving.first_attempts(records, ["score"]), **options)
    shown = {"last": table, "first": first}
    parts = [summary(rows, ["mean_score"]).assign(attempt=name) for name, rows in shown.items()]
    return pd.concat(parts).sort_index(kind="stable").reset_index(drop=True)


def judged_text(jury: Jury, conversation: Conversation, turn: int) -> str:
    """Return what a verdict is about as one text: the turn's answer, or all answers up to it."""
    answers = [exchange.answer for exchange in conversation.exchanges()[:turn]]
    return answers[-1] if jury.scope == "turn" else "\n".join(answers)


def baselines(
    jury: Jury, conversations: Sequence[Conversation], *, n_resamples: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """Return AUC and paired accuracy of two judges that understand nothing, as rows of `jury_table`.

    `length`: the longer, the more human; an area below .5 says that people write less, and tells them
    apart as well as one above. `character n-grams`: a
    classifier of style that saw none of the texts of the same conversation or pair. Empty without both sources, or
    with fewer than two conversations of each.
    """
    cases = [(c, turn, judged_text(jury, c, turn)) for c in conversations for turn in judged_turns(jury, c)]
    frame = pd.DataFrame(
        {
            "text": [text for *_, text in cases],
            "human": [c.source == "human" for c, *_ in cases],
            "cluster": [c.meta.get("pair") or c.conversation_id for c, *_ in cases],
            "turn": [turn for _, turn, _ in cases],
        }
    )
    if frame.groupby("human")["cluster"].nunique().reindex([False, True]).fillna(0).min() < 2:
        return pd.DataFrame()
    style = out_of_fold(frame["text"], frame["human"].map({True: "human", False: "model"}), frame["cluster"], seed=seed)
    scores = {"length": frame["text"].str.split().str.len(), "character n-grams": style["human"]}
    how = {"n_resamples": n_resamples, "seed": seed}
    return pd.concat(
        [
            baseline_auc(score, frame["human"], frame["cluster"], frame["turn"], name=name, **how)
            for name, score in scores.items()
        ],
        ignore_index=True,
    )


def costs(records: pd.DataFrame) -> pd.DataFrame:
    """Return what the statements of each arm took: repairs, missing scores, tokens (and the share cached), dollars.

    Where statements were asked for again, also their share.
    """
    usage = pd.DataFrame([u if isinstance(u, dict) else {} for u in records["usage"]], records.index)
    frame = (
        records[["arm", "status"]]
        .join(usage.reindex(columns=["prompt", "cached", "completion"]))
        .assign(
            none=records["score"].isna() & (records["role"] != "summary"),
            repaired=records["repaired"].astype("boolean"),
            cost=records["cost"].astype(float),
        )
    )
    found = frame.groupby("arm", sort=False).agg(
        statements=("arm", "size"), repaired=("repaired", _known_sum), no_score=("none", "sum"),
        prompt_tokens=("prompt", _known_sum), cached=("cached", "sum"), completion_tokens=("completion", _known_sum),
        dollars=("cost", lambda cost: cost.sum(min_count=len(cost))),
    )  # fmt: skip
    found["cached"] = (found["cached"] / found["prompt_tokens"]).round(2)
    verdicts_held = records.drop_duplicates(VERDICT).groupby("arm").size()
    found.insert(0, "verdicts", verdicts_held)
    again = serving.asked_again(records, ["arm"])
    if again.any():
        found["asked_again"] = again.round(3)
    whole = ["repaired", "no_score", "prompt_tokens", "completion_tokens"]
    return found.astype(dict.fromkeys(whole, "Int64")).reset_index()


def _known_sum(values: pd.Series):
    """Sum what is known; nothing known is no 0."""
    return values.sum(min_count=1)


def chat(conversation: Conversation, records: pd.DataFrame | None = None, display: Mapping[str, str] | None = None):
    """Return a conversation as a chat for a notebook: beside each answer every arm's verdict, each juror's last score
    and its reason. Blue speaks for a person, red for a program. records: None where nobody has judged it yet."""
    from IPython.display import HTML

    records = pd.DataFrame(columns=["conversation_id"]) if records is None else records
    columns = [*VERDICT, "score"]
    records = pd.DataFrame(columns=columns) if records is None else records
    mine = records[records["conversation_id"] == conversation.conversation_id]
    found = verdicts(mine) if len(mine) else pd.DataFrame(columns=columns)
    who = "a person" if conversation.source == "human" else _label(conversation.agent_model or "a model", display)
    rows = [f'<p><b>{_text(conversation.conversation_id)}</b> &middot; B is {_text(who)}</p><table style="width:100%">']
    for exchange in conversation.exchanges():
        scores = found[found["turn"] == exchange.turn]
        beside = "".join(_arm(row, mine, display) for row in scores.itertuples())
        rows.append(_line("A", exchange.question, "", "#ffffff"))
        shade = SHADES[1] if not len(scores) or scores["score"].isna().all() else _shade(scores["score"].mean())
        rows.append(_line("B", exchange.answer or f"({exchange.status})", beside, shade))
    return HTML("".join(rows) + "</table>")


def _line(who: str, text: str, beside: str, colour: str) -> str:
    cell = 'style="text-align:left;vertical-align:top;padding:4px 8px;white-space:pre-wrap;'
    return (
        f'<tr><td {cell}width:1em"><b>{who}</b></td><td {cell}width:55%;background:{colour};color:#111">{_text(text)}'
        f'</td><td {cell}font-size:85%">{beside}</td></tr>'
    )


def _arm(row, records: pd.DataFrame, display) -> str:
    said = records[(records["turn"] == row.turn) & (records["arm"] == row.arm) & (records["role"] == "juror")]
    last = said[said["round"] == said["round"].max()].sort_values("position")
    jurors = "\n".join(
        ", ".join(filter(None, [_text(_label(juror.juror, display)), _title(juror.persona)]))
        + f": {_number(juror.score)}"
        + f" &ndash; {_text(_short(juror.statement))}" * bool(juror.statement)
        for juror in last.itertuples()
    )
    return f"<details><summary>{_text(row.arm)} <b>{_number(row.score)}</b></summary>{jurors}</details>"


def _number(score) -> str:
    return "no score" if pd.isna(score) else f"{score:.2f}"


def _title(persona: str | None) -> str:
    return personas().get(persona, {}).get("title", persona) if isinstance(persona, str) else ""


def _short(statement: str, longest: int = 160) -> str:
    reason = " ".join(line for line in statement.split("\n") if "_SCORE=" not in line)
    return reason if len(reason) <= longest else reason[:longest].rsplit(" ", 1)[0] + " …"


def _label(juror: str, display: Mapping[str, str] | None) -> str:
    """Return a model's or juror's display name, with its persona or number where it has one behind its id."""
    model = seated(juror, display or ())
    return display[model] + juror.removeprefix(model) if model else juror


def _text(text: str) -> str:
    return html.escape(str(text))


def _shade(score: float) -> str:
    return SHADES[0] if score < 0.4 else SHADES[2] if score > 0.6 else SHADES[1]


def _tested(row) -> str:
    """Return an AUC with its interval and p; where so few conversations allow no small p, say so."""
    if pd.isna(row.p):
        return _with_interval(row)
    few = ", the least that exchanging so few can give" if f"least_p={row.p:.3g}" in row.note else ""
    few = few or (", with so few to exchange" if "least_p" in row.note else "")
    return f"{_with_interval(row)}, p {p_text(row.p)}{few}"


def conclusions(table: pd.DataFrame, base: pd.DataFrame | None = None) -> list[str]:
    """Return a sentence per question that the data can answer: can the jury tell, and what does debating change?"""
    found = []
    for row in default_rows(table, "auc").query("juror == ''").itertuples():
        if pd.isna(row.estimate):
            found.append(f"{row.arm}: whether it tells people from models cannot be estimated ({row.note}).")
            continue
        verb, sure = "is not shown to tell people from models", pd.isna(row.p) or row.p < 1 - row.level
        if sure and (row.low > 0.5 or row.high < 0.5):
            verb = "tells people from models" if row.low > 0.5 else "takes models for people rather than people"
        found.append(f"{row.arm}: {verb} (AUC {_tested(row)}, {row.n_conversations} conversations or pairs).")
    if base is not None and len(base):
        known = default_rows(base, "auc").dropna(subset=["estimate"])
        for row in known.itertuples():
            shorter = ""
            if row.arm == "length" and row.high < 0.5:  # a rule that is always wrong is as good as one always right
                turned = row._replace(estimate=1 - row.estimate, low=1 - row.high, high=1 - row.low)
                shorter = f"; people's answers are the shorter ones, which turned round is {_with_interval(turned)}"
            found.append(f"Without understanding a word: {row.arm} has an AUC of {_tested(row)}{shorter}.")
    for row in default_rows(table, "difference").query("source == '' and arm == 'debate - reask'").itertuples():
        same = default_rows(table, "equivalence").query("source == '' and arm == 'debate - reask'")
        if row.estimate == 0 and pd.isna(row.low):
            found.append("Hearing each other changed nobody's mean score against being asked again.")
        elif pd.isna(row.low):
            found.append(f"What debating changes cannot be estimated ({row.note}).")
        elif row.low > 0 or row.high < 0:
            found.append(f"Hearing each other moved the jurors by {_with_interval(row)} against being asked again.")
        elif len(same) and same["p"].iloc[0] < 0.05:
            found.append(f"Debating changed no more than the margin: {_with_interval(row)} against being asked again.")
        else:
            found.append(f"Whether debating changes anything is open: {_with_interval(row)} against being asked again.")
    return found
