"""The sandbox tools that there are: each has sessions of its own.

The tool of the setting ``tool_id`` is always there. Records go through the store.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from agentdouble import ledger
from agentdouble.clock import Clock
from agentdouble.errors import FixedToolError, ToolNameTakenError, UnknownToolError
from agentdouble.state import Change, MemoryStore, Record, Store, restoring

CODE_ENV = "CodeEnv"
DEFAULT_NAME = "sandbox"
KIND = "tool"
_SHOWN = 5


@dataclass(frozen=True)
class Tool:
    """A sandbox tool; ``fields`` are what its maker said of it, in the platform's names."""

    id: str
    name: str
    created_at: dt.datetime
    updated_at: dt.datetime
    type: str = CODE_ENV
    fields: Mapping[str, Any] = field(default_factory=dict)
    client_token: str | None = None
    request: str | None = None

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment variables that the tool gives its sessions."""
        return {one["Key"]: one.get("Value") or "" for one in self.fields.get("Envs") or ()}

    def to_record(self) -> Record:
        """Return the tool as JSON-ready data."""
        times = {"created_at": self.created_at, "updated_at": self.updated_at}
        return {**asdict(self), **{name: at.isoformat() for name, at in times.items()}}

    @classmethod
    def of(cls, record: Record) -> Tool:
        """Return the tool of a record."""
        times = ("created_at", "updated_at")
        return cls(
            **{**record, **{name: dt.datetime.fromisoformat(record[name]) for name in times}}
        )


class Tools:
    """The registry of tools; ``fixed_id`` is the id of the one that is always there."""

    def __init__(self, clock: Clock, fixed_id: str, store: Store | None = None) -> None:
        self._clock = clock
        self._fixed_id = fixed_id
        self._store = store or MemoryStore()
        self._tools: dict[str, Tool] = {}
        self._add_fixed()

    async def load(self) -> None:
        """Take up the tools that the store has kept."""
        kept = [Tool.of(record) for record in (await self._store.load(KIND)).values()]
        self._tools |= {tool.id: tool for tool in sorted(kept, key=lambda tool: tool.created_at)}

    def all(self) -> tuple[Tool, ...]:
        """Return every tool."""
        return tuple(self._tools.values())

    def get(self, tool_id: str) -> Tool:
        """Return the tool of that id (CTL-04); raise UnknownToolError."""
        tool = self._tools.get(tool_id)
        if tool is None:
            raise UnknownToolError(tool_id, list(self._tools)[:_SHOWN])
        return tool

    def variables(self, tool_id: str) -> Mapping[str, str]:
        """Return the environment variables of a tool's sessions; raise UnknownToolError."""
        return self.get(tool_id).variables

    async def create(
        self, name: str, fields: Mapping[str, Any], client_token: str | None = None
    ) -> Tool:
        """Make a tool, or return the one that the same request with the same token has made.

        Raises ToolNameTakenError where the ledger says so (U-TOOL-NAMES), and ValueError if
        another request had the token.
        """
        request = _digest(name, fields)
        made = self._made_by(client_token, request)
        if made is None:
            self._check_name(name)
            now = self._clock.now()
            id_ = f"t-{secrets.token_hex(10)}"
            made = Tool(id_, name, now, now, CODE_ENV, fields, client_token, request)
            await self._keep(made)
        await self._store.settled((KIND, made.id))
        if made.id not in self._tools:  # the request that made it has been refused since
            return await self.create(name, fields, client_token)
        return made

    async def update(self, tool_id: str, fields: Mapping[str, Any]) -> Tool:
        """Change what is said of a tool; raise UnknownToolError."""
        tool = self.get(tool_id)
        changed = replace(tool, fields={**tool.fields, **fields}, updated_at=self._clock.now())
        await self._keep(changed)
        return changed

    async def delete(self, tool_id: str) -> None:
        """Forget a tool; its sessions are the caller's to end.

        Raises UnknownToolError, and FixedToolError for the one that is always there.
        """
        tool = self.get(tool_id)
        if tool.id == self._fixed_id:
            raise FixedToolError(tool_id)
        undo = restoring(self._tools, tool_id)
        del self._tools[tool_id]
        await self._store.write([Change(KIND, tool_id)], undo)

    async def reset(self) -> None:
        """Leave the one tool that is always there, as it was at first."""
        changes = [Change(KIND, tool_id) for tool_id in self._tools]
        undo = restoring(self._tools, *self._tools)
        self._tools.clear()
        self._add_fixed()
        await self._store.write(changes, undo)

    def _add_fixed(self) -> None:
        now = self._clock.now()
        self._tools[self._fixed_id] = Tool(self._fixed_id, DEFAULT_NAME, now, now)

    async def _keep(self, tool: Tool) -> None:
        undo = restoring(self._tools, tool.id)
        self._tools[tool.id] = tool
        await self._store.write([Change(KIND, tool.id, tool.to_record())], undo)

    def _made_by(self, client_token: str | None, request: str) -> Tool | None:
        if client_token is None:
            return None
        made = next((t for t in self._tools.values() if t.client_token == client_token), None)
        if made is not None and made.request != request:
            raise ValueError(f"another request, which made the tool {made.id!r}, had it")
        return made

    def _check_name(self, name: str) -> None:
        same = next((tool for tool in self._tools.values() if tool.name == name), None)
        if same is not None and ledger.choose("U-TOOL-NAMES") == "unique":
            raise ToolNameTakenError(name, same.id)


def _digest(name: str, fields: Mapping[str, Any]) -> str:
    text = json.dumps([name, fields], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
