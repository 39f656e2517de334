"""Request bodies read into pydantic models; what no field of a model takes is noted as unread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from agentdouble import journal
from agentdouble.control_plane.codes import public_error
from agentdouble.errors import ActionError

_Model = TypeVar("_Model", bound=BaseModel)


def read(model: type[_Model], document: Mapping[str, Any], prefix: str = "") -> _Model:
    """Return a document as a model; note the fields that the model has no use for.

    ``prefix`` stands before the names of fields in messages and in the journal, for example
    ``"OperationPayload."``. A model declares what the double acts on and nothing else: what it
    leaves out is in the journal's ``unread``. Raises ActionError MissingParameter or
    InvalidParameter, naming the field.
    """
    try:
        found = model.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = prefix + ".".join(str(part) for part in first["loc"])
        if first["type"] == "missing":
            raise missing(field) from None
        raise invalid(field, first["msg"]) from None
    journal.note_unread(_unread(found, document, prefix))
    return found


def missing(field: str) -> ActionError:
    """Return the refusal of a request that lacks a field."""
    return public_error("MissingParameter", f"The request is missing {field} parameter.")


def invalid(field: str, why: str) -> ActionError:
    """Return the refusal of a field's value; ``why`` is a clause without a full stop."""
    return ActionError("InvalidParameter", f"The parameter {field} is invalid: {why}.")


def _unread(value: Any, document: Any, path: str) -> Iterator[str]:
    """Yield the paths of ``document`` that ``value``, which was read from it, does not hold."""
    if isinstance(value, BaseModel) and isinstance(document, Mapping):
        names = {field.alias or name: name for name, field in type(value).model_fields.items()}
        for key, inner in document.items():
            if key not in names:
                yield f"{path}{key}"
            else:
                yield from _unread(getattr(value, names[key]), inner, f"{path}{key}.")
    elif isinstance(value, Mapping) and isinstance(document, Mapping):
        for key, inner in document.items():
            yield from _unread(value.get(key), inner, f"{path}{key}.")
    elif isinstance(value, (list, tuple)) and isinstance(document, (list, tuple)):
        for index, (one, inner) in enumerate(zip(value, document, strict=False)):
            yield from _unread(one, inner, f"{path}{index}.")
