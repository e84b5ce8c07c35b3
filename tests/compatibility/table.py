"""Writes what the probes found as docs/compatibility.md."""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from tests.compatibility.case import Case, Endpoint
from tests.compatibility.chat import CHAT
from tests.compatibility.messages import MESSAGES
from tests.compatibility.probe import BACKENDS, Fate, Probe, probing
from tests.compatibility.responses import RESPONSES

FILE = Path(__file__).parents[2] / "docs" / "compatibility.md"
COMMAND = "python -m tests.compatibility"
ENDPOINTS = (CHAT, MESSAGES, RESPONSES)

_HEAD = f"""\
# What becomes of each request field

`{COMMAND}` writes this page. It sends every field through the service to a
server that writes down what arrives, and compares that with what arrives without the field. A test
does the same and fails when this page says something else.

| word | meaning |
|---|---|
| passed | arrives as it was sent |
| → `name` | translated: arrives as `name` |
| translated | arrives where it belongs in the provider's shape of messages and tools |
| …, in part | the same, and some of it does not arrive |
| 400 | refused before the model is asked; the error says what is not taken |
| left out | not sent on, and the request is answered without it |
| Cascade | answered by Cascade itself |

`openai_http` is any server with OpenAI's API, vLLM and llama.cpp among them; whether that server
does something with a field is up to it. `litellm_api` is asked once for a provider with OpenAI's
API and once for Anthropic. Where a semicolon stands between two words, the content is bound to one
provider: the second word holds where the tier's `accepts` names that content. `unheard_of` stands
for any field that Cascade does not know.
"""


async def page() -> str:
    """The whole page."""
    async with probing() as probe:
        tables = [await _table(probe, endpoint) for endpoint in ENDPOINTS]
    packages = ", ".join(f"{name} {version(name)}" for name in ("litellm", "openai", "anthropic"))
    return "\n".join([_HEAD, f"Found with {packages}.", *tables]) + "\n"


async def _table(probe: Probe, endpoint: Endpoint) -> str:
    lines = [
        f"\n## {endpoint.title}: `POST {endpoint.path}`\n",
        f"| field | {' | '.join(BACKENDS)} |",
        f"|---|{'---|' * len(BACKENDS)}",
    ]
    rows: dict[str, list[str]] = {}
    for case in endpoint.cases:
        cells = [_cell(endpoint, case, await probe.fates(endpoint, case, b)) for b in BACKENDS]
        fate = f"| {' | '.join(cells)} |"
        # Of open servers' many fields, those with the same fate share a row.
        row = rows.setdefault(fate if case.servers else f"{case.name} {fate}", [fate])
        row.append(_named(case))
    lines += [f"| {', '.join(names)} {fate}" for fate, *names in rows.values()]
    return "\n".join(lines)


def _named(case: Case) -> str:
    """Its name, as code where it is a field's."""
    field, comma, rest = case.name.partition(",")
    is_field = field.partition(".")[0] in case.adds
    return f"`{field}`{comma}{rest}" if is_field else case.name


def _cell(endpoint: Endpoint, case: Case, fates: Sequence[Fate]) -> str:
    if set(case.adds) <= endpoint.own and case.name in endpoint.own | {"stream_options"}:
        return "Cascade" if {fate.kind for fate in fates} == {"left out"} else _words(fates)
    return _words(fates)


def _words(fates: Sequence[Fate]) -> str:
    return "; ".join(map(_word, fates))


def _word(fate: Fate) -> str:
    if fate.kind == "refused":
        return "400"
    if fate.kind not in {"translated", "partly"}:
        return fate.kind
    into = ", ".join(f"`{name}`" for name in fate.into)
    return (f"→ {into}" if into else "translated") + (", in part" if fate.kind == "partly" else "")
