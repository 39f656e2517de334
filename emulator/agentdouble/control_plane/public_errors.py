"""The public error codes, and refusals of requests and their fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

from agentdouble import errors

Refused: TypeAlias = (
    errors.ActionError
    | errors.DefinitionError
    | errors.HostingError
    | errors.McpServiceError
    | errors.NotBuiltError
    | errors.SandboxError
    | errors.StateError
)
REFUSED: tuple[type[Refused], ...] = get_args(Refused)  # for ``except``


@dataclass(frozen=True)
class Code:
    """A public error code: its number, if the number is published, and its HTTP status."""

    number: int | None
    status: int


PUBLIC: dict[str, Code] = {
    "MissingParameter": Code(100002, 400),
    "MissingAuthenticationToken": Code(100003, 401),
    "MissingRequestInfo": Code(100004, 400),
    "MissingSignature": Code(100005, 401),
    "InvalidTimestamp": Code(100006, 400),
    "ServiceNotFound": Code(100007, 404),
    "InvalidActionOrVersion": Code(100008, 404),
    "InvalidAccessKey": Code(100009, 401),
    "SignatureDoesNotMatch": Code(100010, 401),
    "LackPolicy": Code(100012, 403),
    "AccessDenied": Code(100013, 403),
    "InvalidSecurityToken": Code(None, 401),  # real clients know it; it has no published number
}


def public_error(
    code: str, message: str, data: Mapping[str, Any] | None = None
) -> errors.ActionError:
    """Return an error of the public table, with its HTTP status."""
    return errors.ActionError(code, message, status=PUBLIC[code].status, data=data)


def missing(field: str, hint: str = "") -> errors.ActionError:
    """Return the refusal of a request that lacks a field; ``hint`` is a sentence after a space."""
    return public_error("MissingParameter", f"The request is missing {field} parameter.{hint}")


def invalid(field: str, reason: str) -> errors.ActionError:
    """Return the refusal of a field's value; ``reason`` is a clause without a full stop."""
    return errors.ActionError("InvalidParameter", f"The parameter {field} is invalid: {reason}.")
