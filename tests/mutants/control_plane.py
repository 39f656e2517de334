"""Mutants of the control plane: its callers, tools, actions and versions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from agentdouble import signing
from agentdouble.control_plane.action_errors import invalid
from agentdouble.control_plane.routes import ControlPlane
from agentdouble.errors import ActionError, UnknownToolError
from agentdouble.invoke_tool import ACTION, VERSION
from agentdouble.sandbox.instances import Instances
from agentdouble.sandbox.tools import Tool, Tools
from tests.mutants import Mutant, callers, wire
from tests.mutants.callers import Attempt, accepting, refusing
from tests.mutants.sandbox_changes import (
    Json,
    Patched,
    bodies,
    if_bash,
    invocations,
    result,
)

KEYS = "an access key and secret key of an account with the service enabled (5)"
PERMISSION = "the key needs the full-access permission of the platform (5)"
TOOL = "A sandbox tool has a TOOL_ID; a session instance of the tool is created (2.6)"
NAMES = "Operation name InvokeTool, version 2025-10-30 (4.4, 9)"
LIBRARY = "Built-in tool calling requires the agent library at version 0.2.15 or above (9)"


# ---- callers


def _of_an_open_session() -> Callable[[pytest.MonkeyPatch], None]:
    """Let in unsigned requests for sessions that a signed request has opened."""
    opened: set[str] = set()

    def change(patch: pytest.MonkeyPatch) -> None:
        original = Instances._create

        async def create(self: Instances, key: Any, *rest: Any) -> Any:
            opened.add(key.user_session_id)
            return await original(self, key, *rest)

        patch.setattr(Instances, "_create", create)
        accepting(lambda one: not one.header and one.json.get("UserSessionId") in opened)(patch)

    return change


def _first_query(attempt: Attempt) -> bool:
    query = (("Action", attempt.metadata.action), ("Version", attempt.metadata.version))
    return attempt.matches(query=query)


_CALLERS = (
    Mutant("let_in_who_signs_nothing", "CTL-03", KEYS, accepting(lambda one: not one.header)),
    Mutant("let_in_unknown_access_keys", "CTL-03", KEYS, accepting(lambda one: not one.known)),
    Mutant("let_in_any_signature_of_a_known_key", "CTL-03", KEYS, accepting(lambda one: one.known)),
    Mutant(
        "compare_the_first_half_of_signatures",
        "CTL-03",
        KEYS,
        accepting(lambda one: one.matches(same=lambda a, b: a[:32] == b[:32])),
    ),
    Mutant(
        "compare_the_second_half_of_signatures",
        "CTL-03",
        KEYS,
        accepting(lambda one: one.matches(same=lambda a, b: a[32:] == b[32:])),
    ),
    Mutant("take_the_secret_of_another_key", "CTL-03", KEYS, accepting(callers.has_any_secret)),
    Mutant("take_an_empty_secret", "CTL-03", KEYS, accepting(lambda one: one.matches(secret=""))),
    Mutant(
        "take_the_access_key_as_its_secret",
        "CTL-03",
        KEYS,
        accepting(lambda one: one.known and one.matches(secret=one.access_key)),
    ),
    Mutant(
        "sign_nothing_of_the_body",
        "CTL-03",
        KEYS,
        accepting(lambda one: one.matches(covered=one.as_announced)),
    ),
    Mutant("sign_action_and_version_of_the_query_alone", "CTL-03", KEYS, accepting(_first_query)),
    Mutant(
        "take_the_signature_of_invoke_tool_for_any_action",
        "CTL-03",
        KEYS,
        accepting(lambda one: one.matches(query=(("Action", ACTION), ("Version", VERSION)))),
    ),
    Mutant(
        "sign_nothing_of_the_region",
        "CTL-03",
        KEYS,
        accepting(lambda one: one.matches(region="cn-beijing")),
    ),
    Mutant(
        "take_signatures_of_last_year",
        "CTL-03",
        KEYS + "; 15 minutes (U-SIGNING-SKEW)",
        lambda patch: patch.setattr(signing, "_check_age", lambda *_: None),
    ),
    Mutant(
        "take_access_keys_in_any_case",
        "CTL-03",
        KEYS,
        accepting(callers.has_key_that(lambda known, key: known.lower() == key.lower())),
    ),
    Mutant(
        "take_the_beginning_of_an_access_key",
        "CTL-03",
        KEYS,
        accepting(callers.has_key_that(lambda known, key: known.startswith(key))),
    ),
    Mutant(
        "take_an_access_key_with_more_behind_it",
        "CTL-03",
        KEYS,
        accepting(callers.has_key_that(lambda known, key: key.startswith(known))),
    ),
    Mutant(
        "take_a_bare_access_key_as_a_token",
        "CTL-03",
        KEYS,
        accepting(lambda one: one.header.removeprefix("Bearer ") in one.authenticator._credentials),
    ),
    Mutant(
        "let_in_unsigned_commands",
        "CTL-03",
        KEYS,
        accepting(lambda one: not one.header and one.json.get("OperationType") == "ExecBash"),
    ),
    Mutant(
        "ask_for_a_signature_of_invoke_tool_alone",
        "CTL-03",
        KEYS,
        accepting(lambda one: not one.header and one.metadata.action != ACTION),
    ),
    Mutant("let_in_unsigned_requests_for_an_open_session", "CTL-03", KEYS, _of_an_open_session()),
    Mutant(
        "let_in_a_wrong_signature_the_second_time",
        "CTL-03",
        KEYS,
        accepting(callers.seen_before(lambda one: one.access_key)),
    ),
    Mutant(
        "refuse_wrong_signatures_and_run_the_code", "CTL-03", KEYS, callers.running_what_is_refused
    ),
    Mutant("permit_every_key", "CTL-07", PERMISSION, accepting(lambda one: one.restricted)),
    Mutant(
        "permit_every_key_to_run_commands",
        "CTL-07",
        PERMISSION,
        accepting(lambda one: one.restricted and one.json.get("OperationType") == "ExecBash"),
    ),
    Mutant(
        "ask_for_the_permission_of_invoke_tool_alone",
        "CTL-07",
        PERMISSION,
        accepting(lambda one: one.restricted and one.metadata.action != ACTION),
    ),
    Mutant(
        "permit_a_key_the_second_time",
        "CTL-07",
        PERMISSION,
        accepting(callers.seen_before(lambda one: one.access_key if one.restricted else None)),
    ),
    Mutant(
        "refuse_restricted_keys_and_run_the_code",
        "CTL-07",
        PERMISSION,
        lambda patch: callers.running_what_is_refused(patch, (403,)),
    ),
)


# ---- tools, actions, versions


def _tools(accepts: Callable[[str, str], bool]) -> Patched:
    """Take the sandbox's own tool for some unknown ones; given are its id and the unknown."""

    def change(patch: pytest.MonkeyPatch) -> None:
        original = Tools.get

        def get(self: Tools, id_: str) -> Tool:
            try:
                return original(self, id_)
            except UnknownToolError:
                if not accepts(self._fixed_id, id_):
                    raise
                return original(self, self._fixed_id)

        patch.setattr(Tools, "get", get)

    return change


def _unknown_for(operation: str) -> Patched:
    def change(patch: pytest.MonkeyPatch) -> None:
        asked: list[str] = [""]

        async def invoke(call: Any, body: Any) -> Any:
            asked.append(body["OperationType"])
            return await call(body)

        _tools(lambda _own, _id: asked[-1] == operation)(patch)
        invocations(invoke)(patch)

    return change


def _actions(accepts: Callable[[str, str], bool]) -> Patched:
    """Take InvokeTool for some unknown actions and versions."""

    def change(patch: pytest.MonkeyPatch) -> None:
        original = ControlPlane._find

        def find(self: ControlPlane, request: Any, metadata: Any) -> Any:
            try:
                return original(self, request, metadata)
            except ActionError:
                if not accepts(metadata.action, metadata.version):
                    raise
                return self._actions[ACTION]

        patch.setattr(ControlPlane, "_find", find)

    return change


def _nothing_done(patch: pytest.MonkeyPatch) -> None:
    """Answer an unknown action with an empty result."""
    original = ControlPlane._find

    async def nothing(_body: Any) -> Json:
        return {}

    def find(self: ControlPlane, request: Any, metadata: Any) -> Any:
        try:
            return original(self, request, metadata)
        except ActionError:
            return nothing

    patch.setattr(ControlPlane, "_find", find)


def _messages(change: Callable[[str], str]) -> wire.Change:
    def refusal(answer: Any) -> Any:
        error = answer.get("ResponseMetadata", {}).get("Error", {})
        if error.get("Code") == "InvalidActionOrVersion":
            error["Message"] = change(error["Message"])
        return answer

    return wire.answers("POST /", refusal)


def _without_names(message: str) -> str:
    return re.sub(r"operation \S+", "the operation", message)


def _without_version(message: str) -> str:
    return re.sub(r"version \S+", "this version.", message)


def _unless(accepts: Callable[[Json], bool]) -> Patched:
    """Refuse some bodies of InvokeTool."""

    def check(body: Json) -> Json:
        if not accepts(body):
            raise invalid("Ttl", "it is not allowed")
        return body

    return bodies(check)


_ACTIONS = (
    Mutant("know_every_tool", "CTL-04", TOOL, _tools(lambda _own, _id: True)),
    Mutant(
        "know_every_tool_with_a_t", "CTL-04", TOOL, _tools(lambda _own, id_: id_.startswith("t-"))
    ),
    Mutant(
        "know_a_tool_by_the_beginning_of_its_id",
        "CTL-04",
        TOOL,
        _tools(lambda own, id_: own.startswith(id_)),
    ),
    Mutant(
        "know_a_tool_in_capitals",
        "CTL-04",
        TOOL,
        _tools(lambda own, id_: own.lower() == id_.lower()),
    ),
    Mutant(
        "know_a_tool_with_more_behind_its_id",
        "CTL-04",
        TOOL,
        _tools(lambda own, id_: id_.startswith(own)),
    ),
    Mutant("run_commands_of_unknown_tools", "CTL-04", TOOL, _unknown_for("ExecBash")),
    Mutant(
        "leave_out_the_prefix_of_session_ids",
        "CTL-05",
        "SessionId (shape `s-<id>`) (2.6)",
        result(lambda one: one.update(SessionId=one["SessionId"][2:])),
    ),
    Mutant(
        "write_session_ids_with_an_underscore",
        "CTL-05",
        "SessionId (shape `s-<id>`) (2.6)",
        result(lambda one: one.update(SessionId=f"s_{one['SessionId'][2:]}")),
    ),
    Mutant(
        "write_session_ids_in_capitals",
        "CTL-05",
        "SessionId (shape `s-<id>`) (2.6)",
        result(lambda one: one.update(SessionId=one["SessionId"].upper())),
    ),
    Mutant(
        "give_a_prefix_as_the_session_id",
        "CTL-05",
        "SessionId (shape `s-<id>`) (2.6)",
        result(lambda one: one.update(SessionId="s-")),
    ),
    Mutant(
        "take_the_user_session_id_as_the_session_id",
        "CTL-05",
        "SessionId (shape `s-<id>`) (2.6)",
        result(lambda one: one.update(SessionId=one["UserSessionId"])),
    ),
    Mutant(
        "leave_out_the_prefix_of_tool_ids",
        "CTL-05",
        "TOOL_ID (string, shape `t-<id>`) (2.6)",
        result(lambda one: one.update(ToolId=one["ToolId"].removeprefix("t-"))),
    ),
    Mutant(
        "write_the_prefix_of_tool_ids_twice",
        "CTL-05",
        "TOOL_ID (string, shape `t-<id>`) (2.6)",
        result(lambda one: one.update(ToolId=f"tool:{one['ToolId']}")),
    ),
    Mutant(
        "leave_out_the_prefix_of_session_ids_of_commands",
        "CTL-05",
        "SessionId (shape `s-<id>`) (2.6)",
        result(if_bash(lambda one: one.update(SessionId=one["SessionId"][2:]))),
    ),
    Mutant("speak_any_version", "CTL-06", NAMES, _actions(lambda action, _: action == ACTION)),
    Mutant(
        "speak_earlier_versions",
        "CTL-06",
        NAMES,
        _actions(lambda action, version: action == ACTION and version < VERSION),
    ),
    Mutant(
        "speak_later_versions",
        "CTL-06",
        NAMES,
        _actions(lambda action, version: action == ACTION and version > VERSION),
    ),
    Mutant(
        "know_versions_by_year_and_month",
        "CTL-06",
        NAMES,
        _actions(lambda action, version: action == ACTION and version[:7] == VERSION[:7]),
    ),
    Mutant(
        "take_every_action_for_invoke_tool",
        "CTL-06",
        NAMES,
        _actions(lambda _, version: version == VERSION),
    ),
    Mutant(
        "know_actions_in_any_case",
        "CTL-06",
        NAMES,
        _actions(lambda action, version: (action.lower(), version) == ("invoketool", VERSION)),
    ),
    Mutant("do_nothing_for_an_unknown_action", "CTL-06", NAMES, _nothing_done),
    Mutant("refuse_an_action_without_its_name", "CTL-06", NAMES, _messages(_without_names)),
    Mutant("refuse_a_version_without_naming_it", "CTL-06", NAMES, _messages(_without_version)),
    Mutant(
        "refuse_another_version_and_run_the_code",
        "CTL-06",
        NAMES,
        lambda patch: callers.running_what_is_refused(patch, (404,)),
    ),
    Mutant("require_a_ttl", "CTL-08", LIBRARY, _unless(lambda body: body.get("Ttl") is not None)),
    Mutant("refuse_a_ttl", "CTL-08", LIBRARY, _unless(lambda body: body.get("Ttl") is None)),
    Mutant(
        "require_the_newer_user_session_ids",
        "CTL-08",
        LIBRARY,
        _unless(lambda body: body["UserSessionId"].count("_") >= 2),
    ),
    Mutant(
        "require_the_headers_of_newer_clients",
        "CTL-08",
        LIBRARY,
        refusing(lambda one: "x-custom-request-context" not in one.request.headers),
    ),
    Mutant(
        "require_that_the_client_accepts_json",
        "CTL-08",
        LIBRARY,
        refusing(lambda one: "application/json" not in one.request.headers.get("accept", "")),
    ),
    Mutant(
        "require_a_session_token",
        "CTL-08",
        LIBRARY,
        refusing(lambda one: "x-security-token" not in one.request.headers),
    ),
)

MUTANTS: tuple[Mutant, ...] = (*_CALLERS, *_ACTIONS)
