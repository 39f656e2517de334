"""What the SDK reads over in a request: a version's minor number, states that there are not, text
that is none.

The first two would answer another question than the one that was asked, the third fails.
"""

from __future__ import annotations

import json
import re
from typing import Any

from a2a.types import TaskState
from a2a.utils.errors import (
    A2AError,
    InvalidParamsError,
    InvalidRequestError,
    VersionNotSupportedError,
)
from starlette.requests import Request

VERSION_HEADER = "A2A-Version"
SPOKEN = ((1, 0), (0, 3))
STATES = tuple(TaskState.keys())

_VERSION = re.compile(r"(\d+)(?:\.(\d+))?(?:\.\d+)*")


def check_request(request: Request) -> None:
    """Raise the A2AError with which a request must be refused, whatever it asks for."""
    check_version(request.headers.get(VERSION_HEADER, ""))
    if request.scope["path"].endswith("/tasks"):
        check_state(request.query_params.get("status"))
    if "/v1/" in request.scope["path"]:  # for 1.0 the SDK says so itself
        _check_length(request.query_params.get("historyLength"))


def _check_length(length: str | None) -> None:
    """Raise InvalidParamsError for what is no number of messages."""
    try:
        wrong = bool(length) and int(length or 0) < 0
    except ValueError:
        wrong = True
    if wrong:
        raise InvalidParamsError(f"The historyLength must be 0 or more, not {length!r}.")


def check_json_rpc(body: object, request: Request) -> A2AError | None:
    """Return the A2AError with which a JSON-RPC request must be refused, if it must be."""
    if not isinstance(body, dict) or not isinstance(body.get("id"), (str, int, type(None))):
        return None
    method, params = body.get("method"), body.get("params", {})
    try:
        if not isinstance(params, dict):
            raise InvalidRequestError("The params must be an object.")
        if isinstance(method, str) and "/" in method:
            _check_legacy(request.headers.get(VERSION_HEADER, ""))
        if method == "ListTasks" and isinstance(params, dict):
            check_state(params.get("status"))
    except A2AError as error:
        return error
    return None


def check_text(body: bytes, value: object) -> None:
    """Raise InvalidRequestError if what was read from a JSON body has half of a character.

    JSON can escape a lone surrogate; protobuf has no text with one, and fails where it is a name.
    """
    if b"\\ud" not in body.lower():
        return
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InvalidRequestError(
            "The body has half of a character (a lone surrogate), which is no valid Unicode text."
        ) from None


def _check_legacy(asked: str) -> None:
    """Raise VersionNotSupportedError for a method of 0.3 that is called as one of another."""
    if asked and not asked.startswith("0.3"):
        raise VersionNotSupportedError(f"Version {asked!r} of the protocol has no such method.")


def check_version(asked: str) -> None:
    """Raise VersionNotSupportedError for another major or minor version (section 3.6.2)."""
    found = _VERSION.fullmatch(asked.strip() or "0.3")
    if found is None or (int(found[1]), int(found[2] or 0)) not in SPOKEN:
        raise VersionNotSupportedError(
            f"Version {asked!r} of the protocol is not spoken here; 1.0 and 0.3 are."
        )


def check_state(state: Any) -> None:
    """Raise InvalidParamsError for the name of no task state."""
    if isinstance(state, str) and state and state not in STATES:
        raise InvalidParamsError(
            f"There is no task state {state!r}; there are {', '.join(STATES[1:])}."
        )
