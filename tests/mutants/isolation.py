"""Mutants of sandbox instances: made, kept, ended, and apart from each other (3, 4.4)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agentdouble.control_plane.action_errors import invalid
from agentdouble.control_plane.invoke_tool_action import InvokeTool
from agentdouble.sandbox.instance import Instance
from agentdouble.sandbox.instances import Instances
from agentdouble.sandbox.result import ExecutionResult
from tests.mutants import Mutant
from tests.mutants.sandbox_changes import (
    PYTHON,
    Json,
    Patched,
    bodies,
    code,
    data,
    python_before,
    result,
    sessions,
)
from tests.mutants.sandbox_state import (
    fresh_kernels,
    kept_files,
    one_directory,
    one_kernel,
    recycled,
    replayed,
)

FIRST = "first tool invocation with a session_id: instance created automatically (3)"
REUSED = "the same instance is reused, so execution context persists (3)"
ENDS = "default validity of 30 minutes elapsed: destroyed automatically (3, 8)"
APART = "different session_id values use separate, non-interfering sandbox instances (3)"
DERIVED = "a tool-user session id derived from user id and session id (4.4)"

_FORGET = """
for _name in [n for n, _v in globals().items() if not n.startswith('_') and ({})
              and n not in ('In', 'Out', 'exit', 'quit', 'open', 'get_ipython')]:
    del globals()[_name]
"""
_CLEAR = """
import os as _os, shutil as _shutil
for _name in _os.listdir({directory!r}):
    _path = _os.path.join({directory!r}, _name)
    try:
        _shutil.rmtree(_path) if _os.path.isdir(_path) else _os.unlink(_path)
    except OSError:
        pass
"""
_RESTORE_ENVIRONMENT = """
import os as _os, builtins as _b
_b._environment = getattr(_b, '_environment', None) or dict(_os.environ)
_os.environ.clear()
_os.environ.update(_b._environment)
"""
_RESTORE_DIRECTORY = """
import os as _os, builtins as _b
_b._directory = getattr(_b, '_directory', None) or _os.getcwd()
_os.chdir(_b._directory)
"""
_RESTORE_PATH = """
import sys as _sys, builtins as _b
_b._path = getattr(_b, '_path', None) or list(_sys.path)
_sys.path[:] = _b._path
"""
_RELOAD = """
import sys as _sys, builtins as _b
_b._modules = getattr(_b, '_modules', None) or set(_sys.modules)
for _name in set(_sys.modules) - _b._modules:
    del _sys.modules[_name]
"""
_END_CHILDREN = """
import os as _os
for _pid in filter(str.isdigit, _os.listdir('/proc')):
    try:
        _parent = open(f'/proc/{_pid}/stat').read().rpartition(')')[2].split()[1]
        if int(_parent) == _os.getpid():
            _os.kill(int(_pid), 9)
    except OSError:
        pass
"""
_AFTER_ERROR = """
import sys as _sys
if hasattr(_sys, 'last_value'):
    del _sys.last_value
    {}
"""
_EVERY_THIRD = """
import builtins as _b
_b._calls = getattr(_b, '_calls', 0) + 1
if _b._calls % 3 == 0:
    {}
"""


def _forget(which: str = "True") -> str:
    return _FORGET.format(which)


def _indented(text: str) -> str:
    return text.strip().replace("\n", "\n    ")


# ---- the first invocation


def _refused_at_first(which: Callable[[Any], bool]) -> Patched:
    """Refuse the invocations that would create an instance."""

    def change(patch: pytest.MonkeyPatch) -> None:
        original = InvokeTool._instance

        async def instance(self: InvokeTool, request: Any) -> Instance:
            living = await self._instances.find(request.ToolId, request.UserSessionId)
            if living is None and which(request):
                raise invalid("UserSessionId", "there is no such session: create it first")
            return await original(self, request)

        patch.setattr(InvokeTool, "_instance", instance)

    return change


def _at_first(change: Callable[[Json], Any], name: str = "SessionId") -> Callable[[Json], Any]:
    seen: set[str] = set()

    def first(changed: Json) -> None:
        session = changed[name]
        if session not in seen:
            change(changed)
        seen.add(session)

    return first


def _twice_at_first() -> Patched:
    seen: set[str] = set()

    def twice(instance: Instance, code: str, _language: str) -> str:
        is_first = instance.id not in seen
        seen.add(instance.id)
        return f"{code}\n{code}" if is_first else code

    return code(twice)


# ---- the end


def _default_ttl(seconds: int) -> Patched:
    def change(patch: pytest.MonkeyPatch) -> None:
        original = Instances._create

        async def create(self: Instances, key: Any, ttl_s: int | None, *rest: Any) -> Instance:
            return await original(self, key, ttl_s or seconds, *rest)

        patch.setattr(Instances, "_create", create)

    return change


_A_DAY = 24 * 3600


def _lasting(which: Callable[[Json], bool]) -> Patched:
    """Give a day to the instances that such a request creates without a Ttl."""
    return bodies(lambda body: {**body, "Ttl": body.get("Ttl") or _A_DAY} if which(body) else body)


def _lasts_from_the_second_on(patch: pytest.MonkeyPatch) -> None:
    """Let only the first instance end that was created without a Ttl."""
    original = Instances._create
    made: list[Any] = []

    async def create(self: Instances, key: Any, ttl_s: int | None, *rest: Any) -> Instance:
        if ttl_s is None:
            made.append(key)
            ttl_s = None if len(made) == 1 else _A_DAY
        return await original(self, key, ttl_s, *rest)

    patch.setattr(Instances, "_create", create)


def _extended_by_others(patch: pytest.MonkeyPatch) -> None:
    original = Instances.use

    def use(self: Instances, instance: Instance, ttl_s: int | None = None) -> Instance:
        for other in self.living():
            if other is not instance:
                other.deadline = self._clock.now() + other.ttl
        return original(self, instance, ttl_s)

    patch.setattr(Instances, "use", use)


def _ended_one_at_a_time(patch: pytest.MonkeyPatch) -> None:
    """End only the first of the instances that are due, and give the others a day."""
    original = Instances.destroy_due

    def destroy_due(self: Instances) -> None:
        due = self._living.due(self._clock.now())
        for other in due[1:]:
            self.set_ttl(other, dt.timedelta(days=1))
        original(self)

    patch.setattr(Instances, "destroy_due", destroy_due)


def _ended_together(patch: pytest.MonkeyPatch) -> None:
    """End all instances when one of them is due."""
    original = Instances.destroy_due

    def destroy_due(self: Instances) -> None:
        if any(one.deadline <= self._clock.now() for one in self.living()):
            for one in self.living():
                one.deadline = self._clock.now()
                self._living.update(one)
        original(self)

    patch.setattr(Instances, "destroy_due", destroy_due)


def _same_session_id() -> Callable[[Json], Any]:
    ids: dict[str, str] = {}
    return lambda one: one.update(SessionId=ids.setdefault(one["UserSessionId"], one["SessionId"]))


# ---- other sessions


def _by_error(patch: pytest.MonkeyPatch) -> None:
    """End all other sessions when code fails in one."""
    original = Instances.execute

    async def execute(self: Instances, instance: Instance, *rest: Any, **more: Any) -> Any:
        ran = await original(self, instance, *rest, **more)
        if ran.status == "error":
            for other in self.living():
                if other is not instance:
                    await self.destroy(other, "another session failed")
        return ran

    patch.setattr(Instances, "execute", execute)


def _by_deletion(which: Callable[[Instance, Instance], bool]) -> Patched:
    """End other sessions when a caller deletes one."""

    def change(patch: pytest.MonkeyPatch) -> None:
        original = Instances.destroy

        async def destroy(self: Instances, instance: Instance, reason: str, at: Any = None) -> None:
            others = [one for one in self.living() if one is not instance and which(one, instance)]
            await original(self, instance, reason, at)
            for one in others if reason == "deleted by caller" else ():
                await original(self, one, reason, at)

        patch.setattr(Instances, "destroy", destroy)

    return change


def _answers_of_others(patch: pytest.MonkeyPatch) -> None:
    """Answer with the outputs of another session's code that has ended meanwhile."""
    original = Instance.execute
    running: dict[object, tuple[Instance, list[ExecutionResult]]] = {}

    async def execute(self: Instance, *rest: Any, **more: Any) -> ExecutionResult:
        mark, ended = object(), list[ExecutionResult]()
        running[mark] = self, ended
        try:
            ran = await original(self, *rest, **more)
        finally:
            del running[mark]
        for other, theirs in running.values():
            if other is not self:
                theirs.append(ran)
        return replace(ran, outputs=ended[0].outputs) if ended else ran

    patch.setattr(Instance, "execute", execute)


def _last_of_name(name: str) -> str:
    return name.rpartition("_")[2]


def _user_of(instance: Instance) -> str:
    return instance.key.user_session_id.rpartition("_")[0]


def _session_of(instance: Instance) -> str:
    return _last_of_name(instance.key.user_session_id)


def _alternating() -> Callable[[str], str]:
    calls = [0]

    def name(given: str) -> str:
        calls[0] += 1
        return f"{given}-{calls[0] % 2}"

    return name


def _other_session_ids() -> Callable[[Json], Any]:
    names = _alternating()
    return lambda one: one.update(SessionId=names(one["SessionId"]))


def _counted_user(name: str) -> str:
    """Return a name with nothing of the user but how many letters it has."""
    user, _, session = name.rpartition("_")
    return f"{len(user)}_{session}"


_LIVES = (
    Mutant(
        "refuse_sessions_that_nobody_created", "SBX-01", FIRST, _refused_at_first(lambda _: True)
    ),
    Mutant(
        "refuse_a_command_as_the_first_invocation",
        "SBX-01",
        FIRST,
        _refused_at_first(lambda request: request.OperationType == "ExecBash"),
    ),
    Mutant(
        "refuse_javascript_as_the_first_invocation",
        "SBX-01",
        FIRST,
        _refused_at_first(lambda request: "javascript" in request.OperationPayload),
    ),
    Mutant(
        "run_nothing_at_the_first_invocation",
        "SBX-01",
        FIRST,
        data(_at_first(lambda one: one.update(outputs=[]), "session_id")),
    ),
    Mutant("run_the_first_code_twice", "SBX-01", FIRST, _twice_at_first()),
    Mutant(
        "name_no_instance_at_the_first_invocation",
        "SBX-01",
        FIRST,
        result(_at_first(lambda one: one.update(SessionId=""), "UserSessionId")),
    ),
    Mutant("forget_all_variables", "SBX-02", REUSED, python_before(_forget())),
    Mutant(
        "forget_functions_and_classes", "SBX-02", REUSED, python_before(_forget("callable(_v)"))
    ),
    Mutant(
        "forget_imports", "SBX-02", REUSED, python_before(_forget("type(_v).__name__ == 'module'"))
    ),
    Mutant(
        "forget_what_is_no_json",
        "SBX-02",
        REUSED,
        python_before(_forget("not isinstance(_v, (str, int, float, list, dict, type(None)))")),
    ),
    Mutant(
        "forget_variables_after_an_error",
        "SBX-02",
        REUSED,
        python_before(_AFTER_ERROR.format(_indented(_forget()))),
    ),
    Mutant(
        "forget_variables_at_every_third_call",
        "SBX-02",
        REUSED,
        python_before(_EVERY_THIRD.format(_indented(_forget()))),
    ),
    Mutant("go_back_to_the_first_directory", "SBX-02", REUSED, python_before(_RESTORE_DIRECTORY)),
    Mutant("reset_the_environment", "SBX-02", REUSED, python_before(_RESTORE_ENVIRONMENT)),
    Mutant("reset_the_path_of_imports", "SBX-02", REUSED, python_before(_RESTORE_PATH)),
    Mutant("import_modules_anew", "SBX-02", REUSED, python_before(_RELOAD)),
    Mutant(
        "remove_the_files_at_home",
        "SBX-02",
        REUSED,
        python_before(_CLEAR.format(directory="/home/gem")),
    ),
    Mutant(
        "remove_temporary_files", "SBX-02", REUSED, python_before(_CLEAR.format(directory="/tmp"))
    ),
    Mutant("end_what_runs_in_the_background", "SBX-02", REUSED, python_before(_END_CHILDREN)),
    Mutant(
        "start_javascript_anew_at_each_call",
        "SBX-02",
        REUSED,
        fresh_kernels(lambda _, language: language.name == "javascript"),
    ),
    Mutant(
        "start_python_anew_after_javascript",
        "SBX-02",
        REUSED,
        fresh_kernels(
            lambda before, language: (
                before not in ("", language.name) and language.name == "python3"
            )
        ),
    ),
    Mutant(
        "start_python_anew_after_a_command",
        "SBX-02",
        REUSED,
        fresh_kernels(lambda before, language: before == "bash" and language.name == "python3"),
    ),
    Mutant(
        "name_another_instance_at_each_call",
        "SBX-02",
        REUSED,
        result(_other_session_ids()),
    ),
    Mutant("take_turns_between_two_instances", "SBX-02", REUSED, sessions(_alternating())),
)

_ENDS = (
    Mutant("end_after_29_minutes", "SBX-03", ENDS, _default_ttl(29 * 60)),
    Mutant("end_after_31_minutes", "SBX-03", ENDS, _default_ttl(31 * 60)),
    Mutant("end_after_5_minutes", "SBX-03", ENDS, _default_ttl(5 * 60)),
    Mutant("end_after_an_hour", "SBX-03", ENDS, _default_ttl(3600)),
    Mutant("end_never", "SBX-03", ENDS, _default_ttl(10**8)),
    Mutant("end_only_the_first_instance", "SBX-03", ENDS, _lasts_from_the_second_on),
    Mutant(
        "keep_for_a_day_what_a_command_created",
        "SBX-03",
        ENDS,
        _lasting(lambda body: body["OperationType"] == "ExecBash"),
    ),
    Mutant(
        "keep_for_a_day_what_javascript_created",
        "SBX-03",
        ENDS,
        _lasting(lambda body: "javascript" in body["OperationPayload"]),
    ),
    Mutant("end_one_of_the_instances_that_are_due", "SBX-03", ENDS, _ended_one_at_a_time),
    Mutant("extend_the_validity_by_the_use_of_other_sessions", "SBX-03", ENDS, _extended_by_others),
    Mutant("keep_files_past_the_end", "SBX-03", ENDS, kept_files),
    Mutant("keep_python_past_the_end", "SBX-03", ENDS, recycled(*PYTHON, same_session=True)),
    Mutant(
        "keep_javascript_past_the_end", "SBX-03", ENDS, recycled("javascript", same_session=True)
    ),
    Mutant(
        "keep_the_session_id_past_the_end",
        "SBX-03",
        ENDS,
        result(_same_session_id()),
    ),
)

_APART = (
    Mutant("have_one_instance_for_all_sessions", "SBX-04", APART, sessions(lambda _: "all")),
    Mutant(
        "know_sessions_by_their_first_24_characters",
        "SBX-04",
        APART,
        sessions(lambda name: name[:24]),
    ),
    Mutant(
        "know_sessions_by_their_last_8_characters",
        "SBX-04",
        APART,
        sessions(lambda name: name[-8:]),
    ),
    Mutant("know_sessions_in_any_case", "SBX-04", APART, sessions(str.lower)),
    Mutant(
        "take_hyphens_for_underscores",
        "SBX-04",
        APART,
        sessions(lambda name: name.replace("-", "_")),
    ),
    Mutant(
        "know_sessions_by_letters_and_digits_alone",
        "SBX-04",
        APART,
        sessions(lambda name: "".join(filter(str.isalnum, name))),
    ),
    Mutant(
        "name_one_instance_for_all_sessions",
        "SBX-04",
        APART,
        result(lambda one: one.update(SessionId="s-0123456789abcdef0123")),
    ),
    Mutant("share_python_between_sessions", "SBX-04", APART, one_kernel("python3")),
    Mutant("share_javascript_between_sessions", "SBX-04", APART, one_kernel("javascript")),
    Mutant("share_files_at_home_between_sessions", "SBX-04", APART, one_directory("home")),
    Mutant("share_temporary_files_between_sessions", "SBX-04", APART, one_directory("tmp")),
    Mutant("share_the_environment_between_sessions", "SBX-04", APART, replayed(r"environ|putenv")),
    Mutant("share_imported_modules_between_sessions", "SBX-04", APART, replayed(r"^import \w+")),
    Mutant("share_the_directory_between_sessions", "SBX-04", APART, replayed(r"chdir")),
    Mutant(
        "hand_on_the_python_of_an_ended_session",
        "SBX-04",
        APART,
        recycled(*PYTHON, same_session=False),
    ),
    Mutant("end_all_sessions_when_one_is_due", "SBX-04", APART, _ended_together),
    Mutant(
        "end_all_sessions_when_one_is_deleted",
        "SBX-04",
        APART,
        _by_deletion(lambda _one, _other: True),
    ),
    Mutant("end_other_sessions_when_code_fails", "SBX-04", APART, _by_error),
    Mutant(
        "answer_with_the_outputs_of_a_session_that_runs_meanwhile",
        "SBX-04",
        APART,
        _answers_of_others,
    ),
)

_USERS = (
    Mutant("leave_out_the_user", "SBX-12", DERIVED, sessions(_last_of_name)),
    Mutant("know_users_by_their_length", "SBX-12", DERIVED, sessions(_counted_user)),
    Mutant("know_users_in_any_case", "SBX-12", DERIVED, sessions(str.lower)),
    Mutant(
        "join_user_and_session_without_a_separator",
        "SBX-12",
        DERIVED,
        sessions(lambda name: name.replace("_", "")),
    ),
    Mutant(
        "leave_out_the_session",
        "SBX-12",
        DERIVED,
        sessions(lambda name: name.rpartition("_")[0] or name),
    ),
    Mutant("share_python_between_users", "SBX-12", DERIVED, one_kernel("python3", of=_session_of)),
    Mutant(
        "share_javascript_between_users",
        "SBX-12",
        DERIVED,
        one_kernel("javascript", of=_session_of),
    ),
    Mutant("share_files_between_users", "SBX-12", DERIVED, one_directory("home")),
    Mutant(
        "end_the_sessions_of_other_users_by_a_deletion",
        "SBX-12",
        DERIVED,
        _by_deletion(lambda one, other: _session_of(one) == _session_of(other)),
    ),
    Mutant(
        "end_all_sessions_of_a_user_by_a_deletion",
        "SBX-12",
        DERIVED,
        _by_deletion(lambda one, other: _user_of(one) == _user_of(other)),
        also=("SBX-04",),
    ),
)

MUTANTS: tuple[Mutant, ...] = (*_LIVES, *_ENDS, *_APART, *_USERS)
