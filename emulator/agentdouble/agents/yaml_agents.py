"""Agents that ``root_agent.yaml`` describes, made by the loader of Google's ADK."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from agentdouble.agents.application_imports import import_failure
from agentdouble.errors import AgentLoadError
from agentdouble.imports import import_now

ROOT_AGENT = "root_agent.yaml"
_LOADER = "google.adk.agents.config_agent_utils"


def yaml_agent(path: Path, app: str) -> object:
    """Return the agent that a file describes; raise AgentLoadError with the line and the reason."""
    try:
        import_now(_LOADER)
    except ImportError as error:
        raise AgentLoadError(
            f"Failed to load agent {app!r}: '{path}' needs Google's ADK ({error}). "
            "pip install google-adk",
            app=app,
        ) from error
    from google.adk.agents.config_agent_utils import from_config

    try:
        return from_config(str(path))
    except (Exception, SystemExit) as error:
        raise AgentLoadError(
            f"Failed to load agent {app!r}: {_failure(error, path)}", app=app
        ) from error


def _failure(error: BaseException, path: Path) -> str:
    """Return why the file makes no agent, with the line in it, or in the code that it names."""
    from pydantic import ValidationError
    from yaml import MarkedYAMLError

    file = _file_of(error) or path
    if isinstance(error, MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        return f"{error.problem or error.context} ({file}:{mark.line + 1 if mark else 1})"
    if isinstance(error, ValidationError):
        wrong = error.errors(include_url=False, include_input=False)
        return "; ".join(
            f"{_field(one['loc'])}{one['msg']} ({_line(file, one['loc'])})" for one in wrong
        )
    return f"{_told(error)}, in '{file}'"


def _told(error: BaseException) -> str:
    """Return an error with its first cause: the loader says which name, the cause says why."""
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    why = import_failure(cause) if _is_theirs(cause) else f"{type(cause).__name__}: {cause}"
    return why if cause is error else f"{error}: {why}"


def _is_theirs(error: BaseException) -> bool:
    """Return whether the user's code raised an error, and not the loader."""
    names = (str(frame.f_globals.get("__name__")) for frame, _ in _frames(error))
    last = [one for one in names if not one.startswith("importlib")][-1:]
    return bool(last) and not last[0].startswith(("google.adk.", "agentdouble."))


def _file_of(error: BaseException) -> Path | None:
    """Return the file that was being read: one that another names, perhaps."""
    read = (
        frame.f_locals.get("config_path")
        for frame, _ in _frames(error)
        if frame.f_globals.get("__name__") == _LOADER
    )
    files = [Path(one) for one in read if isinstance(one, str)]
    return next((one for one in reversed(files) if one.is_file()), None)


def _frames(error: BaseException) -> Iterator[tuple[FrameType, int]]:
    return traceback.walk_tb(error.__traceback__)


def _field(location: Sequence[int | str]) -> str:
    return f"{'.'.join(map(str, location))}: " if location else ""


def _line(path: Path, location: Iterable[int | str]) -> str:
    """Return the file and the line of a field; the last line that is found on the way to it."""
    import yaml

    node: Any = yaml.compose(path.read_text("utf-8"), yaml.SafeLoader)
    line = 1
    for step in location:
        found = _inside(node, step)
        if found is None:
            break
        line, node = found
    return f"{path}:{line}"


def _inside(node: Any, step: int | str) -> tuple[int, Any] | None:
    """Return the line and the value of a key of a mapping, or of an item of a list."""
    import yaml

    if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
        return (node.value[step].start_mark.line + 1, node.value[step])
    if isinstance(node, yaml.MappingNode):
        pairs = ((key.value, key.start_mark.line + 1, value) for key, value in node.value)
        return next(((line, value) for name, line, value in pairs if name == str(step)), None)
    return None
