import asyncio
import json
import os
import re
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from aiohttp import web
from click.testing import CliRunner

from cascade.errors import ConfigError
from serving.cli import cascade
from serving.commands.models_measure import card_of, to_paste, trials_of
from serving.config import ConfigFile
from serving.models.home import home
from serving.models.measure import Speed, Speeds
from serving.models.state import published
from serving.tier_config import Tier
from tests.real_models import SMALL
from tests.upstream import DONE, words

PAGE = (Path(__file__).parents[3] / "docs" / "prices.md").read_text(encoding="utf-8")
COUNTED = {"prompt_tokens": 100, "completion_tokens": 8}


@contextmanager
def server(reports):
    """A model server in a thread of its own whose answers take a moment for each token.

    `reports` makes the usage of a request from its prompt's words, whether it came before, and the
    tokens it wrote.
    """
    seen = set()

    async def answer(http):
        body = await http.json()
        prompt, tokens = body["messages"][0]["content"], body["max_tokens"]
        usage = reports(len(prompt.split()), prompt in seen, tokens)
        seen.add(prompt)
        cached = ((usage or {}).get("prompt_tokens_details") or {}).get("cached_tokens") or 0
        computed = len(prompt.split()) - cached
        await asyncio.sleep(0.001 * computed + 0.02 * tokens)
        return web.Response(body=b"".join([*words("a", usage=usage), DONE]))

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    loop, runner = asyncio.new_event_loop(), web.AppRunner(app)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def call(coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result()

    try:
        call(runner.setup())
        call(web.TCPSite(runner, "127.0.0.1", 0).start())
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        call(runner.cleanup())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def reported(count, again, tokens):
    return {
        "prompt_tokens": count,
        "completion_tokens": tokens,
        "prompt_tokens_details": {"cached_tokens": count - 1 if again else 0},
    }


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("CASCADE_HOME", str(tmp_path / "home"))
    file = tmp_path / "cascade.yaml"

    def invoke(url, *arguments, more=""):
        file.write_text(
            f"tiers:\n  own: {{backend: openai_http, url: '{url}', model: m{more}}}\n"
            "  api: {backend: litellm_api, model: openai/gpt-5-mini}\n"
        )
        return CliRunner().invoke(cascade, ["models", "measure", "--config", str(file), *arguments])

    return invoke


QUICK = ("--longest", "400", "--answer", "32", "--repeats", "2")


def test_a_running_server_is_measured_and_machines_get_every_measurement(run):
    with server(reported) as url:
        done = run(url, "own", "--gpu-usd-per-hour", "2.5", "--json", *QUICK)
    assert done.exit_code == 0, done.exception
    report = json.loads(done.stdout)
    assert report["price"]["gpu_usd_per_hour"] == 2.5
    assert (
        report["price"]["cached_tokens_per_second"] > report["price"]["prefill_tokens_per_second"]
    )
    assert report["trials"]["prompts"] == [100, 200, 300, 400]
    found = report["measured"]
    assert [len(tries) for tries in found["decode"]["samples"]] == [2, 2, 2, 2]
    assert found["decode"]["samples"][3][0]["tokens"] == 32
    assert found["prefill"]["samples"][0][0]["tokens"] == 101  # the words and what is new before


def speed(tokens_per_second, **more):
    return Speed(
        tokens_per_second=tokens_per_second,
        relative_error=0.0123,
        fixed_seconds=0.05,
        samples=[],
        repeat_spread=0.08,
        **more,
    )


FOUND = Speeds(prefill=speed(8991.4), cached=speed(1234567.8, at_least=True), decode=speed(1100.04))


def test_the_card_is_that_of_the_page_and_can_be_pasted_into_the_configuration(tmp_path):
    text = to_paste(card_of(FOUND, 2.5), FOUND)
    [(dollars, shown)] = re.findall(
        r"\$ cascade models measure .* --gpu-usd-per-hour (.*)\n(price:\n.*?)\n```", PAGE, re.DOTALL
    )
    assert dollars == "2.5"
    assert text == shown
    file = tmp_path / "pasted.yaml"
    file.write_text(
        yaml.safe_dump({"tiers": {"t": {"backend": "scripted", **yaml.safe_load(text)}}})
    )
    assert ConfigFile(file).config.tiers["t"].price.prefill_tokens_per_second == 8990


def test_what_the_machine_costs_is_left_to_be_filled_in():
    text = to_paste(card_of(FOUND, None), FOUND)
    assert "gpu_usd_per_hour: GPU_USD_PER_HOUR\n" in text
    assert "dollars per million" not in text


def test_a_server_without_a_cache_reads_as_fast_as_it_computes():
    found = replace(FOUND, cached=None)
    card = card_of(found, 1.0)
    assert card["cached_tokens_per_second"] == card["prefill_tokens_per_second"] == 8990
    assert "nothing was read from a cache" in to_paste(card, found)


def test_a_short_window_is_not_overrun():
    asked = {"longest": 2000, "answer": 32, "repeats": 3, "concurrent": 1}
    tier = Tier(backend="openai_http", context_tokens=512)
    assert trials_of(tier, asked).prompts[-1] == 512 * 3 // 4 - 32
    with pytest.raises(ConfigError, match="window of 40 tokens leaves no room"):
        trials_of(Tier(backend="openai_http", context_tokens=40), asked)


@pytest.mark.parametrize(
    ("usage", "said"),
    [
        (lambda *_: None, "reports no usage"),
        (lambda *_: COUNTED, "--enable-prompt-tokens-details"),
    ],
)
def test_a_server_that_reports_too_little_is_told_what_to_report(run, usage, said):
    with server(usage) as url:
        done = run(url, "own", *QUICK)
    assert done.exit_code == 1
    assert said in done.exception.message


@pytest.mark.parametrize(
    ("tier", "said"),
    [
        ("own", "Is the server of own running? `cascade models command own` prints"),
        ("api", "tiers.api.backend: litellm_api asks no server of yours"),
        ("nobody", "there is no tier 'nobody'; there are: own, api"),
    ],
)
def test_what_cannot_be_measured_says_what_to_do(run, tier, said):
    done = run("http://127.0.0.1:9/v1", tier, *QUICK)
    assert done.exit_code == 1
    assert said in done.exception.message


@pytest.mark.real_models
def test_a_launched_tiers_server_is_started_measured_and_stopped(tmp_path):
    file = tmp_path / "cascade.yaml"
    launch = f"{{engine: llama_cpp, model: {SMALL}, context: 512}}"
    file.write_text(f"tiers: {{measured: {{backend: openai_http, launch: {launch}}}}}\n")
    asked = ("--longest", "80", "--answer", "16", "--repeats", "2", "--json")
    done = CliRunner().invoke(
        cascade, ["models", "measure", "measured", "--config", str(file), *asked]
    )
    # A machine that does other things as well may be too busy for a price, which is told.
    if done.exit_code == 0:
        assert json.loads(done.stdout)["price"]["prefill_tokens_per_second"] > 0
    else:
        assert "Run it on an idle machine" in done.exception.message
    assert "24/24" in done.stderr
    assert os.getpid() not in {state.supervisor for state in published(home())}
