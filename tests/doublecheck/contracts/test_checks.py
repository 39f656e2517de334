"""The checks pass on the double, and each fails where the double is broken."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.responses import PlainTextResponse

from agentdouble import run_code as run_code_function
from agentdouble.apps import bodies, simple
from agentdouble.control_plane import envelope, invoke_tool_action
from agentdouble.control_plane.routes import ControlPlane
from agentdouble.errors import ActionError
from agentdouble.sandbox.instances import Instance, Instances
from agentdouble.sandbox.outputs import OutputCollector
from agentdouble.sandbox.result import Output
from doublecheck import Credentials, Target
from doublecheck.connecting import serving_double
from doublecheck.contracts import reference_app
from doublecheck.running import Run, _Collector
from doublecheck.verdicts import Verdict

CHECKED = (
    *(f"INV-{number:02d}" for number in range(1, 10)),
    *(f"PRB-{number:02d}" for number in range(1, 8)),
    *(f"CTL-{number:02d}" for number in range(1, 7)),
    *(f"SBX-{number:02d}" for number in (1, 2, 3, 4, 5, 6, 7, 12)),
    *(f"RUN-{number:02d}" for number in range(1, 4)),
    *(f"DEC-{number:02d}" for number in range(1, 4)),
)

Break = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture
def check(pytester: pytest.Pytester) -> Callable[..., Run]:
    """Runs contract checks in a pytest of their own."""

    def run(*arguments: str) -> Run:
        collector = _Collector()
        ended = pytester.inline_run(
            "--pyargs", "doublecheck.contracts", *arguments, plugins=[collector]
        )
        return Run(collector.checks(), int(ended.ret))

    return run


def verdicts(run: Run) -> Mapping[str, Verdict]:
    return {clause.id: verdict for clause, verdict in run.verdicts().items()}


def test_every_check_passes_on_the_double(check: Callable[..., Run]) -> None:
    """Nothing is skipped, and each clause of this version has a check."""
    run = check()

    assert dict.fromkeys(CHECKED, Verdict.PASSED) == verdicts(run)
    assert {Verdict.PASSED} == {one.verdict for one in run.checks}


@pytest.mark.parametrize("group", ["INV", "PRB", "CTL", "SBX", "RUN", "DEC"])
def test_a_groups_name_selects_its_checks(pytester: pytest.Pytester, group: str) -> None:
    """-k INV takes the checks of those clauses, and none whose name happens to match."""
    arguments = ("--pyargs", "doublecheck.contracts", "--collect-only", "-k", group)
    recorded = pytester.inline_run(*arguments)

    items = recorded.getcall("pytest_collection_finish").session.items
    assert {group} == {dict(item.user_properties)["clause"][:3] for item in items}


def test_a_live_target_is_checked_as_far_as_it_shows_itself(
    check: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library is not applicable, the application not observable, 30 minutes not run."""
    with serving_double() as double:
        for name, value in double.environment().items():
            monkeypatch.setenv(name, value)
        run = check("--platform-target=live", f"--platform-url={double.url}")

    told = verdicts(run)
    expected = dict.fromkeys(CHECKED, Verdict.PASSED)
    expected |= {id_: Verdict.NOT_APPLICABLE for id_ in CHECKED if id_[:3] in ("DEC", "RUN")}
    expected |= {f"INV-{number:02d}": Verdict.NOT_OBSERVABLE for number in range(1, 8)}
    expected |= dict.fromkeys(("INV-09", "PRB-05"), Verdict.NOT_OBSERVABLE)
    assert expected | {"SBX-03": Verdict.NOT_RUN} == told


def test_missing_credentials_are_an_error_and_never_a_skip(check: Callable[..., Run]) -> None:
    """What could not be checked is not passed over, and not blamed on the platform."""
    with serving_double() as double:
        run = check(f"--platform-url={double.url}", "-k", "CTL-04 or SBX-01")

    assert {"CTL-04": Verdict.ERROR, "SBX-01": Verdict.ERROR} == verdicts(run)


def test_a_failure_begins_with_its_clause(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Id, level and text come first, then what pytest shows."""
    monkeypatch.setattr(bodies, "failure", lambda *_: PlainTextResponse("fine"))

    result = pytester.runpytest_inprocess("--pyargs", "doublecheck.contracts", "-k", "INV-08")

    result.stdout.fnmatch_lines(
        [
            "INV-08 (should): A body that is not JSON is refused with a 4xx status and a clear error.",
            "specification, section 4.1",
            "",
            "*test_invocation.py*",
        ]
    )


def drop_fields(patch: pytest.MonkeyPatch) -> None:
    original = simple.SimpleApp._invoke

    async def invoke(self: Any, entrypoint: Any, payload: Any, headers: Any) -> Any:
        kept = {name: payload[name] for name in ("prompt",)}
        return await original(self, entrypoint, kept, headers)

    patch.setattr(simple.SimpleApp, "_invoke", invoke)


def drop_headers(patch: pytest.MonkeyPatch) -> None:
    original = simple.SimpleApp._invoke

    async def invoke(self: Any, entrypoint: Any, payload: Any, headers: Any) -> Any:
        kept = {name: value for name, value in headers.items() if not name.startswith("x-")}
        return await original(self, entrypoint, payload, kept)

    patch.setattr(simple.SimpleApp, "_invoke", invoke)


def demand_headers(patch: pytest.MonkeyPatch) -> None:
    patch.setenv("AGENTDOUBLE_UNKNOWNS", '{"U-INVOKE-HEADERS": "enforced"}')


def return_plain_text(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bodies, "result", PlainTextResponse)


def hold_the_stream_back(patch: pytest.MonkeyPatch) -> None:
    original = simple.SimpleApp._stream

    async def stream(self: Any, chunks: AsyncIterator[Any]) -> AsyncIterator[bytes]:
        yield b"".join([event async for event in original(self, chunks)])

    patch.setattr(simple.SimpleApp, "_stream", stream)
    patch.setattr(reference_app, "READ_WITHIN_S", 0.1)


def swallow_the_streams_failure(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bodies, "stream_failure", lambda _: b"")


def pass_an_exception_off_as_success(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bodies, "entrypoint_failure", lambda _: PlainTextResponse("fine"))


def accept_any_body(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bodies, "failure", lambda *_: PlainTextResponse("fine"))


def share_one_session(patch: pytest.MonkeyPatch) -> None:
    module = __import__("sys").modules["agentdouble.run_code"]
    patch.setattr(module.Invocation, "user_session_id", "shared")


def answer_another_ping(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bodies, "ping", lambda _: PlainTextResponse("something else"))


def want_a_ping_function(patch: pytest.MonkeyPatch) -> None:
    patch.setenv("AGENTDOUBLE_UNKNOWNS", '{"U-PROBE-ERROR": "absent-404"}')


def run_entrypoints_on_the_servers_loop(patch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def lifespan(_self: Any) -> AsyncIterator[None]:
        yield

    patch.setattr(simple.SimpleApp, "lifespan", lifespan)
    patch.setattr(reference_app, "BLOCKED_AT_MOST_S", 1.5)


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
    patch.setattr(ControlPlane, "_authenticate", lambda *_: None)


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
    def find(_self: Any, _metadata: Any) -> None:
        raise ActionError("InvalidActionOrVersion", "No.", status=404)

    patch.setattr(ControlPlane, "_find", find)


def refuse_new_sessions(patch: pytest.MonkeyPatch) -> None:
    def create(*_: Any) -> None:
        raise ActionError("InvalidResource.NotFound", "No such session.", status=404)

    patch.setattr(Instances, "_create", create)


def make_an_instance_each_time(patch: pytest.MonkeyPatch) -> None:
    original = Instances.get_or_create

    async def get(self: Instances, *wanted: Any) -> Instance:
        await self.reset("broken on purpose")
        return await original(self, *wanted)

    patch.setattr(Instances, "get_or_create", get)


def destroy_early(patch: pytest.MonkeyPatch) -> None:
    patch.setenv("AGENTDOUBLE_SESSION_TTL_S", "1799")


def destroy_late(patch: pytest.MonkeyPatch) -> None:
    patch.setenv("AGENTDOUBLE_SESSION_TTL_S", "1860")


def share_one_instance(patch: pytest.MonkeyPatch) -> None:
    original = Instances.get_or_create

    async def get(self: Instances, tool_id: str, _: str, *rest: Any) -> Instance:
        return await original(self, tool_id, "shared", *rest)

    patch.setattr(Instances, "get_or_create", get)


def misname_the_stream(patch: pytest.MonkeyPatch) -> None:
    original = OutputCollector._stream
    patch.setattr(
        OutputCollector, "_stream", lambda self, _name, text: original(self, "stderr", text)
    )


def drop_errors(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OutputCollector, "_error", lambda *_: None)


def count_nothing(patch: pytest.MonkeyPatch) -> None:
    original = invoke_tool_action._inner

    def inner(result: Any, *rest: Any) -> str:
        return original(dataclasses.replace(result, execution_count=1), *rest)

    patch.setattr(invoke_tool_action, "_inner", inner)


def forget_the_result(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(invoke_tool_action, "_inner", lambda *_: '{"success": false, "data": {}}')


def take_any_tool_id(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(run_code_function.__globals__, "_tool_id", lambda _: "t-sandbox")


def prefer_the_environments_keys(patch: pytest.MonkeyPatch) -> None:
    import os

    def credentials(_state: Any) -> Credentials:
        return Credentials(os.environ["PLATFORM_ACCESS_KEY"], os.environ["PLATFORM_SECRET_KEY"])

    patch.setitem(run_code_function.__globals__, "_credentials", credentials)


def accept_any_entrypoint(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(simple, "check_entrypoint", lambda _: None)


def accept_any_ping(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(simple, "check_ping", lambda _: None)


def accept_async_task(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(simple.SimpleApp, "async_task", lambda _self, function: function)


@pytest.mark.parametrize(
    ("clause", "break_it"),
    [
        ("INV-01", drop_fields),
        ("INV-02", drop_headers),
        ("INV-03", demand_headers),
        ("INV-04", return_plain_text),
        ("INV-05", hold_the_stream_back),
        ("INV-06", swallow_the_streams_failure),
        ("INV-07", pass_an_exception_off_as_success),
        ("INV-08", accept_any_body),
        ("INV-09", share_one_session),
        ("PRB-01", answer_another_ping),
        ("PRB-05", want_a_ping_function),
        ("PRB-06", run_entrypoints_on_the_servers_loop),
        ("CTL-01", forget_the_region),
        ("CTL-02", forget_the_traceback_key),
        ("CTL-03", verify_no_signature),
        ("CTL-04", run_any_tool),
        ("CTL-05", misname_instances),
        ("CTL-06", name_no_action),
        ("SBX-01", refuse_new_sessions),
        ("SBX-02", make_an_instance_each_time),
        ("SBX-03", destroy_early),
        ("SBX-03", destroy_late),
        ("SBX-04", share_one_instance),
        ("SBX-05", misname_the_stream),
        ("SBX-06", drop_errors),
        ("SBX-07", count_nothing),
        ("SBX-12", share_one_session),
        ("RUN-01", forget_the_result),
        ("RUN-02", take_any_tool_id),
        ("RUN-03", prefer_the_environments_keys),
        ("DEC-01", accept_any_entrypoint),
        ("DEC-02", accept_any_ping),
        ("DEC-03", accept_async_task),
    ],
)
def test_a_check_fails_where_the_double_is_broken(
    check: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, clause: str, break_it: Break
) -> None:
    """A check that cannot fail would say nothing by passing."""
    break_it(monkeypatch)

    assert {clause: Verdict.FAILED} == verdicts(check("-k", clause))


@pytest.mark.parametrize(
    ("clause", "path"),
    [
        ("PRB-02", "/health"),
        ("PRB-03", "/readiness"),
        ("PRB-04", "/liveness"),
        ("PRB-07", "/liveness"),
    ],
)
def test_a_missing_probe_fails_its_check(
    check: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, clause: str, path: str
) -> None:
    """A deployment that lacks one of the four is told which clause that breaks."""
    original = simple.SimpleApp.__call__

    async def call(self: Any, scope: Any, receive: Any, send: Any) -> None:
        if scope.get("path") == path:
            await PlainTextResponse("Not Found", 404)(scope, receive, send)
            return
        await original(self, scope, receive, send)

    monkeypatch.setattr(simple.SimpleApp, "__call__", call)

    assert {clause: Verdict.FAILED} == verdicts(check("-k", clause))


def test_a_check_must_name_exactly_one_clause(pytester: pytest.Pytester) -> None:
    """One that names two is refused when it is collected."""
    folder = pytester.mkpydir("more")
    (folder / "conftest.py").write_text("from doublecheck.contracts.conftest import *\n")
    (folder / "test_two.py").write_text(
        "from doublecheck.contracts.clauses import clause\n\n"
        "@clause('INV-01')\n@clause('INV-02')\ndef test_two(): pass\n"
    )

    result = pytester.runpytest_inprocess(str(folder))

    result.stderr.fnmatch_lines(["*test_two must name exactly one clause, not 2.*"])


def test_the_reference_apps_are_declared(platform_server: Target) -> None:
    """A double that serves something else does not claim to serve them."""
    assert not platform_server.reference_app
