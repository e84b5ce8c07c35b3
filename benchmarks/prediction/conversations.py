"""Conversations that grow turn by turn, several behind each system prompt, in a mixed order.

They are made up here, so that everybody measures the same, and so that no text is anyone's.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_LEAST_ANSWER, _MOST_ANSWER = 24, 40
_ROLES: Final = (
    "You answer questions about the stock of a shop for garden tools. Be brief and exact.",
    "You are the night clerk of a small hotel. You are polite, and you never guess.",
    "You help people who repair bicycles at home. Name the tool first, then the step.",
    "You look after the catalogue of a music library. Answer in one or two sentences.",
)
_THINGS: Final = (
    *("lamp", "kettle", "rake", "ladder", "violin", "saddle", "blanket", "compass", "jar", "bell"),
    *("door handle", "paint brush", "music stand", "rain coat", "wash basin", "spare wheel"),
)
_PLACES: Final = ("Tromsø", "Győr", "Plzeň", "Leiden", "Cádiz", "Ålesund", "Turku", "Bergamo")
_ASKS: Final = (
    "How much is number {a}?",
    "Which is cheaper, number {a} or number {b}? Say why in one sentence.",
    "Is there anything from {place}?",
    "Write a short note to {place} that number {a} is sold out.",
    "And what about number {b}?",
    "List three things that cost less than {price}.",
    "Repeat what you said about the last one, but shorter.",
    "A customer writes:\n\n> I bought number {a} in {place}, and it broke.\n\nWhat do you say?",
    "Put numbers {a} and {b} into JSON with the keys name and price.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What is asked next in one of the conversations.

    Attributes:
        conversation: its number.
        system: its system prompt.
        ask: what the user says.
        answer_tokens: the most that the answer may have.
    """

    conversation: int
    system: str
    ask: str
    answer_tokens: int


def turns(*, conversations: int, length: int, seed: int, mark: str) -> list[Turn]:
    """All turns in the order in which they are sent: the next is any conversation's.

    Args:
        conversations: how many there are.
        length: turns of each.
        seed: of everything that is drawn.
        mark: every system prompt begins with it; one that a server has seen before may be warm.
    """
    source = random.Random(seed)  # noqa: S311
    prompts = [f"{mark}\n{_system(role, source)}" for role in _ROLES]
    order = [number for number in range(conversations) for _ in range(length)]
    source.shuffle(order)
    return [
        Turn(
            conversation=number,
            system=prompts[number % len(prompts)],
            ask=_ask(number, source),
            answer_tokens=source.randint(_LEAST_ANSWER, _MOST_ANSWER),
        )
        for number in order
    ]


def _system(role: str, source: random.Random) -> str:
    lines = [
        f"{number}. {source.choice(_THINGS)} from {source.choice(_PLACES)}, "
        f"{source.randint(3, 240)} crowns, {source.randint(0, 30)} left"
        for number in range(1, source.randint(12, 24))
    ]
    return "\n".join([role, "", "What there is:", *lines])


def _ask(number: int, source: random.Random) -> str:
    first, second = source.sample(range(1, 24), 2)
    ask = source.choice(_ASKS).format(
        a=first, b=second, place=source.choice(_PLACES), price=source.randint(10, 200)
    )
    return f"Customer {number} here. {ask}" if source.random() < 0.3 else ask  # noqa: PLR2004


def history(turn: Turn, before: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    """The messages of a turn, after earlier asks and answers of its conversation."""
    messages = [{"role": "system", "content": turn.system}]
    for asked, answered in before:
        messages.append({"role": "user", "content": asked})
        messages.append({"role": "assistant", "content": answered})
    return [*messages, {"role": "user", "content": turn.ask}]
