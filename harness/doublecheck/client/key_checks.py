"""Before the first check: find out whether a platform refuses the keys or the tool of a target.

With wrong ones every answer is a refusal. Checks of refusals would pass, a comparison would find
differences, and a profile would lack most answers, so commands end with the reason instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import httpx

from agentdouble.core import invoke_tool
from doublecheck.client import preflight, transport
from doublecheck.errors import DoubleCheckError, RefusedError
from doublecheck.target.facts import BY_NAME, Surface, variable
from doublecheck.target.plan import Plan, pair_variables, variable_of
from doublecheck.target.target import Target
from doublecheck.wire import calls, control_plane
from doublecheck.wire.event_stream import is_stream
from doublecheck.wire.exchanges import redact, secrets_of

_NO_TOOL = invoke_tool.RunCode(  # no such tool exists, so no code runs
    "t-doublecheck-nobody-has-this", "doublecheck_doublecheck", "1"
)
_NOT_FOUND = "InvalidResource.NotFound"
_NAMES: Mapping[Surface, str] = {
    "application": "application",
    "api_server": "API server",
    "mcp": "MCP application",
    "a2a": "A2A application",
}


def require(target: Target, plan: Plan) -> None:
    """Raise DoubleCheckError if the platform refuses the key pair, tool or API key of its plan.

    If there is no answer, the checks report that. A surface that is only assumed may require a key
    that the user does not have, so it is not asked.
    """
    if target.credentials is not None and _offers_control_plane(target):
        _require_key_pair(target, pair_variables(plan))
        _require_tool(target)
    if target.kind == "live" and target.offers_assumed:
        return
    for surface, name in _NAMES.items():
        if target.offers(surface) and surface not in target.problems:
            _require_api_key(target, plan, surface, name)


def _require_api_key(target: Target, plan: Plan, surface: Surface, name: str) -> None:
    request = calls.request(target, "GET", preflight.PROBES[surface], surface=surface)
    refusal = _refusal(target, request, calls.refuse)
    if refusal is None or refusal.status != httpx.codes.UNAUTHORIZED:
        return
    if target.key_of(surface):
        named = _variable(plan, surface)
        said, cure = f"refuses the API key in {named}", f"Correct {named}"
    else:
        said = "requires an API key"
        cure = f"Set {variable('api_key')}, or name a variable as api_key_env in the target's table"
    raise DoubleCheckError(
        f"The {name} at {target.at(surface)} {said}: GET {preflight.PROBES[surface]} answers HTTP 401. "
        f"Nothing was checked. {cure}, or remove {surface} from what the target offers."
    )


def _variable(plan: Plan, surface: Surface) -> str:
    """Return the variable with the API key that is sent to a surface."""
    named = plan.value(BY_NAME["api_key"].key)
    if isinstance(named, Mapping) and surface in named:
        return str(named[surface])
    if plan.variables.get(variable_of(surface)):
        return variable_of(surface)
    return named if isinstance(named, str) else variable("api_key")


def _offers_control_plane(target: Target) -> bool:
    offered = target.offers("control_plane") or target.offers("sandbox")
    return offered and "control_plane" not in target.problems


def _require_key_pair(target: Target, variables: tuple[str, str]) -> None:
    """Raise DoubleCheckError if the control plane refuses the key pair in these variables.

    Only HTTP 401 in the control plane's own envelope counts, because gateways and other servers
    refuse signed requests for other reasons.
    """
    request = control_plane.signed(target, _NO_TOOL.body())
    refusal = _refusal(target, request, control_plane.read_envelope)
    if refusal is not None and refusal.code and refusal.status == httpx.codes.UNAUTHORIZED:
        reason = redact(str(refusal), secrets_of(target))
        raise DoubleCheckError(
            f"The control plane at {target.control_plane} refuses the key pair in "
            f"{' and '.join(variables)}. Nothing was checked. Correct the two variables, or skip the "
            "checks that need a signature: remove control_plane and sandbox from what the target "
            f"offers. The refusal: {reason}"
        )


def _require_tool(target: Target) -> None:
    """Raise DoubleCheckError if the control plane says that the target's tool does not exist."""
    if not target.tool_id:
        return
    request = control_plane.signed(target, {"ToolId": target.tool_id}, action="GetTool")
    refusal = _refusal(target, request, control_plane.read_action)
    if refusal is not None and refusal.code == _NOT_FOUND:
        raise DoubleCheckError(
            f"The control plane at {target.control_plane} does not have the tool "
            f"{target.tool_id!r}: {redact(str(refusal), secrets_of(target))}. Nothing was checked. "
            f"Correct tool_id of the target, or {variable('tool_id')}."
        )


def _refusal(
    target: Target, request: calls.Request, read: Callable[[httpx.Response], object]
) -> RefusedError | None:
    """Return the error with which a surface refuses a request, or None."""
    patience = preflight.PATIENCE_S
    try:
        with (
            transport.translated(request.url),
            transport.client(**transport.options(target, patience, patience)) as client,
            client.stream(**transport.arguments(request)) as response,
        ):
            if not is_stream(response):  # such an answer may be endless
                response.read()
                read(response)
    except RefusedError as error:
        return error
    except DoubleCheckError:
        return None
    return None
