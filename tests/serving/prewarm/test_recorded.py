"""A request that only fills a cache is recorded as spending."""

from dataclasses import replace

from serving.prewarm.recorded import PrewarmSink
from tests.builders import escalated, result
from tests.engines import MemorySink


def written(given):
    inner = MemorySink()
    PrewarmSink(inner).write(given)
    [told] = inner.results
    return told


def test_what_a_client_asked_for_goes_on_as_it_is():
    asked = escalated()
    assert written(asked) is asked


def test_what_went_ahead_costs_and_is_nobodys_answer():
    ahead = result()
    ahead = replace(ahead, request=replace(ahead.request, prewarm=True))
    told = written(ahead)
    assert (told.policy, told.completion, told.baseline, told.answers) == ("prewarm", None, None, 0)
    assert told.cost == ahead.cost
    assert {each.kind.value for each in told.attempts} == {"prewarm"}
