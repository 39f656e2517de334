"""A script: a conversation that a user has written in TOML.

::

    [[step]]
    name = "a session"                  # shown in the report; optional
    method = "POST"                     # GET without a body, POST with one
    path = "/apps/echo/users/u1/sessions"
    json = {}
    save = { session = "id" }           # a field of the answer, by its path; used as {session}

    [[step]]
    path = "/run"
    json = { appName = "echo", userId = "u1", sessionId = "{session}", newMessage = { ... } }

    [[step]]
    code = "print(6 * 7)"               # InvokeTool; language and session_id are optional
    writes = false                      # the default is true, except for GET
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doublecheck.errors import RefusedError, TargetError
from doublecheck.twins.conversation import TTL_S, Topic
from doublecheck.wire import calls

if TYPE_CHECKING:
    from doublecheck.client._sync.platform import Platform

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Step:
    """One request of a script; ``code`` is run in the sandbox instead of a request."""

    name: str = ""
    method: str = ""
    path: str = ""
    json: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    save: Mapping[str, str] = field(default_factory=dict)
    code: str = ""
    language: str = "python3"
    session_id: str = "twin"
    writes: bool | None = None

    @property
    def verb(self) -> str:
        """The HTTP method."""
        return self.method or ("GET" if self.json is None else "POST")

    @property
    def creates(self) -> bool:
        """Whether the step may create something on the platform."""
        if self.writes is not None:
            return self.writes
        return bool(self.code) or self.verb not in ("GET", "HEAD", "OPTIONS")


_FIELDS = tuple(one.name for one in dataclasses.fields(Step))
_KINDS = {"json": None, "headers": dict, "save": dict, "writes": bool}


def read(path: Path) -> Sequence[Topic]:
    """Read the conversation from a script; raise TargetError if it is invalid."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise TargetError(f"The script {path} cannot be read: {error.strerror}.") from None
    except ValueError as error:  # no UTF-8, or no TOML
        raise TargetError(f"The script {path} is no TOML: {error}.") from None
    steps = document.pop("step", None)
    if document or not isinstance(steps, list) or not steps:
        raise TargetError(f"The script {path} must be [[step]] tables and nothing else.")
    read_steps = [_step(f"{path}: step {n}", one) for n, one in enumerate(steps, 1)]
    saved: dict[int, dict[str, Any]] = {}
    return [_topic(step, number, saved) for number, step in enumerate(read_steps, 1)]


def _step(where: str, given: Any) -> Step:
    if not isinstance(given, dict):
        raise TargetError(f"{where} is no table.")
    for name, value in given.items():
        if name not in _FIELDS:
            near = difflib.get_close_matches(name, _FIELDS, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise TargetError(f"{where} has an unknown key {name!r}.{hint}")
        kind = _KINDS.get(name, str)
        if kind is not None and not isinstance(value, kind):
            raise TargetError(f"{where}: {name} must be of type {kind.__name__}, not {value!r}.")
    step = Step(**given)
    if bool(step.code) == bool(step.path):
        raise TargetError(f"{where} must have either a path or code.")
    if step.path and not step.path.startswith("/"):
        raise TargetError(f"{where}: the path {step.path!r} must begin with a slash.")
    return step


def _topic(step: Step, number: int, saved: dict[int, dict[str, Any]]) -> Topic:
    """Return the topic of a step; ``saved`` are the saved fields of answers, by platform."""

    def talk(platform: Platform) -> None:
        _send_step(step, platform, saved.setdefault(id(platform), {}))

    what = step.name or f"step {number}: {step.code.splitlines()[0] if step.code else step.path}"
    return Topic(
        what,
        ("control_plane", "sandbox") if step.code else (),
        talk,
        writes=step.creates,
        does="runs code" if step.code else f"sends {step.verb}",
    )


def _send_step(step: Step, platform: Platform, saved: dict[str, Any]) -> None:
    if step.code:
        with suppress(RefusedError):
            platform.run_code(
                _filled(step.code, saved),
                step.language,
                session_id=_filled(step.session_id, saved),
                ttl_s=TTL_S,
            )
        return
    headers = {} if step.json is None else {"Content-Type": "application/json"}
    answer = platform.request(
        step.verb,
        _filled(step.path, saved),
        headers={**headers, **_filled(dict(step.headers), saved)},
        content=b"" if step.json is None else calls.json_content(_filled(step.json, saved)),
    )
    for name, where in step.save.items():
        saved[name] = _at(answer.json(), where)


def _filled(document: Any, saved: Mapping[str, Any]) -> Any:
    """Replace each ``{name}`` in a document with the value saved under that name."""
    if isinstance(document, str):
        for name, value in saved.items():
            written = value if isinstance(value, str) else json.dumps(value)
            document = document.replace(f"{{{name}}}", written)
        return document
    if isinstance(document, dict):
        return {name: _filled(value, saved) for name, value in document.items()}
    if isinstance(document, list):
        return [_filled(value, saved) for value in document]
    return document


def _at(document: Any, where: str) -> Any:
    """Return the field of a document at a path, ``a.b.0.c``; raise LookupError."""
    for step in where.removeprefix("$.").split("."):
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document
