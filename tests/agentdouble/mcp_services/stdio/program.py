"""An MCP server on its standard streams, without an SDK: ``python program.py NAME``.

It runs as a script in services' processes, and its tools misbehave like real servers.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

TOOLS = ["echo"]
pending: dict[str, Any] = {}  # ids of our requests to the client, with the id of the call


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(id_: Any, text: str) -> None:
    say({"id": id_, "result": {"content": [{"type": "text", "text": text}]}})


def notify(method: str, **params: Any) -> None:
    say({"method": method, "params": params})


def call(id_: Any, tool: str, arguments: dict[str, Any], meta: dict[str, Any]) -> None:
    match tool:
        case "echo":
            answer(id_, arguments["word"])
        case "environment":
            answer(id_, json.dumps(dict(os.environ)))
        case "read":
            with open(arguments["path"]) as file:  # noqa: PTH123
                answer(id_, file.read())
        case "write":
            with open(f"{sys.argv[-1]}/{arguments['name']}", "w") as file:  # noqa: PTH123
                answer(id_, str(file.write(arguments["name"])))
        case "exists":
            answer(id_, str(os.path.exists(arguments["path"])))  # noqa: PTH110
        case "ask":
            pending["asked-1"] = id_
            say({"id": "asked-1", "method": "elicitation/create", "params": {"message": "Why?"}})
        case "progress":
            notify("notifications/progress", progressToken=meta["progressToken"], progress=1)
            notify("notifications/message", level="info", data="half")
            answer(id_, "done")
        case "change":
            TOOLS.append(arguments["word"])
            notify("notifications/tools/list_changed")
            answer(id_, "done")
        case "garbage":
            for number in range(arguments["lines"]):
                sys.stdout.write(f"Listening ... {number}\n")
            answer(id_, "done")
        case "large":
            answer(id_, "x" * arguments["size"])
        case "flood":
            while True:
                notify("notifications/message", level="info", data="x" * 1000)
        case "stop":
            sys.stderr.write("goodbye\n")
            sys.stderr.flush()
            os._exit(3)
        case "silent":
            pending["silent"] = id_
        case "remembered":
            answer(id_, json.dumps(pending.get(arguments["what"])))


def request(id_: Any, method: str, params: dict[str, Any]) -> None:
    match method:
        case "initialize":
            about = {"name": "program", "version": "1"}
            version = params["protocolVersion"]
            result = {
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": about,
            }
            say({"id": id_, "result": result})
        case "tools/list":
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
            say({"id": id_, "result": {"tools": tools}})
        case "tools/call":
            call(id_, params["name"], params["arguments"], params.get("_meta", {}))
        case _:
            say({"id": id_, "error": {"code": -32601, "message": f"{method}?"}})


def handle(message: dict[str, Any]) -> None:
    if "method" not in message:
        id_ = pending.pop(message["id"], None)
        pending["answered"] = message["result"]
        if id_ is not None:
            answer(id_, json.dumps(message["result"]))
    elif "id" in message:
        request(message["id"], message["method"], message.get("params", {}))
    elif message["method"] == "notifications/cancelled":
        pending["cancelled"] = message["params"]["requestId"]
    elif message["method"] == "notifications/initialized" and sys.argv[1] == "early":
        say({"id": "roots", "method": "roots/list"})


if __name__ == "__main__":
    for line in sys.stdin:
        handle(json.loads(line))
