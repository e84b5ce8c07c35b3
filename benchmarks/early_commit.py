"""What early commit gains in time to the first token, and what it costs in quality.

    python -m benchmarks.early_commit [--prompts N] [--after TOKENS] [--judge NAME]

Quality and the commit threshold come from the stored outcomes: certified on their calibrate rows,
measured on their test rows. Time is measured on the two real models behind a whole service on
loopback, as a client sees it that streams, side by side: each of N test prompts is asked in every
way before the next one is, and another way is first each time, so that warm caches favour none.
Prompts are those whose stored answer lasts until the look: where it ends before, nothing differs.
Run it on a machine that does nothing else.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from rich.console import Console
from rich.progress import Progress

from evals.commands.early_commit import Asked, asked_of, told
from evals.datasets import TASKS, Prompt, load
from evals.early_commit import Started, certificates, split, started
from evals.gather import drawn
from evals.guarantee import RISKS
from evals.metrics import bootstrap, mean
from evals.outcomes import EMBEDDED
from evals.outcomes_lines import read
from evals.panel_report import Printed, on_screen
from serving.config import ConfigFile, Policy
from serving.models.catalogue import lookup
from serving.models.fetch import ensure
from serving.models.fleet import Fleet, prepare
from serving.models.home import home, models_folder
from serving.wiring import Wiring, launches
from tests.services import Running, running

LIVE, EARLY, ANY, HELD = "no judge", "early commit", "any start", "whole answer"
"""Streamed unseen; at the certified threshold; every start released; held until it is judged."""
LEAST = 1e-9
"""A threshold that every start reaches which can be judged at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One streamed answer, in seconds from the request; and whether its start was released."""

    first: float
    whole: float
    released: bool
    sent_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be timed: the configuration with a policy for each way, and the prompts."""

    file: ConfigFile
    policies: Mapping[str, Policy]
    prompts: Sequence[Prompt]


def main() -> None:
    """Certify, measure and time, and print it all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--config", type=Path, default=Path("examples/early_commit.yaml"))
    parser.add_argument("--policy", default="cascade")
    parser.add_argument("--judge", default="start")
    parser.add_argument("--after", type=int, default=24)
    parser.add_argument("--alpha", type=float, default=0.05)
    parser.add_argument("--risk", choices=list(RISKS), default="joint")
    parser.add_argument("--prompts", type=int, default=40)
    given = parser.parse_args()
    file, console = ConfigFile(given.config), Console(width=110)
    asked = asked_of(file, given.policy, given.judge)
    known = {prompt.id: prompt for prompt in load(TASKS)}
    judges = (asked.start, asked.whole)
    rows = asyncio.run(started(read(EMBEDDED), known, judges, given.after))
    found = certificates(rows, given.alpha, 0.1)
    chosen = next(each for each in found if each.risk == given.risk)
    on_screen(console, told(asked, rows, found, chosen, given.after))
    plan = Plan(
        file=file,
        policies=_policies(
            asked, file.config.policies[given.policy], given.after, chosen.threshold
        ),
        prompts=_sample(rows, known, given.prompts),
    )
    on_screen(console, report(asyncio.run(_timed(plan))))


def report(times: Sequence[Mapping[str, Timed]]) -> list[Printed | str]:
    """Seconds to the first token by way of asking, and what each gains over holding the answer.

    Args:
        times: for each prompt, the answer in each way.
    """
    rows = []
    for way in times[0]:
        firsts = sorted(each[way].first for each in times)
        gains = [each[HELD].first - each[way].first for each in times]
        low, high = bootstrap(gains, mean)
        rows.append(
            (
                way,
                f"{_at(firsts, 0.5):.2f}",
                f"{mean(firsts):.2f}",
                f"{_at(firsts, 0.9):.2f}",
                "" if way == HELD else f"{mean(gains):.2f} ({low:.2f} to {high:.2f})",
                f"{mean([each[way].whole for each in times]):.2f}",
                str(sum(each[way].released for each in times)),
                str(sum(each[way].sent_up for each in times)),
            )
        )
    head = ("judged by", "median", "mean", "p90", "gain", "whole, mean", "released", "sent up")
    title = f"seconds to the first token of {len(times)} streamed answers"
    told_ = [each for each in times if each[EARLY].released]
    if not told_:
        return [Printed(title, head, rows), "None of them was released early."]
    gains = [each[HELD].first - each[EARLY].first for each in told_]
    low, high = bootstrap(gains, mean)
    sentence = (
        f"The {len(told_)} that were released early came {mean(gains):.2f} s ({low:.2f} to "
        f"{high:.2f}) earlier than held."
    )
    return [Printed(title, head, rows), sentence]


def _policies(
    asked: Asked, ladder: Policy, after_tokens: int, threshold: float | None
) -> dict[str, Policy]:
    """A policy for each way to ask; without a certificate nothing is released at it."""
    first, *others = ladder.options["steps"]

    def committing(at: float) -> Policy:
        rule = {"after_tokens": after_tokens, "at": at, "judge": asked.start.name}
        return _ladder({**first, "commit": rule}, *others)

    return {
        LIVE: Policy.model_validate({"type": "fixed", "tier": asked.step.tier}),
        EARLY: committing(1.0 if threshold is None else threshold),
        ANY: committing(LEAST),
        HELD: _ladder(first, *others),
    }


def _ladder(*steps: Any) -> Policy:
    return Policy.model_validate({"type": "ladder", "steps": list(steps)})


def _sample(rows: Sequence[Started], known: Mapping[str, Prompt], count: int) -> list[Prompt]:
    lasting = [known[row.prompt] for row in split(rows, "test") if row.long]
    return drawn(lasting)[:count]


async def _timed(plan: Plan) -> list[dict[str, Timed]]:
    policies = {f"way-{i}": policy for i, policy in enumerate(plan.policies.values())}
    config = plan.file.config.model_copy(update={"policies": policies, "experiments": {}})
    wanted = launches(config)
    for launch in wanted:
        ensure(lookup(launch.model), home())
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        models_folder(folder).symlink_to(models_folder(home()))
        fleet = prepare(wanted, folder)
        stack.push_async_callback(fleet.stop)
        await fleet.start()
        snapshot = Wiring(config, plan.file.path.parent, _launched(fleet)).snapshot()
        service = await stack.enter_async_context(running(snapshot))
        client = await stack.enter_async_context(aiohttp.ClientSession(service.url))
        bar = stack.enter_context(Progress(console=Console(stderr=True)))
        times = []
        for turn, prompt in enumerate(bar.track(plan.prompts, description="asking")):
            ways = list(zip(plan.policies, policies, strict=True))
            start = turn % len(ways)
            answers = {
                way: await _ask(client, service, model, prompt)
                for way, model in ways[start:] + ways[:start]
            }
            times.append({way: answers[way] for way in plan.policies})
    return times


async def _ask(
    client: aiohttp.ClientSession, service: Running, model: str, prompt: Prompt
) -> Timed:
    body: dict[str, Any] = {"model": model, "messages": prompt.messages, "stream": True}
    first, began = None, time.perf_counter()
    async with client.post("/v1/chat/completions", json=body | prompt.params()) as response:
        response.raise_for_status()
        async for line in response.content:
            if first is None and _has_text(line):
                first = time.perf_counter() - began
    whole = time.perf_counter() - began
    result = service.log.results[-1]
    return Timed(
        first=whole if first is None else first,
        whole=whole,
        released=result.attempts[0].commit is not None,
        sent_up=result.answers > 1,
    )


def _has_text(line: bytes) -> bool:
    if not line.startswith(b"data: {"):
        return False
    data = orjson.loads(line.removeprefix(b"data: "))
    if "error" in data:
        raise RuntimeError(f"the service failed: {data['error']}")
    return any(choice["delta"].get("content") for choice in data["choices"])


def _launched(fleet: Fleet) -> dict[str, dict[str, str]]:
    return {
        tier: {"url": f"{server.url}/v1", "api_key": server.api_key}
        for tier, server in fleet.servers.items()
    }


def _at(ascending: Sequence[float], share: float) -> float:
    return ascending[min(len(ascending) - 1, int(share * len(ascending)))]


if __name__ == "__main__":
    main()
