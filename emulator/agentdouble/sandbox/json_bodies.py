"""JSON bodies that pydantic reads, which accepts ``NaN`` and ``Infinity``."""

from __future__ import annotations

from pydantic import ValidationError
from pydantic_core import InitErrorDetails

from agentdouble import strict_json


def checked(body: bytes) -> bytes:
    """Return a body; raise pydantic's ValidationError if a number in it is not finite."""
    try:
        strict_json.check(body)
    except strict_json.NoNumberError as error:
        detail = InitErrorDetails(type="json_invalid", input=str(error), ctx={"error": str(error)})
        raise ValidationError.from_exception_data("body", [detail], "json") from None
    return body
