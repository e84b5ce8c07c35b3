"""Sends every case through the whole service to a server that writes down what arrives.

Each case is two requests that differ in one thing. What differs between the two that arrive says
what became of it.
"""

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson
from aiohttp import web

from cascade.backends.litellm_api import LitellmBackend
from cascade.backends.openai_http import OpenAIHttpBackend
from cascade.protocols import Backend
from cascade.snapshot import Snapshot
from cascade.tiers import ModelTier
from tests import anthropic
from tests.compatibility.case import MARK, Body, Case, Endpoint
from tests.engines import KNOWS
from tests.services import running
from tests.upstream import DONE, Upstream, serving, words

BACKENDS = {
    "openai_http": "openai_http",
    "litellm_api, OpenAI-style": "openai/m",
    "litellm_api, Anthropic": "anthropic/claude-sonnet-4-6",
}
_ALL = " that accepts all"
_USAGE = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
_ANTHROPIC_USAGE = {"input_tokens": 9, "output_tokens": 1}

_EVERYWHERE = {"messages", "tools"}
"""Fields that are in every request; that something became part of them says little."""

Flat = dict[tuple[str | int, ...], Any]


@dataclass(frozen=True, kw_only=True)
class Fate:
    """What became of a case on its way to one backend.

    Attributes:
        kind: "passed", "translated", "partly", "left out" or "refused".
        into: the fields that it became, where it was translated.
    """

    kind: str
    into: tuple[str, ...] = ()


@dataclass
class Recorder(Upstream):
    """Answers as OpenAI or Anthropic would, streamed or not as it is asked."""

    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "text/event-stream"})

    async def handle(self, http: web.Request) -> web.StreamResponse:
        streamed = orjson.loads(await http.read()).get("stream")
        anthropics = http.path.endswith("/messages")
        kind = "text/event-stream" if streamed else "application/json"
        self.headers = {"Content-Type": kind}
        if streamed:
            told = anthropic.message("ok", usage=_ANTHROPIC_USAGE)
            self.pieces = told if anthropics else [*words("ok", usage=_USAGE), DONE]
        else:
            self.pieces = [orjson.dumps(_MESSAGE if anthropics else _COMPLETION)]
        return await super().handle(http)


_COMPLETION = {
    "model": "m-1",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
    ],
    "usage": _USAGE,
}
_MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-1",
    "content": [{"type": "text", "text": "ok"}],
    "stop_reason": "end_turn",
    "usage": _ANTHROPIC_USAGE,
}


class Probe:
    """A running service in front of the recorder."""

    def __init__(self, url: str, recorder: Recorder, session: aiohttp.ClientSession) -> None:
        self._url = url
        self._recorder = recorder
        self._session = session
        self._said = ""
        self._plain: dict[tuple[str, str, str], Body | None] = {}

    async def fates(self, endpoint: Endpoint, case: Case, backend: str) -> list[Fate]:
        """What became of it; of bound content also where the tier accepts that, if it differs."""
        tiers = [backend, backend + _ALL] if case.bound else [backend]
        fates = [await self._fate(endpoint, case, tier) for tier in tiers]
        return fates[:1] if len(set(fates)) == 1 else fates

    async def _fate(self, endpoint: Endpoint, case: Case, tier: str) -> Fate:
        before = {**endpoint.body, **case.beside}
        after = {**before, **case.adds}
        plain = await self._baseline(endpoint, before, tier)
        arrived = await self._arrived(endpoint, after, tier)
        if plain is None or arrived is None:
            named = _words({**case.beside, **case.adds}) & _words(self._said)
            assert named, f"{case.name} is refused without being named: {self._said}"
            return Fate(kind="refused")
        sent, came = _more(before, after), _more(plain, arrived)
        if came and sent.items() <= _flat(arrived).items():
            return Fate(kind="passed")
        if not came and not _more(arrived, plain):
            return Fate(kind="left out")
        into = {str(path[0]) for path in came if came[path] != sent.get(path)} - _EVERYWHERE
        kind = "translated" if _marks(sent) <= _marks(came) else "partly"
        return Fate(kind=kind, into=tuple(sorted(into)))

    async def _baseline(self, endpoint: Endpoint, body: Body, tier: str) -> Body | None:
        key = (endpoint.path, tier, json.dumps(body, sort_keys=True))
        if key not in self._plain:
            self._plain[key] = await self._arrived(endpoint, body, tier)
        return self._plain[key]

    async def _arrived(self, endpoint: Endpoint, body: Body, tier: str) -> Body | None:
        """The body that reached the model; None where the request was refused with a 400."""
        self._recorder.bodies.clear()
        async with self._session.post(
            self._url + endpoint.path, json={**body, "model": tier}
        ) as response:
            self._said = await response.text()
        asked = f"{endpoint.path} {body} for {tier}: {self._said}"
        if response.status == 400:
            assert not self._recorder.bodies, f"refused after the model was asked: {asked}"
            return None
        assert response.status == 200, asked
        assert len(self._recorder.bodies) == 1, f"not asked once: {asked}"
        return self._recorder.bodies[0]


@asynccontextmanager
async def probing() -> AsyncIterator[Probe]:
    """A service over every backend, each once plain and once accepting all bound content."""
    async with serving(Recorder()) as recorder:
        tiers = {
            name + accepts: ModelTier(
                name=name + accepts,
                backend=_backend(model, recorder.url),
                accepts=KNOWS if accepts else frozenset(),
            )
            for name, model in BACKENDS.items()
            for accepts in ("", _ALL)
        }
        async with running(_snapshot(tiers)) as service, aiohttp.ClientSession() as session:
            yield Probe(service.url, recorder, session)
            for tier in tiers.values():
                await tier.backend.aclose()


def _snapshot(tiers: Mapping[str, ModelTier]) -> Snapshot:
    return Snapshot(version="v1", tiers=dict(tiers), judges={})


def _backend(model: str, url: str) -> Backend:
    if model == "openai_http":
        return OpenAIHttpBackend(url=url, model="m")
    address = url.removesuffix("/v1") if model.startswith("anthropic/") else url
    return LitellmBackend(model=model, url=address, api_key="k")


def _more(less: Any, more: Any) -> Flat:
    """The leaves of the second that the first does not have, by their path."""
    known = _flat(less)
    return {
        path: value
        for path, value in _flat(more).items()
        if path not in known or known[path] != value
    }


def _flat(value: Any, path: tuple[str | int, ...] = ()) -> Flat:
    items: Any = ()
    if isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)
    leaves: Flat = {}
    for step, inner in items:
        leaves |= _flat(inner, (*path, step))
    return leaves or {path: value if not items else None}


def _words(said: Any) -> set[str]:
    return set(re.findall(r"\w+", json.dumps(said)))


def _marks(leaves: Flat) -> set[str]:
    return {
        mark
        for value in leaves.values()
        if isinstance(value, str)
        for mark in re.findall(rf"{MARK}\w*", value)
    }
