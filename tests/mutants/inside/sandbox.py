"""Mutations of the double under which the checks of sandbox fail."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from agentdouble.control_plane import invoke_tool_action
from agentdouble.sandbox import languages
from agentdouble.sandbox.browser.actions import Typing
from agentdouble.sandbox.data_plane import forwarding, refusals, routes
from agentdouble.sandbox.exec_bash import ExecBash
from agentdouble.sandbox.instances import Instance, Instances
from agentdouble.sandbox.outputs import OutputCollector
from tests.mutants.inside import inside


def type_nothing(patch: pytest.MonkeyPatch) -> None:
    async def perform(self: Any, hand: Any) -> None:
        pass

    patch.setattr(Typing, "perform", perform)


def share_sessions_between_users(patch: pytest.MonkeyPatch) -> None:
    module = sys.modules["agentdouble.code_tool"]
    patch.setattr(module.Invocation, "user_session_id", property(lambda self: self.session_id))


def start_sessions_used(patch: pytest.MonkeyPatch) -> None:
    _run_before_each(patch, "globals().setdefault('kept', None)")


def forget_variables(patch: pytest.MonkeyPatch) -> None:
    _run_before_each(patch, "[globals().pop(name, None) for name in ('kept', 'x')]")


def _run_before_each(patch: pytest.MonkeyPatch, before: str) -> None:
    original = Instance.execute

    async def execute(self: Instance, code: str, language: str, *rest: Any) -> Any:
        more = f"{before};\n{code}" if language == "python3" else code
        return await original(self, more, language, *rest)

    patch.setattr(Instance, "execute", execute)


def destroy_early(patch: pytest.MonkeyPatch) -> None:
    patch.setenv("AGENTDOUBLE_SESSION_TTL_S", "1720")


def destroy_late(patch: pytest.MonkeyPatch) -> None:
    patch.setenv("AGENTDOUBLE_SESSION_TTL_S", "1860")


def cut_session_ids_short(patch: pytest.MonkeyPatch) -> None:
    original = Instances.get_or_create

    async def get(self: Instances, tool_id: str, name: str, *rest: Any) -> Instance:
        return await original(self, tool_id, name.partition("-")[0], *rest)

    patch.setattr(Instances, "get_or_create", get)


def name_the_stream_otherwise(patch: pytest.MonkeyPatch) -> None:
    original = OutputCollector._stream

    def stream(self: Any, name: str, text: str) -> None:
        original(self, f"{name}1", text)

    patch.setattr(OutputCollector, "_stream", stream)


def drop_errors(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OutputCollector, "_error", lambda *_: None)


def count_nothing(patch: pytest.MonkeyPatch) -> None:
    original = invoke_tool_action._inner

    def inner(result: Any, *rest: Any) -> str:
        return original(dataclasses.replace(result, execution_count=1), *rest)

    patch.setattr(invoke_tool_action, "_inner", inner)


def speak_python_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(languages, "find", lambda _: languages.PYTHON)


def lose_the_exit_code(patch: pytest.MonkeyPatch) -> None:
    original = ExecBash.run

    async def run(self: ExecBash, *arguments: Any) -> dict[str, Any]:
        answer = await original(self, *arguments)
        return {**answer, "data": {**answer["data"], "exit_code": 0}}

    patch.setattr(ExecBash, "run", run)


def keep_no_upload(patch: pytest.MonkeyPatch) -> None:
    original = forwarding.forward

    async def forward(request: Request) -> Response:
        if request.url.path != "/v1/file/upload":
            return await original(request)
        data = {"file_path": "/home/gem/doublecheck/in.bin", "file_size": 1024, "success": True}
        return refusals.envelope(data, "File uploaded successfully")

    _answer_files(patch, forward)


def spoil_downloads(patch: pytest.MonkeyPatch) -> None:
    original = forwarding.forward

    async def forward(request: Request) -> Response:
        if request.url.path != "/v1/file/download":
            return await original(request)
        return PlainTextResponse("something else")

    _answer_files(patch, forward)


def _answer_files(patch: pytest.MonkeyPatch, forward: Any) -> None:
    patch.setattr(routes, "forward", forward)


MUTANTS = (
    inside("SBX-01", start_sessions_used),
    inside("SBX-02", forget_variables),
    inside("SBX-03", destroy_early),
    inside("SBX-03", destroy_late),
    inside("SBX-04", cut_session_ids_short),
    inside("SBX-05", name_the_stream_otherwise),
    inside("SBX-06", drop_errors),
    inside("SBX-07", count_nothing),
    inside("SBX-08", speak_python_alone),
    inside("SBX-09", lose_the_exit_code),
    inside("SBX-10", keep_no_upload),
    inside("SBX-10", spoil_downloads),
    inside("SBX-11", type_nothing),
    inside("SBX-12", share_sessions_between_users),
)
