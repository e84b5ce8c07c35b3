"""Amounts as people type them: a GB has 10^9 bytes, a GiB 2^30, a Gbit 10^9 / 8."""

import re
from typing import Any, Final

import click

_NUMBER: Final = re.compile(
    r"\s*((?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*([A-Za-z]*)\s*"
)
_MEGA, _GIGA = 10**6, 10**9
_BYTES: Final = {
    "": 1.0,
    "B": 1.0,
    **{f"{prefix}B": 10.0 ** (3 * i) for i, prefix in enumerate("kMGT", start=1)},
    "KB": 1e3,
    **{f"{prefix}iB": 2.0 ** (10 * i) for i, prefix in enumerate("KMGT", start=1)},
    **{f"{prefix}bit": 10.0 ** (3 * i) / 8 for i, prefix in enumerate("kMGT", start=1)},
}
_SECONDS: Final = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
_SPAN: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Amount(click.ParamType[float]):
    """A number with a unit, taken as a multiple of the base unit.

    Args:
        name: how help calls it.
        units: what each unit is in the base unit; "" is a number without one.
        per: what may follow, as the "/s" of a speed.
    """

    def __init__(self, name: str, units: dict[str, float], per: str = "") -> None:
        self.name = name
        self._units = units
        self._per = per

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number in the base unit; anything else fails with the units there are."""
        if isinstance(value, float):
            return value
        match = _NUMBER.fullmatch(str(value).removesuffix(self._per))
        if match is None or match[2] not in self._units:
            known = ", ".join(f"{unit}{self._per}" for unit in self._units if unit)
            self.fail(f"{value!r} is no {self.name}; write a number and one of {known}", param, ctx)
        return float(match[1].replace(",", "")) * self._units[match[2]]


SIZE: Final = Amount("size", _BYTES)
SPEED: Final = Amount("speed", _BYTES, per="/s")
SECONDS: Final = Amount("time", _SECONDS)
SPAN: Final = Amount("time span", _SPAN)


def size(amount: float) -> str:
    """Bytes in both counts, which are easily taken for each other: 10.74 GB = 10 GiB."""
    if amount < _MEGA:
        return f"{amount:,.0f} bytes"
    if amount < _GIGA:
        return f"{amount / 1e6:.4g} MB = {amount / 2**20:.4g} MiB"
    return f"{amount / 1e9:,.4g} GB = {amount / 2**30:,.4g} GiB"


def seconds(amount: float) -> str:
    """A time in the unit that leaves the fewest zeros."""
    return f"{amount:.4g} s" if amount >= 1 else f"{1000 * amount:.4g} ms"
