"""Mutants of hosted runtimes: the gateway in front of them, their scaling, isolation and logs."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentdouble.processes.fork_server.confinement import Confinement
from agentdouble.runtimes import exposition, forking
from agentdouble.runtimes.confining import confinement_of
from agentdouble.runtimes.logs import InstanceLog, Stream
from agentdouble.runtimes.scaling import Scaler
from tests.mutants import Mutant, lossy, wire

GATEWAY = "/runtimes/{name}"
INVOKE = f"POST {GATEWAY}/invoke"
MCP = f"{GATEWAY}/mcp"
SESSIONS = "Multiple sessions run in one environment behind one access point (1)"
SCALING = "Scaling is automatic, down to zero when idle (1)"
ISOLATION = "Isolation is per agent runtime (1)"
MONITORING = "Monitoring and logs are built in (1)"
PROTOCOLS = "Protocols: HTTP, MCP (Model Context Protocol) and A2A (agent-to-agent) (1)"

Patch = Callable[[pytest.MonkeyPatch], None]


# ---- one environment behind one access point


def _where(change: Callable[[dict[str, Any], wire.Request], dict[str, Any]]) -> wire.Change:
    """Change what an application tells of its environment and of its caller's session."""

    def changed(document: Any, request: wire.Request) -> Any:
        told = json.loads(document) if isinstance(document, str) else document
        return json.dumps(change(told, request))

    def matched(document: Any, request: wire.Request) -> Any:
        where = isinstance(request.json, dict) and request.json.get("do") == "where"
        return changed(document, request) if where else document

    return wire.answers(INVOKE, matched)


def _environment_of_a_session(told: dict[str, Any], request: wire.Request) -> dict[str, Any]:
    return {**told, "environment": f"{told['environment']}-{request.headers.get('session_id')}"}


def _session(change: Callable[[str], str]) -> wire.Change:
    """Change the session id before the application sees it."""

    def changed(request: wire.Request) -> None:
        if "session_id" in request.headers:
            request.headers["session_id"] = change(request.headers["session_id"])

    return wire.requested(f"* {GATEWAY}/*", changed)


def _first_session_for_all(patch: pytest.MonkeyPatch) -> None:
    """Tell the application the session of the first caller."""
    first: list[str] = []

    def changed(session: str) -> str:
        first.append(session)
        return first[0]

    _session(changed)(patch)


def _refuse_a_second_session(patch: pytest.MonkeyPatch) -> None:
    """Serve only one session at an access point."""
    first: list[str] = []

    def refuse(answer: wire.Answer, request: wire.Request) -> None:
        first.append(request.headers.get("session_id", ""))
        if first[-1] != first[0]:
            answer.status, answer.body = 503, b'{"error": {"message": "The environment is taken."}}'

    wire.install(patch, wire.answered(INVOKE, refuse))


def _cache_by_body(patch: pytest.MonkeyPatch) -> None:
    """Answer the same body with the same answer, whatever the session."""
    known: dict[tuple[str, bytes], bytes] = {}

    def cached(answer: wire.Answer, request: wire.Request) -> None:
        answer.body = known.setdefault((request.path, request.body), answer.body)

    wire.install(patch, wire.answered(INVOKE, cached))


ENVIRONMENTS = (
    Mutant(
        "give_each_session_an_environment", "HST-01", SESSIONS, _where(_environment_of_a_session)
    ),
    Mutant("tell_the_first_session_for_each", "HST-01", SESSIONS, _first_session_for_all),
    Mutant("tell_8_characters_of_a_session", "HST-01", SESSIONS, _session(lossy.cut(8))),
    Mutant("refuse_a_second_session", "HST-01", SESSIONS, _refuse_a_second_session),
    Mutant("answer_a_session_with_the_answer_of_another", "HST-01", SESSIONS, _cache_by_body),
)


# ---- scaling


def _never_scale(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Scaler, "end_idle", lambda _self, _now, _idle: None)


def _pretend_to_scale(patch: pytest.MonkeyPatch) -> None:
    """List no instance, and keep it running."""

    def none(document: Any) -> Any:
        document["Result"]["InstanceItems"] = []
        return document

    _never_scale(patch)
    wire.install(patch, wire.actions("ListRuntimeInstances", none))


def _after_scaling(spoil: Callable[[wire.Answer], None], *, always: bool = False) -> Patch:
    """Spoil the first answer after a runtime was scaled to zero, or all."""

    def change(patch: pytest.MonkeyPatch) -> None:
        end_idle = Scaler.end_idle
        scaled: set[str] = set()

        def noted(self: Scaler, now: dt.datetime, idle: dt.timedelta) -> None:
            before = [one for one in self.pool.living if not one.ended_because]
            end_idle(self, now, idle)
            if any(one.ended_because == "idle" for one in before):
                scaled.add(self._name)

        def spoiled(answer: wire.Answer, request: wire.Request) -> None:
            name = request.path.split("/")[2]
            if name in scaled:
                spoil(answer)
                scaled.difference_update(() if always else (name,))

        patch.setattr(Scaler, "end_idle", noted)
        wire.install(patch, wire.answered(f"* {GATEWAY}/*", spoiled))

    return change


def _refused(answer: wire.Answer) -> None:
    answer.status, answer.body = 503, b'{"error": {"message": "The runtime starts."}}'


def _emptied(answer: wire.Answer) -> None:
    answer.status, answer.body = 202, b""


SCALED = (
    Mutant("never_scale_to_zero", "HST-02", SCALING, _never_scale),
    Mutant("list_no_instance_and_keep_it", "HST-02", SCALING, _pretend_to_scale),
    Mutant("refuse_the_request_that_starts_again", "HST-02", SCALING, _after_scaling(_refused)),
    Mutant(
        "accept_the_request_that_starts_again_and_answer_nothing",
        "HST-02",
        SCALING,
        _after_scaling(_emptied),
    ),
    Mutant("stay_at_zero", "HST-02", SCALING, _after_scaling(_refused, always=True)),
)


# ---- isolation


def _confine_nothing(patch: pytest.MonkeyPatch) -> None:
    """Run every runtime as the platform itself."""
    patch.setattr(forking, "confinement_of", lambda *_given, **_named: None)


def _confining(change: Callable[[Confinement], Confinement]) -> Patch:
    """Confine runtimes in another way."""

    def patched(patch: pytest.MonkeyPatch) -> None:
        def changed(*given: Any, **named: Any) -> Confinement | None:
            confinement = confinement_of(*given, **named)
            return None if confinement is None else change(confinement)

        patch.setattr(forking, "confinement_of", changed)

    return patched


def _one_temporary_folder_for_all(patch: pytest.MonkeyPatch) -> None:
    """Give each runtime the temporary folder of the first, open to all."""
    first: list[Confinement] = []

    def shared(one: Confinement) -> Confinement:
        first.append(one)
        Path(first[0].tmp).chmod(0o777)
        return dataclasses.replace(one, tmp=first[0].tmp)

    _confining(shared)(patch)


def _one_environment_for_all(patch: pytest.MonkeyPatch) -> None:
    """Give each runtime the variables of all."""
    fork = forking.Forks.fork

    async def leaking(self: forking.Forks, definition: Any, command: Any, *given: Any) -> Any:
        tables = self._settings.runtimes
        every = {k: v for one in tables for k, v in (_field(one, "environment") or {}).items()}
        leaked = dataclasses.replace(command, env={**every, **command.env})
        return await fork(self, definition, leaked, *given)

    patch.setattr(forking.Forks, "fork", leaking)


def _field(table: Any, name: str) -> Any:
    return table.get(name) if hasattr(table, "get") else getattr(table, name, None)


ISOLATED = (
    Mutant("isolate_nothing", "HST-03", ISOLATION, _confine_nothing),
    Mutant("share_a_temporary_folder", "HST-03", ISOLATION, _one_temporary_folder_for_all),
    Mutant("give_each_runtime_the_variables_of_all", "HST-03", ISOLATION, _one_environment_for_all),
)


# ---- monitoring


def _fed(change: Callable[[Stream, bytes], bytes | None]) -> Patch:
    """Change what instances print; nothing is kept of a piece that becomes None."""

    def patched(patch: pytest.MonkeyPatch) -> None:
        feed = InstanceLog.feed

        def changed(self: InstanceLog, stream: Stream, data: bytes) -> None:
            kept = change(stream, data) if data else data
            if kept is not None:
                feed(self, stream, kept)

        patch.setattr(InstanceLog, "feed", changed)

    return patched


def _metrics(change: Callable[[str], str]) -> Patch:
    """Change the metrics of runtimes."""

    def patched(patch: pytest.MonkeyPatch) -> None:
        render = exposition.render

        def changed(*given: Any) -> tuple[bytes, str]:
            content, kind = render(*given)
            return change(content.decode()).encode(), kind

        patch.setattr(exposition, "render", changed)

    return patched


def _without(name: str) -> Callable[[str], str]:
    """Lose all lines with a word."""
    return lambda text: "".join(line for line in text.splitlines(True) if name not in line)


def _zero(name: str) -> Callable[[str], str]:
    """Count nothing in the metrics whose names begin so."""
    return lambda text: re.sub(rf"^({name}\S*\{{.*\}}) \S+$", r"\1 0.0", text, flags=re.MULTILINE)


def _logs(change: Callable[[str], str]) -> wire.Change:
    def changed(document: Any) -> Any:
        document["Result"]["Logs"] = change(document["Result"]["Logs"])
        return document

    return wire.actions("GetRuntimeInstanceLogs", changed)


def _first_word_of_lines(data: bytes) -> bytes:
    return b"\n".join(line.partition(b" ")[0] for line in data.split(b"\n"))


MONITORED = (
    Mutant(
        "keep_no_standard_output",
        "HST-04",
        MONITORING,
        _fed(lambda stream, data: None if stream == "stdout" else data),
    ),
    Mutant(
        "keep_no_standard_error",
        "HST-04",
        MONITORING,
        _fed(lambda stream, data: None if stream == "stderr" else data),
    ),
    Mutant(
        "keep_the_first_word_of_each_line",
        "HST-04",
        MONITORING,
        _fed(lambda _, data: _first_word_of_lines(data)),
    ),
    Mutant(
        "keep_ascii_of_logs",
        "HST-04",
        MONITORING,
        _fed(lambda _, data: lossy.to_ascii(data.decode(errors="replace")).encode()),
    ),
    Mutant("show_no_line_of_logs", "HST-04", MONITORING, _logs(lambda _: "")),
    Mutant(
        "count_no_requests", "HST-04", MONITORING, _metrics(_zero("agentdouble_runtime_requests"))
    ),
    Mutant(
        "count_no_errors", "HST-04", MONITORING, _metrics(_without("agentdouble_runtime_errors"))
    ),
    Mutant(
        "measure_no_durations",
        "HST-04",
        MONITORING,
        _metrics(_without("agentdouble_runtime_request_duration")),
    ),
)


# ---- protocols


def _lose_session(request: wire.Request) -> None:
    request.headers.pop("mcp-session-id", None)


def _lose_body(request: wire.Request) -> None:
    request.body = request.body[:0]


def _not_found(answer: wire.Answer, _request: wire.Request) -> None:
    answer.status, answer.body = 404, b'{"detail": "Not Found"}'


def _hosted_calls(method: str, change: Callable[[Any], Any]) -> wire.Change:
    def changed(result: Any, request: wire.Request) -> Any:
        return change(result) if request.path.startswith("/runtimes/") else result

    return wire.calls(method, changed)


def _without_artifacts(result: Any) -> Any:
    result.get("task", result).pop("artifacts", None)
    return result


def _said_in_ascii(result: Any) -> Any:
    return lossy.in_texts(result, lossy.to_ascii)


SPOKEN = (
    Mutant(
        "speak_no_mcp",
        "HST-05",
        PROTOCOLS,
        wire.statuses(f"* {MCP}", 404, {"detail": "Not Found"}),
    ),
    Mutant(
        "lose_mcp_sessions",
        "HST-05",
        PROTOCOLS,
        wire.requested(f"* {MCP}", _lose_session),
    ),
    Mutant(
        "list_no_tools_of_a_runtime",
        "HST-05",
        PROTOCOLS,
        _hosted_calls("tools/list", lambda result: {**result, "tools": []}),
    ),
    Mutant(
        "call_tools_of_a_runtime_in_vain",
        "HST-05",
        PROTOCOLS,
        _hosted_calls("tools/call", lambda _: {"content": [], "isError": False}),
    ),
    Mutant(
        "serve_no_card_of_a_runtime",
        "HST-05",
        PROTOCOLS,
        wire.statuses(f"GET {GATEWAY}/.well-known/*", 404, {"detail": "Not Found"}),
    ),
    Mutant(
        "return_no_artifacts_of_a_runtime",
        "HST-05",
        PROTOCOLS,
        _hosted_calls("SendMessage", _without_artifacts),
    ),
    Mutant("speak_no_http", "HST-05", PROTOCOLS, wire.answered(INVOKE, _not_found)),
    Mutant(
        "lose_the_bodies_of_invocations", "HST-05", PROTOCOLS, wire.requested(INVOKE, _lose_body)
    ),
)

MUTANTS: tuple[Mutant, ...] = (*ENVIRONMENTS, *SCALED, *ISOLATED, *MONITORED, *SPOKEN)
