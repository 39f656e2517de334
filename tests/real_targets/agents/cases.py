"""The cases: for each agent in ``applications``, its topic and its script."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.real_targets.agents.conversation import Conversation, responses

Script = Callable[[Conversation], object]


def chat(*texts: str) -> Script:
    """Return a script of turns: by ``/run``, streamed, and by ``/run_sse`` without increments."""

    def script(talk: Conversation) -> None:
        talk.create()
        ways = itertools.cycle((talk.run, talk.stream, talk.stream_whole))
        for way, text in zip(ways, texts, strict=False):
            way(text)
        talk.read()
        talk.artifacts()
        talk.delete()

    return script


def runs(*texts: str) -> Script:
    """Return a script of turns by ``/run``."""

    def script(talk: Conversation) -> None:
        talk.create()
        for text in texts:
            talk.run(text)
        talk.read()

    return script


_THREE_TURNS = chat("hello", "again", "more")


def _plain(talk: Conversation) -> None:
    talk.create({"state": {"turns": 5}})
    talk.run("hello", stateDelta={"turns": 7, "user:name": "Ann"})
    talk.state({"turns": 20, "app:seen": True})
    talk.stream("again", customMetadata={"k": "v"})
    talk.read()
    talk.create(session_id="s2")
    talk.run("hello")
    talk.delete()


def _parallel(talk: Conversation) -> None:
    talk.create()
    talk.answers.clear()
    events = talk.run("hello")
    session = talk.read()
    for listed in (events, session["events"]):  # which branch is first is not decided
        listed.sort(key=lambda event: event["author"])
    ids = [event["id"] for event in events]
    assert sorted(ids) == sorted(row["id"] for row in session["events"] if row["author"] != "user")


def _resumed(talk: Conversation) -> None:
    talk.create()
    events = talk.run("please")
    arguments = responses(events, "approve", {"status": "approved"})
    talk.run(arguments, invocationId=_invocation(events))
    talk.read()
    talk.run("without an answer", invocationId="e-unknown")
    talk.read()


def _confirmation(talk: Conversation) -> None:
    for session_id, confirmed in (("yes", True), ("no", False)):
        talk.create(session_id=session_id)
        events = talk.run("delete all")
        name = "adk_request_confirmation"
        talk.run(responses(events, name, {"confirmed": confirmed}))
        talk.read()


def _credentials(talk: Conversation) -> None:
    talk.create()
    events = talk.run("read it")
    config: Any = next(
        (
            part["functionCall"]["args"]["authConfig"]
            for event in events
            for part in event["content"]["parts"]
            if part.get("functionCall", {}).get("name") == "adk_request_credential"
        ),
        {},
    )
    config.setdefault("exchangedAuthCredential", {})["oauth2"] = {"accessToken": "token"}
    talk.stream(responses(events, "adk_request_credential", config))
    talk.read()


def _artifacts(talk: Conversation) -> None:
    talk.create()
    talk.run("store")
    talk.stream("again")
    talk.read()
    talk.artifacts()
    talk.create(session_id="s2")
    talk.artifacts()
    talk.delete()


def _state_scopes(talk: Conversation) -> None:
    talk.create({"state": {"given": "G", "app:count": 10, "user:count": 100, "temp:x": 1}})
    talk.run("hello")
    talk.stream("again", stateDelta={"given": None, "temp:count": 50})
    talk.read()
    talk.create(session_id="s2")
    talk.run("hello")
    talk.user = "bob"
    talk.create(session_id="s1")
    talk.run("hello")
    talk.read()


def _memory(talk: Conversation) -> None:
    talk.create()
    talk.run("my color is blue")
    talk.run("search color")
    talk.remember()
    talk.create(session_id="s2")
    talk.stream("search blue")
    talk.run("which color is it?")
    talk.user = "bob"
    talk.create(session_id="s1")
    talk.run("search color")
    talk.session_id = "unknown"
    talk.remember()


def _needy(talk: Conversation) -> None:
    talk.create()
    talk.run("hello")
    talk.stream("hello")
    talk.state({"language": "Norwegian"})
    talk.run("hello")
    talk.read()


def _without_a_session(talk: Conversation) -> None:
    talk.run("hello")
    talk.stream("hello")
    talk.ask("GET", f"/apps/{talk.app}/app-info")


def _history(talk: Conversation) -> None:
    expected = [("user", "user", "before"), ("model", "llm", "answered"), ("user", "user", "and")]
    events = [
        {"author": author, "content": {"role": role, "parts": [{"text": text}]}}
        for role, author, text in expected
    ]
    talk.create({"events": events})
    talk.run("now", functionCallEventId="e1", serviceTier="flex")
    talk.state({"a": {"b": [1]}})
    talk.stream("again", stateDelta={"c": None})
    talk.run([{"text": ""}])
    talk.run([])
    talk.stream([{"functionCall": {"name": "f", "args": {}}}])
    talk.run([{"functionResponse": {"id": "unknown", "name": "f", "response": {}}}])
    talk.read()
    talk.ask("PATCH", f"/apps/{talk.app}/users/ann/memory", {})


def _images(talk: Conversation) -> None:
    talk.create()
    file = {"inlineData": {"data": "+/8=", "mimeType": "image/png", "displayName": "a.png"}}
    talk.run([{"text": "look"}, file])
    talk.stream([file])
    talk.read()
    talk.artifacts()


def _uploads(talk: Conversation) -> None:
    talk.create()
    file = {"inlineData": {"data": "YQ==", "mimeType": "text/plain", "displayName": "a.txt"}}
    talk.run([{"text": "keep"}, file])
    talk.run("load")
    talk.stream([{**file, "text": None}])
    talk.read()
    talk.artifacts()


def _answers(name: str, response: Any) -> Script:
    def script(talk: Conversation) -> None:
        talk.create()
        events = talk.run("please")
        talk.read()
        talk.run(responses(events, name, response))
        talk.stream("thanks")
        talk.read()

    return script


def _odd_values(talk: Conversation) -> None:
    kinds = ("date", "model", "set", "tuple", "bytes", "decimal", "nan", "nested")
    for kind in kinds:
        talk.create(session_id=f"keep_{kind}")
        talk.stream(f"keep {kind}", streaming=False)
        talk.run(f"give {kind}")
        talk.read()


def _nested(talk: Conversation) -> None:
    talk.create()
    events = talk.run("begin")
    talk.run(responses(events, "wait", {"status": "done"}), invocationId=_invocation(events))
    talk.read()
    talk.run("begin again")
    talk.read()


def _invocation(events: list[Any]) -> str:
    return str(events[0]["invocationId"]) if events else ""


def _lists(talk: Conversation) -> None:
    talk.ask("GET", "/list-apps")
    talk.ask("GET", "/list-apps?detailed=true")


def _info(talk: Conversation) -> None:
    for app in ("llm", "tool_async", "transfer", "yaml_agent", "plain", "app_plugin", "none"):
        talk.ask("GET", f"/apps/{app}/app-info")


@dataclass(frozen=True)
class Case:
    """An agent, its topic, and its script."""

    app: str
    about: str
    script: Script = _THREE_TURNS


CASES = (
    Case("plain", "BaseAgent, state, sessions", _plain),
    Case("llm", "LlmAgent"),
    Case("streaming", "increments of a BaseAgent"),
    Case("tool_sync", "two calls of a function at once"),
    Case("tool_async", "a coroutine as a tool, state"),
    Case("tool_raises", "a tool raises"),
    Case("tool_unknown", "a tool that is not there"),
    Case("tool_error_callback", "callbacks for errors", chat("tool", "model", "tool")),
    Case("output_key", "`output_key`"),
    Case("output_schema", "`output_schema`", chat("hello", "again", "wrong")),
    Case("agent_callbacks", "callbacks of the agent", chat("hello", "replace", "replace")),
    Case("model_callbacks", "callbacks of the model", chat("hello", "replace", "hello")),
    Case("tool_callbacks", "callbacks of a tool", chat("hello", "replace", "hello")),
    Case("callback_raises", "a callback raises"),
    Case("sequential", "SequentialAgent"),
    Case("parallel", "ParallelAgent", _parallel),
    Case("loop", "LoopAgent, `exit_loop`"),
    Case(
        "transfer",
        "transfer to a sub-agent and back",
        runs("hello", "still there?", "back", "and now"),
    ),
    Case("agent_tool", "AgentTool"),
    Case("long_running", "a long-running tool", _answers("approve", {"status": "approved"})),
    Case("confirmation", "confirmation of a tool", _confirmation),
    Case("credentials", "a tool asks for a credential", _credentials),
    Case("artifacts", "artifacts of session and user", _artifacts),
    Case("state_scopes", "`user:`, `app:`, `temp:`", _state_scopes),
    Case("memory", "memory tools", _memory),
    Case("memory_added", "memory in a callback"),
    Case("app_plugin", "App with a plugin"),
    Case("app_resumable", "App that is resumed", _resumed),
    Case("app_compaction", "App with compaction", chat("a", "b", "c", "d", "e")),
    Case("workflow", "Workflow with a route", chat("short", "something long", "brief")),
    Case("yaml_agent", "`root_agent.yaml`"),
    Case("single_module", "one module"),
    Case("package", "a package, relative imports"),
    Case("environment", "`.env`"),
    Case("code_executor", "a code executor"),
    Case("planner", "a planner"),
    Case("no_history", "`include_contents='none'`"),
    Case("rewinds", "rewind", runs("one", "two", "rewind", "three")),
    Case("instruction_state", "an instruction without its key", _needy),
    Case("model_raises", "the model raises"),
    Case("model_error", "the model answers an error"),
    Case("raises_midway", "raises after an event"),
    Case("context", "what a tool's context has"),
    Case("images", "files in messages and answers", _images),
    Case("instructions", "instructions that functions make", chat("a", "b", "c")),
    Case("toolset", "a toolset that changes"),
    Case("asks_user", "a question to the user", _answers("adk_request_input", {"result": "B"})),
    Case("workflow_join", "Workflow with a join"),
    Case("workflow_input", "Workflow that waits", _answers("adk_request_input", {"result": "yes"})),
    Case("rich_events", "all that an event can have"),
    Case("odd_values", "values that are no JSON", _odd_values),
    Case("short_cuts", "tools that end the turn", chat("final", "give_up", "hand_over", "then")),
    Case("wrong_yields", "wrong events", chat("plain", "string", "cancelled", "same", "ends")),
    Case("all_of_a_plugin", "each callback of a plugin", chat("a", "early", "replaced", "model")),
    Case("upload_plugin", "uploads as artifacts", _uploads),
    Case("agent_tool_saves", "AgentTool with artifacts", chat("a", "fail", "b")),
    Case("nested", "nested, resumable", _nested),
    Case("history", "a history that is given", _history),
    Case("silent", "yields nothing"),
    Case("wrong_app_name", "App of another name"),
    Case("broken_yaml", "YAML that does not parse", _without_a_session),
    Case("wrong_yaml", "YAML with an unknown key", _without_a_session),
    Case("broken_part", "YAML that names broken YAML", _without_a_session),
    Case("missing_part", "YAML that names what is not there", _without_a_session),
    Case("broken_import", "an import fails", _without_a_session),
    Case("raises_value_error", "the module raises", _without_a_session),
    Case("wrong_type", "`root_agent` is no agent", _without_a_session),
    Case("shared_helper", "a package without an agent", _without_a_session),
    Case("list", "`list-apps`, also in detail", _lists),
    Case("info", "`app-info` of some", _info),
)
