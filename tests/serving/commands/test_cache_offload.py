import json

import pytest
from click.testing import CliRunner

from serving.cli import cascade
from serving.models.catalogue import CATALOGUE
from serving.models.shapes import SHAPES

LLAMA = ("--model", "llama-3-70b", "--tflops", "1000")


def run(*arguments):
    return CliRunner().invoke(cascade, ["cache", "offload", *arguments])


def test_the_formulas_are_printed_with_the_numbers_put_in():
    said = run(*LLAMA, "--latency", "5ms", "--memory", "60GB").output
    assert "2 * 80 layers * 8 KV heads * 128 numbers * 2 bytes = 327,680 bytes" in said
    assert "3.277 GB / 25 GB/s + 5 ms = 136.1 ms" in said
    assert "(2 * 7e+10 * 10,000 + 4 * 80 * 8,192 * 50,005,000)" in said
    assert "pays: 136.1 ms < 3.062 s" in said
    assert "19 tokens: below, computing is faster" in said
    assert "18 such prefixes, of 60 GB = 55.88 GiB" in said


def test_without_attention_the_work_is_that_of_the_matrices():
    dimensions = ("--params", "70e9", "--layers", "80", "--kv-heads", "8", "--head-dim", "128")
    report = json.loads(run(*dimensions, "--tflops", "1000", "--latency", "0", "--json").output)
    assert report["kv_bytes_per_token"] == 327_680
    assert round(report["transfer_seconds"], 3) == 0.131
    assert report["prefill_seconds"] == pytest.approx(2.8)
    assert (report["pays"], report["shortest_tokens"]) == (True, 1)
    said = run(*dimensions, "--latency", "0").output
    assert "attention left out" in said
    assert "none is too short" in said


def test_gigabytes_and_gibibytes_hold_another_number_of_requests():
    fit = [
        json.loads(run(*LLAMA, "--tokens", "32768", "--memory", memory, "--json").output)
        for memory in ("60GB", "60GiB")
    ]
    assert [report["requests_that_fit"] for report in fit] == [5, 6]


def test_a_link_that_is_too_slow_does_not_pay():
    slow = ("--params", "1e9", "--layers", "80", "--kv-heads", "8", "--head-dim", "128")
    said = run(*slow, "--bandwidth", "1GB/s").output
    assert "does not pay: 3.278 s is no less than 40.44 ms" in said
    assert "none: a token is computed faster than it is brought back" in said


def test_a_dimension_can_replace_that_of_a_named_model():
    report = json.loads(run(*LLAMA, "--bytes", "1", "--json").output)
    assert report["kv_bytes_per_token"] == 163_840


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give --model, or its dimensions: --params, --layers, --kv-heads, --head-dim missing"),
        ((*LLAMA, "--bandwidth", "25Gb/s"), "'25Gb/s' is no speed"),
        ((*LLAMA, "--bandwidth", "0GB/s"), "it must be above 0"),
        (("--model", "gpt-5"), "'gpt-5' is not one of"),
    ],
)
def test_what_cannot_be_reckoned_says_what_to_give(arguments, said):
    done = run(*arguments)
    assert done.exit_code == 2
    assert said in done.output


def test_the_embedded_models_have_the_cache_that_their_dimensions_say():
    for key, model in CATALOGUE.items():
        assert SHAPES[key].kv_bytes_per_token == model.kv_bytes_per_token
