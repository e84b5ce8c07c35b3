"""How much each of a model's servers has to do, as far as the one who asks them knows.

A request counts from when it is assigned, not from when it is sent: else all that arrive in one
moment find the same server idle.
"""

from collections.abc import Collection, Sequence

from cascade.backends.replica_choice import Candidate, Prompt, Rule
from cascade.sight import Seen


class Loads:
    """Assigns requests to servers and keeps count of them.

    Args:
        names: the servers, in order.
        rule: how one is chosen.
    """

    def __init__(self, names: Sequence[str], rule: Rule) -> None:
        self._names = names
        self._rule = rule
        self._in_flight = dict.fromkeys(names, 0)
        self._pending = dict.fromkeys(names, 0)

    def assign(self, prompt: Prompt, seen: Seen, leave_out: Collection[str] = ()) -> "Assigned":
        """A server for the request, which counts from now on.

        Args:
            prompt: what the rule knows of the request.
            seen: what is warm of it where.
            leave_out: servers not to ask; others must be left.
        """
        candidates = [
            Candidate(
                name=name,
                in_flight=self._in_flight[name],
                pending_tokens=self._pending[name],
                warm_tokens=seen.warm_tokens.get(name, 0),
                victim_age_seconds=seen.victim_age_seconds.get(name),
            )
            for name in self._names
            if name not in leave_out
        ]
        chosen = self._rule.choose(prompt, candidates)
        cold = max(prompt.tokens - chosen.warm_tokens, 0)
        self._in_flight[chosen.name] += 1
        self._pending[chosen.name] += cold
        return Assigned(self, chosen.name, cold)

    def in_flight(self, name: str) -> int:
        """Requests assigned to a server that have not ended."""
        return self._in_flight[name]

    def computed(self, name: str, tokens: int) -> None:
        """So many prompt tokens are not pending any more."""
        self._pending[name] -= tokens

    def left(self, name: str) -> None:
        """A request ended."""
        self._in_flight[name] -= 1


class Assigned:
    """A request that a server has been chosen for.

    Attributes:
        name: the server.
    """

    def __init__(self, loads: Loads, name: str, cold_tokens: int) -> None:
        self.name = name
        self._loads = loads
        self._cold_tokens = cold_tokens

    def began(self) -> None:
        """Its answer began: the prompt is computed. Once is enough; more do no harm."""
        self._loads.computed(self.name, self._cold_tokens)
        self._cold_tokens = 0

    def ended(self) -> None:
        """It is over, however. To be called once."""
        self.began()
        self._loads.left(self.name)
