"""Mutations of the double under which the checks of control_plane fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from agentdouble.control_plane import envelope, invoke_tool_action
from agentdouble.control_plane.authentication import Authenticator
from agentdouble.control_plane.routes import ControlPlane
from agentdouble.errors import ActionError, NotBuiltError
from agentdouble.sandbox.instances import Instance
from agentdouble.sandbox.result import Output
from tests.mutants.inside import inside


def forget_the_region(patch: pytest.MonkeyPatch) -> None:
    original = envelope.Metadata.to_dict

    def to_dict(self: envelope.Metadata) -> dict[str, Any]:
        return {name: value for name, value in original(self).items() if name != "Region"}

    patch.setattr(envelope.Metadata, "to_dict", to_dict)


def forget_the_traceback_key(patch: pytest.MonkeyPatch) -> None:
    original = Output.to_dict

    def to_dict(self: Output) -> dict[str, Any]:
        return {name: value for name, value in original(self).items() if name != "traceback"}

    patch.setattr(Output, "to_dict", to_dict)


def verify_no_signature(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Authenticator, "check", lambda *_: None)


def run_any_tool(patch: pytest.MonkeyPatch) -> None:
    original = invoke_tool_action.InvokeTool.__call__

    async def call(self: Any, body: Mapping[str, Any]) -> dict[str, Any]:
        return await original(self, {**body, "ToolId": self._settings.tool_id})

    patch.setattr(invoke_tool_action.InvokeTool, "__call__", call)


def misname_instances(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Instance, "__setattr__", _with_bare_id)


def _with_bare_id(self: Any, name: str, value: Any) -> None:
    object.__setattr__(self, name, value.removeprefix("s-") if name == "id" else value)


def name_no_action(patch: pytest.MonkeyPatch) -> None:
    original = ControlPlane._find

    def find(self: Any, *asked: Any) -> Any:
        try:
            return original(self, *asked)
        except (ActionError, NotBuiltError):
            raise ActionError("InvalidActionOrVersion", "No.", status=404) from None

    patch.setattr(ControlPlane, "_find", find)


def permit_everybody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Authenticator, "_permit", lambda *_: None)


def demand_a_ttl(patch: pytest.MonkeyPatch) -> None:
    original = invoke_tool_action.InvokeTool.__call__

    async def call(self: Any, body: Mapping[str, Any]) -> dict[str, Any]:
        if "Ttl" not in body:
            raise ActionError("MissingParameter", "The request is missing Ttl parameter.")
        return await original(self, body)

    patch.setattr(invoke_tool_action.InvokeTool, "__call__", call)


MUTANTS = (
    inside("CTL-01", forget_the_region),
    inside("CTL-02", forget_the_traceback_key),
    inside("CTL-03", verify_no_signature),
    inside("CTL-04", run_any_tool),
    inside("CTL-05", misname_instances),
    inside("CTL-06", name_no_action),
    inside("CTL-07", permit_everybody),
    inside("CTL-08", demand_a_ttl),
)
