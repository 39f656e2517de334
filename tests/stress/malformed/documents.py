"""Good bodies of every surface, from which malformed ones are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.agentdouble.mcp_wire import INITIALIZE

MESSAGE = {
    "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "print(1)"}]},
    "configuration": {"historyLength": 1, "acceptedOutputModes": ["text/plain"]},
    "metadata": {"a": 1},
}
LEGACY_MESSAGE = {
    "message": {
        "messageId": "m",
        "role": "user",
        "kind": "message",
        "parts": [{"kind": "text", "text": "print(1)"}],
    },
    "configuration": {"blocking": True, "historyLength": 1},
}
PUSH = {"url": "http://127.0.0.1:1/", "token": "t", "id": "c", "taskId": "t"}
_RUN = {
    "appName": "echo",
    "userId": "u",
    "sessionId": "s",
    "newMessage": {
        "role": "user",
        "parts": [{"text": "1"}, {"inlineData": {"data": "YQ==", "mimeType": "a/b"}}],
    },
    "streaming": False,
    "stateDelta": {"a": 1},
}
_SESSION = {
    "sessionId": "s",
    "state": {"a": 1},
    "events": [
        {
            "author": "u",
            "invocationId": "i",
            "content": {"parts": [{"text": "t"}]},
            "timestamp": 1.5,
        }
    ],
}
_ARTIFACT = {"filename": "a", "artifact": {"text": "t"}, "customMetadata": {"a": 1}}
_CODE = {
    "code": "1",
    "timeout": 5,
    "session_id": "n",
    "kernel_name": "python3",
    "cwd": "/tmp",
    "language": "python",
}
_FILE = {
    "file": "/tmp/a",
    "path": "/tmp",
    "content": "x",
    "start_line": 0,
    "end_line": 1,
    "sudo": False,
    "old_str": "x",
    "new_str": "y",
    "regex": "x",
    "glob": "*",
    "encoding": "utf-8",
    "append": False,
    "recursive": True,
    "show_hidden": True,
    "sort_by": "name",
    "max_depth": 1,
    "leading_newline": True,
}
_SHELL = {
    "command": "true",
    "session_id": "b",
    "id": "b",
    "input": "x",
    "exec_dir": "/tmp",
    "timeout": 2,
    "async_mode": False,
    "seconds": 1,
    "press_enter": True,
    "hard_timeout": 2.0,
    "env": {"A": "b"},
    "offset": 0,
    "offset_stderr": 0,
    "wait": False,
    "wait_timeout": 0.1,
    "data": "x",
}
_FAULT = {
    "kind": "delay",
    "operation": "GET /nowhere",
    "seconds": 0,
    "times": 1,
    "after": 0,
    "match": {"a": "b"},
}
ACTIONS: Mapping[str, Any] = {
    "InvokeTool": {
        "ToolId": "t-none",
        "UserSessionId": "u",
        "OperationType": "RunCode",
        "OperationPayload": '{"code": "1", "timeout": 5, "kernel_name": "python3"}',
        "Ttl": 60,
    },
    "ExecBash": {"ToolId": "t-none", "UserSessionId": "u", "Command": "true"},
}
ANY_ACTION = {
    "Name": "n",
    "ToolId": "t-none",
    "ToolType": "CodeEnv",
    "SessionId": "s",
    "UserSessionId": "u",
    "Ttl": 60,
    "TtlUnit": "second",
    "MaxResults": 5,
    "NextToken": "",
    "PageNumber": 1,
    "PageSize": 5,
    "Path": "/p",
    "ProtocolType": "MCP",
    "BackendType": "Domain",
    "MCPServiceId": "m",
    "RuntimeId": "r",
    "RoleName": "r",
    "ArtifactType": "Code",
    "ArtifactUrl": "u",
    "VersionNumber": 1,
    "Envs": [{"Key": "A", "Value": "b"}],
    "Tags": [{"Key": "a", "Value": "b"}],
    "Filters": [{"Name": "a", "NameContains": "b", "Values": ["c"]}],
    "BackendConfiguration": {
        "CustomConfiguration": {"Domain": "127.0.0.1", "Port": 1, "ProtocolType": "HTTP"}
    },
    "InboundAuthorizerConfiguration": {
        "AuthorizerType": "ApiKey",
        "Authorizer": {"KeyAuth": {"ApiKeys": [{"Name": "k", "Key": "v"}]}},
    },
    "AuthorizerConfiguration": {
        "KeyAuth": {"ApiKeyName": "k", "ApiKey": "v", "ApiKeyLocation": "HEADER"}
    },
    "NetworkConfiguration": {"EnablePublicNetwork": True, "EnablePrivateNetwork": False},
    "ProtocolConfiguration": {"HttpApiConfiguration": {"Configuration": "{}", "Type": "OpenAPI"}},
}


def documents(path: str) -> tuple[Any, ...]:
    """Return good bodies of a path."""
    kinds: Mapping[str, tuple[Any, ...]] = {
        "message": (MESSAGE, LEGACY_MESSAGE),
        "tasks": (PUSH, {"config": PUSH}, {"historyLength": 1}, {"id": "t", "metadata": {}}),
        "/artifacts": (_ARTIFACT, {"text": "t"}),
        "/sessions": (_SESSION, {"stateDelta": {"a": 1}}, {"ttl_s": 5}, _CODE),
        "/run": (_RUN,),
        "/invoke": ({"prompt": "print(1)"},),
        "/v1/file": (_FILE,),
        "/v1/bash": (_SHELL,),
        "/v1/shell": (_SHELL,),
        "/v1": (_CODE,),
        "/_emulator/faults": (_FAULT,),
        "/_emulator/clock": ({"advance_s": 0},),
        "/_emulator/complete": (
            {"user_session_id": "u", "code": "a", "cursor_pos": 1, "language": "python3"},
        ),
        "/_emulator/unknowns": ({"U-NONE": "none"},),
        "/mcp": (INITIALIZE,),
    }
    return next((found for sign, found in kinds.items() if sign in path), ({"a": 1},))
