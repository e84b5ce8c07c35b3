import json

import pytest
from click.testing import CliRunner

from serving.cli import cascade

TIERS = """\
tiers:
  own: {backend: scripted, price: {input: 0.2, cache_read: 0.02, output: 0.4}}
  kept: {backend: scripted, price: {input: 3, cache_read: 0.3, output: 15,
         cache_write: {5m: 3.75, default: 3.75, 1h: 6}, long_prompts: [
         {above: 200000, input: 6, cache_read: 1.2, output: 22, cache_write: {5m: 7.5}}]}}
  gpu: {backend: scripted, price: {gpu_usd_per_hour: 2, prefill_tokens_per_second: 1000,
        cached_tokens_per_second: 8000, decode_tokens_per_second: 50}}
  same: {backend: scripted, price: {input: 1, cache_read: 1, output: 1}}
  free: {backend: scripted, price: {input: 0, cache_read: 0, output: 0}}
  unpriced: {backend: scripted}
  mapped: {backend: scripted, price: {litellm: anthropic/claude-sonnet-4-6}}
"""


@pytest.fixture
def run(tmp_path):
    file = tmp_path / "cascade.yaml"
    file.write_text(TIERS)

    def invoke(*arguments):
        return CliRunner().invoke(
            cascade, ["cache", "breakeven", "--config", str(file), *arguments]
        )

    return invoke


def test_multiples_alone_give_the_formula_with_its_numbers(run):
    said = run("--write", "1.25", "--read", "0.1").output
    assert "(w - r) / (1 - r) = (1.25 - 0.1) / (1 - 0.1) = 1.278: from 2 requests on" in said
    assert "100 * (10,000 + 200)                           = 1,020,000\n" in said
    assert "=   131,500\n" in said
    assert "= 1,270,000\n" in said
    assert "$" not in said


def test_a_tiers_own_prices_are_used_and_each_price_of_a_write_is_shown_once(run):
    said = run("kept").output
    assert "written for 5m or default (kept): w = 1.25, r = 0.1" in said
    assert "written for 1h (kept): w = 2, r = 0.1" in said
    assert "2.111: from 3 requests on" in said
    assert said.count("pays where") == 2
    assert "=   131,500   $0.3945" in said


def test_where_writing_has_no_price_it_costs_what_computing_costs(run):
    said = run("own").output
    assert "kept without a price for it (own): w = 1, r = 0.1" in said
    assert "1.000: from 2 requests on" in said
    assert "r = 0.125" in run("gpu").output


def test_a_prompt_that_is_long_enough_has_the_rates_of_long_prompts(run):
    said = run("kept", "--prefix", "250000").output
    assert "written for 5m (kept): w = 1.25, r = 0.2 of" in said
    assert "1h" not in said


def test_ten_at_once_cost_what_machines_are_told(run):
    asked = ("--prefix", "20000", "--suffix", "0", "--requests", "10", "--json")
    [report] = json.loads(run("--write", "1.25", "--read", "0.05", *asked).output)
    tokens = report["computed_tokens"]
    dollars_per_token = 2e-6
    assert {name: round(100 * n * dollars_per_token, 6) for name, n in tokens.items()} == {
        "uncached": 40,
        "all at once": 50,
        "in sequence": 6.8,
        "prewarmed": 7,
    }
    assert (report["pays_from"], report["dollars"]) == (2, None)


def test_a_price_from_the_map_says_which_map(run):
    reports = json.loads(run("mapped", "--json").output)
    assert {report["source"].split(" ")[1] for report in reports} == {"litellm"}
    assert [round(report["above"], 3) for report in reports] == [1.278, 2.111]
    assert reports[0]["dollars"]["in sequence"] == "0.3945"


def test_where_reading_is_no_discount_it_says_that_it_never_pays(run):
    assert "no cheaper than computing (r = 1): it never pays" in run("same").output
    assert json.loads(run("same", "--json").output)[0]["pays_from"] is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nobody"], "there is no tier 'nobody'; there are: own, kept"),
        (["free"], "cascade.yaml:9: tiers.free.price: the price has no input rate"),
        (["unpriced"], "cascade.yaml:10: tiers.unpriced: without a price"),
    ],
)
def test_a_tier_that_cannot_be_reckoned_is_refused_and_named(run, arguments, said):
    done = run(*arguments)
    assert done.exit_code == 1
    assert said in done.exception.message


@pytest.mark.parametrize(
    "arguments", [[], ["--write", "2"], ["own", "--read", "0.1"]], ids=["neither", "half", "both"]
)
def test_a_tier_or_both_multiples_must_be_given(run, arguments):
    done = run(*arguments)
    assert done.exit_code == 2
    assert "--write and --read" in done.output


@pytest.mark.parametrize("number", ["nan", "inf", "-0.1", "much"])
@pytest.mark.parametrize("option", ["--write", "--read"])
def test_a_multiple_that_is_no_price_is_refused_by_its_option(run, option, number):
    other = {"--write": "--read", "--read": "--write"}[option]
    done = run(option, number, other, "0.1")
    assert done.exit_code == 2
    assert f"'{option}'" in done.output


def test_a_write_that_costs_nothing_is_a_price(run):
    assert "w = 0, r = 0 of the input price" in run("--write", "0", "--read", "0").output
