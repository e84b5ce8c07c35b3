"""Starts embedded models for tests, fetching them first; a model that cannot be had is an error."""

import asyncio
import contextlib
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from serving.models.catalogue import lookup
from serving.models.fetch import ensure
from serving.models.fleet import prepare
from serving.models.home import home, models_folder
from serving.models.launch import Launch
from serving.models.supervisor import ModelServer

SMALL = "qwen2.5-coder-0.5b"
LARGE = "qwen2.5-coder-1.5b"


@contextlib.contextmanager
def running(
    model: str = SMALL, *, context: int = 2048, slots: int = 2, threads: int | None = None
) -> Iterator[ModelServer]:
    """A supervised model server that is healthy; its url and api_key say how to talk to it.

    The model file comes from the home folder, where the first run leaves it; log and run file go
    to a folder of their own, so that a service running at the same time is left alone. It has its
    own thread and event loop and serves tests of any loop.
    """
    ensure(lookup(model), home())
    with tempfile.TemporaryDirectory() as name, _loop() as loop:
        models_folder(Path(name)).symlink_to(models_folder(home()))
        launch = Launch(tier="tested", model=model, context=context, slots=slots, threads=threads)
        fleet = prepare([launch], Path(name))
        asyncio.run_coroutine_threadsafe(fleet.start(), loop).result()
        try:
            yield fleet.servers["tested"]
        finally:
            asyncio.run_coroutine_threadsafe(fleet.stop(), loop).result()


@contextlib.contextmanager
def _loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
