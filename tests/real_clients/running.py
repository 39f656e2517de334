"""Run the clients one after the other and compare their outcomes."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.agentdouble.apps.a2a.protocol.receiver import WAIT_S, Receiver, receiving
from tests.agentdouble.apps.a2a.wire import kinds
from tests.real_clients.clients import Client
from tests.real_clients.environments import NotMadeError
from tests.real_clients.expected import PUSHED, mistakes

TIMEOUT_S = 120
_NO_NETWORK = {"NO_PROXY": "127.0.0.1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}


@dataclass(frozen=True)
class Result:
    """The result of a client: the steps of each part, and its problems."""

    client: str
    version: str
    ran: Mapping[str, list[str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0


class FailedError(Exception):
    """A program did not finish."""


def run(client: Client, facts: Mapping[str, Any], cache: Path) -> Result:
    """Create a client's environment and run the client against a double."""
    version = "none"
    try:
        client.environment.make(cache)
        version = client.environment.version(cache)
        began = time.monotonic()
        outcomes = _converse(client, facts, cache)
    except (NotMadeError, FailedError) as error:
        return Result(client.name, version, problems=[str(error)])
    missing = [f"{part} was not run" for part in client.parts if part not in outcomes]
    wrong = [mistake for part, steps in outcomes.items() for mistake in mistakes(part, steps)]
    ran = {part: list(steps) for part, steps in outcomes.items()}
    return Result(client.name, version, ran, missing + wrong, time.monotonic() - began)


def _converse(client: Client, facts: Mapping[str, Any], cache: Path) -> dict[str, Any]:
    """Return a program's outcome, with the notifications that arrived at the receiver."""
    with tempfile.TemporaryDirectory() as name, receiving() as receiver:
        folder = Path(name)
        (folder / "facts").write_text(json.dumps({**facts, "hook": receiver.url}), "utf-8")
        command = [*client.environment.command(cache), client.program, "facts", "outcome"]
        try:
            ended = subprocess.run(
                command,
                cwd=folder,
                env={**os.environ, **_NO_NETWORK},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise FailedError(f"It took longer than {TIMEOUT_S} s.") from None
        if ended.returncode != 0:
            raise FailedError((ended.stderr or ended.stdout).strip()[-4000:])
        outcome: dict[str, Any] = json.loads((folder / "outcome").read_text("utf-8"))
        for part, steps in outcome.items():
            if "streamed" in steps:
                steps["pushed"] = _pushed(receiver, part)
    return outcome


def _pushed(receiver: Receiver, part: str) -> list[str]:
    """Return the states and artifacts in a task's notifications; 0.3 sends whole tasks."""
    try:
        if part.startswith("1.0"):
            return kinds(receiver.until("completed"))
        tasks = [receiver.got.get(timeout=WAIT_S)[1] for _ in PUSHED]
    except queue.Empty:
        return ["not all of them came"]
    return [task["status"]["state"] for task in tasks]
