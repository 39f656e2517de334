"""A user's sandbox session in which checks run code, and readers of its results."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from agentdouble.core import invoke_tool
from agentdouble.core.code_tool import DEFAULT_AGENT, Invocation
from doublecheck.contracts.engine import for_caller
from doublecheck.contracts.verdicts import not_observable
from doublecheck.errors import RefusedError

if TYPE_CHECKING:
    from doublecheck.client._sync.platform import Platform
    from doublecheck.values.executions import BashResult, CodeResult, Output

CALLERS = f"doublecheck-callers-{uuid.uuid4().hex}"  # the sessions of callers at the same time
TTL_S = 120  # seconds; sessions that a check creates expire soon
PYTHON, JAVASCRIPT, COMMAND = "python3", "javascript", "bash"


@dataclass(frozen=True)
class Sandbox:
    """A user's sandbox session, in which checks run code."""

    platform: Platform
    user_id: str
    session_id: str

    @property
    def name(self) -> str:
        """The tool-user session id, which names the session in requests (SBX-12)."""
        return Invocation(self.user_id, self.session_id, DEFAULT_AGENT).user_session_id

    def run(self, code: str, language: str = PYTHON, *, ttl_s: int | None = TTL_S) -> CodeResult:
        """Run code in the session."""
        return self.platform.run_code(
            code, language, user_id=self.user_id, session_id=self.session_id, ttl_s=ttl_s
        )

    def exec_bash(self, command: str, *, ttl_s: int | None = TTL_S) -> BashResult:
        """Run a command in the session's terminal."""
        return self.platform.exec_bash(
            command, user_id=self.user_id, session_id=self.session_id, ttl_s=ttl_s
        )

    def upload(self, path: str, content: bytes, *, ttl_s: int | None = TTL_S) -> str:
        """Upload a file to the session; return its path."""
        return self.platform.upload(
            path, content, user_id=self.user_id, session_id=self.session_id, ttl_s=ttl_s
        )

    def download(self, path: str, *, ttl_s: int | None = TTL_S) -> bytes:
        """Download a file from the session."""
        return self.platform.download(
            path, user_id=self.user_id, session_id=self.session_id, ttl_s=ttl_s
        )

    def end(self) -> None:
        """End the session. Skip the check if the platform offers no way to end one."""
        try:
            ended = self.platform.destroy_session(user_id=self.user_id, session_id=self.session_id)
        except RefusedError as error:
            ended, reason = False, str(error)
        else:
            reason = "the platform does not list the session"
        if not ended:
            not_observable(f"sessions cannot be ended: {reason}")

    def body(
        self, code: str, language: str = PYTHON, *, ttl_s: int | None = TTL_S
    ) -> dict[str, Any]:
        """Return the body of an InvokeTool request that runs code or a command."""
        return invoke_tool.RunCode(
            tool_id=self.platform.target.sandbox_tool(),
            user_session_id=self.name,
            code=code,
            language=language,
            ttl_s=ttl_s,
        ).body()

    def with_user(self, user_id: str) -> Sandbox:
        """Return another user's session with the same name."""
        return replace(self, user_id=user_id)

    def with_session(self, suffix: str) -> Sandbox:
        """Return another session of the same user, with a longer name."""
        return replace(self, session_id=f"{self.session_id}-{suffix}")


@for_caller.register
def _sandbox_of_caller(sandbox: Sandbox, number: int, _stack: ExitStack) -> Sandbox:
    return replace(sandbox, session_id=f"{CALLERS}-{number}")


def printed(result: CodeResult, name: str = "stdout") -> str:
    """Return what code wrote to a stream, in one or several outputs."""
    kind = ("stream", name)
    return "".join(o.text or "" for o in result.outputs if (o.output_type, o.name) == kind)


def printed_json(result: CodeResult) -> Any:
    """Return the JSON that code printed. Fail if it printed something else."""
    try:
        return json.loads(printed(result))
    except ValueError:
        pytest.fail(f"The code should print JSON, but the outputs are {result.outputs}.")


def values(result: CodeResult) -> list[Any]:
    """Return the data of the values that code returned or displayed, in the order of its outputs."""
    others = ("stream", "error")
    return [
        output.data for output in result.outputs if output.data and output.output_type not in others
    ]


def texts_of_values(result: CodeResult) -> list[Any]:
    """Return the values that code returned or displayed, as plain text."""
    return [(data or {}).get("text/plain") for data in values(result)]


def failure(result: CodeResult) -> Output:
    """Return the output with the error. Fail if there is none, or if the status is ok (7.3)."""
    errors = [output for output in result.outputs if output.ename]
    assert errors, f"no output has an ename: {result.outputs}"
    assert result.status != "ok", "the status of failed code is ok"
    return errors[-1]


def succeeded(result: CodeResult) -> CodeResult:
    """Return the result. Fail unless its status is ok."""
    assert result.status == "ok", f"{result.status}: {result.outputs}"
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
_LOOK = """
import json as _json, os as _os, sys as _sys
def _content(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return None
def _opened(file):
    if file is None:
        return None
    file.seek(0)
    return file.read()
_mark = globals().get('kept')
_thread = globals().get('thread')
_here = _os.path.basename(_os.getcwd())
_process = globals().get('process')
print(_json.dumps({{
    'variable': _mark,
    'import': getattr(globals().get('json'), 'mark', None),
    'environment': _os.environ.get('DOUBLECHECK_MARK'),
    'file at home': _content(_os.path.join({home!r}, {file!r})),
    'temporary file': _content(_os.path.join({tmp!r}, {file!r})),
    'working directory': _here if _here in {marks!r} else None,
    'open file': _opened(globals().get('opened')),
    'import path': _mark if _mark in _sys.path else None,
    'background thread': _mark if _thread and _thread.is_alive() else None,
    'background process': _mark if _process and _process.poll() is None else None,
}}))
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
MARKS = ("one", "other")


@dataclass(frozen=True)
class Paths:
    """The paths of a session: its home, its temporary folder, and a file name used in both."""

    home: str
    tmp: str
    file: str


def leave(sandbox: Sandbox, mark: str, *, ttl_s: int | None = TTL_S) -> Paths:
    """Leave every kind of state in a session, each with this mark, one of ``MARKS``."""
    file = f"doublecheck-{sandbox.session_id[:8]}"
    result = succeeded(sandbox.run(_MAKE.format(mark=mark, file=file), ttl_s=ttl_s))
    home, tmp = printed_json(result)
    javascript = _MAKE_JAVASCRIPT.format(mark=json.dumps(mark))
    succeeded(sandbox.run(javascript, JAVASCRIPT, ttl_s=ttl_s))
    return Paths(home, tmp, file)


def read_state(sandbox: Sandbox, paths: Paths, *, ttl_s: int | None = TTL_S) -> dict[str, Any]:
    """Return the mark of each kind of state in a session, None where there is none."""
    look = _LOOK.format(home=paths.home, tmp=paths.tmp, file=paths.file, marks=MARKS)
    python = printed_json(sandbox.run(look, ttl_s=ttl_s))
    javascript = printed_json(sandbox.run(_LOOK_JAVASCRIPT, JAVASCRIPT, ttl_s=ttl_s))
    return {**python, **javascript}


def with_mark(mark: str | None, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a session shows if every kind of state has this mark."""
    return dict.fromkeys(state, mark)
