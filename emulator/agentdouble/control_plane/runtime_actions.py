"""CreateRuntime, GetRuntime, ListRuntimes, UpdateRuntime, ReleaseRuntime, DeleteRuntime."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from agentdouble import journal
from agentdouble.control_plane import (
    runtime_artifacts,
    runtime_authorizers,
    runtime_requests,
    runtimes_shown,
)
from agentdouble.control_plane.codes import as_action_errors
from agentdouble.control_plane.fields import variables
from agentdouble.control_plane.listing import Pages
from agentdouble.control_plane.reading import invalid, read
from agentdouble.control_plane.routes import Action
from agentdouble.control_plane.runtime_artifacts import Sources
from agentdouble.errors import SettingsError
from agentdouble.runtimes import RuntimeRegistry, Scaling
from agentdouble.settings import MIB

_FILTERS = {
    "Id": "RuntimeId",
    "Name": "Name",
    "Description": "Description",
    "Status": "Status",
    "ArtifactType": "ArtifactType",
}
_SCALING = {
    "MinInstance": "min_instances",
    "MaxInstance": "max_instances",
    "MaxConcurrency": "max_concurrency",
}
_FIELD_OF = {
    "name": "Name",
    "environment": "Envs",
    "authorizer": "AuthorizerConfiguration",
    "memory_limit": "MemoryMb",
    **{key: field for field, key in _SCALING.items()},
}
_ACTED_ON = frozenset(
    (
        *("RuntimeId", "Name", "ClientToken", "ReleaseEnable", "ArtifactType", "ArtifactUrl"),
        *("Envs", "AuthorizerConfiguration", "MemoryMb", *_SCALING),
    )
)
_SHOWN = frozenset(("Description", "ProjectName", "Tags"))


class RuntimeActions:
    """The actions on runtimes; each answers at ``/runtimes/<Name>``, its public Endpoint."""

    def __init__(self, registry: RuntimeRegistry, sources: Sources) -> None:
        self._registry = registry
        self._sources = sources
        self._pages = Pages()

    def by_name(self) -> Mapping[str, Action]:
        """Return the actions by the names of the platform."""
        return {
            "CreateRuntime": self.create,
            "GetRuntime": self.get,
            "ListRuntimes": self.list,
            "UpdateRuntime": self.update,
            "ReleaseRuntime": self.release,
            "DeleteRuntime": self.delete,
        }

    async def create(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Make a runtime, or give the id of the one that the same ClientToken has made."""
        request = read(runtime_requests.CreateRuntime, body)
        artifact = runtime_artifacts.read(request.ArtifactType, request.ArtifactUrl, self._sources)
        table = {
            "name": request.Name,
            **artifact,
            **_changes(request),
            "authorizer": runtime_authorizers.asked(request.AuthorizerConfiguration),
        }
        if request.MaxInstance is None and request.MinInstance is not None:
            table["max_instances"] = max(request.MinInstance, Scaling().max_instances)
        runtime_artifacts.check_there({"environment": {}, **table})
        try:
            with _declared(), as_action_errors():
                made = await self._registry.create(
                    table,
                    fields=_fields(request),
                    client_token=request.ClientToken,
                    request=_digest(request),
                )
        except ValueError as error:
            raise invalid("ClientToken", str(error)) from None
        return {"RuntimeId": made.id}

    async def get(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Show a runtime."""
        request = read(runtime_requests.OneRuntime, body)
        with as_action_errors():
            return runtimes_shown.whole(self._registry.get(request.RuntimeId))

    async def list(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Show the runtimes that pass every filter, made first comes first."""
        request = read(runtime_requests.ListRuntimes, body)
        passes = request.passes(_FILTERS)
        found = (runtimes_shown.listed(one) for one in self._registry.all())
        passing = (one for one in found if passes(one))
        items, token = self._pages.cut("ListRuntimes", request, passing)
        return {"AgentKitRuntimes": items, "NextToken": token}

    async def update(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Make one more version; it serves when it is released, at once with ReleaseEnable."""
        request = read(runtime_requests.UpdateRuntime, body)
        with _declared(), as_action_errors():
            await self._registry.update(
                request.RuntimeId,
                {**self._artifact(request), **_changes(request)},
                fields=_fields(request),
                release=bool(request.ReleaseEnable),
            )
        return {"RuntimeId": request.RuntimeId}

    async def release(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Bring a version into force, an older one too: that is a roll back."""
        request = read(runtime_requests.OneVersion, body)
        with as_action_errors():
            await self._registry.release(request.RuntimeId, request.VersionNumber)
        return {"RuntimeId": request.RuntimeId}

    async def delete(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """End a runtime and its instances."""
        request = read(runtime_requests.OneRuntime, body)
        with as_action_errors():
            await self._registry.delete(request.RuntimeId)
        return {"RuntimeId": request.RuntimeId}

    def _artifact(self, request: runtime_requests.UpdateRuntime) -> dict[str, Any]:
        if request.ArtifactUrl is None:
            runtime_artifacts.check_type(request.ArtifactType or runtime_artifacts.FILE)
            return {}
        kind = request.ArtifactType or runtime_artifacts.FILE
        artifact = runtime_artifacts.read(kind, request.ArtifactUrl, self._sources)
        runtime_artifacts.check_there({**artifact, **_changes(request)})
        return artifact


def _changes(request: runtime_requests.RuntimeFields) -> dict[str, Any]:
    """Return what a request says of a runtime's table, besides the artifact."""
    scaling = {key: getattr(request, field) for field, key in _SCALING.items()}
    said = {key: value for key, value in scaling.items() if value is not None}
    if request.MemoryMb is not None:
        said["memory_limit"] = request.MemoryMb * MIB
    if request.Envs is not None:
        said["environment"] = dict(variables(request.Envs))
    return said


def _fields(request: runtime_requests.RuntimeFields) -> dict[str, Any]:
    """Return what is kept and shown, and no more; name it as unread."""
    said = request.model_dump(mode="json", exclude=set(_ACTED_ON), exclude_none=True)
    journal.note_unread(sorted(said.keys() - _SHOWN))
    return said


def _digest(request: runtime_requests.CreateRuntime) -> str:
    text = json.dumps(request.model_dump(mode="json", exclude={"ClientToken"}), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def _declared() -> Iterator[None]:
    """Say what is wrong with a runtime's table in the terms of the request."""
    try:
        yield
    except SettingsError as error:
        key = error.key.split(".")[1] if "." in error.key else ""
        reason = getattr(error, "reason", None) or str(error)
        raise invalid(_FIELD_OF.get(key, "ArtifactUrl"), reason.rstrip(".")) from None
