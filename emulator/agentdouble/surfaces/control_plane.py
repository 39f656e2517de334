"""The control plane: the actions of all surfaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.requests import HTTPConnection
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Scope

from agentdouble.control_plane.action_methods import Action
from agentdouble.control_plane.authentication import Authenticator, Failure
from agentdouble.control_plane.dispatch import ControlPlane, names_action
from agentdouble.control_plane.rates import Rates
from agentdouble.core.invoke_tool import VERSION
from agentdouble.core.threads import import_in_thread
from agentdouble.openapi import Format
from agentdouble.openapi.operation import Served
from agentdouble.surfaces.surface import LateApp, Surface

# the actions, and the module that the actions of runtimes need
_LATE = ("agentdouble.control_plane.actions", "agentdouble.runtimes.hosting")


class ControlPlaneActions(Surface):
    """The requests to ``/`` that name an action (CTL)."""

    name = "Control plane"

    def paths(self) -> Mapping[str, str]:
        """Return the path to which actions are posted."""
        return {
            f"/?Action=InvokeTool&Version={VERSION}": "InvokeTool and every other action, by a signed POST"
        }

    def state(self) -> str:
        """Return whether signatures are checked."""
        return f"signatures {'' if self.context.settings.check_signatures else 'not '}checked"

    def routes(self) -> Sequence[BaseRoute]:
        """Return the route for actions."""
        return [_ActionRoute("/", LateApp(self._make, *_LATE))]

    def format(self) -> Format:
        """Return the envelope of errors, and that requests are signed."""
        signed = ("signature",) if self.context.settings.check_signatures else ()
        return Format(self.name, error=Failure, security=signed)

    async def operations(self) -> Sequence[Served]:
        """Return the actions, each as a path of its own.

        OpenAPI cannot describe two operations that share a path and differ in their query. With the
        query in the path, generated clients send what the action needs, because they append the
        path to the server's URL.
        """
        await import_in_thread(*_LATE)
        return [
            Served("POST", f"/?Action={name}&Version={VERSION}", action)
            for name, action in self._actions().items()
        ]

    def _make(self) -> ASGIApp:
        context = self.context
        authenticator = Authenticator(context.credentials, context.settings, context.clock)
        rates = Rates(context.clock, context.settings, context.ledger)
        return ControlPlane(self._actions(), authenticator, rates)

    def _actions(self) -> Mapping[str, Action]:
        actions: dict[str, Action] = {}
        for surface in self.context.surfaces:
            actions.update(surface.actions())
        return actions


class _ActionRoute(Route):
    """A route for requests whose query names an action."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http" or not names_action(HTTPConnection(scope)):
            return Match.NONE, {}
        return super().matches(scope)
