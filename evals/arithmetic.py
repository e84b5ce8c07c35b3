"""Sums and products from a fixed seed, so that anyone can see that no exercise was picked by hand.

The rows are stored in evals/prompts/mixed.jsonl with the others; a test compares them with what is
made here. Both halves have the same number of exercises of each shape.
"""

import random
from collections.abc import Iterator

SEED = 20260
SPLITS = ("fit", "show")

SUM_SHAPES = {"2+1": 3, "2+2": 4, "2-2": 4, "3+2": 2, "3+3": 4, "3-3": 4, "3+3+3": 2, "3+2-2": 1}
PRODUCT_SHAPES = {"1*1": 4, "1*2": 8, "1*3": 5, "2*2": 5, "2*3": 2}
"""Digits of the operands and how many exercises of that shape each half has."""

ASK = "Work out {}. Reply with the number only."


def rows(seed: int = SEED) -> Iterator[dict[str, object]]:
    """All exercises as dataset rows, sums first, no exercise twice; the reference is a number."""
    rng = random.Random(seed)  # noqa: S311 - exercises, not secrets
    seen: set[tuple[int, ...]] = set()
    for kind, shapes in (("sums", SUM_SHAPES), ("products", PRODUCT_SHAPES)):
        for split in SPLITS:
            pattern = [shape for shape, count in shapes.items() for _ in range(count)]
            for number, shape in enumerate(pattern, 1):
                text, value = _new(shape, rng, seen)
                yield {
                    "id": f"{kind}-{split}-{number:02}",
                    "kind": kind,
                    "split": split,
                    "messages": [{"role": "user", "content": ASK.format(text)}],
                    "max_tokens": 48,
                    "reference": value,
                    "scorer": "number",
                }


def _new(shape: str, rng: random.Random, seen: set[tuple[int, ...]]) -> tuple[str, int]:
    """An exercise that was not seen yet, whatever the order of its operands; adds it to seen."""
    while True:
        operands, operators = _draw(shape, rng)
        key = (ord(operators[0]), *sorted(operands))
        value = _value(operands, operators)
        if key not in seen and value >= 0:
            seen.add(key)
            rest = zip(operators, operands[1:], strict=True)
            return str(operands[0]) + "".join(f" {sign} {x}" for sign, x in rest), value


def _draw(shape: str, rng: random.Random) -> tuple[list[int], list[str]]:
    digits = [int(mark) for mark in shape if mark.isdigit()]
    operands = [rng.randint(max(2, 10 ** (count - 1)), 10**count - 1) for count in digits]
    operators = [mark for mark in shape if not mark.isdigit()]
    if operators == ["*"]:
        rng.shuffle(operands)
    return operands, operators


def _value(operands: list[int], operators: list[str]) -> int:
    value = operands[0]
    for sign, operand in zip(operators, operands[1:], strict=True):
        value = {"+": value + operand, "-": value - operand, "*": value * operand}[sign]
    return value
