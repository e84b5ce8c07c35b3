"""What a client may say about how one request is answered: its limits, a tier, an explanation.

It comes as a `cascade` object in the body (extra_body of the official clients) or as headers; what
the body says wins. It is the same for every API, is checked strictly, since a limit that is
misspelt would be no limit, and never goes to a model.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cascade.errors import RequestError
from cascade.types import Budget

FIELD = "cascade"
"""The body's field."""

PREFIX = "x-cascade-"

MOST_USD = Decimal(1_000_000)
LONGEST_MS = 24 * 60 * 60 * 1000


class Control(BaseModel):
    """Per-request control; None where the client did not say.

    Attributes:
        session: the conversation it belongs to.
        max_cost_usd: what all calls for it may cost together.
        min_quality: the lowest probability of being acceptable at which an answer is taken.
        deadline_ms: from its arrival.
        pin: the tier that answers it, and no other.
        explain: the answer says how it came about.
        prewarm: nobody reads the answer, which is only to leave the prompt in the pinned tier's
            cache.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    session: Annotated[str, Field(min_length=1)] | None = None
    # Not strict: JSON has no decimals, and a float is taken by the digits it is written with.
    max_cost_usd: (
        Annotated[Decimal, Field(strict=False, gt=0, le=MOST_USD, decimal_places=12)] | None
    ) = None
    min_quality: Annotated[float, Field(ge=0, le=1)] | None = None
    deadline_ms: Annotated[float, Field(gt=0, le=LONGEST_MS)] | None = None
    pin: Annotated[str, Field(min_length=1)] | None = None
    explain: bool = False
    prewarm: bool = False

    @property
    def budget(self) -> Budget | None:
        """The limits among it, if any was stated."""
        if (self.max_cost_usd, self.deadline_ms, self.min_quality) == (None, None, None):
            return None
        seconds = None if self.deadline_ms is None else self.deadline_ms / 1e3
        return Budget(dollars=self.max_cost_usd, seconds=seconds, quality=self.min_quality)


_SILENT = Control()
HEADERS = {name: PREFIX + name.replace("_", "-") for name in Control.model_fields}
"""The header of each field."""


def control(data: Mapping[str, Any], headers: Mapping[str, str]) -> Control:
    """What body and headers say about the request; a header only where the body is silent.

    Args:
        data: the body.
        headers: with lower-case names.

    Raises:
        RequestError: naming the field, or the header, at fault.
    """
    told = {name: headers[header] for name, header in HEADERS.items() if headers.get(header)}
    given = data.get(FIELD)
    if given is None:
        return _read(told, from_headers=True) if told else _SILENT
    if not isinstance(given, dict):
        raise RequestError(f"{FIELD}: must be an object", param=FIELD)
    stated = {name: value for name, value in given.items() if value is not None}
    body = _read(stated, from_headers=False)
    rest = {name: value for name, value in told.items() if name not in stated}
    if not rest:
        return body
    return body.model_copy(update=_read(rest, from_headers=True).model_dump(include=set(rest)))


def _read(given: Mapping[str, Any], *, from_headers: bool) -> Control:
    """Held against the shape; a header is text, from which a number or a boolean is read."""
    try:
        return Control.model_validate(given, strict=False if from_headers else None)
    except ValidationError as error:
        raise _first(error, from_headers=from_headers) from None


def _first(error: ValidationError, *, from_headers: bool) -> RequestError:
    fault = error.errors(include_url=False, include_input=False)[0]
    name = str(fault["loc"][0])
    field = HEADERS[name] if from_headers else f"{FIELD}.{name}"
    message = fault["msg"]
    if fault["type"] == "extra_forbidden":
        message = f"is not known; what is known: {', '.join(HEADERS)}"
    return RequestError(f"{field}: {message}", param=field)
