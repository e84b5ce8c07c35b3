"""Made-up answers of a service for tests of what is computed from them."""

from decimal import Decimal

from cascade.types import Usage
from evals.collect import Outcome
from evals.comparison import Trial
from evals.datasets import Prompt


def prompt(name="p-1", kind="sums", split="show", reference=4, **fields):
    return Prompt(
        id=name,
        kind=kind,
        split=split,
        messages=[{"role": "user", "content": f"{name}: 2 + 2"}],
        max_tokens=8,
        reference=reference,
        scorer="number",
        **fields,
    )


def outcome(model, *, asked=None, tier=None, right=True, **fields):
    tier = tier or model.removeprefix("always-")
    return Outcome(
        prompt=asked or prompt(),
        model=model,
        right=right,
        tier=tier,
        attempts=1,
        usage=fields.pop("usage", Usage(input=40, output=10)),
        billed=Decimal("0.00001"),
        **fields,
    )


def trial(small, large, *, up, kind="sums", small_tokens=(100, 10), large_tokens=(100, 10)):
    """A prompt that the models get right (1) or wrong (0), and that goes up or does not."""
    return Trial(
        prompt_id="p",
        kind=kind,
        small_right=bool(small),
        large_right=bool(large),
        ladder_right=bool(large if up else small),
        escalated=up,
        small=Usage(input=small_tokens[0], output=small_tokens[1]),
        large=Usage(input=large_tokens[0], output=large_tokens[1]),
    )


def clairvoyant(count, kind="sums"):
    """A ladder that goes up exactly where the small model is wrong and the large one right."""
    return [trial(i % 2, 1, up=not i % 2, kind=kind) for i in range(count)]


def blind(count, kind="sums"):
    """A ladder that goes up exactly where it does not help."""
    return [trial(i % 2, 1, up=bool(i % 2), kind=kind) for i in range(count)]
