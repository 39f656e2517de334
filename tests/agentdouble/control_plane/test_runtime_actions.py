from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import act, http, refusal
from tests.agentdouble.runtimes.asking import APPLICATIONS

COMMAND = f"{sys.executable} -S saying.py"
DECLARED = {"name": "declared", "command": COMMAND, "directory": str(APPLICATIONS)}


@pytest.fixture(scope="module")
def _running() -> Iterator[Emulator]:
    with Emulator(runtimes=[DECLARED], runtime_sources=(APPLICATIONS,)) as double:
        yield double


@pytest.fixture
def double(_running: Emulator) -> Emulator:
    _running.reset()
    return _running


def artifact(directory: Path | str = APPLICATIONS, **query: str) -> str:
    return f"file://{directory}?{urlencode(query or {'command': COMMAND})}"


def request_of(**fields: Any) -> dict[str, Any]:
    request = {"Name": "made", "RoleName": "r", "ArtifactType": "file", "ArtifactUrl": artifact()}
    return {**request, **fields}


def create(double: Emulator, **fields: Any) -> str:
    runtime_id: str = act(double, "CreateRuntime", **request_of(**fields))["RuntimeId"]
    return runtime_id


def get(double: Emulator, id_: str) -> dict[str, Any]:
    return act(double, "GetRuntime", RuntimeId=id_)


def says(double: Emulator, id_: str) -> str:
    """Call a runtime like the platform's clients: at its public Endpoint, with its key."""
    runtime = get(double, id_)
    (public,) = runtime["NetworkConfigurations"]
    key = runtime["AuthorizerConfiguration"]["KeyAuth"]["ApiKey"]
    answer = http.get(f"{public['Endpoint']}/", headers={"Authorization": f"Bearer {key}"})
    assert 200 == answer.status_code, answer.text
    return answer.text


def deployed(double: Emulator, id_: str) -> None:
    """Poll until a version is in force."""
    while get(double, id_)["Status"] in ("Updating", "Releasing"):
        pass


def envs(value: str) -> list[dict[str, str]]:
    return [{"Key": "SAYS", "Value": value}]


def test_created_runtime_answers(double: Emulator) -> None:
    """Its fields are returned; the journal lists the unsupported ones."""
    fields: dict[str, Any] = {
        "Description": "it says something",
        "ProjectName": "mine",
        "CpuMilli": 2000,
        "ToolId": "t-sandbox",
        "Envs": envs("hello"),
        "MemoryMb": 512,
        "MinInstance": 0,
        "MaxInstance": 2,
        "MaxConcurrency": 5,
        "Tags": [{"Key": "team", "Value": "red"}],
    }

    runtime_id = create(double, **fields)

    assert ["CpuMilli", "RoleName", "ToolId"] == double.journal.entries()[-1].unread
    runtime = get(double, runtime_id)
    key = runtime["AuthorizerConfiguration"]["KeyAuth"]["ApiKey"]
    assert {
        **request_of(**fields),
        "RuntimeId": runtime_id,
        "Command": COMMAND,
        "Status": "Ready",
        "StatusMessage": "",
        "FailedLogFileUrl": "",
        "CurrentVersionNumber": 1,
        "CreatedAt": runtime["UpdatedAt"],
        "UpdatedAt": runtime["UpdatedAt"],
        "AuthorizerConfiguration": {
            "KeyAuth": {"ApiKey": key, "ApiKeyName": "default", "ApiKeyLocation": "Header"}
        },
        "NetworkConfigurations": [
            {"NetworkType": "public", "Endpoint": f"{double.url}/runtimes/made"}
        ],
    } == runtime
    assert 43 == len(key)
    assert "hello" == says(double, runtime_id)


def test_declared_runtimes_are_returned(double: Emulator) -> None:
    """The artifact would create the same runtime; it has no authorizer."""
    (listed,) = act(double, "ListRuntimes")["AgentKitRuntimes"]

    assert ("declared", artifact(), COMMAND) == (
        *(listed["Name"], listed["ArtifactUrl"], listed["Command"]),
    )
    assert "AuthorizerConfiguration" not in listed
    assert {"MaxInstance": 4, "MinInstance": 0, "MaxConcurrency": 10}.items() <= (
        get(double, listed["RuntimeId"]).items()
    )


def test_updates_are_released_and_rolled_back(double: Emulator) -> None:
    """A version serves once released; older versions can be restored."""
    runtime_id = create(double, Envs=envs("first"))

    act(double, "UpdateRuntime", RuntimeId=runtime_id, Envs=envs("second"), Description="two")
    unreleased = get(double, runtime_id)
    assert ("first", 1, "") == (
        says(double, runtime_id),
        unreleased["CurrentVersionNumber"],
        unreleased["Description"],
    )
    assert {"RuntimeId": runtime_id} == act(double, "ReleaseRuntime", RuntimeId=runtime_id)
    deployed(double, runtime_id)
    assert "second" == says(double, runtime_id)
    act(
        double,
        "UpdateRuntime",
        RuntimeId=runtime_id,
        ReleaseEnable=True,
        ArtifactUrl=artifact(command=f"{COMMAND} third"),
    )
    deployed(double, runtime_id)
    assert "second" == says(double, runtime_id)
    released = get(double, runtime_id)
    assert (3, f"{COMMAND} third", "two") == (
        released["CurrentVersionNumber"],
        released["Command"],
        released["Description"],
    )
    act(double, "ReleaseRuntime", RuntimeId=runtime_id, VersionNumber=1)
    deployed(double, runtime_id)
    assert "first" == says(double, runtime_id)


def test_versions_are_listed_and_returned(double: Emulator) -> None:
    """With their fields; a version that does not serve is unreleased."""
    id_ = create(double, Envs=envs("first"))
    act(double, "UpdateRuntime", RuntimeId=id_, Envs=envs("second"))

    first = act(double, "ListRuntimeVersions", RuntimeId=id_, MaxResults=1)
    second = act(
        double, "ListRuntimeVersions", RuntimeId=id_, MaxResults=1, NextToken=first["NextToken"]
    )
    version = act(double, "GetRuntimeVersion", RuntimeId=id_, VersionNumber=2)

    listed = [*first["AgentKitRuntimeVersions"], *second["AgentKitRuntimeVersions"]]
    assert ("", [1, 2]) == (second["NextToken"], [version["VersionNumber"] for version in listed])
    assert [("Ready", envs("first")), ("UnReleased", envs("second"))] == [
        (version["Status"], version["Envs"]) for version in listed
    ]
    assert listed[1].items() <= version.items()
    assert (f"{double.url}/runtimes/made", 10) == (version["Endpoint"], version["MaxConcurrency"])
    assert 1 == act(double, "GetRuntimeVersion", RuntimeId=id_)["VersionNumber"]


def test_instances_and_their_output_are_returned(double: Emulator) -> None:
    """A runtime without calls has none."""
    runtime_id = create(double)
    assert {"InstanceItems": [], "RunningInstance": 0} == act(
        double, "ListRuntimeInstances", RuntimeId=runtime_id
    )
    says(double, runtime_id)

    answer = act(double, "ListRuntimeInstances", RuntimeId=runtime_id)

    (instance,) = answer["InstanceItems"]
    assert (1, "Ready", 1, runtime_id) == (
        answer["RunningInstance"],
        instance["InstanceStatus"],
        instance["RevisionNumber"],
        instance["RuntimeId"],
    )
    query = {"RuntimeId": runtime_id, "InstanceName": instance["InstanceName"]}
    printed = ""
    while not printed.endswith("Z asked for /\n"):  # the pipe may be behind the answer
        printed = act(double, "GetRuntimeInstanceLogs", **query, Limit=1)["Logs"]
    other = refusal(double, "GetRuntimeInstanceLogs", RuntimeId=runtime_id, InstanceName="other")
    assert (404, "InvalidResource.NotFound") == other[:2]


def test_lists_are_filtered_and_paginated(double: Emulator) -> None:
    """By name, project, tag and time."""
    for name in ("once", "twice", "thrice"):
        create(double, Name=name, ProjectName=name[0], Tags=[{"Key": "t", "Value": name}])

    def names(**query: Any) -> list[str]:
        return [r["Name"] for r in act(double, "ListRuntimes", **query)["AgentKitRuntimes"]]

    assert ["declared", "once", "twice", "thrice"] == names()
    assert ["twice"] == names(Filters=[{"Name": "Name", "Values": ["twice"]}])
    assert ["twice", "thrice"] == names(ProjectName="t")
    assert ["thrice"] == names(TagFilters=[{"Key": "t", "Values": ["thrice"]}])
    assert [] == names(CreateTimeAfter="2999-01-01T00:00:00Z")
    assert ["twice"] == names(PageNumber=3, PageSize=1)


def test_deleted_runtime_is_unknown(double: Emulator) -> None:
    """Every action returns the code that real clients wait for; the address is gone."""
    runtime_id = create(double)

    assert {"RuntimeId": runtime_id} == act(double, "DeleteRuntime", RuntimeId=runtime_id)

    for action in ("DeleteRuntime", "GetRuntime", "UpdateRuntime", "ReleaseRuntime"):
        assert (404, "InvalidAgentKitRuntime.NotFound") == (
            refusal(double, action, RuntimeId=runtime_id)[:2]
        )
    assert 404 == http.get(f"{double.url}/runtimes/made/").status_code


def test_client_token_creates_one_runtime(double: Emulator) -> None:
    """Repeating the request returns the same id and key; a different request is refused."""
    first = create(double, ClientToken="token")
    key = get(double, first)["AuthorizerConfiguration"]

    assert first == create(double, ClientToken="token")
    assert key == get(double, first)["AuthorizerConfiguration"]
    assert (400, "InvalidParameter") == (
        refusal(double, "CreateRuntime", **request_of(ClientToken="token", Description="else"))[:2]
    )


@pytest.mark.parametrize("name", ["abcd", "_a-B", "-abc", "a" * 64])
def test_names_of_the_allowed_lengths(double: Emulator, name: str) -> None:
    """A name is part of the address."""
    runtime_id = create(double, Name=name)

    assert (
        f"{double.url}/runtimes/{name}"
        == (get(double, runtime_id)["NetworkConfigurations"][0]["Endpoint"])
    )


def test_duplicate_name_has_a_code_of_its_own(double: Emulator) -> None:
    """It is free again when its runtime was deleted."""
    first = create(double)

    refused = refusal(double, "CreateRuntime", **request_of())
    act(double, "DeleteRuntime", RuntimeId=first)

    assert (409, "InvalidParameter.DuplicateName") == refused[:2]
    assert first != create(double)


def test_description_has_at_most_255_bytes(double: Emulator) -> None:
    """Neither a runtime nor a version is created with a longer one."""
    longest = "é" * 127 + "."
    runtime_id = create(double, Description=longest)

    created = refusal(double, "CreateRuntime", **request_of(Name="other", Description="é" * 128))
    updated = refusal(double, "UpdateRuntime", RuntimeId=runtime_id, Description="." * 256)

    message = "The Description has 256 bytes of UTF-8; the limit is 255."
    assert (400, "InvalidDescription.Malformed", message) == created == updated
    assert longest == get(double, runtime_id)["Description"]
    versions = act(double, "ListRuntimeVersions", RuntimeId=runtime_id)
    assert 1 == len(versions["AgentKitRuntimeVersions"])
    assert ("declared", "made") == double.runtimes.names


def test_authorizers_are_enforced(double: Emulator) -> None:
    """A custom key, or tokens of an issuer."""
    keyed = {"KeyAuth": {"ApiKeyName": "API-KEY-1", "ApiKeyLocation": "HEADER"}}
    token = {"DiscoveryUrl": "https://issuer.example/d", "AllowedClients": ["c"]}
    issued = {"CustomJwtAuthorizer": token}

    first = create(double, AuthorizerConfiguration=keyed)
    second = create(double, Name="second", AuthorizerConfiguration=issued)

    key = get(double, first)["AuthorizerConfiguration"]["KeyAuth"]
    assert ("API-KEY-1", "Header") == (key["ApiKeyName"], key["ApiKeyLocation"])
    assert issued == get(double, second)["AuthorizerConfiguration"]
    assert key["ApiKey"] not in json.dumps([e.to_dict() for e in double.journal.entries()])


@pytest.mark.parametrize(
    ("fields", "status", "reason"),
    [
        (
            {"ArtifactType": "image", "ArtifactUrl": "registry/a:1"},
            *(501, "yet. Run its content from a directory: ArtifactType file, and as Art"),
        ),
        ({"ArtifactUrl": "https://host/x?application=a:b"}, 400, "is not file:///DIRECTORY?"),
        ({"ArtifactUrl": "file:///etc?command=ls"}, 400, "/etc is not below "),
        ({"ArtifactUrl": artifact(f"{APPLICATIONS}/none")}, 400, "there is no directory "),
        ({"ArtifactUrl": artifact(application="../x.py:app")}, 400, "is not below "),
        ({"ArtifactUrl": artifact(application="gone.py:app")}, 400, "there is no file "),
        ({"ArtifactUrl": artifact(command="a", python="/bin/sh")}, 400, "/bin is not below"),
        ({"ArtifactUrl": artifact(command="a", user="root")}, 400, "its query has keys other than"),
        ({"Name": "abc/d"}, 400, "The parameter Name is invalid: "),
        ({"Name": "abc.d"}, 400, "The parameter Name is invalid: "),
        ({"Name": "abc"}, 400, "The parameter Name is invalid: "),
        ({"Name": "a" * 65}, 400, "The parameter Name is invalid: "),
        ({"Envs": [{"Key": "PORT", "Value": "1"}]}, 400, "Envs is invalid: the double itself"),
        ({"MinInstance": 3, "MaxInstance": 2}, 400, "MaxInstance is invalid: its max_instances is"),
        ({"MemoryMb": 1}, 400, "The parameter MemoryMb is invalid: "),
        ({"Name": "declared"}, 409, "there is one of that name"),
        (
            {"AuthorizerConfiguration": {"KeyAuth": {"ApiKeyLocation": "Body"}}},
            *(501, "An API key in the request's body"),
        ),
        (
            {"AuthorizerConfiguration": {"CustomJwtAuthorizer": {"DiscoveryUrl": "ftp://x"}}},
            *(400, "The parameter AuthorizerConfiguration is invalid: "),
        ),
    ],
)
def test_invalid_fields_are_refused_by_name(
    double: Emulator, fields: dict[str, Any], status: int, reason: str
) -> None:
    """Nothing is created, and requests cannot reach other directories."""
    code, _, message = refusal(double, "CreateRuntime", **request_of(**fields))

    assert (status, True) == (code, reason in message), message
    assert ("declared",) == double.runtimes.names


def test_link_out_of_the_sources_is_refused(double: Emulator) -> None:
    """The target of the link counts."""
    link = APPLICATIONS / "link-of-a-test"
    link.symlink_to("/")
    try:
        error = refusal(double, "CreateRuntime", **request_of(ArtifactUrl=artifact(link)))
    finally:
        link.unlink()

    assert "runtime_sources" in error[2]


def test_command_may_use_a_system_interpreter(double: Emulator) -> None:
    """Every instance can see it, so it need not be in the sources."""
    id_ = create(double, ArtifactUrl=artifact(command="/usr/bin/python3 nothing.py"))

    act(double, "DeleteRuntime", RuntimeId=id_)


@pytest.mark.parametrize("action", ["GetRuntimeCozeToken", "ListRuntimeCrRegistries"])
def test_unimplemented_features_are_refused_by_name(double: Emulator, action: str) -> None:
    assert (501, "NotImplemented") == refusal(double, action, RuntimeId="r-1")[:2]
