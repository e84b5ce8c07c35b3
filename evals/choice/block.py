"""A tuned setting as the block of cascade.yaml that runs it, printed or put into the file."""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from cascade.errors import ConfigError
from evals.choice.goals import ChoiceError
from evals.files import write_whole
from evals.frontier.cascades import Cascade
from evals.frontier.policies import ALWAYS
from evals.frontier.replayed import Replayed
from evals.frontier.utility import Utility
from serving.commands.options import load, wire

Block = Mapping[str, Any]

RUN: Final = ("utility", "cascade", "classifier")
"""Policies that the service has."""
MARK: Final = "tuned:"
"""What the remarks above a block begin with, by which they are known."""
_SECTION: Final = re.compile(r"^policies:\s*(#.*)?$")
_CHILD: Final = re.compile(r"^( +)([^\s#][^:]*):")


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What the block calls what the table's columns came from.

    Attributes:
        policy: the name of the policy.
        judge: whose scores the table holds.
        estimator: whose predictions.
    """

    policy: str
    judge: str
    estimator: str


def block(policy: Replayed, knob: float, tiers: Sequence[str], names: Names) -> Block:
    """The policy as the configuration has it.

    Args:
        policy: one that was replayed.
        knob: its setting.
        tiers: of the table.
        names: of the judge and the estimator.

    Raises:
        ChoiceError: the service has no policy that decides like this one.
    """
    if policy.name.startswith(ALWAYS):
        return {"type": "fixed", "tier": policy.name.removeprefix(ALWAYS)}
    if isinstance(policy, Cascade):
        return _ladder(policy, knob, tiers, names)
    if isinstance(policy, Utility):
        return _weighing(policy.known.judged(), knob, tiers, names)
    if policy.name == "classifier":  # its knob is the quality that a dollar must bring
        return _weighing((), math.inf if knob <= 0.0 else 1.0 / knob, tiers, names)
    raise ChoiceError(
        f"no policy of the service decides as {policy.name} does, so there is nothing to write "
        f"into cascade.yaml; these can be run: {', '.join(RUN)}"
    )


def yaml(name: str, found: Block, remarks: Sequence[str] = (), indent: str = "  ") -> str:
    """The block as lines of YAML, to stand under `policies:`."""
    lines = [f"{indent}# {remark}" for remark in remarks]
    return "\n".join([*lines, f"{indent}{name}:", *_lines(found, indent * 2), ""])


def put(path: Path, name: str, found: Block, remarks: Sequence[str] = ()) -> None:
    """Write the block into a file, all of it or nothing.

    In a configuration it is put under `policies:`, in place of one of that name, everything else
    staying as it is, and only if the whole can work as `cascade config check` understands it. A
    file that is not there is made with the block alone.

    Raises:
        ChoiceError: the file has no section of policies that could be added to.
        ConfigError: the configuration could not work with it; says why.
        ResultFileError: it cannot be written.
    """
    if not path.exists():
        write_whole(path, f"policies:\n{yaml(name, found, remarks)}")
        return
    content = _inserted(path, name, found, remarks)
    beside = path.with_name(f".{path.name}.tuned")
    write_whole(beside, content)
    try:
        wire(load(beside))
    except ConfigError as error:
        said = error.message.replace(str(beside), str(path))
        raise ConfigError(f"with policy {name} in it: {said}") from None
    finally:
        beside.unlink(missing_ok=True)
    write_whole(path, content)


def _weighing(judged: Collection[int], worth: float, tiers: Sequence[str], names: Names) -> Block:
    if not 0.0 < worth < math.inf:
        raise ChoiceError(
            "the setting pays any price for quality, which no quality_usd stands for; ask for a "
            "little less"
        )
    asked = [
        {"tier": tier} | ({"judge": names.judge} if at in judged else {})
        for at, tier in enumerate(tiers)
    ]
    return {
        "type": "utility",
        "estimator": names.estimator,
        "tiers": asked,
        "quality_usd": worth,
    }


def _ladder(policy: Cascade, knob: float, tiers: Sequence[str], names: Names) -> Block:
    """One threshold for all steps; where it accepts all or nothing, the tier that then answers."""
    if knob <= 0.0:
        return {"type": "fixed", "tier": tiers[policy.judged[0]]}
    if knob > 1.0:
        return {"type": "fixed", "tier": tiers[policy.last]}
    steps = [{"tier": tiers[at], "judge": names.judge, "accept_at": knob} for at in policy.judged]
    return {"type": "ladder", "steps": [*steps, {"tier": tiers[policy.last]}]}


def _lines(found: Block, indent: str) -> Iterator[str]:
    for key, value in found.items():
        if isinstance(value, list):
            yield f"{indent}{key}:"
            for each in value:
                inside = ", ".join(f"{k}: {_scalar(v)}" for k, v in each.items())
                yield f"{indent}  - {{{inside}}}"
        else:
            yield f"{indent}{key}: {_scalar(value)}"


def _scalar(value: Any) -> str:
    """A name or a number; YAML takes 1e-05 for a text, so numbers are written out."""
    if isinstance(value, float):
        return format(Decimal(repr(value)), "f")
    text = str(value)
    return text if re.fullmatch(r"[A-Za-z_][\w.-]*", text) else f'"{text}"'


def _inserted(path: Path, name: str, found: Block, remarks: Sequence[str]) -> str:
    """The file's text with the block in it."""
    lines = path.read_text(encoding="utf-8").splitlines()
    start = next((at for at, line in enumerate(lines) if _SECTION.match(line)), None)
    if start is None:
        raise ChoiceError(
            f"{path}: there is no line `policies:` with policies below it to put this under; "
            "without --write the block is printed"
        )
    end = _end(lines, start + 1, "")
    indent = next(
        (match[1] for line in lines[start + 1 : end] if (match := _CHILD.match(line))), "  "
    )
    text = yaml(name, found, remarks, indent).rstrip("\n").split("\n")
    entry = re.compile(rf"^{indent}['\"]?{re.escape(name)}['\"]?\s*:")
    old = next((at for at in range(start + 1, end) if entry.match(lines[at])), None)
    if old is None:
        lines[end:end] = text
    else:
        lines[_remarks(lines, old, indent) : _end(lines, old + 1, indent)] = text
    return "\n".join(lines) + "\n"


def _end(lines: Sequence[str], start: int, indent: str) -> int:
    """The line after the last one that is deeper than the indent."""
    end = start
    for at in range(start, len(lines)):
        line = lines[at]
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if len(line) - len(line.lstrip()) <= len(indent):
            break
        end = at + 1
    return end


def _remarks(lines: Sequence[str], at: int, indent: str) -> int:
    """The first of the remarks that an earlier block of ours begins with."""
    while lines[at - 1].startswith(f"{indent}# {MARK}"):
        at -= 1
    return at
