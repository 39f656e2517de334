"""Before the first check: whether the control plane takes a target's own key pair.

Otherwise checks that something is refused would pass, and all others would fail, for that alone.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import httpx

from agentdouble import invoke_tool
from doublecheck.client import transport
from doublecheck.client.preflight import PATIENCE_S
from doublecheck.errors import CredentialsRefusedError, DoubleCheckError, RefusedError
from doublecheck.wire import sandbox
from doublecheck.wire.redaction import hidden, secrets_of

if TYPE_CHECKING:
    from doublecheck.target.target import Target

_NOBODYS = invoke_tool.RunCode(  # no tool has this id, so that nothing runs
    "t-doublecheck-nobody-has-this", "doublecheck_doublecheck", "1"
)


def require(target: Target, variables: tuple[str, str]) -> None:
    """Raise CredentialsRefusedError if the key pair, which these variables hold, is refused.

    Only the word of a control plane counts, HTTP 401 in its envelope: a gateway in front of an
    application refuses what is signed, too, and its checks are not. Where no answer comes, the
    checks tell.
    """
    if "control_plane" in target.problems or target.credentials is None:
        return
    if not target.offers("control_plane") and not target.offers("sandbox"):
        return
    refusal = _refusal(target)
    if refusal is not None:
        told = hidden(str(refusal), secrets_of(target))
        raise CredentialsRefusedError(target.control_plane, told, variables)


def _refusal(target: Target) -> RefusedError | None:
    """Return with what the control plane refuses the keys of a request, or None."""
    request = sandbox.control_plane(target, _NOBODYS.body(), dt.datetime.now(dt.timezone.utc))
    try:
        with (
            transport.translated(request.url),
            httpx.Client(**transport.options(target, PATIENCE_S)) as client,
        ):
            sandbox.read_envelope(client.request(**transport.arguments(request)))
    except RefusedError as error:
        return error if error.status == httpx.codes.UNAUTHORIZED else None
    except DoubleCheckError:
        return None
    return None
