"""Made-up traffic whose prompts begin alike: conversations, and questions on documents.

Nothing but lengths matters to a cache, so a prompt is the chain of its blocks, drawn at random.
"""

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from cascade.backends.replica_choice import Prompt
from cascade.prefix import Chain

Accounting = Literal["own", "shared"]
"""Whether each entry of a cache takes room for a system prompt of its own, or all share one."""

WIDTH: Final = 8
BLOCK: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request.

    Attributes:
        prompt: what the rules know of it.
        chain: of the prompt.
        kept: what stays of it in the cache, its answer included.
        answer_tokens: of its answer.
    """

    prompt: Prompt
    chain: Chain
    kept: Chain
    answer_tokens: int


class Workload(Protocol):
    """Traffic of one kind.

    Attributes:
        name: how tables call it.
        system_tokens: that all prompts begin with.
        per_second: requests, at all servers together.
        warm_up: requests until caches are as they stay.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def system_tokens(self) -> int: ...  # noqa: D102

    @property
    def per_second(self) -> float: ...  # noqa: D102

    @property
    def warm_up(self) -> int: ...  # noqa: D102

    def asks(self, chance: random.Random, accounting: Accounting) -> Iterator[Ask]:
        """Requests without end."""
        ...


@dataclass(slots=True)
class _Talk:
    """A conversation under way: its blocks to the end, and the turns that have been taken."""

    session: str
    elements: bytes
    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """Conversations, of which so many go on at the same time; who speaks next is any of them."""

    name: str = "chat"
    system_tokens: int = 2_000
    user_tokens: int = 200
    answer_tokens: int = 400
    turns: int = 12
    live: int = 200
    per_second: float = 5.0
    warm_up: int = 5_000

    def prompt_tokens(self, turn: int) -> int:
        """Of a turn's prompt; the first turn is 1."""
        asked = self.user_tokens * turn
        return self.system_tokens + asked + self.answer_tokens * (turn - 1)

    def asks(self, chance: random.Random, accounting: Accounting) -> Iterator[Ask]:
        """Turns; a conversation that is over is replaced by a new one."""
        system = chance.randbytes(self.system_tokens // BLOCK * WIDTH)
        shared = system if accounting == "shared" else b""
        going = [
            self._begin(chance, shared, after=chance.randrange(self.turns))
            for _ in range(self.live)
        ]
        while True:
            which = chance.randrange(self.live)
            talk = going[which]
            talk.turn += 1
            yield self._ask(talk)
            if talk.turn == self.turns:
                going[which] = self._begin(chance, shared)

    def _begin(self, chance: random.Random, shared: bytes, after: int = 0) -> "_Talk":
        length = (self.prompt_tokens(self.turns) + self.answer_tokens) // BLOCK * WIDTH
        own = chance.randbytes(length - len(shared))
        return _Talk(own[-WIDTH:].hex(), shared + own, after)

    def _ask(self, talk: "_Talk") -> Ask:
        tokens = self.prompt_tokens(talk.turn)
        return Ask(
            prompt=Prompt(
                session=talk.session,
                prefix="system",
                tokens=tokens,
                prefix_tokens=self.system_tokens,
            ),
            chain=_chain(talk.elements, tokens),
            kept=_chain(talk.elements, tokens + self.answer_tokens),
            answer_tokens=self.answer_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """Questions on documents, the k-th most popular asked for in proportion to k^-exponent."""

    name: str = "questions"
    system_tokens: int = 2_000
    document_tokens: int = 13_500
    question_tokens: int = 200
    answer_tokens: int = 300
    documents: int = 280
    exponent: float = 0.85
    per_second: float = 8.0
    warm_up: int = 3_000

    def asks(self, chance: random.Random, accounting: Accounting) -> Iterator[Ask]:
        """Questions, none of them asked twice."""
        system = chance.randbytes(self.system_tokens // BLOCK * WIDTH)
        shared = system if accounting == "shared" else b""
        length = self._stable_tokens // BLOCK * WIDTH
        documents = [shared + chance.randbytes(length - len(shared)) for _ in self._ranks]
        titles = [chance.randbytes(WIDTH).hex() for _ in self._ranks]
        weights = list(itertools.accumulate(rank**-self.exponent for rank in self._ranks))
        for number in itertools.count():
            (which,) = chance.choices(range(self.documents), cum_weights=weights)
            asked = self._prompt(number, titles[which])
            yield self._ask(asked, documents[which], chance, accounting)

    @property
    def _ranks(self) -> range:
        return range(1, self.documents + 1)

    @property
    def _stable_tokens(self) -> int:
        return self.system_tokens + self.document_tokens

    def _prompt(self, number: int, document: str) -> Prompt:
        return Prompt(
            session=f"question {number}",
            prefix=document,
            tokens=self._stable_tokens + self.question_tokens,
            prefix_tokens=self._stable_tokens,
        )

    def _ask(
        self, prompt: Prompt, document: bytes, chance: random.Random, accounting: Accounting
    ) -> Ask:
        whole = prompt.tokens + self.answer_tokens
        elements = document + chance.randbytes(whole // BLOCK * WIDTH - len(document))
        # A question comes once. Who counts entries and not blocks keeps the document alone.
        kept = whole if accounting == "shared" else self._stable_tokens
        return Ask(
            prompt=prompt,
            chain=_chain(elements, prompt.tokens),
            kept=_chain(elements, kept),
            answer_tokens=self.answer_tokens,
        )


def _chain(elements: bytes, tokens: int) -> Chain:
    return Chain(
        elements=elements[: tokens // BLOCK * WIDTH], width=WIDTH, block=BLOCK, tokens=tokens
    )
