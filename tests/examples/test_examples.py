"""The examples as a user runs them, over a service with scripted models."""

import asyncio
import json
import sys

import pytest

from cascade.backends.scripted import Script
from cascade.calibration import load_map
from evals.datasets import load
from tests.evals.services import cascade_of
from tests.services import running

NOWHERE = "http://127.0.0.1:1/v1"


@pytest.fixture
async def service():
    half_sure = [Script(text="41", logprob=-0.1), Script(text="42", logprob=-3.0)] * 500
    async with running(cascade_of(small=half_sure, large=("42",))) as running_service:
        yield running_service


@pytest.fixture
def prompts(tmp_path):
    rows = [
        {
            "id": f"p-{i}",
            "kind": "sums" if i % 3 else "products",
            "split": "show",
            "messages": [{"role": "user", "content": f"{i}: 40 + 2"}],
            "max_tokens": 8,
            "reference": 42,
            "scorer": "number",
        }
        for i in range(12)
    ]
    path = tmp_path / "prompts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


async def run(name, *arguments, status=0):
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        f"examples/{name}.py",
        *map(str, arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == status, err.decode()
    return out.decode(), err.decode()


async def test_mixed_prints_a_table_and_its_sentences_for_each_price_ratio(service, prompts):
    out, _ = await run("mixed", "--base-url", f"{service.url}/v1", "--prompts", prompts)
    for ratio in ("0.1", "0.25", "0.5"):
        assert f"small model at {ratio} of the large model's price" in out
    assert out.count("Over all 12 prompts the ladder") == 3
    assert "The service billed this run" in " ".join(out.split())
    assert "left out" not in out


async def test_mixed_gives_programs_json_and_keeps_every_answer(service, prompts, tmp_path):
    kept = tmp_path / "answers.jsonl"
    out, _ = await run(
        "mixed", "--base-url", f"{service.url}/v1", "--prompts", prompts, "--json", "--save", kept
    )
    data = json.loads(out)
    overall = data["ratios"][0]["rows"][0]
    assert [each["price_ratio"] for each in data["ratios"]] == ["0.1", "0.25", "0.5"]
    assert (overall["kind"], overall["total"], overall["escalated"]) == ("all", 12, 0.5)
    assert overall["large"]["accuracy"] == 1.0
    answers = [json.loads(line) for line in kept.read_text().splitlines()]
    assert len(answers) == 36
    assert {answer["model"] for answer in answers} == {"always-small", "always-large", "cascade"}
    assert {answer["prompt_id"] for answer in answers} == {f"p-{i}" for i in range(12)}


async def test_mixed_says_what_it_left_out(prompts):
    failing = [Script(error="BackendRefusedError"), *(["42"] * 50)]
    async with running(cascade_of(large=failing)) as service:
        out, _ = await run("mixed", "--base-url", f"{service.url}/v1", "--prompts", prompts)
    assert "Over all 11 prompts" in out
    assert "left out: p-0: always-large:" in out


async def test_fit_threshold_writes_a_map_that_the_service_loads(service, tmp_path):
    path = tmp_path / "map.json"
    out, _ = await run(
        "fit_threshold", path, "--base-url", f"{service.url}/v1", "--statistic", "mean"
    )
    fitted = json.loads(path.read_text())
    assert load_map(path)(0.5) > 0
    assert fitted["meta"]["rows"] == len(load(split="fit"))
    assert fitted["fitted_for"]["statistic"] == "mean"
    assert f"accept_at: {fitted['meta']['accept_at']:g}" in out


async def test_quickstart_shows_who_answered_and_what_it_cost(service):
    out, _ = await run("quickstart", f"{service.url}/v1")
    lines = out.splitlines()
    assert "[small, $0." in lines[1]
    assert "[large, $0." in lines[3]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("mixed", ["--base-url", NOWHERE]),
        ("fit_threshold", ["map.json", "--base-url", NOWHERE]),
        ("quickstart", [NOWHERE]),
    ],
)
async def test_without_a_service_each_says_so_in_a_line(name, arguments):
    _, err = await run(name, *arguments, status=1)
    assert "Traceback" not in err
    assert "127.0.0.1:1" in err


async def test_a_broken_file_of_prompts_is_named(tmp_path):
    path = tmp_path / "broken.jsonl"
    path.write_text("{}\n")
    _, err = await run("mixed", "--prompts", path, status=1)
    assert f"{path}:1: id: missing" in err.replace("\n", "")


@pytest.mark.parametrize(
    ("name", "arguments"), [("mixed", ["--save", "no/x"]), ("fit_threshold", ["no/x"])]
)
async def test_a_result_that_could_not_be_written_is_refused_before_measuring(name, arguments):
    _, err = await run(name, *arguments, status=1)
    assert "there is no folder no" in err
