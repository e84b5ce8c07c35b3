"""The servers whose caches are predicted: the embedded model, launched here, or a running vLLM.

A tier is wired as the service wires it, so its cache card is what a user gets.
"""

import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import aiohttp

from cascade.errors import ConfigError
from cascade.snapshot import Snapshot
from serving.config import Config, ConfigFile
from serving.models.catalogue import lookup
from serving.models.fetch import ensure
from serving.models.fleet import prepare
from serving.models.home import home, models_folder
from serving.wiring import Wiring, launches

DEFAULT: Final = Path(__file__).parents[2] / "cascade.yaml"
PRICE: Final = {"input": 0.02, "cache_read": 0.002, "output": 0.04}
"""Of the default's small model, dollars per million tokens."""

_CACHE: Final = re.compile(r"^vllm:cache_config_info\{(.*)\}", re.MULTILINE)
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')


@asynccontextmanager
async def embedded(tier: str, config: Path = DEFAULT) -> AsyncIterator[Snapshot]:
    """One launched tier of a configuration, its model server running, and nothing else of it."""
    file = ConfigFile(config)
    only = Config(tiers={tier: file.config.tiers[tier]})
    # One thread is enough where nothing is timed, and does not crawl beside other programs.
    wanted = [replace(launch, threads=1) for launch in launches(only)]
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for launch in wanted:
            ensure(lookup(launch.model), home())
        models_folder(folder).symlink_to(models_folder(home()))
        fleet = prepare(wanted, folder)
        stack.push_async_callback(fleet.stop)
        await fleet.start()
        addresses = {
            name: {"url": f"{server.url}/v1", "api_key": server.api_key}
            for name, server in fleet.servers.items()
        }
        yield Wiring(only, config.parent, addresses).snapshot()


async def running_vllm(url: str) -> Snapshot:
    """A vLLM server as the one tier of a configuration; it says itself how its cache is made.

    Args:
        url: base address that ends in /v1.

    Raises:
        ConfigError: it cannot be asked, or does not say how its cache is made.
    """
    base = url.rstrip("/").removesuffix("/v1")
    try:
        async with aiohttp.ClientSession(raise_for_status=True) as session:
            async with session.get(f"{base}/v1/models") as response:
                model = (await response.json())["data"][0]["id"]
            async with session.get(f"{base}/metrics") as response:
                metrics = await response.text()
    except aiohttp.ClientError as error:
        raise ConfigError(f"{base} cannot be asked what it serves: {error}") from error
    tier: dict[str, Any] = {
        "backend": "openai_http",
        "url": f"{base}/v1",
        "model": model,
        "tokenizer": "vllm",
        "cache": cache_of(metrics),
        "price": PRICE,
    }
    config = Config.model_validate({"tiers": {model: tier}})
    return Wiring(config, DEFAULT.parent, {}).snapshot()


def cache_of(metrics: str) -> dict[str, int]:
    """A tier's `cache` entry, by what its vLLM publishes about itself.

    Raises:
        ConfigError: it publishes nothing of the kind.
    """
    found = _CACHE.search(metrics)
    labels = dict(_LABEL.findall(found[1])) if found else {}
    try:
        block, count = int(labels["block_size"]), int(labels["num_gpu_blocks"])
    except (KeyError, ValueError):
        raise ConfigError(
            "the server's vllm:cache_config_info does not say what it holds"
        ) from None
    # One of the blocks never holds anything: vLLM pads with it.
    return {"blocks": block, "capacity_tokens": (count - 1) * block}
