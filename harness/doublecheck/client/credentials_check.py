"""Check before the first check that the control plane accepts a target's own key pair.

With a wrong secret, the checks that expect a refusal would pass and all others would fail. So
``doublecheck run`` sends one request, for a tool that does not exist. Other test runs do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

from agentdouble import invoke_tool
from doublecheck.client import transport
from doublecheck.client.preflight import PATIENCE_S
from doublecheck.errors import CredentialsRefusedError, DoubleCheckError, RefusedError
from doublecheck.wire import sandbox
from doublecheck.wire.redaction import redact, secrets_of

if TYPE_CHECKING:
    from doublecheck.target.target import Target

_NO_TOOL = invoke_tool.RunCode(  # no tool has this id, so no code runs
    "t-doublecheck-nobody-has-this", "doublecheck_doublecheck", "1"
)


def require(target: Target, variables: tuple[str, str]) -> None:
    """Raise CredentialsRefusedError if the control plane refuses the key pair in these variables.

    Only HTTP 401 in the control plane's own envelope counts, because gateways refuse signed
    requests for other reasons. If there is no answer, the checks report that.
    """
    if "control_plane" in target.problems or target.credentials is None:
        return
    if not target.offers("control_plane") and not target.offers("sandbox"):
        return
    refusal = _refusal(target)
    if refusal is not None:
        reason = redact(str(refusal), secrets_of(target))
        raise CredentialsRefusedError(target.control_plane, reason, variables)


def _refusal(target: Target) -> RefusedError | None:
    """Return the error with which the control plane refuses a key pair, or None."""
    request = sandbox.signed(target, _NO_TOOL.body(), transport.signing_time())
    try:
        with (
            transport.translated(request.url),
            transport.client(**transport.options(target, PATIENCE_S)) as client,
        ):
            sandbox.read_envelope(client.request(**transport.arguments(request)))
    except RefusedError as error:
        return error if error.status == httpx.codes.UNAUTHORIZED else None
    except DoubleCheckError:
        return None
    return None
