import asyncio
import json
import os
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest
from click.testing import CliRunner

from evals.__main__ import COMMANDS, evals
from evals.outcomes import Manifest, prompts_sha256
from evals.outcomes_file import OutcomesFile
from evals.outcomes_lines import line_of, read
from tests.evals.outcomes import prompt
from tests.evals.rows import MANIFEST, answer, judgement, sample
from tests.upstream import DONE, Upstream, serving, words

ROW = {
    "kind": "sums",
    "split": "fit",
    "max_tokens": 8,
    "reference": 4,
    "scorer": "number",
}


@pytest.fixture
def prompts(tmp_path):
    rows = [
        {**ROW, "id": name, "messages": [{"role": "user", "content": f"{name}: 2 + 2"}]}
        for name in ("a-1", "a-2", "b-1")
    ]
    path = tmp_path / "prompts.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@asynccontextmanager
async def two_models():
    async with (
        serving(Upstream([*words("4", usage={"prompt_tokens": 9}), DONE])) as small,
        serving(Upstream([*words("5"), DONE])) as large,
    ):
        tiers = (f"--tier=small=s@{small.url}", f"--tier=large=l@{large.url}")
        yield tiers, small, large


async def run(*arguments):
    """Exit status, output, and the message of a CascadeError."""
    done = await asyncio.to_thread(CliRunner().invoke, evals, [str(one) for one in arguments])
    return done.exit_code, done.output, getattr(done.exception, "message", "")


async def test_each_tier_is_asked_once_however_often_the_command_runs(prompts, tmp_path):
    out = tmp_path / "o.jsonl"
    async with two_models() as (tiers, small, large):
        status, said, _ = await run("collect", out, "--prompts", prompts, *tiers, "--limit", 2)
        assert status == 0
        assert "answers: 0 rows there, 4 to go" in said
        status, said, _ = await run("collect", out, "--prompts", prompts, *tiers)
        assert status == 0
        assert "answers: 4 rows there, 2 to go" in said
        assert "small 1/1; large 1/1" in said
        assert len(small.bodies) == len(large.bodies) == 3
    found = read(out)
    assert [row.right for row in found.answers("small").values()] == [True] * 3
    assert [row.right for row in found.answers("large").values()] == [False] * 3
    assert found.manifest.tiers["small"].model == "s"
    assert "cores" in found.manifest.machine


async def test_all_phases_come_in_their_order_and_only_chosen_prompts_are_asked(prompts, tmp_path):
    out = tmp_path / "o.jsonl"
    options = ("--phases", "judges,samples,answers", "--only", "a-", "--note", "a test")
    async with two_models() as (tiers, _, _):
        status, said, _ = await run("collect", out, "--prompts", prompts, *tiers, *options)
    assert status == 0
    assert [line.partition(":")[0] for line in said.splitlines() if "to go" in line] == [
        "answers",
        "samples",
        "judges",
    ]
    found = read(out)
    assert {row.prompt for row in found.rows.values()} == {"a-1", "a-2"}
    kinds = [row.KIND for row in found.rows.values()]
    assert {kind: kinds.count(kind) for kind in kinds} == {"answer": 4, "sample": 8, "judge": 6}
    assert found.manifest.machine.endswith("; a test")


async def test_a_prompt_set_that_changed_is_refused(prompts, tmp_path):
    out = tmp_path / "o.jsonl"
    async with two_models() as (tiers, _, _):
        await run("collect", out, "--prompts", prompts, *tiers, "--limit", 1)
        prompts.write_text(prompts.read_text().replace("2 + 2", "1 + 3"))
        status, _, fault = await run("collect", out, "--prompts", prompts, *tiers)
    assert status == 1
    assert "cannot be continued: it holds answers to other prompts" in fault


async def test_rows_that_could_not_be_had_are_said_and_the_status_shows_it(prompts, tmp_path):
    out = tmp_path / "o.jsonl"
    async with serving(Upstream(status=400)) as broken:
        tier = f"--tier=small=s@{broken.url}"
        status, said, _ = await run("collect", out, "--prompts", prompts, tier)
    assert status == 1
    assert "a-1 (small):" in said
    assert "3 rows are missing; run it again to get them" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--phases", "answers,tea"), "'tea' is none of answers, samples, judges"),
        (("--judges", "taste"), "'taste' is none of p_true, pointwise, pairwise"),
        (("--limit", "0"), "0 is not in the range"),
    ],
)
async def test_a_wrong_option_is_said(prompts, tmp_path, options, said):
    status, shown, _ = await run("collect", tmp_path / "o.jsonl", "--prompts", prompts, *options)
    assert status == 2
    assert said in shown


async def test_no_prompt_of_that_name_is_said(prompts, tmp_path):
    status, _, fault = await run(
        "collect", tmp_path / "o.jsonl", "--prompts", prompts, "--only", "c"
    )
    assert status == 1
    assert fault == "no prompt's id begins with c"


class Stalling(Upstream):
    """Does not answer its third request, once."""

    async def handle(self, http):
        if len(self.bodies) == 2:
            self.bodies.append({})
            await asyncio.Event().wait()
        return await super().handle(http)


async def test_a_collector_that_is_killed_goes_on_where_it_was(prompts, tmp_path):
    out = tmp_path / "o.jsonl"
    async with serving(Stalling([*words("4"), DONE])) as upstream:
        arguments = ("collect", out, "--prompts", prompts, f"--tier=small=s@{upstream.url}")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "evals", *map(str, arguments)),
            stderr=asyncio.subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": str(tmp_path)},  # it cannot tidy up when it is killed
        )
        async with asyncio.timeout(60):
            while len(upstream.bodies) < 3:
                await asyncio.sleep(0.02)
        process.kill()
        await process.wait()
        with out.open("a") as file:
            file.write('{"kind":"answer","pro')
        status, said, _ = await run(*arguments)
    assert status == 0
    assert "answers: 2 rows there, 1 to go" in said
    assert list(read(out).answers("small")) == ["a-1", "a-2", "b-1"]


async def test_a_file_is_shown_by_kind_with_the_models_it_came_from(prompts, tmp_path):
    out = tmp_path / "o.jsonl"
    async with two_models() as (tiers, _, _):
        await run("collect", out, "--prompts", prompts, *tiers)
    status, said, _ = await run("show", out, "--prompts", prompts)
    assert status == 0
    cells = [[cell.strip() for cell in line.split("│")] for line in said.splitlines()]
    row = next(line for line in cells if "sums" in line)
    assert row[1:4] == ["sums", "3", "100.0%"]
    assert "0.0%" in row[4:]
    assert "6 answers, 0 samples, 0 verdicts; small: s, large: l" in said


async def test_answers_to_unknown_prompts_are_not_shown(prompts, tmp_path):
    out = stored(tmp_path / "o.jsonl", answer("p-1"), asked=[prompt("p-1")])
    _, _, fault = await run("show", out, "--prompts", prompts)
    assert "'p-1' is no prompt of" in fault


def stored(path, *rows, asked):
    fields = {name: getattr(MANIFEST, name) for name in ("prompts", "tiers", "begun", "machine")}
    manifest = Manifest(**fields, cascade="0.1.0", prompts_sha256=prompts_sha256(asked))
    path.write_text("".join(map(line_of, (manifest, *rows))))
    return path


async def test_stored_answers_are_scored_again(tmp_path):
    asked = prompt("p-1", reference=4)
    row = {**ROW, "id": "p-1", "messages": asked.messages}
    (tmp_path / "prompts.jsonl").write_text(json.dumps(row))
    rows = (answer(text="4", right=False), sample(text="5", right=False), judgement())
    out = stored(tmp_path / "o.jsonl", *rows, asked=[asked])
    status, said, _ = await run("regrade", out, "--prompts", tmp_path / "prompts.jsonl")
    assert status == 0
    assert said.splitlines() == ["answer p-1 small", "1 of 3 rows changed"]
    assert [getattr(row, "right", None) for row in read(out).rows.values()] == [True, False, None]
    (tmp_path / "prompts.jsonl").write_text(json.dumps({**row, "max_tokens": 9}))
    _, _, fault = await run("regrade", out, "--prompts", tmp_path / "prompts.jsonl")
    assert "holds answers to other prompts" in fault


async def test_a_file_that_is_being_written_is_not_scored_again(prompts, tmp_path):
    out = tmp_path / "o.jsonl"
    with OutcomesFile(out, MANIFEST):
        _, _, fault = await run("regrade", out, "--prompts", prompts)
    assert "another process is writing it" in fault
    _, _, fault = await run("regrade", tmp_path / "none.jsonl", "--prompts", prompts)
    assert "there is no such file" in fault
    assert not (tmp_path / "none.jsonl").exists()


def test_help_lists_every_command_and_imports_none():
    code = "import sys, runpy; sys.argv = ['evals', '--help']\ntry:\n    runpy.run_module('evals', "
    code += "run_name='__main__')\nexcept SystemExit:\n    print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(name in done.stdout for name in COMMANDS)
    assert not {"aiohttp", "yaml", "rich"} & {name.split(".")[0] for name in done.stdout.split()}
    assert "Traceback" not in done.stderr
