"""The reference applications as runtimes: how a double declares them, and where they answer.

A check finds a runtime as a client does: it asks the control plane for the address and the key by
the runtime's name, on a double and on a live platform alike.
"""

from __future__ import annotations

import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import reference_files, wire
from doublecheck.contracts.verdicts import not_observable
from doublecheck.core.notebook_repr import Secret
from doublecheck.target.facts import variable

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from doublecheck.target.target import Target

SIMPLE, NEIGHBOUR = "hosted", "hosted-neighbour"
TOOLS, EXECUTOR, AGENTS = "hosted-tools", "hosted-executor", "hosted-agents"
START_WITHIN_S = 120.0  # three start at the same time, and this machine may be busy
ANSWER_WITHIN_S = START_WITHIN_S + 30.0
SEEN_WITHIN_S = 60.0
_NEIGHBOUR = Path(__file__).parent / "reference" / "neighbour"


@dataclass(frozen=True)
class Declared:
    """The reference runtimes as declared in a double's settings.

    ``other_key`` belongs to another identity than the key that the control plane shows.
    """

    tables: tuple[Mapping[str, Any], ...]
    other_key: Secret


@contextmanager
def declared() -> Iterator[Declared]:
    """Yield the reference runtimes, in new folders, with new secrets.

    The agentdouble.toml that ``doublecheck contracts app`` writes declares the same ones. The
    neighbour, which hides the secrets for HST-03, gets a separate folder: inside the applications'
    folder, its files would belong to the application.
    """
    with tempfile.TemporaryDirectory(prefix="doublecheck-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # instances may run as separate users
        applications, neighbour = folder / "applications", folder / "neighbour"
        reference_files.write("agentdouble", applications)
        shutil.copytree(_NEIGHBOUR, neighbour, ignore=shutil.ignore_patterns("__pycache__"))
        tables = tomllib.loads((applications / "agentdouble.toml").read_text("utf-8"))["runtimes"]
        keys = [secrets.token_hex(16) for _ in range(2)]
        individual: Mapping[str, Mapping[str, Any]] = {
            NEIGHBOUR: {
                "directory": str(neighbour),
                "environment": {"DOUBLECHECK_SECRET": secrets.token_hex(16)},
            },
            AGENTS: {"authorizer": _keys(keys)},
        }
        common = {"directory": str(applications), "start_timeout_s": START_WITHIN_S}
        placed = tuple({**table, **common, **individual.get(table["name"], {})} for table in tables)
        yield Declared(placed, Secret(keys[1]))


def _keys(keys: Sequence[str]) -> Mapping[str, Any]:
    named = zip(("one", "other"), keys, strict=True)
    return {"keys": [{"name": name, "secret": key} for name, key in named]}


class Hosted:
    """The reference runtimes of a platform, each as a Platform by name.

    The control plane provides the address and the key of each.
    """

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._stack = ExitStack()
        self._found: dict[str, Platform] = {}
        self._with_key: dict[tuple[str, Secret | None], Platform] = {}

    @property
    def opened(self) -> tuple[Platform, ...]:
        """The opened runtimes, newest first, and their control plane."""
        platforms = (*self._found.values(), *self._with_key.values())
        return (*reversed(platforms), self._platform)

    def at(self, name: str) -> Platform:
        """Return a reference runtime. Skip the check if the platform does not have it."""
        if name not in self._found:
            self._found[name] = self._open(self._target(name))
        return self._found[name]

    def as_other(self, name: str) -> Platform:
        """Return a reference runtime for another identity. Skip the check if there is no key."""
        key = self._platform.target.other_key
        if key is None:
            not_observable(f"needs the key of another identity: {variable('other_api_key')}")
        return self.with_key(name, key)

    def identities(self, name: str) -> tuple[Platform, ...]:
        """Return a reference runtime for each identity whose key is known, the shown one first."""
        key = self._platform.target.other_key
        return (self.at(name),) if key is None else (self.at(name), self.with_key(name, key))

    def with_key(self, name: str, key: Secret | None) -> Platform:
        """Return a reference runtime that uses another key, or no key."""
        if (name, key) not in self._with_key:
            target = replace(self.at(name).target, api_key=key, api_keys={})
            self._with_key[name, key] = self._open(target)
        return self._with_key[name, key]

    def instances(self, name: str) -> tuple[str, ...]:
        """Return the names of a runtime's running instances."""
        body = {"RuntimeId": self._runtime(name)["RuntimeId"]}
        items = self._call_action("ListRuntimeInstances", body)["InstanceItems"]
        return tuple(item["InstanceName"] for item in items)

    def logs(self, name: str) -> str:
        """Return the logs of a runtime's running instances."""
        id_ = self._runtime(name)["RuntimeId"]
        bodies = [{"RuntimeId": id_, "InstanceName": instance} for instance in self.instances(name)]
        logs = [self._call_action("GetRuntimeInstanceLogs", body)["Logs"] for body in bodies]
        return "\n".join(logs)

    def close(self) -> None:
        """Close the connections."""
        self._stack.close()

    def _open(self, target: Target) -> Platform:
        return self._stack.enter_context(
            Platform(target, timeout_s=ANSWER_WITHIN_S, longest_answer_s=2 * ANSWER_WITHIN_S)
        )

    def _target(self, name: str) -> Target:
        target, runtime = self._platform.target, self._runtime(name)
        networks = runtime.get("NetworkConfigurations") or []
        address = next((it["Endpoint"] for it in networks if it["NetworkType"] == "public"), "")
        assert address, f"{name} has no public endpoint: {runtime}"
        authorizer = runtime.get("AuthorizerConfiguration") or {}
        key = (authorizer.get("KeyAuth") or {}).get("ApiKey")
        changes: dict[str, Any] = dict.fromkeys(("url", "api_server", "mcp", "a2a"), address)
        return replace(target, **changes, api_key=Secret(key) if key else None, api_keys={})

    def _runtime(self, name: str) -> Mapping[str, Any]:
        body = {"Filters": [{"Name": "Name", "Values": [name]}]}
        items: list[Mapping[str, Any]] = self._call_action("ListRuntimes", body)["AgentKitRuntimes"]
        if not items:
            not_observable(f"needs the reference application as a runtime, {name}")
        return items[0]

    def _call_action(self, action: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        _, result = wire.envelope(wire.control_plane(self._platform, body, action=action))
        return result
