import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from cascade.errors import BackendBusyError, BackendError, ConfigError
from cascade.types import ChatRequest
from serving.config import ConfigFile
from serving.wiring import Wiring

GOOD = """\
tiers:
  small:
    backend: scripted
    answers: [four]
    capabilities: [logprobs]
    price: {input: 0.1, cache_read: 0.01, output: 0.2}
  large:
    backend: scripted
    price: {input: 1, cache_read: 0.1, output: 2, cache_write: {5m: 1.25},
            long_prompts: [{above: 200000, input: 2, cache_read: 0.2, output: 4}]}
estimators:
  looks: {type: heuristic, tiers: {small: [0.9, 0.3], large: [0.97, 0.6]}}
judges:
  whole: {type: format}
  sure: {type: logprob, statistic: min}
  sound: {type: panel, members: [whole, sure]}
policies:
  cascade:
    type: ladder
    estimator: looks
    steps:
      - {tier: small, judge: sound, accept_at: 0.7}
      - {tier: large}
  always-large: {type: fixed, tier: large}
experiments:
  auto:
    arms:
      a: {policy: cascade, weight: 1}
      b: {policy: always-large, weight: 1}
"""


def wired(tmp_path, text):
    path = tmp_path / "cascade.yaml"
    path.write_text(text)
    file = ConfigFile(path)
    try:
        return Wiring(file.config, tmp_path).snapshot()
    except ConfigError as error:
        raise file.explain(error) from None


def test_a_good_configuration_becomes_a_snapshot(tmp_path):
    snapshot = wired(tmp_path, GOOD)
    assert dict(snapshot.models) == {
        "auto": "experiment",
        "cascade": "policy",
        "always-large": "policy",
        "small": "tier",
        "large": "tier",
    }
    assert snapshot.arm("auto", "someone").experiment == "auto"
    assert snapshot.arm("cascade", "").estimator.name == "looks"
    assert snapshot.arm("small", "").policy.steps[0].tier == "small"
    assert snapshot.judges["sound"].needs == {"logprobs": True, "top_logprobs": 5}
    assert snapshot.tiers["large"].prices.long_prompt_rates[0][0] == 200_000


@pytest.mark.parametrize(
    ("old", "new", "line", "fault"),
    [
        (
            "backend: scripted\n    answers",
            "backend: scriptd\n    answers",
            3,
            "scriptd.*openai_http",
        ),
        ("answers: [four]", "answer: [four]", 4, "unknown key.*answers, model"),
        ("answers: [four]", "answers: []", 2, "at least one answer"),
        ("answers: [four]", "answers: 3", 4, "Sequence"),
        ("answers: [four]", "answers: [5]", 4, "dictionary|string|Script"),
        ("answers: [four]", "api_key: sk-1", 4, "does not belong in a file"),
        ("members: [whole, sure]", "members: [whole, sure], name: x", 16, "unknown key"),
        ("{type: format}", "{type: format, short_limit_tokens: abc}", 14, "integer"),
        ("{type: format}", "{type: format, name: x}", 14, "unknown key"),
        ("{type: format}", "{type: format, calibration: .}", 14, "cannot be read"),
        ("- {tier: large}", "- large", 23, "Mapping|dictionary|Rung"),
        ("- {tier: large}", "- {tier: [large]}", 23, "a name"),
        ("fixed, tier: large", "fixed, tier: large, fallback: small", 24, "Sequence|sequence"),
        ("small: [0.9, 0.3], large", "small: 3, large", 12, "Sequence|sequence"),
        ("{input: 0.1, cache_read: 0.01, output: 0.2}", "{gpu_usd_per_hour: 1}", 6, "prefill"),
        ("answers: [four]", "limits: {waiting: 3}", 4, "required"),
        ("answers: [four]", "limits: {concurrent: 0}", 4, "greater than or equal to 1"),
        ("answers: [four]", "limits: {concurent: 1}", 4, "required|unknown key"),
        ("answers: [four]", "limits: 4", 4, "Limits"),
        ("answers: [four]", "retry: {times: 0}", 4, "greater than or equal to 1"),
        ("answers: [four]", "retry: {tries: 2}", 4, "unknown key"),
        ("answers: [four]", "retry: {cap_seconds: .nan}", 4, "finite"),
        ("answers: [four]", "cooldown: {rate: 1.1}", 4, "less than or equal to 1"),
        ("answers: [four]", "cooldown: {min_calls: 21}", 4, "never cool down"),
        ("answers: [four]", "cooldown: {seconds: 61}", 4, "max_seconds is below"),
        ("answers: [four]", "cooldown: {max_seconds: .inf}", 4, "finite"),
        ("input: 0.1, cache_read: 0.01", "input: 0.1", 6, "cache_read"),
        ("input: 0.1,", "input: -0.1,", 6, "greater than or equal to 0"),
        ("capabilities: [logprobs]", "capabilities: [speech]", 5, "logprobs"),
        ("capabilities: [logprobs]", "capabilities: []", 18, "needs log probabilities"),
        ("    capabilities: [logprobs]\n", "", 17, "needs log probabilities"),
        ("answers: [four]", "context_tokens: 0", 4, "greater than or equal to 1"),
        ("answers: [four]", "output_tokens: -1", 4, "greater than or equal to 1"),
        ("answers: [four]", "output_tokens: many", 4, "integer"),
        ("answers: [four]", "accepts: [thoughts]", 4, "cache_control"),
        ("answers: [four]", "accepts: thinking", 4, "tuple"),
        ("{type: format}", "{type: formt}", 14, "no judge of type 'formt'"),
        ("statistic: min", "statistic: median", 15, "median"),
        ("members: [whole, sure]", "members: [whole, gone]", 16, "no judge 'gone'"),
        ("members: [whole, sure]", "members: [sound]", 16, "member of itself"),
        ("members: [whole, sure]", "memers: [whole]", 16, "unknown key"),
        ("{type: panel, members: [whole, sure]}", "{type: panel}", 16, "members is missing"),
        ("{type: logprob,", "{type: logprob, calibration: none.json,", 15, "none.json"),
        ("estimator: looks", "estimator: feels", 20, "no estimator 'feels'"),
        ("small: [0.9, 0.3], large", "small: [0.3, 0.9], large", 12, "easy >= hard"),
        ("small: [0.9, 0.3], large", "tiny: [0.9, 0.3], large", 12, "no tier 'tiny'"),
        ("accept_at: 0.7", "accept_at: 0", 22, "never escalates"),
        ("accept_at: 0.7", "accept_at: 1.5", 22, "never accepts"),
        ("judge: sound, accept_at: 0.7", "judge: sound", 22, "come together"),
        (", judge: sound, accept_at: 0.7", "", 22, "never reached"),
        ("judge: sound,", "judge: gone,", 18, "no judge 'gone'"),
        ("- {tier: large}", "- {tier: huge}", 18, "no tier 'huge'"),
        ("fixed, tier: large", "fixed, teir: large", 24, "unknown key"),
        ("a: {policy: cascade,", "a: {policy: cascad,", 28, "no policy 'cascad'"),
        ("weight: 1", "weight: 0", 26, "above 0"),
        ("weight: 1", "weight: -1", 28, "greater than or equal"),
        ("arms:", "unit: colour\n    arms:", 27, "session"),
        ("always-large: {", "small: {", 24, "taken by tiers"),
        ("always-large: {", "prewarm: {", 24, "taken by requests that only fill a cache"),
        ("policies:", "polices:", 17, "unknown key"),
        ("tiers:\n", "tiers: {}\nother:\n", 1, "at least 1"),
    ],
)
def test_what_cannot_work_is_refused_with_its_line(tmp_path, old, new, line, fault):
    assert old in GOOD
    with pytest.raises(ConfigError, match=rf"(?s)cascade\.yaml:{line}: .*{fault}"):
        wired(tmp_path, GOOD.replace(old, new))


@pytest.mark.parametrize(
    ("text", "fault"),
    [("", "a mapping"), ("- 1", "a mapping"), ("a: [", "not YAML"), ("a: \x00", "not YAML")],
)
def test_what_is_no_configuration_at_all_is_refused(tmp_path, text, fault):
    with pytest.raises(ConfigError, match=fault):
        wired(tmp_path, text)
    with pytest.raises(ConfigError, match="no such file"):
        ConfigFile(tmp_path / "other.yaml")


def test_a_launched_tier_takes_no_url(tmp_path):
    launch = "backend: openai_http\n    launch: {engine: llama_cpp, model: qwen2.5-coder-0.5b}"
    text = GOOD.replace("backend: scripted\n    answers: [four]", launch)
    assert wired(tmp_path, text).tiers["small"]
    for old, new, fault in [
        ("0.5b}", "0.5b}\n    url: http://127.0.0.1:1/v1", "no url"),
        ("qwen2.5-coder-0.5b", "gpt-9", r"cascade\.yaml:4: .*gpt-9"),
        ("openai_http", "scripted", "needs backend openai_http"),
    ]:
        with pytest.raises(ConfigError, match=fault):
            wired(tmp_path, text.replace(old, new))


def test_what_a_tier_states_of_itself_is_in_the_snapshot_and_a_launched_ones_window_is_known(
    tmp_path,
):
    claims = "context_tokens: 9000\n    output_tokens: 500\n    accepts: [thinking]\n    answers"
    tiers = wired(tmp_path, GOOD.replace("answers", claims)).tiers
    small, large = tiers["small"], tiers["large"]
    assert (small.context_tokens, small.output_tokens) == (9000, 500)
    assert (small.accepts, small.capabilities) == ({"thinking"}, {"logprobs"})
    assert (large.context_tokens, large.output_tokens) == (None, None)
    assert (large.accepts, large.capabilities) == (frozenset(), None)

    launch = "backend: openai_http\n    launch: {engine: llama_cpp, model: a.gguf, context: 4096}"
    text = GOOD.replace("backend: scripted\n    answers: [four]", launch)
    assert wired(tmp_path, text).tiers["small"].context_tokens == 4096
    more = text.replace("    capabilities", "    context_tokens: 4097\n    capabilities")
    fault = r"cascade\.yaml:2: .*context_tokens 4097 is above the 4096"
    with pytest.raises(ConfigError, match=fault):
        wired(tmp_path, more)
    assert wired(tmp_path, more.replace("4097", "2048")).tiers["small"].context_tokens == 2048


def test_two_launched_models_cannot_have_one_port(tmp_path):
    launch = "backend: openai_http\n    launch: {engine: llama_cpp, model: a.gguf, port: 9000}"
    text = GOOD.replace("backend: scripted\n    answers: [four]", launch)
    text = text.replace("backend: scripted", launch)
    with pytest.raises(ConfigError, match=r"cascade\.yaml:9: .*port 9000 is also that of small"):
        wired(tmp_path, text)


def test_an_address_needs_its_scheme(tmp_path):
    text = GOOD.replace(
        "backend: scripted\n    answers: [four]",
        "backend: openai_http\n    url: gpu:8000\n    model: m",
    )
    with pytest.raises(ConfigError, match=r"cascade\.yaml:4: .*begins with http"):
        wired(tmp_path, text)


def test_a_key_comes_from_the_environment_and_must_be_there(tmp_path, monkeypatch):
    text = GOOD.replace(
        "backend: scripted\n    answers: [four]",
        "backend: openai_http\n    url: http://127.0.0.1:1/v1\n    model: m\n"
        "    api_key_env: SOME_KEY",
    )
    monkeypatch.delenv("SOME_KEY", raising=False)
    with pytest.raises(ConfigError, match=r"cascade\.yaml:6: .*SOME_KEY is not set"):
        wired(tmp_path, text)
    monkeypatch.setenv("SOME_KEY", "k")
    assert wired(tmp_path, text)


def test_the_version_follows_what_can_change_a_decision(tmp_path):
    one = wired(tmp_path, GOOD).version
    assert wired(tmp_path, GOOD + "server: {port: 1}\n").version == one
    assert wired(tmp_path, GOOD.replace("accept_at: 0.7", "accept_at: 0.71")).version != one
    calibrated = GOOD.replace("{type: logprob,", "{type: logprob, calibration: map.json,")
    (tmp_path / "map.json").write_text('{"kind": "monotone_map", "x": [0, 1], "y": [0, 1]}')
    two = wired(tmp_path, calibrated).version
    (tmp_path / "map.json").write_text('{"kind": "monotone_map", "x": [0, 1], "y": [0, 0.9]}')
    assert len({one, two, wired(tmp_path, calibrated).version}) == 3


def test_the_version_is_the_same_in_another_process(tmp_path):
    text = GOOD.replace("[logprobs]", "[logprobs, tools, vision, json_schema]")
    here = wired(tmp_path, text).version
    code = (
        "from pathlib import Path; from serving.config import ConfigFile; "
        "from serving.wiring import Wiring; p = Path('cascade.yaml'); "
        "print(Wiring(ConfigFile(p).config, p.parent).snapshot().version)"
    )
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == here


def test_the_environment_overrides_the_audit_url(tmp_path, monkeypatch):
    monkeypatch.setenv("CASCADE_AUDIT_URL", "postgresql://somewhere/db")
    path = tmp_path / "cascade.yaml"
    path.write_text(GOOD)
    assert ConfigFile(path).audit_url == "postgresql://somewhere/db"


def test_a_relative_database_lies_beside_the_configuration(tmp_path, monkeypatch):
    monkeypatch.delenv("CASCADE_AUDIT_URL", raising=False)
    path = tmp_path / "cascade.yaml"
    path.write_text(GOOD)
    assert ConfigFile(path).audit_url == f"sqlite:///{tmp_path}/cascade.db"
    path.write_text(GOOD + "audit: {url: 'sqlite:////var/log/audit.db'}\n")
    assert ConfigFile(path).audit_url == "sqlite:////var/log/audit.db"


def test_the_default_configuration_offers_what_the_manual_says():
    root = Path(__file__).parents[2]
    file = ConfigFile(root / "cascade.yaml")
    snapshot = Wiring(file.config, root).snapshot()
    assert {name for name, _ in snapshot.models} == {
        "auto",
        "cascade",
        "always-small",
        "always-large",
        "small",
        "large",
    }
    for each in snapshot.tiers.values():
        assert each.context_tokens == 8192
        assert each.capabilities == {"logprobs", "json_schema", "reasoning", "tools"}
    text = (root / "cascade.yaml").read_text()
    prices = [tier["price"] for tier in yaml.safe_load(text)["tiers"].values()]
    assert prices[1]["input"] == pytest.approx(10 * prices[0]["input"])
    assert "EXAMPLES, ten to one" in text


DOWN = """\
tiers:
  small:
    backend: scripted
    answers: [{error: BackendUnreachableError}]
    retry: {times: 2, base_seconds: 0}
"""


async def failures(tmp_path, text, times):
    backend = wired(tmp_path, text).tiers["small"].backend
    for _ in range(times):
        with pytest.raises(BackendError) as caught:
            await backend.complete(ChatRequest(id="r", messages=()))
        yield caught.value.message
    await backend.aclose()


async def test_a_tier_is_retried_and_cools_down_unless_that_is_switched_off(tmp_path):
    said = [message async for message in failures(tmp_path, DOWN, 3)]
    assert said[0] == "BackendUnreachableError, as scripted (after 3 tries)"
    assert re.match(r"cooling down for .* as scripted \(after 3 tries\)", said[1])
    assert re.match(r"cooling down for .* as scripted$", said[2])

    off = DOWN.replace("retry: {times: 2, base_seconds: 0}", "retry: null\n    cooldown: null")
    said = [message async for message in failures(tmp_path, off, 20)]
    assert set(said) == {"BackendUnreachableError, as scripted"}


async def test_a_stated_limit_holds_and_without_one_there_is_none(tmp_path):
    slow = DOWN.replace("{error: BackendUnreachableError}", "{first_token_seconds: 0.02}")
    for text, turned_away in [(slow, 0), (slow + "    limits: {concurrent: 2, waiting: 1}\n", 2)]:
        backend = wired(tmp_path, text).tiers["small"].backend
        calls = [backend.complete(ChatRequest(id="r", messages=())) for _ in range(5)]
        done = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(each) for each in done].count(BackendBusyError) == turned_away


def test_a_map_fitted_for_another_judge_is_refused(tmp_path):
    text = GOOD.replace("{type: logprob,", "{type: logprob, calibration: map.json,")
    path = tmp_path / "map.json"
    path.write_text(
        '{"kind": "monotone_map", "fitted_for": {"type": "logprob", "statistic": "min"}, '
        '"x": [0, 1], "y": [0, 1]}'
    )
    assert wired(tmp_path, text)
    with pytest.raises(ConfigError, match=r"cascade\.yaml:15: .*statistic 'min'.*'mean'"):
        wired(tmp_path, text.replace(", statistic: min", ""))
