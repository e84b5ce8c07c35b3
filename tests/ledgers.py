"""Prompts and time for tests of what is warm: a letter is a block."""

from cascade.caches import CacheCard
from cascade.ledger import Ledger
from cascade.prefix import Chain

BLOCK = 16


class Clock:
    """Seconds that pass when told."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def wait(self, seconds):
        self.now += seconds


def chain(blocks, *, block=BLOCK, tokens=None, salt="", exact=True):
    """A prompt of those blocks, and of one more token unless it is told how many there are."""
    tokens = int(len(blocks) * block) + 1 if tokens is None else tokens
    return Chain(
        salt=salt, elements=blocks.encode(), width=1, block=block, tokens=tokens, exact=exact
    )


def ids(text, *, tokens=None, salt=""):
    """A prompt whose letters are its tokens."""
    tokens = len(text) if tokens is None else tokens
    return chain(text, block=1, tokens=tokens, salt=salt)


class Cached:
    """A ledger of one tier, "t", asked in short."""

    def __init__(self, *, replica=None, max_blocks=1_000_000, **card):
        self.clock = Clock()
        self.ledger = Ledger({"t": CacheCard(**card)}, max_blocks=max_blocks, clock=self.clock)
        self.replica = replica

    def warm(self, prompt):
        return self.ledger.warm("t", prompt, replica=self.replica)

    def tokens(self, prompt):
        return self.warm(prompt).tokens

    def began(self, *prompts):
        for prompt in prompts:
            self.clock.wait(1)
            self.ledger.began("t", prompt, replica=self.replica)

    def ended(self, *prompts):
        for prompt in prompts:
            self.clock.wait(1)
            self.ledger.ended("t", prompt, replica=self.replica)

    def reported(self, prompt, cached_tokens):
        self.ledger.reported("t", prompt, cached_tokens, replica=self.replica)

    def call(self, prompt, cached_tokens):
        """A whole call whose usage says what was read from the cache."""
        self.warm(prompt)
        self.began(prompt)
        self.ended(prompt)
        self.reported(prompt, cached_tokens)


def blocks(**card):
    """A cache of full blocks."""
    return Cached(**{"kind": "blocks", "block": BLOCK, **card})


def timed(**card):
    """A cache that keeps a prefix for ten seconds after its last use."""
    return Cached(**{"kind": "ttl", "ttl_seconds": 10.5, **card})


def slots(**card):
    """A cache of two slots."""
    return Cached(**{"kind": "slots", "slots": 2, **card})
