"""The operation ExecBash of InvokeTool: a command in the session's own bash (SBX-09)."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from agentdouble import ledger
from agentdouble.control_plane.reading import invalid
from agentdouble.sandbox.instance import Instance
from agentdouble.sandbox.output_feed import ExecutionPublisher
from agentdouble.settings import Settings


class ExecBashPayload(BaseModel):
    """The JSON inside OperationPayload of ExecBash; times are in seconds.

    ``timeout`` ends the waiting, ``hard_timeout`` the command.
    """

    model_config = ConfigDict(strict=True, frozen=True)

    command: str
    timeout: int | None = Field(None, ge=1)
    exec_dir: str | None = None
    env: dict[str, str | None] | None = None
    hard_timeout: int | None = Field(None, ge=1)
    max_output_length: int = Field(30_000, ge=0)


def check(payload: ExecBashPayload, settings: Settings) -> None:
    """Refuse a command that cannot be run; raise ActionError."""
    ledger.choose("U-EXEC-LIMITS")
    if not payload.command.strip():
        raise invalid("OperationPayload.command", "it is empty")
    for name in ("command", "exec_dir"):
        text = getattr(payload, name) or ""
        if "\0" in text:
            raise invalid(f"OperationPayload.{name}", "it has a NUL character")
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise invalid(f"OperationPayload.{name}", "it is no valid Unicode text")
    size, limit = len(payload.command.encode()), settings.code_limit
    if size > limit:
        raise invalid("OperationPayload.command", f"it has {size} bytes; the limit is {limit}")
    largest = settings.exec_timeout_max_s
    if payload.timeout is not None and payload.timeout > largest:
        raise invalid("OperationPayload.timeout", f"it is larger than {largest} seconds")


async def run(
    payload: ExecBashPayload, instance: Instance, settings: Settings, publisher: ExecutionPublisher
) -> dict[str, Any]:
    """Run a command in an instance's bash and return the envelope of the public sandbox."""
    default_s = min(settings.exec_timeout_s, settings.exec_timeout_max_s)
    command = payload.model_dump(exclude_none=True)
    return await instance.exec_bash({"timeout": default_s, **command}, publisher)
