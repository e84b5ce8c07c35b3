"""Several servers of one model as one backend: a rule chooses which is asked.

The servers' caches are apart, so the choice decides whether a prompt's beginning is warm. A server
that cannot be asked is passed over, as long as nothing was paid for and no text came.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from hashlib import blake2b

import orjson

from cascade.answers import is_answer
from cascade.backends.replica_choice import Prompt, RuleName, rule_of
from cascade.backends.replica_load import Assigned, Loads
from cascade.errors import BackendBusyError, BackendCoolingDownError, BackendError, ConfigError
from cascade.protocols import Backend
from cascade.sight import Look, Seen, Sight
from cascade.types import ChatRequest, Chunk

_OPENING_ROLES = frozenset({"system", "developer"})


def always_well() -> bool:
    """Of a server that is never left alone."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One of the servers.

    Attributes:
        backend: asks it, with whatever guards it.
        cooling: whether it is being left alone for now.
    """

    backend: Backend
    cooling: Callable[[], bool] = always_well


class ReplicasBackend(Backend):
    """One model on several servers.

    Args:
        replicas: by name; chunks and completions carry the name of the one that answers.
        rule: how one is chosen; without one by the session, and, once somebody says what is warm
            where, for even shares and warm prompts.

    Raises:
        ConfigError: there is no server.
    """

    def __init__(self, replicas: Mapping[str, Replica], *, rule: RuleName | None = None) -> None:
        if not replicas:
            raise ConfigError("there is no server to ask", param="replicas")
        self._replicas = dict(replicas)
        self._rule = rule
        self._look: Look | None = None
        self._choose_by("session" if rule is None or rule_of(rule).reads_caches else rule)

    def watch(self, look: Look) -> None:
        """From now on somebody says what is warm where; until then rules that ask it are blind."""
        name = self._rule or "balanced_cache"
        if rule_of(name).reads_caches:
            self._look = look
            self._choose_by(name)

    def _choose_by(self, name: RuleName) -> None:
        self._hashes_openings = name == "prefix_hash"
        self._loads = Loads(list(self._replicas), rule_of(name))

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk]:
        """Ask the server that the rule chooses, and others while none of them takes the request.

        Raises:
            BackendError: the last one's, when none of them can be asked; else that of the one that
                was.
        """
        passed_over: dict[str, BackendError] = {}
        while True:
            assigned = self._assign(request, passed_over)
            backend, begun = self._replicas[assigned.name].backend, False
            try:
                async with aclosing(backend.stream(request)) as chunks:
                    async for chunk in chunks:
                        if is_answer(chunk.choices):
                            begun = True
                            assigned.began()
                        yield _named(chunk, assigned.name)
            except BackendError as error:
                passed_over[assigned.name] = error
                if begun or not _untouched(error) or not self._left(passed_over):
                    raise
            else:
                return
            finally:
                assigned.ended()

    def cooling(self) -> bool:
        """Whether all servers are being left alone, so that a call would fail at once."""
        return all(replica.cooling() for replica in self._replicas.values())

    async def aclose(self) -> None:
        """Release the connections to all servers."""
        for replica in self._replicas.values():
            await replica.backend.aclose()

    def _assign(self, request: ChatRequest, passed_over: Mapping[str, BackendError]) -> Assigned:
        sight = self._look(request, self._replicas) if self._look else None
        # Where the only ones left are cooling down, one of them has to say so, or be probed.
        may_be_asked = self._left(passed_over) or self._unasked(passed_over)
        return self._loads.assign(
            self._prompt(request, sight),
            sight.seen if sight else Seen(),
            leave_out=self._replicas.keys() - may_be_asked,
        )

    def _prompt(self, request: ChatRequest, sight: Sight | None) -> Prompt:
        session = f"{request.tenant}\x1f{request.session or request.id}"
        if sight is None:
            return Prompt(
                session=session, prefix=_opening(request) if self._hashes_openings else ""
            )
        return Prompt(
            session=session,
            prefix=sight.prefix,
            tokens=sight.tokens,
            prefix_tokens=sight.prefix_tokens,
        )

    def _left(self, passed_over: Mapping[str, BackendError]) -> list[str]:
        """Servers that can still be asked."""
        return [n for n in self._unasked(passed_over) if not self._replicas[n].cooling()]

    def _unasked(self, passed_over: Mapping[str, BackendError]) -> list[str]:
        return [name for name in self._replicas if name not in passed_over]


def _untouched(error: BackendError) -> bool:
    """Whether nobody worked for the request, and another server may take it."""
    ours = isinstance(error, BackendBusyError | BackendCoolingDownError)
    return (error.retryable or ours) and not error.may_have_cost


def _named(chunk: Chunk, replica: str) -> Chunk:
    answer = chunk.completion
    named = None if answer is None else replace(answer, replica=replica)
    return replace(chunk, replica=replica, completion=named)


def _opening(request: ChatRequest) -> str:
    """Stands for a tenant's tools and the messages before the conversation begins."""
    opening = []
    for message in request.messages:
        if message.get("role") not in _OPENING_ROLES:
            break
        opening.append(message)
    parts = [request.tenant, request.tools, opening]
    return blake2b(orjson.dumps(parts), digest_size=16).hexdigest()
