"""Fetches a model file from the Hugging Face hub, or from a mirror that speaks its addresses.

The hub is often out of reach (company networks, build machines), so an attempt to connect is short;
and the files are large, so a download that breaks is taken up where it broke.
"""

import asyncio
import os
from pathlib import Path

import aiohttp

from serving.models.catalogue import Model
from serving.models.sources import Progress, SourceError, size_of

_HUB = "https://huggingface.co"
_CHUNK_BYTES = 1 << 20
_PARTIAL_CONTENT = 206


class Hub:
    """The Hugging Face hub.

    Args:
        endpoint: address of the hub or a mirror; HF_ENDPOINT, else the public hub, where None.
        connect_seconds: for the connection, name look-up included.
        read_seconds: longest silence while the file comes.
        pause_seconds: before a broken download is taken up again.
    """

    name = "Hugging Face hub"

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        connect_seconds: float = 3.0,
        read_seconds: float = 30.0,
        pause_seconds: float = 1.0,
    ) -> None:
        self._endpoint = (endpoint or os.environ.get("HF_ENDPOINT") or _HUB).rstrip("/")
        self._timeout = aiohttp.ClientTimeout(
            total=None, connect=connect_seconds, sock_read=read_seconds
        )
        self._pause = pause_seconds

    def space_bytes(self, model: Model, folder: Path) -> int:
        """What is still to come."""
        return max(0, model.size_bytes - size_of(_partial(model, folder)))

    def fetch(self, model: Model, folder: Path, progress: Progress) -> Path:
        """Download, taking up what an earlier call left."""
        partial = _partial(model, folder)
        if size_of(partial) > model.size_bytes:
            partial.unlink()
        asyncio.run(self._download(model, partial, progress))
        return partial

    async def _download(self, model: Model, partial: Path, progress: Progress) -> None:
        """Ask again for as long as each attempt brings the file further."""
        async with aiohttp.ClientSession(timeout=self._timeout, trust_env=True) as session:
            while (before := size_of(partial)) < model.size_bytes:
                broken: Exception | None = None
                try:
                    await self._attempt(session, model, partial, progress)
                except (aiohttp.ClientError, TimeoutError) as error:
                    broken = error
                if size_of(partial) <= before:
                    reason = str(broken) or "no answer in time"
                    raise SourceError(f"{self._endpoint}: {reason}") from broken
                if broken is not None:
                    await asyncio.sleep(self._pause)

    async def _attempt(
        self, session: aiohttp.ClientSession, model: Model, partial: Path, progress: Progress
    ) -> None:
        url = f"{self._endpoint}/{model.repository}/resolve/main/{model.file}"
        start = size_of(partial)
        headers = {"Accept-Encoding": "identity"}
        if start:
            headers["Range"] = f"bytes={start}-"
        async with session.get(url, headers=headers) as response:
            start = _accept(response, model, start)
            with partial.open("r+b" if start else "wb") as file:
                file.seek(start)
                async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                    file.write(chunk)
                    if file.tell() > model.size_bytes:
                        raise SourceError(f"{response.url.host} sends more than the file")
                    progress(f"{model.key}: from the hub", file.tell(), model.size_bytes)


def _partial(model: Model, folder: Path) -> Path:
    return folder / f"{model.file}.partial"


def _accept(response: aiohttp.ClientResponse, model: Model, start: int) -> int:
    """Where in the file the body begins; refuses what is not this file, such as a log-in page."""
    if not response.ok:
        raise SourceError(f"{response.url.host} answers {response.status} {response.reason}")
    whole: int | None
    if response.status == _PARTIAL_CONTENT:
        span, _, total = response.headers.get("Content-Range", "").partition("/")
        if not span.startswith(f"bytes {start}-"):
            raise SourceError(f"{response.url.host} sent another part of the file than asked for")
        whole = int(total) if total.isdigit() else model.size_bytes
    else:
        start, whole = 0, response.content_length
    if whole not in {None, model.size_bytes}:
        raise SourceError(
            f"{response.url.host} has a file of {whole} bytes, not {model.size_bytes}"
        )
    return start
