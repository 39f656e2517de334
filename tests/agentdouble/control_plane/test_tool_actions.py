from __future__ import annotations

import datetime as dt
from typing import Any
from urllib.parse import parse_qsl

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import DataPlane, act, body_of, http, refusal, run

pytestmark = pytest.mark.smoke

FIXED = "t-sandbox"
SECOND = dt.timedelta(seconds=1)


def create(double: Emulator, name: str = "one", **fields: Any) -> str:
    tool_id: str = act(double, "CreateTool", Name=name, ToolType="CodeEnv", **fields)["ToolId"]
    return tool_id


def names(double: Emulator, **query: Any) -> list[str]:
    return [tool["Name"] for tool in act(double, "ListTools", **query)["Tools"]]


def unread(double: Emulator) -> list[str]:
    return double.journal.entries()[-1].unread


def test_default_tool_always_exists(double: Emulator) -> None:
    """It is the tool of the setting tool_id."""
    (tool,) = act(double, "ListTools")["Tools"]

    assert {
        "ToolId": FIXED,
        "Name": "sandbox",
        "Description": "",
        "ProjectName": "default",
        "ToolType": "CodeEnv",
        "Status": "Ready",
        "Envs": [],
        "Tags": [],
        "CreatedAt": tool["UpdatedAt"],
        "UpdatedAt": tool["UpdatedAt"],
        "NetworkConfigurations": [{"NetworkType": "public", "Endpoint": double.url}],
    } == tool


def test_created_tool_runs_code(double: Emulator) -> None:
    """InvokeTool accepts its id, and tools do not share sessions."""
    tool_id = create(double)

    body = {**body_of(double, "x = 1\nprint(x)"), "ToolId": tool_id}
    first = act(double, "InvokeTool", **body)
    other = run(double, "x")

    assert tool_id == first["ToolId"]
    assert "NameError" == other["data"]["outputs"][0]["ename"]


def test_tool_fields_are_returned_unchanged(double: Emulator) -> None:
    """Unsupported fields are kept, returned, and listed as unread in the journal."""
    vpc = {"VpcId": "vpc-1", "SubnetIds": ["subnet-1"]}
    fields: dict[str, Any] = {
        "Description": "a tool",
        "ProjectName": "mine",
        "ImageUrl": "registry.example/image:1",
        "CpuMilli": 2000,
        "Port": 8080,
        "EnableMcp": False,
        "Envs": [{"Key": "A", "Value": "1"}],
        "Tags": [{"Key": "team", "Value": "red"}],
        "AuthorizerConfiguration": {"KeyAuth": {"ApiKey": "k", "ApiKeyLocation": "Header"}},
        "TosMountConfig": {"EnableTos": False},
    }
    network = {"EnablePrivateNetwork": True, "VpcConfiguration": vpc}

    tool_id = create(double, **fields, NetworkConfiguration=network)

    assert [
        *("AuthorizerConfiguration", "CpuMilli", "EnableMcp", "ImageUrl", "NetworkConfiguration"),
        *("Port", "TosMountConfig"),
    ] == unread(double)
    tool = act(double, "GetTool", ToolId=tool_id)
    assert {
        **fields,
        "ToolId": tool_id,
        "Name": "one",
        "ToolType": "CodeEnv",
        "Status": "Ready",
        "PolicyName": "",
        "AssociatedRuntimes": [],
        "CreatedAt": tool["CreatedAt"],
        "UpdatedAt": tool["CreatedAt"],
        "NetworkConfigurations": [
            {"NetworkType": kind, "Endpoint": double.url, "VpcConfiguration": vpc}
            for kind in ("public", "private")
        ],
    } == tool


def test_tool_envs_reach_its_sessions(double: Emulator) -> None:
    """The code and its child processes see Envs."""
    tool_id = create(double, Envs=[{"Key": "COLOUR", "Value": "red"}, {"Key": "EMPTY"}])

    code = "import os, subprocess; print(repr(os.environ['EMPTY']))\nsubprocess.run('echo $COLOUR', shell=True, stdout=None)\nprint(os.environ['COLOUR'])"
    body = {**body_of(double, code), "ToolId": tool_id}
    result = act(double, "InvokeTool", **body)["Result"]

    assert '"text": "\'\'\\nred\\n' in result


def test_update_changes_only_the_given_fields(double: Emulator) -> None:
    """UpdatedAt follows the platform's clock."""
    tool_id = create(double, Description="before", Envs=[{"Key": "A", "Value": "1"}])
    before = act(double, "GetTool", ToolId=tool_id)
    double.clock.advance(5 * SECOND)

    assert {"ToolId": tool_id} == act(double, "UpdateTool", ToolId=tool_id, Description="after")

    after = act(double, "GetTool", ToolId=tool_id)
    assert {**before, "Description": "after", "UpdatedAt": after["UpdatedAt"]} == after
    assert before["UpdatedAt"] < after["UpdatedAt"]


def test_deleting_a_tool_ends_its_sessions(double: Emulator) -> None:
    """CTL-04: the tool is unknown and its processes are gone."""
    tool_id = create(double)
    session = act(double, "InvokeTool", **{**body_of(double, "1"), "ToolId": tool_id})["SessionId"]

    assert {"ToolId": tool_id} == act(double, "DeleteTool", ToolId=tool_id)

    unknown = (
        404,
        "InvalidResource.NotFound",
        f"There is no tool {tool_id!r}; this double has 't-sandbox'.",
    )
    assert unknown == refusal(double, "GetTool", ToolId=tool_id)
    assert unknown == refusal(double, "InvokeTool", **{**body_of(double, "1"), "ToolId": tool_id})
    assert unknown == refusal(double, "UpdateTool", ToolId=tool_id)
    assert unknown == refusal(double, "DeleteTool", ToolId=tool_id)
    assert unknown == refusal(double, "CreateSession", ToolId=tool_id)
    (ended,) = http.get(f"{double.url}/_emulator/sessions").json()["ended"]
    assert (session, "its tool was deleted") == (ended["SessionId"], ended["reason"])


def test_default_tool_cannot_be_deleted(double: Emulator) -> None:
    """run_code needs it."""
    status, code, message = refusal(double, "DeleteTool", ToolId=FIXED)

    assert (409, "InvalidResource.Fixed") == (status, code)
    assert "the setting tool_id" in message


def test_client_token_creates_one_tool(double: Emulator) -> None:
    """Repeating the request returns the same tool; a different request is refused."""
    first = create(double, ClientToken="c-1")
    again = create(double, ClientToken="c-1")
    status, code, message = refusal(
        double, "CreateTool", Name="two", ToolType="CodeEnv", ClientToken="c-1"
    )

    assert first == again
    assert ["sandbox", "one"] == names(double)
    assert (400, "InvalidParameter") == (status, code)
    assert message.startswith("The parameter ClientToken is invalid: another request")


def test_names_can_be_unique(double: Emulator) -> None:
    """U-TOOL-NAMES unique: the error names the existing tool."""
    tool_id = create(double)

    assert (
        409,
        "InvalidResource.AlreadyExists",
        f"The tool {tool_id!r} has the name 'one' already.",
    ) == refusal(double, "CreateTool", Name="one", ToolType="CodeEnv")


def test_all_in_one_tool_has_the_whole_sandbox(double: Emulator) -> None:
    """Its type is shown with the tool and its sessions."""
    tool = act(double, "CreateTool", Name="aio", ToolType="All-in-one")["ToolId"]
    body = {"ToolId": tool, "UserSessionId": "u"}
    session = act(double, "CreateSession", **body)
    act(double, "InvokeTool", **{**body_of(double, "open('f', 'w').write('42')", "u"), **body})

    url, _, query = session["Endpoint"].partition("/?")
    plane = DataPlane(url, dict(parse_qsl(query)))

    assert "42" == plane.bash("cat f")["stdout"]
    assert "42" == plane.data("/v1/file/read", file="/home/gem/f")["content"]
    assert "All-in-one" == act(double, "GetTool", ToolId=tool)["ToolType"]
    assert ["aio"] == names(double, Filters=[{"Name": "ToolType", "Values": ["All-in-one"]}])
    ids = {"ToolId": tool, "SessionId": session["SessionId"]}
    (listed,) = act(double, "ListSessions", ToolId=tool)["SessionInfos"]
    assert "All-in-one" == listed["ToolType"] == act(double, "GetSession", **ids)["ToolType"]


def test_tool_type_can_be_changed(double: Emulator) -> None:
    """UpdateTool without a ToolType keeps it."""
    tool = create(double)
    act(double, "UpdateTool", ToolId=tool, ToolType="All-in-one")
    act(double, "UpdateTool", ToolId=tool, Description="changed")

    changed = act(double, "GetTool", ToolId=tool)

    assert ("All-in-one", "changed") == (changed["ToolType"], changed["Description"])


@pytest.mark.parametrize(
    "tool_type",
    [
        *("Skill", "SkillEnv", "DevEnv", "StudioEnv"),
        *("OpenClaw", "ArkClawEnv", "HermesEnv", "Private"),
    ],
)
def test_other_tool_types_are_refused_by_name(double: Emulator, tool_type: str) -> None:
    """CreateTool and UpdateTool say which types there are instead."""
    message = (
        f"The ToolType {tool_type} is part of the platform, but this version of agentdouble has "
        "not built it yet. Create the tool with the ToolType CodeEnv or All-in-one."
    )

    for action, named in (("CreateTool", {"Name": "one"}), ("UpdateTool", {"ToolId": FIXED})):
        refused = refusal(double, action, **named, ToolType=tool_type)
        assert (501, "NotImplemented", message) == refused
    assert ["sandbox"] == names(double)
    assert "CodeEnv" == act(double, "GetTool", ToolId=FIXED)["ToolType"]


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("Name", "", "Name"),
        ("ToolType", "Nonsense", "ToolType"),
        ("EnableMcp", 1, "EnableMcp"),
        ("Envs", [{"Value": "1"}], "Envs.0.Key"),
        ("Envs", [{"Key": "A=B"}], "Envs.0.Key"),
        ("Envs", [{"Key": "HOME", "Value": "/"}], "Envs"),
        ("Envs", [{"Key": "A", "Value": "\0"}], "Envs.0.Value"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_invalid_fields_are_refused_by_name(
    double: Emulator, field: str, value: object, named: str
) -> None:
    """No tool is created."""
    body = {"Name": "one", "ToolType": "CodeEnv", field: value}

    status, code, message = refusal(double, "CreateTool", **body)

    assert 400 == status
    assert message.startswith(
        (f"The parameter {named} is invalid: ", f"The request is missing {named} parameter.")
    )
    assert code in ("InvalidParameter", "MissingParameter")
    assert ["sandbox"] == names(double)


def test_list_filters(double: Emulator) -> None:
    """Name is exact, NameContains partial; all filters must match, any value is enough."""
    alpha = create(double, "alpha", Description="first")
    create(double, "beta", Description="second")
    create(double, "alphabet", Description="third")

    def filtered(*filters: dict[str, Any]) -> list[str]:
        return names(double, Filters=list(filters))

    assert ["alpha"] == filtered({"Name": "Name", "Values": ["alpha"]})
    assert ["alpha", "beta"] == filtered({"Name": "Name", "Values": ["beta", "alpha"]})
    assert ["alpha", "alphabet"] == filtered({"NameContains": "Name", "Values": ["lph"]})
    assert ["alpha"] == filtered({"Name": "Id", "Values": [alpha]})
    assert ["beta"] == filtered({"NameContains": "Description", "Values": ["eco"]})
    assert [] == filtered({"Name": "Status", "Values": ["Creating"]})
    assert 4 == len(filtered({"Name": "ToolType", "Values": ["CodeEnv"]}))
    assert ["alphabet"] == filtered(
        {"NameContains": "Name", "Values": ["alpha"]}, {"Name": "Description", "Values": ["third"]}
    )


def test_list_time_windows(double: Emulator) -> None:
    """Both ends are inclusive, so a returned time finds its tool."""
    double.clock.advance(dt.timedelta(hours=1))
    first = act(double, "GetTool", ToolId=create(double, "first"))
    double.clock.advance(dt.timedelta(hours=1))
    second = act(double, "GetTool", ToolId=create(double, "second"))
    act(double, "UpdateTool", ToolId=first["ToolId"], Description="later")

    assert ["first"] == names(
        double, CreateTimeAfter=first["CreatedAt"], CreateTimeBefore=first["CreatedAt"]
    )
    assert ["first", "second"] == names(double, UpdateTimeAfter=second["CreatedAt"])
    assert ["sandbox"] == names(double, UpdateTimeBefore=first["CreatedAt"])
    assert [] == names(double, CreateTimeAfter="2999-01-01T00:00:00+02:00")


def test_pages_by_token(double: Emulator) -> None:
    """Every tool is listed once, even if tools are created or deleted meanwhile."""
    tool_ids = [create(double, f"tool-{number}") for number in range(6)]

    first = act(double, "ListTools", MaxResults=3)
    act(double, "DeleteTool", ToolId=tool_ids[0])
    create(double, "late")
    second = act(double, "ListTools", MaxResults=3, NextToken=first["NextToken"])
    third = act(double, "ListTools", MaxResults=3, NextToken=second["NextToken"])

    assert [
        ["sandbox", "tool-0", "tool-1"],
        ["tool-2", "tool-3", "tool-4"],
        ["tool-5", "late"],
    ] == [[tool["Name"] for tool in page["Tools"]] for page in (first, second, third)]
    assert "" == third["NextToken"]


@pytest.mark.parametrize("token", ["made-up", "AAAA"])
def test_invented_page_token_is_refused(double: Emulator, token: str) -> None:
    """Only tokens issued by the double are valid."""
    assert (
        400,
        "InvalidParameter",
        "The parameter NextToken is invalid: it was not returned by a List action.",
    ) == refusal(double, "ListTools", NextToken=token)


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ({"MaxResults": 1001}, "MaxResults"),
        ({"PageNumber": 1, "MaxResults": 1}, "PageNumber"),
        ({"CreateTimeAfter": "yesterday"}, "CreateTimeAfter"),
        ({"Filters": [{"Name": "Colour", "Values": ["red"]}]}, "Filters.0.Name"),
        ({"Filters": [{"Values": ["red"]}]}, "Filters.0"),
    ],
    ids=str,
)
def test_invalid_queries_are_refused_by_name(
    double: Emulator, query: dict[str, Any], named: str
) -> None:
    """The error for an unknown filter lists the valid ones."""
    status, _, message = refusal(double, "ListTools", **query)

    assert 400 == status
    assert f" {named} " in message
    if "Colour" in str(query):
        assert message.endswith("'Colour' is not one of Id, Name, Description, Status, ToolType.")
