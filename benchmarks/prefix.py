"""How long it takes to have a prompt's tokens, and to make its chain and its fingerprint of them.

    python -m benchmarks.prefix [--write] [--without-model]
    python -m benchmarks.prefix --image

The prompts are conversations about our own documents. Their tokens are told by the embedded small
model's server, which is fetched and started; the longest has made-up ones. With --write the tables
replace those in docs/prefix.md. What is done here is measured in processor time, so that other
programs disturb it little; what the server does takes the time that it takes, so let it have the
machine for itself. The garbage collector is off while a call is timed.
"""

import argparse
import asyncio
import base64
import gc
import random
import statistics
import tempfile
import time
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Final

from cascade.backends.openai_http import OpenAIHttpBackend
from cascade.prefix import Chained, Fingerprints, chain_of_ids, chain_of_text, rendering
from cascade.protocols import Tokenizer
from cascade.reading import Reader
from cascade.types import ChatRequest
from serving.models.catalogue import lookup
from serving.models.fetch import ensure
from serving.models.fleet import prepare
from serving.models.home import home, models_folder
from serving.models.launch import Launch

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "prefix.md"
BEGIN: Final = "<!-- python -m benchmarks.prefix --write -->"
END: Final = "<!-- end -->"
MODEL: Final = "qwen2.5-coder-0.5b"
SIZES: Final = (1_000, 8_000, 100_000)
ASKED: Final = (1_000, 8_000)
ROUNDS: Final = 100
BYTES_PER_TOKEN: Final = 4
ANSWER_TOKENS: Final = 300
IMAGE_BYTES: Final = 5_000_000

KOREAN: Final = (
    "이 안내서는 대화를 어떤 모델에 보낼지 정하는 방법을 설명합니다. 작은 모델이 먼저 대답하고, "
    "그 대답이 충분히 좋은지 확인한 다음, 그렇지 않으면 더 큰 모델에 다시 묻습니다. "
    "비용과 시간은 모두 기록에 남습니다. "
)
TOOLS: Final = [
    {
        "type": "function",
        "function": {
            "name": f"{verb}_{noun}",
            "description": f"Use this to {verb} a {noun} by its number.",
            "parameters": {
                "type": "object",
                "properties": {"number": {"type": "integer"}, "reason": {"type": "string"}},
                "required": ["number"],
            },
        },
    }
    for verb in ("find", "open", "close", "move")
    for noun in ("ticket", "order", "parcel", "invoice", "account")
]


def main() -> None:
    """Measure, print the tables, and put them into the page if that is wanted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    parser.add_argument("--without-model", action="store_true", help="start no server")
    parser.add_argument("--image", action="store_true", help="say what an image holds up, no more")
    arguments = parser.parse_args()
    if arguments.image:
        print(asyncio.run(image()))  # noqa: T201
        return
    lines = list(own_work())
    if not arguments.without_model:
        lines += ["", *asyncio.run(told())]
    table = "\n".join(lines)
    print(table)  # noqa: T201
    if arguments.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        _, found, after = rest.partition(END)
        if not found:
            raise SystemExit(f"{PAGE} has no {END}")
        PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")


def own_work() -> Iterator[str]:
    """What is done here, in milliseconds of processor time."""
    yield from head("processor ms, median / p99", SIZES)
    cells = [[timed(call) for call in calls(size).values()] for size in SIZES]
    for name, *row in zip(calls(1), *cells, strict=True):
        yield f"| {name} | {' | '.join(row)} |"


def head(what: str, sizes: Sequence[int]) -> list[str]:
    """The first two lines of a table that has a column a length."""
    names = " | ".join(f"{size:,} tokens" for size in sizes)
    return [f"| {what} of {ROUNDS} | {names} |", "|---|" + "---|" * len(sizes)]


def calls(size: int) -> dict[str, Callable[[], object]]:
    """What is timed, for a prompt of so many tokens."""
    drawn = random.Random(0)  # noqa: S311
    ids = [drawn.randrange(150_000) for _ in range(size)]
    answer, packed = ids[:ANSWER_TOKENS], array("I", ids)
    request = conversation(size)
    rendered = rendering(request)
    grown, chain = Chained.of_ids(ids, block=16), chain_of_ids(ids, block=16)
    other = chain_of_ids([*ids[: size - 20], 0, *ids[size - 20 :]], block=16)
    known = Fingerprints()
    known.of(request, tokens_per_byte=0.25)
    return {
        "chain of token ids, blocks of 16": lambda: chain_of_ids(ids, block=16),
        "the same, ids in an array": lambda: chain_of_ids(packed, block=16),
        "chain of token ids, blocks of 1": lambda: chain_of_ids(ids, block=1),
        f"an answer of {ANSWER_TOKENS} tokens behind it": lambda: grown.with_ids(answer),
        "what two chains share": lambda: chain.shared_blocks(other),
        "canonical rendering": lambda: rendering(request),
        "chain of the rendering": lambda: chain_of_text(rendered, tokens_per_byte=0.25),
        "fingerprint, all of it new": lambda: Fingerprints().of(request, tokens_per_byte=0.25),
        "fingerprint, all of it seen before": lambda: known.of(request, tokens_per_byte=0.25),
    }


async def told() -> list[str]:
    """What the model's server says, and how long that takes; milliseconds."""
    lines = head("ms, least / median / p99", ASKED)
    async with small_model() as tokenizer:
        requests, tenants = [conversation(size) for size in ASKED], count()
        rows: dict[str, Callable[[ChatRequest], Awaitable[object]]] = {
            "token ids of the prompt, all of it new": lambda asked: tokenizer.ids(
                replace(asked, tenant=f"t-{next(tenants)}")  # one tenant's pieces are not another's
            ),
            "the same, all but its end seen before": tokenizer.ids,
            "their number alone": tokenizer.count,
            f"token ids of an answer of {ANSWER_TOKENS}": lambda _: tokenizer.text_ids(
                prose()[: ANSWER_TOKENS * BYTES_PER_TOKEN]
            ),
        }
        for name, call in rows.items():
            cells = [await timed_answer(call, request) for request in requests]
            lines.append(f"| {name} | {' | '.join(cells)} |")
        lines += ["", "| prompt | bytes of its rendering | tokens | tokens a byte |"]
        lines.append("|---|---|---|---|")
        for name, request in kinds().items():
            size, tokens = len(rendering(request)), await tokenizer.count(request)
            if tokens is None:
                raise SystemExit(f"the server did not count {name} in time")
            lines.append(f"| {name} | {size:,} | {tokens:,} | {tokens / size:.3f} |")
    return lines


async def image() -> str:
    """What reading a large image takes, and for how long it keeps others from their turn."""
    data = base64.b64encode(random.Random(0).randbytes(IMAGE_BYTES)).decode()  # noqa: S311
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    request = asked({"role": "user", "content": [part]})
    reader, took, held = Reader(), [], []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        reading = asyncio.create_task(reader.read(request, [], counted=()))
        longest = 0.0
        while not reading.done():
            turn = time.perf_counter()
            await asyncio.sleep(0)
            longest = max(longest, time.perf_counter() - turn)
        took.append(time.perf_counter() - began)
        held.append(longest)
    return (
        f"an image of {IMAGE_BYTES:,} bytes: {shown(took)} ms, median / p99 of {ROUNDS}; "
        f"others wait {shown(held)} ms at most"
    )


@asynccontextmanager
async def small_model() -> AsyncIterator[Tokenizer]:
    """The tokenizer of the embedded small model's server."""
    ensure(lookup(MODEL), home())
    with tempfile.TemporaryDirectory() as folder:
        models_folder(Path(folder)).symlink_to(models_folder(home()))
        launch = Launch(tier="small", model=MODEL, context=16_384, slots=1, threads=1)
        fleet = prepare([launch], Path(folder))
        await fleet.start()
        server = fleet.servers["small"]
        backend = OpenAIHttpBackend(
            url=f"{server.url}/v1", model=MODEL, api_key=server.api_key, tokenizer="llama_cpp"
        )
        try:
            if backend.tokenizer is None:
                raise AssertionError("it was made with a tokenizer")
            yield backend.tokenizer
        finally:
            await backend.aclose()
            await fleet.stop()


def conversation(tokens: int) -> ChatRequest:
    """Tools, rules and turns of about so many tokens."""
    text = prose()[: tokens * BYTES_PER_TOKEN]
    pieces = [text[start : start + 2_000] for start in range(0, len(text), 2_000)]
    turns = [
        {"role": "assistant" if at % 2 else "user", "content": piece}
        for at, piece in enumerate(pieces)
    ]
    return asked({"role": "system", "content": "Answer from the text."}, *turns, tools=TOOLS[:2])


def kinds() -> dict[str, ChatRequest]:
    """Prompts of the kinds that there are."""
    code = "\n".join(path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("cascade/*.py")))
    question = {"role": "user", "content": "What is 347 * 892?"}
    return {
        "a question of 18 characters": asked(question),
        "the same with 20 tools": asked(question, tools=TOOLS),
        "English prose": asked({"role": "user", "content": prose()[:30_000]}),
        "Python": asked({"role": "user", "content": code[:30_000]}),
        "Korean prose": asked({"role": "user", "content": KOREAN * 40}),
    }


def asked(*messages: dict[str, Any], tools: Sequence[dict[str, Any]] | None = None) -> ChatRequest:
    """A request."""
    return ChatRequest(id="b", messages=messages, tools=tools)


def prose() -> str:
    """Our own documents, over and over."""
    pages = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))]
    text = "\n".join(pages)
    return text * (SIZES[-1] * BYTES_PER_TOKEN // len(text) + 1)


def timed(call: Callable[[], object]) -> str:
    """Median and 99th percentile of a call."""
    call()
    seconds = []
    gc.disable()
    for _ in range(ROUNDS):
        began = time.process_time()
        call()
        seconds.append(time.process_time() - began)
    gc.enable()
    return shown(seconds)


async def timed_answer(call: Callable[[ChatRequest], Awaitable[object]], asked: ChatRequest) -> str:
    """Least, median and 99th percentile of what a server is asked."""
    seconds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        answer = await call(asked)
        seconds.append(time.perf_counter() - began)
        if answer is None:
            raise SystemExit("the server did not answer in time")
    return f"{min(seconds) * 1e3:.3g} / {shown(seconds)}"


def shown(seconds: Sequence[float]) -> str:
    """Median and 99th percentile, in milliseconds."""
    p99 = statistics.quantiles(seconds, n=100)[98]
    return f"{statistics.median(seconds) * 1e3:.3g} / {p99 * 1e3:.3g}"


if __name__ == "__main__":
    main()
