"""A user's sandbox session in which checks run code, and readers of its results."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import pytest

from agentdouble.core import invoke_tool
from doublecheck.client._sync.sandbox import Sandbox
from doublecheck.contracts.engine import for_caller, renewed
from doublecheck.contracts.sentences import listed, short
from doublecheck.contracts.verdicts import not_observable
from doublecheck.errors import RefusedError
from doublecheck.values.executions import BashResult, CodeResult, Output

CALLERS = f"doublecheck-callers-{uuid.uuid4().hex}"  # the sessions of callers at the same time
TTL_S = 120  # seconds; sessions that a check creates expire soon
PYTHON, JAVASCRIPT, COMMAND = "python3", "javascript", "bash"
TYPES_OF_DATA = {  # in the JSON of 2.7
    **dict.fromkeys(("kernel_name", "session_id", "status", "code", "msg_id"), "str"),
    "execution_count": "int",
    "outputs": "list",
}

Paths = Mapping[str, str]


@dataclass(frozen=True, repr=False)
class CheckSandbox(Sandbox):
    """A user's sandbox session, in which checks run code. It expires soon.

    A ``ttl_s`` of None asks for the platform's default lifetime.
    """

    ttl_s: int | None = TTL_S

    def read_file(self, path: str) -> bytes | None:
        """Download a file from the session. Return None if the platform refuses."""
        try:
            return self.download(path)
        except RefusedError:
            return None

    def end(self) -> None:
        """End the session. Skip the check if the platform offers no way to end one."""
        reason = "the platform does not list the session"
        try:
            if self.destroy():
                return
        except RefusedError as error:
            reason = str(error)
        not_observable(f"sessions cannot be ended: {reason}")

    def body(self, code: str, language: str = PYTHON) -> dict[str, Any]:
        """Return the body of an InvokeTool request that runs code or a command."""
        tool_id, name = self.platform.target.sandbox_tool(), self.user_session_id
        return invoke_tool.RunCode(tool_id, name, code, language, ttl_s=self.ttl_s).body()

    def with_user(self, user_id: str) -> CheckSandbox:
        """Return another user's session with the same name."""
        return replace(self, user_id=user_id)

    def with_session(self, suffix: str) -> CheckSandbox:
        """Return another session of the same user, with a longer name."""
        return replace(self, session_id=f"{self.session_id}-{suffix}")


@for_caller.register
def _sandbox_of_caller(sandbox: CheckSandbox, number: int, _stack: ExitStack) -> CheckSandbox:
    return replace(sandbox, session_id=f"{CALLERS}-{number}")


@renewed.register
def _renewed_sandbox(sandbox: CheckSandbox, number: int) -> CheckSandbox:
    return sandbox.with_session(f"again-{number}") if number else sandbox


def printed_json(result: CodeResult) -> Any:
    """Return the JSON that code printed. Fail if it printed something else."""
    try:
        return json.loads(result.stdout)
    except ValueError:
        pytest.fail(f"The code should print JSON, but the outputs are {result.outputs}.")


def failure(result: CodeResult) -> Output:
    """Return the output with the error. Fail if there is none, or if the status is ok (7.3)."""
    errors = [output for output in result.outputs if output.ename]
    assert errors, f"no output has an ename: {short(result.outputs)}"
    assert result.status != "ok", "the status of failed code is ok"
    return errors[-1]


def succeeded(result: CodeResult) -> CodeResult:
    """Return the result. Fail unless its status is ok."""
    assert result.status == "ok", f"the status is {result.status!r}: {short(result.outputs)}"
    return result


_MAKE = """
import json, os, subprocess, sys, tempfile, threading
kept = {mark!r}
json.mark = kept
os.environ['DOUBLECHECK_MARK'] = kept
home = os.getcwd()
for place in (home, tempfile.gettempdir()):
    with open(os.path.join(place, {file!r}), 'w') as file:
        file.write(kept)
os.makedirs(kept, exist_ok=True)
os.chdir(kept)
process = subprocess.Popen(['sleep', '600'])
opened = open(os.path.join(home, {file!r} + '-opened'), 'w+')
opened.write(kept)
sys.path.append(kept)
event = threading.Event()
thread = threading.Thread(target=event.wait, daemon=True)
thread.start()
print(json.dumps([home, tempfile.gettempdir()]))
"""
MARKS = ("one", "other")
# how to read each kind of state; it is missing if this raises or gives no mark
_STATE = {
    "variable": "kept",
    "import": "__import__('json').mark",
    "environment": "__import__('os').environ['DOUBLECHECK_MARK']",
    "file at home": "open('{home}/{file}').read()",
    "temporary file": "open('{tmp}/{file}').read()",
    "working directory": "__import__('os').path.basename(__import__('os').getcwd())",
    "open file": "(opened.seek(0), opened.read())[1]",
    "import path": "next(path for path in __import__('sys').path if path in _marks)",
    "background thread": "thread.is_alive() and kept",
    "background process": "process.poll() is None and kept",
}
_LOOK = """
_marks, _state = {marks!r}, {{}}
for _kind, _expression in {expressions!r}.items():
    try:
        _value = eval(_expression)
    except Exception:
        _value = None
    _state[_kind] = _value if _value in _marks else None
print(__import__('json').dumps(_state))
"""
_MAKE_JAVASCRIPT = """
let kept = {mark};
globalThis.keptGlobal = kept;
function keptFunction() {{ return kept; }}
class KeptClass {{ static mark = kept; }}
"""
_LOOK_JAVASCRIPT = """
console.log(JSON.stringify({
    "let of JavaScript": typeof kept === "undefined" ? null : kept,
    "global of JavaScript": globalThis.keptGlobal ?? null,
    "function of JavaScript": typeof keptFunction === "undefined" ? null : keptFunction(),
    "class of JavaScript": typeof KeptClass === "undefined" ? null : KeptClass.mark,
}));
"""


def leave(sandbox: CheckSandbox, mark: str) -> Paths:
    """Leave every kind of state in a session, each with this mark, one of ``MARKS``.

    Returns the session's home, its temporary folder, and the name of a file in both.
    """
    file = f"doublecheck-{sandbox.session_id[:8]}"
    home, tmp = printed_json(succeeded(sandbox.run(_MAKE.format(mark=mark, file=file))))
    succeeded(sandbox.run(_MAKE_JAVASCRIPT.format(mark=json.dumps(mark)), JAVASCRIPT))
    return {"home": home, "tmp": tmp, "file": file}


def require_state(sandbox: CheckSandbox, paths: Paths, mark: str | None) -> None:
    """Fail unless every kind of state in a session has this mark, or is missing if it is None."""
    expressions = {kind: text.format(**paths) for kind, text in _STATE.items()}
    state = printed_json(sandbox.run(_LOOK.format(marks=MARKS, expressions=expressions)))
    state |= printed_json(sandbox.run(_LOOK_JAVASCRIPT, JAVASCRIPT))
    wrong = {kind: value for kind, value in state.items() if value != mark}
    expected = "missing" if mark is None else f"that of {mark!r}"
    assert not wrong, f"state of the session is not {expected}: {listed(wrong)}"


COUNTED = "/tmp/doublecheck-count"  # noqa: S108 (of the sandbox)
COUNTS = {
    PYTHON: "x = globals().get('x', 0) + 1; print(x)",
    JAVASCRIPT: "globalThis.x = (globalThis.x ?? 0) + 1; console.log(x);",
    COMMAND: f"echo x >> {COUNTED}; wc -l < {COUNTED}",
}


def counted(box: CheckSandbox, kind: str) -> CodeResult | BashResult:
    """Return the result of code or a command that prints how often it ran in the instance."""
    if kind == COMMAND:
        return box.exec_bash(COUNTS[kind])
    return succeeded(box.run(COUNTS[kind], kind))
