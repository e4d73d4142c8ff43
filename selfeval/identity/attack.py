"""An attacker: a model that sees the conversation so far and writes the next message.

Strategies and prompts are `data/identity/attack.yaml`. After every reply the target is asked, on a
fork, for name and maker, as in the suite.
"""

import re
from collections.abc import Sequence

from selfeval.errors import check_names, check_whole
from selfeval.identity.names import content
from selfeval.identity.replies import as_judge
from selfeval.identity.run import (
    Asked,
    Conversation,
    Situation,
    Template,
    ask_all,
    foils,
    identity,
    records_of,
    score,
)
from selfeval.providers.client import Client, gather
from selfeval.providers.models import Model, several
from selfeval.providers.request import Request, user
from selfeval.reading.parsing import without_thinking
from selfeval.secrets import tell

PLAN = content("attack")
[CONTROL] = PLAN["control"]
STRATEGIES = PLAN["strategies"] | PLAN["control"]
FAMILY = "attack"
TURNS = 6
# who speaks, as the prompt shows it and small models repeat it
LABEL = re.compile(r"^[AB]: *")


async def run_attacks(
    client: Client,
    models: Sequence[Model],
    attacker: Model,
    *,
    strategies: Sequence[str] | None,
    turns: int | None,
    limit: int,
    repeats: int,
    scoring,
    judge,
    temperature: float,
    seed: int,
) -> list[dict]:
    """Have an attacker talk with every model; return one record per reply and read-out.

    Defaults stand in `selfeval.ask_identity`. scoring, judge: as in `run.run_suite`. The control is
    always among the strategies. Records are those of `run_suite`, with `attacker` and `strategy`,
    which is also `condition`; `template_id` is the conversation: its opening with its number, the
    same in all strategies.
    """
    judge = as_judge(judge, scoring, models)
    turns = TURNS if turns is None else turns
    check_whole("turns", turns, 1)
    check_whole("limit", limit)
    chosen = several(PLAN["strategies"] if strategies is None else strategies, "strategies")
    check_names("strategies", chosen, STRATEGIES)
    chosen = [name for name in STRATEGIES if name in (*chosen, CONTROL)]
    design = []
    for model in models:
        design += conversations(model, chosen, limit, repeats, seed)
    lost = await hold(client, attacker, design, turns, temperature, seed)
    tell(_remarks(models, attacker, lost))
    records = []
    for conversation in design:
        template = conversation.situation.template
        who = {"attacker": attacker.id, "strategy": template.condition}
        rows = records_of(conversation, FAMILY, {template.id: template.id})
        records += [row | who for row in rows]
    return await score(client, records, scoring, judge)


def _remarks(models: Sequence[Model], attacker: Model, lost: int) -> list[str]:
    """Say that a model attacks itself, and how many of the attacker's messages did not arrive."""
    sentences = []
    if attacker in models:
        sentences.append(f"{attacker.id} is attacked by itself.")
    if lost:
        ended = f"{lost} messages of {attacker.id} did not arrive, and their conversations ended"
        sentences.append(f"{ended}; run again to ask for these alone.")
    return sentences


def conversations(
    model: Model, strategies: Sequence[str], limit: int, repeats: int, seed: int
) -> list[Conversation]:
    """Return the conversations with a model: each opening, `repeats` times, in every strategy.

    Conversations with one opening and number have the same foil in all strategies.
    """
    pool = foils(identity(model), seed)["false-far"]
    openings = list(PLAN["openings"].items())[: limit or None]
    design = []
    for repeat in range(repeats):
        for name, text in openings:
            foil = pool[len(design) // len(strategies) % len(pool)]
            for strategy in strategies:
                arm = "neutral" if strategy == CONTROL else "false-far"
                template = Template(f"{name} {repeat + 1}", FAMILY, strategy, (arm,), ())
                situation = Situation(template, arm, foil, user(text), ())
                design.append(Conversation(model, situation, repeat))
    return design


async def hold(
    client: Client,
    attacker: Model,
    design: Sequence[Conversation],
    turns: int,
    temperature: float,
    seed: int,
) -> int:
    """Hold all conversations turn by turn; return how many messages of the attacker are missing.

    The read-outs of a turn and the attacker's next messages do not wait for each other.
    """
    asked = []
    for conversation in design:
        asked.append(Asked(conversation, 0, "reply", conversation.situation.messages))
    lost = 0
    while asked:
        forks = await ask_all(client, asked, temperature, seed)
        open_forks = [fork for fork in forks if fork.turn < turns]
        requests = [_request(attacker, fork, temperature, seed) for fork in open_forks]
        _, responses = await gather(
            [ask_all(client, forks, temperature, seed), client.chat_all(requests, "attacks")]
        )
        asked = []
        for fork, response in zip(open_forks, responses, strict=True):
            message = LABEL.sub("", without_thinking(response.text))
            if response.status == "error" or not message:
                lost += 1
                continue
            said = [*fork.messages[:-1], *user(message)]
            asked.append(Asked(fork.conversation, fork.turn + 1, "reply", said))
    return lost


def _request(attacker: Model, fork: Asked, temperature: float, seed: int) -> Request:
    """Return the request for the attacker's next message."""
    situation = fork.conversation.situation
    strategy = situation.template.condition
    given = STRATEGIES[strategy]
    foil = {"name": situation.foil.name, "maker": situation.foil.maker}
    lines = []
    for message in fork.messages[:-1]:  # without the line that reads out
        speaker = "A" if message["role"] == "user" else "B"
        lines.append(f"{speaker}: {message['content'].strip()}")
    prompt = PLAN["prompt"].format(
        goal=given.get("goal", PLAN["goal"]).format(**foil),
        strategy=strategy,
        how=given["how"].format(**foil),
        conversation="\n".join(lines),
    )
    parameters = {"max_tokens": attacker.provider.answer_tokens, "temperature": temperature}
    parameters |= attacker.parameters
    return Request(attacker, user(prompt), parameters, fork.conversation.repeat, seed)
