"""``/_emulator/tools`` and ``/mcp-services``: what actions create, unsigned.

================================== =============================================================
``GET    /tools``                  ``{"Tools": [...]}``, with the fields of ListTools
``POST   /tools``                  a body of CreateTool; 201 with the fields of GetTool
``GET    /tools/{name}``           the fields of GetTool
``PATCH  /tools/{name}``           a body of UpdateTool without the id; the fields of GetTool
``DELETE /tools/{name}``           ``{"ToolId"}``
================================== =============================================================

The same holds for ``/mcp-services`` (``MCPServices``, ``MCPServiceId``);
``mcp_routes`` has more of them. ``{name}`` is a name or an id. Keys and secrets are ``***`` in every
answer.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import create_model
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from typing_extensions import TypedDict

from agentdouble import redaction
from agentdouble.control_plane.described import fields
from agentdouble.imports import import_now
from agentdouble.openapi import Answer, Operation
from agentdouble.openapi.operation import described
from agentdouble.state import Registry
from agentdouble.surfaces.own_requests import acting, json_object
from agentdouble.threads import import_in_thread, run_in_thread

if TYPE_CHECKING:
    from agentdouble.control_plane.resource_actions import ResourceActions

_ACTIONS = "agentdouble.control_plane.actions"
Body = Mapping[str, Any]


class NewTool(TypedDict, total=False):
    """A tool: the fields of CreateTool; ToolType is CodeEnv by default."""

    Name: str
    ToolType: str


def _described(say: Callable[[Any, Any], Operation]) -> Callable[[Any], Any]:
    """Describe an endpoint by a function of its routes and their actions."""

    def of(routes: ResourceRoutes) -> Operation:
        import_now(_ACTIONS)
        return say(routes, routes.make())

    return described(of)


class ResourceRoutes:
    """The routes of one kind of resource, relative to the double's own prefix.

    ``make`` returns its actions, whose modules are imported when the first request comes.
    ``complete`` returns the body of the action that creates one, from a body of the type ``body``.
    ``environment`` are the variables that point a client at the double.
    """

    def __init__(
        self,
        path: str,
        registry: Registry[Any],
        make: Callable[[], ResourceActions[Any, Any, Any]],
        complete: Callable[[Body], Body],
        body: Any,
        environment: Mapping[str, str],
    ) -> None:
        self.path = path
        self._registry = registry
        self.make = functools.cache(make)
        self._environment = environment
        self._complete = complete
        self.body = body

    def routes(self) -> list[Route]:
        """Return the routes; they raise RefusedError."""
        one = f"{self.path}/{{name}}"
        return [
            Route(self.path, self.all),
            Route(self.path, self.create, methods=["POST"]),
            Route(one, self.one),
            Route(one, self.change, methods=["PATCH"]),
            Route(one, self.delete, methods=["DELETE"]),
        ]

    def find(self, request: Request) -> Any:
        """Return the resource that a path names; raise the error of its kind if there is none."""
        asked = request.path_params["name"]
        for one in self._registry.all():
            if asked in (one.name, one.id):
                return one
        return self._registry.named(asked)

    @_described(lambda _, actions: _operation(actions, Answer(_list_of(actions))))
    async def all(self, _request: Request) -> Response:
        """Return all of them, the oldest first."""
        actions = await self._actions()
        with acting(self._environment):
            listed = [actions.listed_fields(one) for one in self._registry.all()]
        return await _shown({actions.list_field: listed})

    @_described(lambda self, actions: _operation(actions, Answer(actions.shown, 201), self.body))
    async def create(self, request: Request) -> Response:
        """Create one."""
        actions = await self._actions()
        known = {**actions.create_request.model_fields, **self.body.__annotations__}
        asked = await json_object(await request.body(), known)
        with acting(self._environment):
            made = await actions.create(self._complete(asked))
            return await _shown(
                actions.shown_fields(self._registry.get(made[actions.id_field])), 201
            )

    @_described(lambda _, actions: _operation(actions, Answer(actions.shown)))
    async def one(self, request: Request) -> Response:
        """Return the fields of one."""
        actions = await self._actions()
        with acting(self._environment):
            return await _shown(actions.shown_fields(self.find(request)))

    @_described(lambda _, actions: _operation(actions, Answer(actions.shown), _change(actions)))
    async def change(self, request: Request) -> Response:
        """Change one; fields that are not in the request stay."""
        actions = await self._actions()
        known = [one for one in actions.update_request.model_fields if one != actions.id_field]
        asked = await json_object(await request.body(), known)
        with acting(self._environment):
            found = self.find(request)
            await actions.update({**asked, actions.id_field: found.id})
            return await _shown(actions.shown_fields(self._registry.get(found.id)))

    @_described(lambda _, actions: _operation(actions, Answer(_id_of(actions))))
    async def delete(self, request: Request) -> Response:
        """Delete one."""
        actions = await self._actions()
        with acting(self._environment):
            return JSONResponse(await actions.delete({actions.id_field: self.find(request).id}))

    async def _actions(self) -> ResourceActions[Any, Any, Any]:
        await import_in_thread(_ACTIONS)
        return self.make()


def _operation(actions: Any, answer: Answer, body: Any = None) -> Operation:
    return Operation((answer,), body=body, errors=(404, 501, *actions.errors))


def _list_of(actions: Any) -> Any:
    one: Any = actions.listed or actions.shown
    return fields(f"All{actions.noun}s", **{actions.list_field: list[one]})


def _id_of(actions: Any) -> Any:
    return fields(f"{actions.noun}Id", **{actions.id_field: str})


def _change(actions: Any) -> Any:
    """Return the type of a body that changes a resource: its path has the id."""
    kept: Any = {
        name: (field.annotation, field)
        for name, field in actions.update_request.model_fields.items()
        if name != actions.id_field
    }
    return create_model(f"Change{actions.noun}", **kept)


async def _shown(document: Mapping[str, Any], status: int = 200) -> Response:
    """Return JSON without keys and secrets; a thread makes it, as a definition may be large."""
    text = await run_in_thread(
        lambda: redaction.without_secrets(json.dumps(_without_environments(document)))
    )
    return Response(text, status, media_type="application/json")


def _without_environments(value: Any) -> Any:
    """Return a document without the variables of commands, which clients' own format has as text."""
    if isinstance(value, list):
        return [_without_environments(one) for one in value]
    if not isinstance(value, dict):
        return value
    shown = {name: _without_environments(one) for name, one in value.items()}
    if isinstance(shown.get("RawConfig"), str):
        shown["RawConfig"] = json.dumps(_hidden(json.loads(shown["RawConfig"])))
    return shown


def _hidden(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {
        name: dict.fromkeys(one, redaction.REDACTED)
        if name == "env" and isinstance(one, dict)
        else _hidden(one)
        for name, one in value.items()
    }
