"""The sandbox tools; each tool has sessions of its own.

The tool of the setting ``tool_id`` always exists. The store keeps the records.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agentdouble.core import ledger
from agentdouble.core.clock import Clock
from agentdouble.errors import SandboxError, UnknownToolError
from agentdouble.state import Record, Registry, Resource, Store, times_of

CODE_ENV = "CodeEnv"
TYPES = (CODE_ENV, "All-in-one")  # their sessions are the same
DEFAULT_NAME = "sandbox"
_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Tool(Resource):
    """A sandbox tool; ``fields`` are the fields of its requests, by the platform's names."""

    type: str = CODE_ENV
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment variables that the tool gives its sessions."""
        return {env["Key"]: env.get("Value") or "" for env in self.fields.get("Envs") or ()}

    @property
    def enables_snapshots(self) -> bool:
        """Whether snapshots of its sessions are enabled (U-SNAPSHOT-ENABLED)."""
        return self.fields.get("EnableSnapshot") is True


class Tools(Registry[Tool]):
    """The registry of tools; ``fixed_id`` is the id of the tool that always exists.

    With ``most``, no more tools than that are created.
    """

    kind = "tool"
    noun = "tool"

    def __init__(
        self,
        clock: Clock,
        fixed_id: str,
        store: Store | None = None,
        *,
        most: int | None = None,
    ) -> None:
        super().__init__(clock, store)
        self._fixed_id = fixed_id
        self._most = most

    def variables(self, tool_id: str) -> Mapping[str, str]:
        """Return the environment variables of a tool's sessions; raise UnknownToolError."""
        return self.get(tool_id).variables

    def name_of(self, tool_id: str) -> str:
        """Return the name of a tool; the id of a deleted tool."""
        tool = self._items.get(tool_id)
        return tool_id if tool is None else tool.name

    def enables_snapshots(self, tool_id: str) -> bool:
        """Return whether snapshots of a tool's sessions are enabled; False for a deleted tool."""
        tool = self._items.get(tool_id)
        return tool is not None and tool.enables_snapshots

    async def create(
        self, name: str, type_: str, fields: Mapping[str, Any], client_token: str | None = None
    ) -> Tool:
        """Make a tool, or return the tool of an earlier request with the same token and content.

        Raises SandboxError if there are too many or if the ledger says so (U-TOOL-NAMES), and
        ActionError if a different request used the token.
        """
        request = [name, type_, fields]
        base = self._described(f"t-{secrets.token_hex(10)}", name, client_token, request)
        return await self._add(Tool(**base, type=type_, fields=fields))

    async def update(self, tool_id: str, type_: str | None, fields: Mapping[str, Any]) -> Tool:
        """Change some fields of a tool, and its type if one is given; raise UnknownToolError."""
        return await self._change(
            tool_id,
            lambda tool: replace(tool, type=type_ or tool.type, fields={**tool.fields, **fields}),
        )

    async def delete(self, id_: str) -> None:
        """Delete a tool; the caller must end its sessions.

        Raises UnknownToolError, and SandboxError for the tool that always exists.
        """
        if id_ == self._fixed_id:
            message = (
                f"The tool {id_!r} is the double's own (the setting tool_id): it cannot be deleted."
            )
            raise SandboxError(message, "InvalidResource.Fixed", 409)
        await super().delete(id_)

    def _unknown(self, tool_id: str, by: str) -> UnknownToolError:
        return UnknownToolError(tool_id, list(self._items)[:_SHOWN])

    async def _restore(self, id_: str, record: Record) -> Tool:
        return Tool(**{**record, **times_of(record)})

    async def _add_fixed(self) -> None:
        # It is the first in the list. If it was changed, its stored record replaces this one.
        described = self._described(self._fixed_id, DEFAULT_NAME)
        fixed = Tool(**described, fields={"EnableSnapshot": True})
        self._items = {fixed.id: fixed, **self._items}

    async def _start(self, new: Tool) -> None:
        same = next((tool for tool in self._items.values() if tool.name == new.name), None)
        if same is not None and ledger.choose("U-TOOL-NAMES") == "unique":
            message = f"The tool {same.id!r} has the name {new.name!r} already."
            raise SandboxError(message, "InvalidResource.AlreadyExists", 409)
        if self._most is not None and len(self._items) >= self._most:
            message = (
                f"There are {len(self._items)} tools and the setting max_tools allows no more. "
                "Delete one, or raise it."
            )
            raise SandboxError(message, "QuotaExceeded.Tool", 429)
