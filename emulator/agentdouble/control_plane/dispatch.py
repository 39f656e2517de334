"""``POST /?Action=X&Version=2025-10-30``: parse, authenticate, dispatch, serialise.

Actions are methods of an ``Actions`` class; ``action`` gives a method its name and the models of
its body and result.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agentdouble.control_plane import addresses, authentication, public_errors
from agentdouble.control_plane.action_methods import Action
from agentdouble.control_plane.action_names import OF_THE_PLATFORM, OTHER_SERVICES
from agentdouble.control_plane.rates import Rates
from agentdouble.core import strict_json
from agentdouble.core.invoke_tool import RUN_HEADER, VERSION
from agentdouble.errors import ActionError, NotBuiltError, StateError
from agentdouble.journal.failures import KIND, report
from agentdouble.sandbox import output_feed
from agentdouble.server.disconnects import cancel_on_disconnect
from agentdouble.server.guard import Refusal

_log = logging.getLogger(__name__)


class ControlPlane:
    """An ASGI application for requests that name an action; ``actions`` are the double's, by name."""

    def __init__(
        self,
        actions: Mapping[str, Action],
        authenticator: authentication.Authenticator,
        rates: Rates,
    ) -> None:
        self._actions = actions
        self._authenticator = authenticator
        self._rates = rates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        is_post = is_control_plane(request)
        answer = await self._dispatch(request) if is_post else refuse_method(request)
        await answer(scope, receive, send)

    async def _dispatch(self, request: Request) -> Response:
        """Answer one request with an envelope, even on errors."""
        metadata = _metadata(request)
        try:
            body = await request.body()
            self._authenticator.check(request, body, metadata)
            action = self._find(request, metadata)
            self._rates.check(metadata["Action"])
            run = request.headers.get(RUN_HEADER)
            with addresses.seen_at(str(request.base_url)), output_feed.named_run(run):
                parameters = await _json_object(body)
                result = await cancel_on_disconnect(request.receive, action(parameters))
            return authentication.success(metadata, result)
        except (HTTPException, ClientDisconnect):
            raise
        except public_errors.REFUSED as error:
            return self._refused(metadata, error)
        except Exception as error:
            return self._failed(metadata, error)

    def _refused(
        self, metadata: authentication.MetadataFields, error: public_errors.Refused
    ) -> Response:
        if error.code == KIND:
            return self._failed(metadata, error)
        if isinstance(error, StateError):
            _log.error("The action %s: %s", metadata["Action"], error)
        return authentication.failure(metadata, error)

    def _failed(self, metadata: authentication.MetadataFields, error: BaseException) -> Response:
        message = report(error, f"The action {metadata['Action']}")
        return authentication.failure(metadata, ActionError(KIND, message, status=500))

    def _find(self, request: Request, metadata: authentication.MetadataFields) -> Action:
        """Return the action of a request; name the action or field that is refused (CTL-06)."""
        for name in ("Action", "Version"):
            values = request.query_params.getlist(name)
            if not values:
                raise public_errors.missing(name)
            if len(values) > 1:
                raise public_errors.invalid(name, f"it occurs {len(values)} times in the query")
        if metadata["Version"] == VERSION and metadata["Action"] in self._actions:
            return self._actions[metadata["Action"]]
        if metadata["Version"] == VERSION and metadata["Action"] in OF_THE_PLATFORM:
            raise NotBuiltError(f"The action {metadata['Action']}")
        if metadata["Service"].lower() in OTHER_SERVICES:
            raise NotBuiltError(
                f"The action {metadata['Action']} of the service {metadata['Service']}"
            )
        raise public_errors.public_error(
            "InvalidActionOrVersion",
            f"Could not find operation {metadata['Action']} for version {metadata['Version']}.",
        )


def names_action(connection: HTTPConnection) -> bool:
    """Return whether a request names an Action at the root, with any method."""
    path = connection.scope["path"]  # not connection.url, which a Host header can change
    return path == "/" and "Action" in connection.query_params


# The specification has only POST. The platform's answer to other methods is not known, and a
# bare "Not Found" does not help the user of a browser.
def refuse_method(request: Request) -> Response:
    """Answer an action that is not sent by POST, for example from a browser."""
    message = (
        "Send actions by POST, with their parameters as JSON in the body and a signature; "
        f"this is a {request.method}. Try: agentdouble call ListTools"
    )
    action = request.query_params["Action"]
    if action not in OF_THE_PLATFORM:  # such as those of the service sts, which are sent by GET
        message = f"The action {action[:100]!r} is not one of the service agentkit. {message}"
    answer = render_refusal(request, Refusal(405, "MethodNotAllowed", message))
    answer.headers["Allow"] = "POST"
    return answer


def is_control_plane(connection: HTTPConnection) -> bool:
    """Return whether a request is a POST that names an Action at the root."""
    return connection.scope.get("method") == "POST" and names_action(connection)


def render_refusal(connection: HTTPConnection, refusal: Refusal) -> Response:
    """Return a refusal of the guard in the control plane's error format."""
    error = ActionError(refusal.kind, refusal.message, status=refusal.status)
    return authentication.failure(_metadata(connection), error)


def _metadata(connection: HTTPConnection) -> authentication.MetadataFields:
    query = connection.query_params
    return authentication.metadata_of(query.get("Action", ""), query.get("Version", ""))


async def _json_object(body: bytes) -> Mapping[str, Any]:
    try:
        document = await strict_json.read(body)
    except (ValueError, RecursionError) as error:
        raise ActionError("InvalidParameter", f"The request body is not JSON: {error}.") from None
    if not isinstance(document, dict):
        raise ActionError("InvalidParameter", "The request body is not a JSON object.")
    return document
