"""Asks a whole service on loopback, one request after the other, as a client of it does."""

from collections import defaultdict
from collections.abc import Sequence

import openai
from rich.console import Console
from rich.progress import track

from benchmarks.prediction.conversations import Turn, history
from benchmarks.prediction.rows import Measured, Row, row
from cascade.snapshot import Snapshot
from tests.services import running


async def measured(
    snapshot: Snapshot, turns: Sequence[Turn], temperature: float, *, logprobs: bool = False
) -> Measured:
    """What the only tier's cache was predicted to hold for each turn, and what it reported.

    Args:
        snapshot: of a configuration with one tier.
        turns: in the order in which they are sent.
        temperature: of all answers; above 0 they are drawn, the same in every run.
        logprobs: asked for, as a judge does that needs them; llama.cpp tells its tokens with them.

    Raises:
        openai.OpenAIError: the service failed.
    """
    [(name, tier)] = snapshot.tiers.items()
    said: dict[int, list[tuple[str, str]]] = defaultdict(list)
    rows: list[Row] = []
    async with (
        running(snapshot) as service,
        openai.AsyncOpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0) as client,
    ):
        for turn in track(turns, description=name, console=Console(stderr=True)):
            before = said[turn.conversation]
            answer = await client.chat.completions.create(
                model=name,
                messages=history(turn, before),  # type: ignore[arg-type]
                temperature=temperature,
                seed=len(rows),
                logprobs=logprobs,
                max_tokens=turn.answer_tokens,
            )
            [attempt] = service.log.results[-1].attempts
            rows.append(row(turn.conversation, len(before), attempt, tier))
            before.append((turn.ask, answer.choices[0].message.content or ""))
    return Measured(server=name, block=tier.cache.block if tier.cache else 1, rows=rows)
