"""``agentdouble runtime create | list | show | update | release | delete``."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import typer
from rich.console import Console

from agentdouble.cli import control, credentials, tables
from agentdouble.cli.control import ControlPlane
from agentdouble.cli.runtime_programs import Program, artifact_url, program_of
from agentdouble.cli.tools import variables
from agentdouble.errors import AgentDoubleError

_SETTLING = ("Creating", "Updating", "Releasing")
_PATIENCE_S = 300
_POLL_S = 0.1


@dataclass(frozen=True)
class Limits:
    """The limits of scaling; memory is in megabytes."""

    least: int | None = None
    most: int | None = None
    concurrency: int | None = None
    memory: int | None = None


@dataclass(frozen=True)
class Wanted:
    """The options that create and update share."""

    program: Program
    limits: Limits
    variables: tuple[str, ...] = ()
    description: str | None = None


@dataclass(frozen=True)
class Callers:
    """Who may call: clients with a key, given by its source, or with a token of an issuer."""

    key: str | None = None
    jwt: str | None = None
    clients: tuple[str, ...] = ()


def create(name: str, wanted: Wanted, callers: Callers, url: str | None, *, as_json: bool) -> None:
    """Make a runtime and print its address; wait for its instances if it needs some."""
    request = {
        **_request(wanted),
        "ArtifactType": "file",
        "ArtifactUrl": artifact_url(wanted.program, {}),
        "AuthorizerConfiguration": _authorizer(callers),
    }
    plane = control.connect(url)
    made = plane.call("CreateRuntime", Name=name, RoleName="local", **request)
    found = _settled(plane, made["RuntimeId"])
    if as_json:
        typer.echo(json.dumps({**made, "Endpoint": _address(found)}))
        return
    typer.echo(_address(found))
    if "KeyAuth" in found.get("AuthorizerConfiguration", {}):
        typer.echo(f"Its key: agentdouble runtime show {name} --key", err=True)
    if not wanted.limits.least:
        first = f"It starts with its first request; its log: agentdouble runtime logs {name}"
        typer.echo(first, err=True)


def show_all(url: str | None, *, as_json: bool) -> None:
    """Print the runtimes."""
    found = list(control.connect(url).all("ListRuntimes", "AgentKitRuntimes"))
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    rows = [
        {**one, "Version": one["CurrentVersionNumber"], "Address": _address(one)} for one in found
    ]
    columns = ("Name", "RuntimeId", "Status", "Version", "Address")
    tables.show(columns, rows)


def show(name: str, url: str | None, *, as_json: bool) -> None:
    """Print a runtime, its versions and its instances."""
    plane = control.connect(url)
    found = plane.call("GetRuntime", RuntimeId=_find(plane, name))
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    id_ = found["RuntimeId"]
    versions = list(plane.all("ListRuntimeVersions", "AgentKitRuntimeVersions", RuntimeId=id_))
    instances = plane.call("ListRuntimeInstances", RuntimeId=id_)["InstanceItems"]
    console = Console(highlight=False, soft_wrap=True)
    for label, value in _facts(found).items():
        console.print(f"{label:<10}  {value}", markup=False)
    tables.show(("VersionNumber", "Status", "CreatedAt", "ArtifactUrl"), versions)
    if instances:
        columns = ("InstanceName", "InstanceStatus", "RevisionNumber", "CreateTime")
        tables.show(columns, instances)


def show_key(name: str, url: str | None) -> None:
    """Print the key of a runtime."""
    plane = control.connect(url)
    found = plane.call("GetRuntime", RuntimeId=_find(plane, name))
    by_key = found.get("AuthorizerConfiguration", {}).get("KeyAuth")
    if by_key is None:
        raise AgentDoubleError(
            f"The runtime {name!r} asks for no key: see agentdouble runtime show"
        )
    typer.echo(by_key["ApiKey"])


def update(name: str, wanted: Wanted, url: str | None, *, release: bool, as_json: bool) -> None:
    """Make a new version of a runtime, and put it into force if ``release`` is true."""
    plane = control.connect(url)
    id_ = _find(plane, name)
    request = _request(wanted)
    if wanted.program.said:
        before = program_of(plane.call("GetRuntime", RuntimeId=id_)["ArtifactUrl"])
        request["ArtifactUrl"] = artifact_url(wanted.program, before)
    plane.call("UpdateRuntime", RuntimeId=id_, ReleaseEnable=release, **request)
    versions = plane.all("ListRuntimeVersions", "AgentKitRuntimeVersions", RuntimeId=id_)
    newest = [one["VersionNumber"] for one in versions][-1]
    if not release:
        _say(f"Version {newest} waits: agentdouble runtime release {name}", newest, as_json=as_json)
        return
    _settled(plane, id_)
    _say(f"Version {newest} is in force.", newest, as_json=as_json)


def release(name: str, version: int | None, url: str | None, *, as_json: bool) -> None:
    """Put a version of a runtime into force."""
    plane = control.connect(url)
    id_ = _find(plane, name)
    plane.call("ReleaseRuntime", RuntimeId=id_, VersionNumber=version)
    number = _settled(plane, id_)["CurrentVersionNumber"]
    _say(f"Version {number} is in force.", number, as_json=as_json)


def delete(name: str, url: str | None, *, as_json: bool) -> None:
    """End a runtime and its instances."""
    plane = control.connect(url)
    gone = plane.call("DeleteRuntime", RuntimeId=_find(plane, name))
    typer.echo(json.dumps(gone) if as_json else f"{gone['RuntimeId']} is deleted.")


def _say(sentence: str, version: int, *, as_json: bool) -> None:
    typer.echo(json.dumps({"VersionNumber": version}) if as_json else sentence)


def _request(wanted: Wanted) -> dict[str, Any]:
    limits = wanted.limits
    return {
        "Description": wanted.description,
        "Envs": variables(wanted.variables) or None,
        "MinInstance": limits.least,
        "MaxInstance": limits.most,
        "MaxConcurrency": limits.concurrency,
        "MemoryMb": limits.memory,
    }


def _authorizer(callers: Callers) -> dict[str, Any] | None:
    if callers.key is not None and callers.jwt is not None:
        raise AgentDoubleError("Say --key or --jwt, not both.")
    if callers.clients and callers.jwt is None:
        raise AgentDoubleError("--client goes with --jwt.")
    if callers.jwt is not None:
        token = {"DiscoveryUrl": callers.jwt, "AllowedClients": list(callers.clients)}
        return {"CustomJwtAuthorizer": token}
    if callers.key is None:
        return None
    return {"KeyAuth": {"ApiKey": credentials.secret("--key", callers.key)}}


def _find(plane: ControlPlane, name: str) -> str:
    """Return the id of the runtime with that name or id."""
    for one in plane.all("ListRuntimes", "AgentKitRuntimes"):
        if name in (one["Name"], one["RuntimeId"]):
            return str(one["RuntimeId"])
    raise AgentDoubleError(f"There is no runtime {name!r}. See: agentdouble runtime list")


def _settled(plane: ControlPlane, id_: str) -> Mapping[str, Any]:
    """Wait until a runtime's status is final and return it; raise AgentDoubleError for an error."""
    until = time.monotonic() + _PATIENCE_S
    found = plane.call("GetRuntime", RuntimeId=id_)
    while found["Status"] in _SETTLING and time.monotonic() < until:
        time.sleep(_POLL_S)
        found = plane.call("GetRuntime", RuntimeId=id_)
    if found["Status"] == "Error":
        why = found.get("StatusMessage") or "The platform does not say why."
        where = f"agentdouble runtime logs {found['Name']}"
        raise AgentDoubleError(why if where in why else f"{why} See: {where}")
    return found


def _address(found: Mapping[str, Any]) -> str:
    networks = found.get("NetworkConfigurations") or [{}]
    return str(networks[0].get("Endpoint", ""))


def _facts(found: Mapping[str, Any]) -> dict[str, Any]:
    by = found.get("AuthorizerConfiguration", {})
    whom = (
        "whoever has its key" if "KeyAuth" in by else "whoever has a token" if by else "everybody"
    )
    message = f": {found['StatusMessage']}" if found.get("StatusMessage") else ""
    return {
        "name": found["Name"],
        "id": found["RuntimeId"],
        "address": _address(found),
        "status": f"{found['Status']}{message}",
        "version": found.get("CurrentVersionNumber", ""),
        "open to": whom,
        "instances": f"{found.get('MinInstance', 0)} to {found.get('MaxInstance', '')}, "
        f"{found.get('MaxConcurrency', '')} requests each",
    }
