"""Sums in words and figures, drawn from a fixed seed so that nobody picked an exercise by hand.

A template is a group: its exercises differ in their numbers only, the later ones in larger ones,
and stay in one split.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

SEED = 20310
EACH = 5
"""Exercises a template."""

Draw = Callable[[random.Random, int], tuple[dict[str, Any], float]]
"""Numbers for the template's places, and the answer, at a level from 0 to EACH - 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """One wording and how its numbers are drawn.

    Attributes:
        example: a question and its answer with the working, which the exercise is to be answered
            like; None where only the number is wanted.
    """

    group: str
    ask: str
    draw: Draw
    system: str = ""
    example: tuple[str, str] | None = None


def exercises(seed: int = SEED) -> Iterator[tuple[Template, str, float]]:
    """Template, text and answer of every exercise, no text twice."""
    for template in TEMPLATES:
        rng = random.Random(f"{seed} {template.group}")  # noqa: S311 - exercises, not secrets
        seen: set[str] = set()
        for level in range(EACH):
            text, answer = _new(template, rng, level, seen)
            yield template, text, answer


def _new(template: Template, rng: random.Random, level: int, seen: set[str]) -> tuple[str, float]:
    while True:
        places, answer = template.draw(rng, level)
        text = template.ask.format(**places)
        if text not in seen:
            seen.add(text)
            return text, answer


def _digits(rng: random.Random, count: int) -> int:
    return rng.randint(max(2, 10 ** (count - 1)), 10**count - 1)


def _sum(rng: random.Random, level: int) -> tuple[dict[str, Any], float]:
    a, b = _digits(rng, 2 + level // 2), _digits(rng, 1 + (level + 1) // 2)
    return {"a": a, "b": b}, a + b


def _long_sum(rng: random.Random, level: int) -> tuple[dict[str, Any], float]:
    numbers = [_digits(rng, 1 + level // 2) for _ in range(3 + level // 2)]
    return {"a": " + ".join(map(str, numbers))}, sum(numbers)


def _difference(rng: random.Random, level: int) -> tuple[dict[str, Any], float]:
    b, more = _digits(rng, 2 + level // 2), _digits(rng, 1 + level // 2)
    return {"a": b + more, "b": b}, more


def _product(rng: random.Random, level: int) -> tuple[dict[str, Any], float]:
    a, b = _digits(rng, (1, 2, 2, 3, 2)[level]), _digits(rng, (1, 1, 1, 1, 2)[level])
    return {"a": a, "b": b}, a * b


def _quotient(rng: random.Random, level: int) -> tuple[dict[str, Any], float]:
    b, answer = rng.randint(3, 9 + 2 * level), _digits(rng, 1 + (level + 1) // 2)
    return {"a": b * answer, "b": b}, answer


def _remainder(rng: random.Random, level: int) -> tuple[dict[str, Any], float]:
    b, a = rng.randint(3, 6 + level), _digits(rng, 2 + level // 2)
    return {"a": a, "b": b}, a % b


def _times_plus(rng: random.Random, level: int) -> tuple[dict[str, Any], float]:
    a, b, c = rng.randint(3, 9 + 5 * level), rng.randint(2, 9), _digits(rng, 1 + level // 2)
    return {"a": a, "b": b, "c": c}, a * b + c


def _brackets(rng: random.Random, level: int) -> tuple[dict[str, Any], float]:
    a, b, c = (
        rng.randint(2, 9 + 8 * level),
        rng.randint(2, 9 + 4 * level),
        rng.randint(2, 4 + level),
    )
    return {"a": a, "b": b, "c": c}, (a + b) * c


def _two_purchases(rng: random.Random, level: int) -> tuple[dict[str, Any], float]:
    a, b, c, d = (rng.randint(2, 5 + 3 * level) for _ in range(4))
    return {"a": a, "b": b, "c": c, "d": d}, a * b + c * d


def _change(rng: random.Random, level: int) -> tuple[dict[str, Any], float]:
    a, b = rng.randint(2, 6 + level), rng.randint(2, 8)
    note = next(n for n in (20, 50, 100, 200) if n > a * b)
    return {"a": a, "b": b, "c": note}, note - a * b


def _shared(rng: random.Random, level: int) -> tuple[dict[str, Any], float]:
    people, each, rest = rng.randint(3, 5 + level), rng.randint(4, 9 + 4 * level), 0
    rest = rng.randint(1, people - 1)
    return {"a": people * each + rest, "b": people}, rest


def _half_then_less(rng: random.Random, level: int) -> tuple[dict[str, Any], float]:
    half = _digits(rng, 1 + (level + 1) // 2)
    less = rng.randint(1, half)
    return {"a": 2 * half, "b": less}, half - less


def _percent(rng: random.Random, level: int) -> tuple[dict[str, Any], float]:
    rate = rng.choice(((10, 50), (20, 25), (5, 75), (15, 30), (35, 12))[level])
    base = 100 * rng.randint(1, 3 + 2 * level)
    return {"a": rate, "b": base}, rate * base // 100


def _discount(rng: random.Random, level: int) -> tuple[dict[str, Any], float]:
    rate = rng.choice(((50,), (10, 50), (20, 25), (30, 40), (15, 35))[level])
    price = 20 * rng.randint(2, 6 + 3 * level)
    return {"a": rate, "b": price}, price * (100 - rate) / 100


def _minutes(rng: random.Random, level: int) -> tuple[dict[str, Any], float]:
    hours, minutes = rng.randint(2, 4 + 2 * level), rng.randint(1, 11) * 5 + level % 3
    return {"a": hours, "b": minutes}, hours * 60 + minutes


def _area(rng: random.Random, level: int) -> tuple[dict[str, Any], float]:
    a, b = rng.randint(3, 8 + 4 * level), rng.randint(3, 8 + level)
    return {"a": a, "b": b}, a * b


def _perimeter(rng: random.Random, level: int) -> tuple[dict[str, Any], float]:
    a, b = rng.randint(3, 10 + 30 * level), rng.randint(3, 10 + 15 * level)
    return {"a": a, "b": b}, 2 * (a + b)


def _train(rng: random.Random, level: int) -> tuple[dict[str, Any], float]:
    hours, speed = rng.randint(2, 4 + level), 10 * rng.randint(4, 9) + 5 * (level // 3)
    return {"a": speed, "b": hours}, speed * hours


def _equation(rng: random.Random, level: int) -> tuple[dict[str, Any], float]:
    x, a, b = (
        rng.randint(2, 6 + 4 * level),
        rng.randint(2, 4 + level),
        rng.randint(1, 9 + 8 * level),
    )
    return {"a": a, "b": b, "c": a * x + b}, x


def _mean(rng: random.Random, level: int) -> tuple[dict[str, Any], float]:
    count, mean = 3 + level // 2, rng.randint(5, 10 + 15 * level)
    numbers = [mean + rng.randint(-4, 4) for _ in range(count - 1)]
    numbers.append(mean * count - sum(numbers))
    return {"a": ", ".join(map(str, numbers))}, mean


def _larger(rng: random.Random, level: int) -> tuple[dict[str, Any], float]:
    whole = rng.randint(1, 20)
    numbers = {round(whole + rng.randint(1, 99) / 100, 2) for _ in range(2 + level)}
    numbers |= {round(whole + rng.randint(1, 9) / 10, 1)}
    shuffled = sorted(numbers, key=lambda _: rng.random())
    return {"a": ", ".join(f"{n:g}" for n in shuffled)}, max(numbers)


def _ages(rng: random.Random, level: int) -> tuple[dict[str, Any], float]:
    a, older, times = rng.randint(4, 9 + 3 * level), rng.randint(2, 5 + level), rng.randint(2, 3)
    return {"a": a, "b": older, "c": ("", "", "twice", "three times")[times]}, (a + older) * times


def _stock(rng: random.Random, level: int) -> tuple[dict[str, Any], float]:
    start = _digits(rng, 2 + level // 3) + 60
    out, back, more = rng.randint(5, 55), rng.randint(2, 20), rng.randint(10, 40 + 60 * level)
    return {"a": start, "b": out, "c": more, "d": back}, start - out + more - back


def _squares(rng: random.Random, level: int) -> tuple[dict[str, Any], float]:
    a, b = rng.randint(2, 7 + 3 * level), rng.randint(2, 5 + 2 * level)
    return {"a": a, "b": b}, a * a + b * b


EGGS = (
    "A box holds 6 eggs. Ada buys 3 boxes and breaks 2 eggs. How many whole eggs has she?",
    "3 * 6 = 18; 18 - 2 = 16. Answer: 16",
)
PLUMS = (
    "40 plums and 20 pears are packed into bags of 5. How many bags are there?",
    "40 + 20 = 60; 60 / 5 = 12. Answer: 12",
)
OEUFS = (
    "Une boîte contient 6 œufs. Ada achète 3 boîtes et casse 2 œufs. Combien en reste-t-il ?",
    "3 * 6 = 18 ; 18 - 2 = 16. Réponse : 16",
)
EQUATION = ("Solve for x: 2x + 3 = 13", "2x = 10; x = 5. Answer: 5")

BARE = "You are a calculator. Reply with the result and nothing else."

TEMPLATES = (
    Template(group="sum", ask="What is {a} + {b}? Reply with the number only.", draw=_sum),
    Template(group="long-sum", ask="{a}", draw=_long_sum, system=BARE),
    Template(
        group="difference", ask="Subtract {b} from {a}. Give just the result.", draw=_difference
    ),
    Template(group="product", ask="Compute {a} * {b}. Only the number, please.", draw=_product),
    Template(group="quotient", ask="{a} / {b}", draw=_quotient, system=BARE),
    Template(
        group="remainder",
        ask="What remains when {a} is divided by {b}? Answer with the remainder only.",
        draw=_remainder,
    ),
    Template(group="times-plus", ask="Evaluate {a} * {b} + {c}. Number only.", draw=_times_plus),
    Template(group="brackets", ask="({a} + {b}) * {c} = ? Write only the value.", draw=_brackets),
    Template(
        group="two-purchases",
        ask="Nora buys {a} notebooks at {b} euros each and {c} pens at {d} euros each. What does "
        "she pay in all, in euros?",
        draw=_two_purchases,
        example=EGGS,
    ),
    Template(
        group="change",
        ask="A ticket costs {b} euros. Ivo buys {a} tickets and pays with {c} euros. How many "
        "euros does he get back?",
        draw=_change,
        example=EGGS,
    ),
    Template(
        group="shared",
        ask="{a} marbles are shared out evenly among {b} children, each getting as many as it "
        "can. How many marbles are left over? Number only.",
        draw=_shared,
        system=BARE,
    ),
    Template(
        group="half-then-less",
        ask="A tank holds {a} litres. Half of it is used, and then another {b} litres. How many "
        "litres remain?",
        draw=_half_then_less,
        example=PLUMS,
    ),
    Template(group="percent", ask="What is {a} % of {b}? Only the number.", draw=_percent),
    Template(
        group="discount",
        ask="A coat at {b} euros is reduced by {a} percent. What does it cost now, in euros?",
        draw=_discount,
        example=PLUMS,
    ),
    Template(
        group="minutes",
        ask="How many minutes are {a} hours and {b} minutes? Number only.",
        draw=_minutes,
        system=BARE,
    ),
    Template(
        group="area",
        ask="Ein Garten ist {a} Meter lang und {b} Meter breit. Wie viele Quadratmeter hat er? "
        "Antworte nur mit der Zahl.",
        draw=_area,
    ),
    Template(
        group="perimeter",
        ask="Un terrain rectangulaire mesure {a} m sur {b} m. Quel est son périmètre en mètres ?",
        draw=_perimeter,
        example=OEUFS,
    ),
    Template(
        group="train",
        ask="Un tren va a {a} kilómetros por hora durante {b} horas. ¿Cuántos kilómetros recorre? "
        "Responde solo con el número.",
        draw=_train,
    ),
    Template(
        group="equation",
        ask="Solve for x: {a}x + {b} = {c}.",
        draw=_equation,
        example=EQUATION,
    ),
    Template(
        group="mean",
        ask="Find the arithmetic mean of {a}.",
        draw=_mean,
        example=PLUMS,
    ),
    Template(
        group="larger",
        ask="Which of these numbers is the largest: {a}? Repeat that number and nothing else.",
        draw=_larger,
    ),
    Template(
        group="ages",
        ask="Tim is {a}. His sister is {b} years older, and their aunt is {c} as old as the "
        "sister. How old is the aunt?",
        draw=_ages,
        example=EGGS,
    ),
    Template(
        group="stock",
        ask="The library had {a} atlases. It lent {b}, bought {c} new ones and threw {d} away. How "
        "many are on its shelves now?",
        draw=_stock,
        example=PLUMS,
    ),
    Template(group="squares", ask="{a}^2 + {b}^2 = ? Number only.", draw=_squares),
)
