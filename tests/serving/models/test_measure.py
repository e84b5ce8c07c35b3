import asyncio
from collections import Counter

import pytest

from cascade.backends.openai_http import OpenAIHttpBackend
from cascade.errors import BackendProtocolError, BackendRefusedError, CascadeError
from cascade.protocols import Backend
from cascade.types import Chunk, Usage
from serving.models.measure import Sample, Trials, fitted, measure
from tests.builders import completion
from tests.real_models import SMALL, running

TEMPLATE = 20
TRIALS = Trials(prompts=(100, 200, 300, 400), answers=(16, 32, 64), repeats=2)


class Server(Backend):
    """Takes an exact time for each kind of token, on a clock of its own."""

    def __init__(self, *, prefill=1000, cached=50_000, decode=40, hiccup=0.0, **reports):
        self.now = 0.0
        self.rates = prefill, cached, decode
        self.hiccup = hiccup
        self.reports = reports
        self.seen = set()
        self.asked = []
        self.at_once = self.most_at_once = 0

    def clock(self):
        return self.now

    def usage(self, prompt, tokens):
        words = len(prompt.split())
        read = words + TEMPLATE - 1 if prompt in self.seen and self.rates[1] else TEMPLATE
        return Usage(input=words + TEMPLATE - read, cache_read=read, output=tokens)

    async def stream(self, request):
        self.asked.append(request)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        prompt = request.messages[0]["content"]
        usage = self.usage(prompt, request.params["max_tokens"])
        prefill, cached, decode = self.rates
        read = usage.cache_read / cached if cached else 0
        self.now += 0.05 + usage.input / prefill + read + usage.output / decode
        if len(self.asked) % 5 == 0:
            self.now += self.hiccup
        self.seen.add(prompt)
        reported = {"input": usage.input, "cache_read": usage.cache_read, "output": usage.output}
        yield Chunk(completion=completion(usage=Usage(**{**reported, **self.reports})))


async def speeds_of(server, trials=TRIALS):
    return await measure(server, trials, clock=server.clock)


async def test_each_kind_of_token_gets_its_own_speed_whatever_a_request_takes_besides():
    found = await speeds_of(Server())
    assert found.prefill.tokens_per_second == pytest.approx(1000)
    assert found.cached.tokens_per_second == pytest.approx(50_000)
    assert found.decode.tokens_per_second == pytest.approx(40)
    assert found.prefill.fixed_seconds == pytest.approx(0.05 + TEMPLATE / 50_000 + 1 / 40)
    assert found.prefill.relative_error == pytest.approx(0, abs=1e-9)


async def test_a_hiccup_at_one_try_does_not_count_where_another_had_none():
    calm, disturbed = await speeds_of(Server()), await speeds_of(Server(hiccup=3.0))
    for kind in ("prefill", "cached", "decode"):
        expected = getattr(calm, kind).tokens_per_second
        assert getattr(disturbed, kind).tokens_per_second == pytest.approx(expected, rel=0.02)
    assert disturbed.decode.repeat_spread > calm.decode.repeat_spread


async def test_every_prompt_is_new_from_its_beginning_and_comes_twice_at_once():
    server = Server()
    await speeds_of(server)
    prompts = [r.messages[0]["content"] for r in server.asked]
    prompts = [prompt for prompt in prompts if "lighthouse" not in prompt]
    assert prompts[1::2] == prompts[2::2]
    assert set(Counter(prompts[1:]).values()) == {2}
    assert len({prompt[:16] for prompt in prompts}) == 1 + len(prompts) // 2


async def test_answers_are_written_as_many_at_a_time_as_is_asked():
    server = Server()
    found = await speeds_of(server, Trials(prompts=(10, 20), answers=(8, 16), concurrent=3))
    assert server.most_at_once == 3
    assert [tries[0].tokens for tries in found.decode.samples] == [24, 48]


async def test_the_steps_are_told_as_they_were_counted():
    told = []
    server = Server()
    await measure(server, TRIALS, clock=server.clock, step=lambda: told.append(1))
    assert len(told) == TRIALS.steps == 22


async def test_a_server_that_keeps_nothing_has_no_speed_of_reading():
    server = Server(cached=0, cache_read=0)
    assert (await speeds_of(server)).cached is None


class Picky(Server):
    """Refuses what is not OpenAI's."""

    async def stream(self, request):
        if "ignore_eos" in request.params:
            raise BackendRefusedError("unknown field ignore_eos")
        async for chunk in super().stream(request):
            yield chunk


async def test_a_server_that_refuses_to_write_on_is_asked_without():
    assert (await speeds_of(Picky())).decode.tokens_per_second == pytest.approx(40)


@pytest.mark.parametrize(
    ("reports", "said"),
    [
        ({"input": None}, "reports no usage.*stream_options"),
        ({"output": None}, "reports no usage"),
        ({"cache_read": None}, "--enable-prompt-tokens-details"),
    ],
)
async def test_what_is_not_reported_is_an_error_that_says_how_to_have_it_reported(reports, said):
    with pytest.raises(BackendProtocolError, match=said):
        await speeds_of(Server(**reports))


def line(*points):
    return [[Sample(tokens=tokens, seconds=seconds)] for tokens, seconds in points]


def test_the_line_is_that_of_least_squares():
    # By hand: mean 2 and 3, slope (-1 * -1 + 0 * 1 + 1 * 0) / 2 = 0.5, residuals -.5, 1, -.5.
    found = fitted("x", line((1, 2), (2, 4), (3, 3)), fast=True)
    assert found.fixed_seconds == pytest.approx(2)
    assert found.at_least
    # The standard error is sqrt(1.5 / 1 / 2); the upper end is two of them above the slope.
    assert 1 / found.tokens_per_second == pytest.approx(0.5 + 2 * 0.75**0.5)


def test_a_slope_below_zero_is_taken_as_none_at_its_upper_end():
    found = fitted("x", line((1, 3), (2, 1), (3, 2)), fast=True)
    assert 1 / found.tokens_per_second == pytest.approx(2 * 0.75**0.5)


def test_what_scatters_too_much_is_no_price():
    with pytest.raises(CascadeError, match="computing took 500 ms a token, give or take 866: too"):
        fitted("computing", line((1, 2), (2, 4), (3, 3)))


def scattered(off):
    """By hand: slope 1, residuals off, -2 off and off: a standard error of off * sqrt(6 / 2)."""
    return line((1, 1 + off), (2, 2 - 2 * off), (3, 3 + off))


def test_a_slope_that_is_more_than_15_percent_uncertain_is_no_price():
    close = fitted("computing", scattered(0.14 / 3**0.5))
    assert close.relative_error == pytest.approx(0.14)
    with pytest.raises(CascadeError, match="too uncertain for a price"):
        fitted("computing", scattered(0.16 / 3**0.5))
    reading = fitted("reading", scattered(0.16 / 3**0.5), fast=True)
    assert reading.at_least
    assert 1 / reading.tokens_per_second == pytest.approx(1.32)


def test_one_length_makes_no_line():
    with pytest.raises(CascadeError, match="all measurements have 5 tokens"):
        fitted("answering", line((5, 1), (5, 2)))


async def test_reading_that_is_slower_than_computing_is_not_believed():
    with pytest.raises(CascadeError, match=r"slower \(500 tokens/s\) than computing \(1000\)"):
        await speeds_of(Server(cached=500))


class Counted(Backend):
    """The embedded model, on a clock that goes by the tokens it reports and not by its speed."""

    def __init__(self, backend):
        self.backend = backend
        self.now = 0.0

    async def stream(self, request):
        async for chunk in self.backend.stream(request):
            if chunk.completion is not None:
                usage = chunk.completion.usage
                self.now += usage.input / 100 + usage.cache_read / 10_000 + usage.output / 10
            yield chunk


@pytest.mark.real_models
async def test_llama_cpp_reports_what_is_measured_and_writes_to_the_limit():
    trials = Trials(prompts=(40, 80, 120), answers=(8, 16), repeats=1)
    with running(SMALL) as server:
        backend = OpenAIHttpBackend(url=f"{server.url}/v1", model=SMALL, api_key=server.api_key)
        counted = Counted(backend)
        found = await measure(counted, trials, clock=lambda: counted.now)
        await backend.aclose()
    assert found.prefill.tokens_per_second == pytest.approx(100, rel=0.05)
    assert found.cached.tokens_per_second == pytest.approx(10_000, rel=0.05)
    assert found.decode.tokens_per_second == pytest.approx(10, rel=0.05)
    assert [tries[0].tokens for tries in found.decode.samples] == [8, 16]
    for [fresh], [again], asked in zip(
        found.prefill.samples, found.cached.samples, trials.prompts, strict=True
    ):
        assert asked <= fresh.tokens < asked + 60
        assert again.tokens > fresh.tokens  # what the template adds was cached before as well
