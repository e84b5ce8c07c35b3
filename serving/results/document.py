"""An experiment's results as a text, and back without a loss, so that a database can keep them."""

from functools import cache

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from serving.results.results import Results


def document(found: Results) -> str:
    """As JSON; a number without bound is a word there."""
    return to_json(found, inf_nan_mode="strings").decode()


def read(text: str) -> Results | None:
    """The results that a text holds; None when they are of another form, as of another release."""
    try:
        return _form().validate_json(text)
    except ValidationError:
        return None


@cache
def _form() -> TypeAdapter[Results]:
    return TypeAdapter(Results)
