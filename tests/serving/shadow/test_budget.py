from decimal import Decimal

from sqlalchemy.exc import OperationalError

from cascade.audit import record
from cascade.types import Kind
from serving.shadow.budget import LOOK_SECONDS, DayBudget, spent_on_shadows
from serving.store.rows import decode, encode
from serving.store.rows import insert as store
from tests.builders import attempt, cost, result

NOON = 1_790_000_000.0 // 86_400 * 86_400 + 43_200


class Clock:
    def __init__(self, now: float = NOON) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


async def test_a_day_has_its_dollars_and_no_more():
    budget = DayBudget(Decimal(1), clock=Clock())
    assert await budget.left()
    budget.spend(Decimal("0.6"))
    assert await budget.left()
    budget.spend(Decimal("0.4"))
    assert not await budget.left()


async def test_the_next_day_begins_anew():
    clock = Clock()
    budget = DayBudget(Decimal(1), clock=clock)
    budget.spend(Decimal(2))
    assert not await budget.left()
    clock.now += 86_400
    assert await budget.left()


async def test_what_others_spent_counts_and_is_looked_up_now_and_then():
    clock, asked = Clock(), []

    def spent(since):
        asked.append(since)
        return Decimal("0.9")

    budget = DayBudget(Decimal(1), spent, clock=clock)
    budget.spend(Decimal("0.05"))
    assert await budget.left()
    assert await budget.left()
    assert asked == [NOON - 43_200]
    budget.spend(Decimal("0.1"))
    assert not await budget.left()
    clock.now += LOOK_SECONDS
    assert not await budget.left()
    assert len(asked) == 2


async def test_a_log_that_lags_behind_gives_nothing_back():
    budget = DayBudget(Decimal(1), lambda _: Decimal(0), clock=Clock())
    budget.spend(Decimal(1))
    assert not await budget.left()


async def test_a_log_that_cannot_be_asked_leaves_what_is_known():
    def broken(_):
        raise OperationalError("select", {}, Exception("no connection"))

    budget = DayBudget(Decimal(1), broken, clock=Clock())
    assert await budget.left()
    budget.spend(Decimal(1))
    assert not await budget.left()


def test_the_log_adds_up_shadow_calls_of_the_day(engine):
    def row(identity, created_at, *calls):
        made = [attempt(), *calls]
        return decode(encode_result(result(identity, attempts=made, started_at=created_at)))

    shadow = attempt(1, kind=Kind.SHADOW, cost=cost("0.25"))
    unknown = attempt(2, kind=Kind.SHADOW, cost=None)
    with engine.begin() as connection:
        store(connection, [row("r1", NOON, shadow, unknown), row("r2", NOON - 90_000, shadow)])
    assert spent_on_shadows(engine)(NOON - 43_200) == Decimal("0.25")
    assert spent_on_shadows(engine)(NOON + 1) == 0


def encode_result(made):
    return encode(record(made))
