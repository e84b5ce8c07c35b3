"""A prompt as caches compare it: block after block, each hash standing for all that is before it.

An element has eight bytes of BLAKE2b. Among a million blocks two that differ are equal by accident
with a chance of 3 in 10^8. Somebody who chooses prompts finds an equal pair in about 2^32 tries,
but both have his own salt: he gets a wrong forecast for himself, which the next report corrects.
To hit another's block he would have to find one that is given, in 2^64 tries, for a salt that he
cannot choose.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Self

BLOCK_BYTES: Final = 64
"""Bytes of text in a block where tokens are not known: about 16 tokens."""

_HASH_BYTES: Final = 8
_ID_BYTES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """A prompt as caches compare it: one element of fixed width for each full block, in order.

    Of two prompts those blocks are shared that are equal from the first on. An element is a hash
    that is chained over its block and all before it, or the token's id where a block is one token.

    Attributes:
        salt: whose cache it is; chains of different salts share nothing.
        elements: the elements one after the other.
        width: bytes of an element.
        block: tokens of a full block.
        tokens: of the whole prompt, with what fills no block.
        exact: the tokens are the model's own; otherwise they are estimated from characters.
    """

    salt: str = ""
    elements: bytes
    width: int
    block: float
    tokens: int
    exact: bool = True

    @property
    def blocks(self) -> int:
        """How many full blocks it has."""
        return len(self.elements) // self.width

    def first(self, tokens: int) -> "Chain":
        """The chain of its first tokens."""
        whole = int(tokens / self.block) * self.width
        return self.holding(self.elements[:whole], min(tokens, self.tokens))

    def holding(self, elements: bytes, tokens: int, block: float | None = None) -> "Chain":
        """A chain that is made like this one, and holds something else."""
        return Chain(
            salt=self.salt,
            elements=elements,
            width=self.width,
            block=self.block if block is None else block,
            tokens=tokens,
            exact=self.exact,
        )

    def shared_blocks(self, other: "Chain") -> int:
        """How many full blocks both begin with; none where they were not made alike.

        Estimated chains compare whatever their tokens per byte are: their blocks are bytes.
        """
        alike = (self.salt, self.width, self.exact) == (other.salt, other.width, other.exact)
        if not alike or (self.exact and self.block != other.block):
            return 0
        mine, its = self.elements, other.elements
        low, high = 0, min(self.blocks, other.blocks)
        while low < high:
            middle = (low + high + 1) // 2
            span = slice(low * self.width, middle * self.width)
            low, high = (middle, high) if mine[span] == its[span] else (low, middle - 1)
        return low


@dataclass(frozen=True, slots=True, kw_only=True)
class Chained:
    """A chain that can go on: that of prompt and answer takes no more work than the answer does.

    Attributes:
        chain: of all that was added.
        rest: what fills no block yet, as bytes.
        step: bytes of a full block.
    """

    chain: Chain
    rest: bytes
    step: int

    @classmethod
    def of_ids(cls, ids: Sequence[int], *, block: int, salt: str = "") -> Self:
        """A chain of tokens.

        Args:
            ids: the model's own, as lists or arrays have them.
            block: tokens of a block; the elements of one-token blocks are the ids themselves.
            salt: whose cache it is.

        Raises:
            ValueError: the block has no token, or an id is not a number of up to 32 bits.
        """
        if block < 1:
            raise ValueError(f"block is {block}, below 1")
        width = _ID_BYTES if block == 1 else _HASH_BYTES
        empty = Chain(salt=salt, elements=b"", width=width, block=block, tokens=0)
        return cls(chain=empty, rest=b"", step=block * _ID_BYTES).with_ids(ids)

    @classmethod
    def of_text(
        cls,
        rendered: bytes,
        *,
        tokens_per_byte: float,
        block_bytes: int = BLOCK_BYTES,
        salt: str = "",
    ) -> Self:
        """A chain of text whose tokens are not known; see `chain_of_text`."""
        if block_bytes < 1:
            raise ValueError(f"block_bytes is {block_bytes}, below 1")
        if not tokens_per_byte > 0:
            raise ValueError(f"tokens_per_byte is {tokens_per_byte}, not above 0")
        block = block_bytes * tokens_per_byte
        empty = Chain(
            salt=salt, elements=b"", width=_HASH_BYTES, block=block, tokens=0, exact=False
        )
        return cls(chain=empty, rest=b"", step=block_bytes).with_text(rendered)

    def at(self, tokens_per_byte: float) -> Self:
        """The same text as a model reads it that makes so many tokens of a byte.

        Raises:
            ValueError: it is a chain of token ids.
        """
        chain = self.chain
        if chain.exact:
            raise ValueError("token ids are of one model, and are as many as they are")
        length = chain.blocks * self.step + len(self.rest)
        block = self.step * tokens_per_byte
        told = chain.holding(chain.elements, round(length * block / self.step), block)
        return type(self)(chain=told, rest=self.rest, step=self.step)

    def with_ids(self, ids: Sequence[int]) -> Self:
        """The chain with more tokens behind it.

        Raises:
            ValueError: it is a chain of text, or an id is not a number of up to 32 bits.
        """
        if not self.chain.exact:
            raise ValueError("a chain of text goes on with text, not with token ids")
        try:
            data = array("I", ids).tobytes()
        except (OverflowError, TypeError) as error:
            raise ValueError(f"token ids are numbers from 0 to 2^32 - 1: {error}") from error
        return self._with(data)

    def with_text(self, rendered: bytes) -> Self:
        """The chain with more text behind it.

        Raises:
            ValueError: it is a chain of token ids.
        """
        if self.chain.exact:
            raise ValueError("a chain of token ids goes on with ids, not with text")
        return self._with(rendered)

    def _with(self, data: bytes) -> Self:
        chain, data = self.chain, self.rest + data
        if chain.exact and self.step == _ID_BYTES:
            more, rest = data, b""
        else:
            more = _hashes(data, self.step, chain.elements[-_HASH_BYTES:] or _root(chain.salt))
            rest = data[len(more) // _HASH_BYTES * self.step :]
        elements = chain.elements + more
        length = len(elements) // chain.width * self.step + len(rest)
        tokens = round(length * chain.block / self.step)
        return type(self)(chain=chain.holding(elements, tokens), rest=rest, step=self.step)


def chain_of_ids(ids: Sequence[int], *, block: int, salt: str = "") -> Chain:
    """The chain of a prompt whose token ids are known.

    Args:
        ids: the whole prompt, as the model gets it.
        block: tokens of a block of its cache; 1 gives the ids themselves as elements of four bytes.
        salt: whose cache it is; every hash depends on it.

    Raises:
        ValueError: the block has no token, or an id is not a number of up to 32 bits.
    """
    return Chained.of_ids(ids, block=block, salt=salt).chain


def chain_of_text(
    rendered: bytes, *, tokens_per_byte: float, block_bytes: int = BLOCK_BYTES, salt: str = ""
) -> Chain:
    """The chain of a prompt whose tokens are not known, by the bytes of its rendering.

    Args:
        rendered: of `cascade.prefix.rendering`.
        tokens_per_byte: of the model that gets it; tokens are estimated with it, the elements do
            not depend on it.
        block_bytes: of a block.
        salt: whose cache it is; every hash depends on it.

    Raises:
        ValueError: a block has no byte, or a byte no tokens.
    """
    return Chained.of_text(
        rendered, tokens_per_byte=tokens_per_byte, block_bytes=block_bytes, salt=salt
    ).chain


def _root(salt: str) -> bytes:
    return blake2b(salt.encode(errors="surrogatepass"), digest_size=_HASH_BYTES).digest()


def _hashes(data: bytes, step: int, parent: bytes) -> bytes:
    """The hash of each full block, chained to its parent, one after the other."""
    found = []
    for start in range(0, len(data) - step + 1, step):
        parent = blake2b(parent + data[start : start + step], digest_size=_HASH_BYTES).digest()
        found.append(parent)
    return b"".join(found)
