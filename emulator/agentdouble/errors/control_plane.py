"""Errors of refused actions, and of a control plane's error answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentdouble.errors.base import AgentDoubleError


class ActionError(AgentDoubleError):
    """A control-plane action is refused; ``code`` is the platform's, ``status`` the HTTP status.

    ``data`` is answered as the error's Data, if there is any.
    """

    def __init__(
        self, code: str, message: str, *, status: int = 400, data: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.data = data


class ClientTokenError(ActionError):
    """Another request had the same ClientToken; it made the ``kind`` with the id ``id``."""

    def __init__(self, kind: str, id_: str) -> None:
        super().__init__(
            "InvalidParameter",
            "The parameter ClientToken is invalid: "
            f"another request, which made the {kind} {id_!r}, had it.",
        )
        self.kind = kind
        self.id = id_


class SignatureError(AgentDoubleError):
    """A signature does not verify; ``code`` is the platform's own error code.

    ``data`` of SignatureDoesNotMatch has the CanonicalRequest and the StringToSign of the verifier,
    and what Differs, as far as it is known; there are no secrets in it.
    """

    def __init__(self, code: str, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class EnvelopeError(AgentDoubleError):
    """An answer is not the envelope of section 2.8; ``status`` is its HTTP status."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class PlatformError(AgentDoubleError):
    """The platform answered with an error envelope.

    ``code``, ``message`` and ``request_id`` are the platform's, ``status`` is the HTTP status.
    """

    def __init__(self, code: str, message: str, *, status: int, request_id: str) -> None:
        super().__init__(f"{code}: {message} (HTTP {status}, request {request_id or 'without id'})")
        self.code = code
        self.message = message
        self.status = status
        self.request_id = request_id
