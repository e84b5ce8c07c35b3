"""What estimators without training know: which prompts will the small model get right?

    python -m benchmarks.untrained [--prompts N] [--write]

On N prompts of the test split whose answers are stored in evals/outcomes (see docs/outcomes.md),
drawn by a fixed seed. The embedded small model is started and asked for the `llm` estimator, one
prompt after the other. With --write the table replaces the one in docs/classified.md.
"""

import argparse
import asyncio
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import track

from cascade.backends.openai_http import OpenAIHttpBackend
from cascade.errors import EstimatorError
from cascade.protocols import DifficultyEstimator
from cascade.tiers import ModelTier
from classifiers.heuristic import HeuristicEstimator
from classifiers.llm import LlmEstimator
from evals.datasets import Prompt, load
from evals.metrics import auroc, bootstrap
from evals.outcomes import Answer
from evals.outcomes_lines import read
from serving.models.catalogue import lookup
from serving.models.fetch import ensure
from serving.models.fleet import prepare
from serving.models.home import home, models_folder
from serving.models.launch import Launch
from serving.models.supervisor import ModelServer

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "classified.md"
BEGIN: Final = "<!-- python -m benchmarks.untrained --write -->"
END: Final = "<!-- end of untrained -->"
MODEL: Final = "qwen2.5-coder-0.5b"
PATIENCE_SECONDS: Final = 120.0
UNKNOWN: Final = 0.5


def main() -> None:
    """Estimate, compare with what is stored, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--prompts", type=int, default=100)
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    given = parser.parse_args()
    prompts = load(ROOT / "evals" / "prompts" / "tasks.jsonl", split="test")
    random.Random(0).shuffle(prompts)  # noqa: S311  # the same every time
    prompts = prompts[: given.prompts]
    outcomes = read(ROOT / "evals" / "outcomes" / "embedded.jsonl.gz")
    small, large = outcomes.answers("small"), outcomes.answers("large")
    table = "\n".join(rows(asyncio.run(estimates(prompts)), prompts, small, large))
    print(table)  # noqa: T201
    if given.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")


async def estimates(prompts: Sequence[Prompt]) -> dict[str, list[float]]:
    """By estimator, what it believes of the small model's answer to each prompt."""
    ensure(lookup(MODEL), home())
    with tempfile.TemporaryDirectory() as folder:
        models_folder(Path(folder)).symlink_to(models_folder(home()))
        fleet = prepare([Launch(tier="small", model=MODEL, slots=1, threads=1)], Path(folder))
        await fleet.start()
        try:
            return await _asked(fleet.servers["small"], prompts)
        finally:
            await fleet.stop()


async def _asked(server: ModelServer, prompts: Sequence[Prompt]) -> dict[str, list[float]]:
    backend = OpenAIHttpBackend(url=f"{server.url}/v1", api_key=server.api_key, model=MODEL)
    served = {"small": ModelTier(name="small", backend=backend)}
    them: dict[str, DifficultyEstimator] = {
        "heuristic": HeuristicEstimator(tiers={"small": [1.0, 0.0]}),
        "llm": LlmEstimator(tier="small", tiers={}, seconds=PATIENCE_SECONDS, served=served),
    }
    try:
        found = {"length alone": [-float(_length(prompt)) for prompt in prompts]}
        for name, estimator in them.items():
            bar = track(prompts, name, console=Console(stderr=True))
            found[name] = [await _believed(estimator, prompt) for prompt in bar]
        return found
    finally:
        await backend.aclose()


async def _believed(estimator: DifficultyEstimator, prompt: Prompt) -> float:
    try:
        return (await estimator.estimate([prompt.request()]))[0].mean["small"]
    except EstimatorError:
        return UNKNOWN


def rows(
    found: Mapping[str, Sequence[float]],
    prompts: Sequence[Prompt],
    small: Mapping[str, Answer],
    large: Mapping[str, Answer],
) -> Iterator[str]:
    """The table: AUROC with 95 % intervals, whole groups of prompts resampled."""
    right = [small[prompt.id].right for prompt in prompts]
    gains = [large[p.id].right and not ok for p, ok in zip(prompts, right, strict=True)]
    groups = [prompt.group for prompt in prompts]
    yield (
        f"| n = {len(prompts)}, {sum(right)} right | the small model is right "
        f"| only the large one is ({sum(gains)}) |"
    )
    yield "|---|---|---|"
    for name, beliefs in found.items():
        cells = [_area(beliefs, right, groups), _area([-b for b in beliefs], gains, groups)]
        yield f"| {name} | {' | '.join(cells)} |"


def _area(scores: Sequence[float], truth: Sequence[bool], groups: Sequence[str]) -> str:
    def area(some: Sequence[tuple[float, bool]]) -> float:
        value = auroc([score for score, _ in some], [ok for _, ok in some])
        return UNKNOWN if value is None else value

    pairs = list(zip(scores, truth, strict=True))
    low, high = bootstrap(pairs, area, groups=groups)
    return f"{area(pairs):.3f} ({low:.3f} to {high:.3f})"


def _length(prompt: Prompt) -> int:
    return sum(len(str(message.get("content"))) for message in prompt.messages)


if __name__ == "__main__":
    main()
