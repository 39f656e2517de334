"""A conversation: the requests to both platforms, part by part.

The default conversation uses every surface. On a live platform it only reads, unless writes are
allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from agentdouble.core.suggestions import did_you_mean
from doublecheck.errors import AnswerError, ArgumentError, DoubleCheckError, RefusedError
from doublecheck.run.platform import Platform
from doublecheck.target.facts import Surface
from doublecheck.values.agents import AgentSession, McpTool
from doublecheck.wire import api_server, calls

Talk = Callable[[Platform], object]

_TTL_S = 120
_NO_AGENT = "the platforms have no agent in common"
_OWN_AGENTS = (
    f"{_NO_AGENT}, and their names are not compared: the double serves its own; --agents DIR gives "
    "it yours (in Python double=)"
)
_ECHO = "echo"
_JSON = {"Content-Type": "application/json"}
_CODES = (
    ("python3", "x = 6 * 7\nprint(x)"),
    ("python3", "x + 1"),
    ("python3", "import sys\nprint('out')\nprint('err', file=sys.stderr)\n{'a': [1, 2]}"),
    ("python3", "raise ValueError('on purpose')"),
    ("javascript", "console.log([1, 2, 3].length)"),
    ("cobol", "DISPLAY 'no such language'."),
)


@dataclass(frozen=True)
class Topic:
    """A part of a conversation: its requests, and the surfaces it needs.

    ``talk`` sends the requests to a platform; it runs once for each. ``does`` says what it invokes
    or creates there, if anything, and ``skipped`` why it cannot run.
    """

    name: str
    surfaces: tuple[Surface, ...]
    talk: Talk = field(repr=False)
    does: str | None = None
    skipped: str | None = None


def default(
    double: Platform,
    live: Platform,
    token: str,
    agent: str | None = None,
    *,
    own_agents: bool = False,
) -> Sequence[Topic]:
    """Return a conversation over all surfaces. ``token`` makes its names unique.

    First it reads from both platforms which agents and tools they have in common. ``agent`` selects
    the agent to run; raises ArgumentError if they do not have it. ``own_agents``: those of the double
    are none of the user's, so their names are compared only if the platform has one of them.
    """
    agents = _common(double, live, "api_server", lambda platform: platform.agents.list_apps())
    if agent and agents is not None and agent not in agents:
        named = f"They have {', '.join(sorted(agents))}." if agents else ""
        near = did_you_mean(agent, agents, named)
        raise ArgumentError(f"The platforms have no agent {agent!r} in common.{near}")
    agent = agent or _first(agents or ())
    tool = _first(_common(double, live, "mcp", _callable_tools) or ())
    others = own_agents and not agent and agents is not None
    return (
        Topic("probes", ("application",), _probes),
        Topic(
            "invocations",
            ("application",),
            partial(_invocations, token=token),
            does="invokes an agent",
        ),
        Topic("API server lists", ("api_server",), partial(_api_server, named=not others)),
        Topic("refused runs", ("api_server",), _refused_runs, does="requests runs"),
        Topic(
            "sessions and runs",
            ("api_server",),
            partial(_sessions, app=agent or "", token=token),
            does="creates something",
            skipped=None if agent else _OWN_AGENTS if others else _NO_AGENT,
        ),
        Topic("refusals of the control plane", ("control_plane",), _refusals),
        Topic(
            "code in the sandbox",
            ("sandbox",),
            partial(_sandbox, token=token),
            does="runs code",
        ),
        Topic("MCP", ("mcp",), _mcp),
        Topic(
            "an MCP tool",
            ("mcp",),
            partial(_tool, name=tool or "", token=token),
            does="calls tools",
            skipped=None if tool else "the platforms have no non-destructive tool in common",
        ),
        Topic(
            "the agent card",
            ("a2a",),
            lambda platform: platform.request("GET", "/.well-known/agent-card.json"),
        ),
        Topic("A2A", ("a2a",), _a2a, does="sends messages to an agent"),
    )


def _common(
    double: Platform, live: Platform, surface: Surface, ask: Callable[[Platform], Collection[str]]
) -> Collection[str] | None:
    """Return what both platforms list, or None if one does not list anything."""
    if not (double.target.offers(surface) and live.target.offers(surface)):
        return None
    try:
        return set(ask(double)) & set(ask(live))
    except (DoubleCheckError, LookupError, TypeError, ValueError, AttributeError):
        return None  # the part that sends the request shows the wrong answer


def _first(names: Collection[str]) -> str | None:
    """Return ``echo`` if it is among the names, otherwise the first name."""
    return _ECHO if _ECHO in names else min(names, default=None)


def _probes(platform: Platform) -> None:
    for name in ("ping", "health", "readiness", "liveness"):
        platform.request("GET", f"/{name}")


def _invocations(platform: Platform, token: str) -> None:
    who = {"user_id": "twin", "session_id": f"twin-{token}", "request_id": token}
    for body in (b'{"prompt": "Hello."}', b"not JSON", b"[]"):
        platform.request("POST", "/invoke", headers={**_JSON, **who}, content=body)


def _api_server(platform: Platform, named: bool) -> None:
    lists = ["/list-apps"] if named else []
    for path in (*lists, "/version", "/apps/no-such-app/users/twin/sessions/no-session"):
        platform.request("GET", path)


def _refused_runs(platform: Platform) -> None:
    body = api_server.body(AgentSession("no-session", "no-such-app", "twin"), "Hello.", {})
    for document in (body, {}):
        platform.request("POST", "/run", headers=_JSON, content=calls.json_content(document))


def _sessions(platform: Platform, app: str, token: str) -> None:
    user = f"twin-{token}"
    with suppress(RefusedError):
        platform.agents.delete(platform.agents.create(app, user_id=user))
    session = platform.agents.create(app, user_id=user, session_id=token, state={"key": "value"})
    try:
        with suppress(RefusedError):
            platform.agents.create(app, user_id=user, session_id=session.id)
        platform.agents.run(session, "Hello.")
        list(platform.agents.run_sse(session, "Say it in pieces.", streaming=True))
        with suppress(AnswerError):  # the body of the list is open
            platform.agents.list(app, user_id=user)
        platform.agents.get(app, session.id, user_id=user)
        platform.agents.list_artifacts(session)
    finally:
        platform.agents.delete(session)
    with suppress(RefusedError):
        platform.agents.get(app, token, user_id=user)


def _refusals(platform: Platform) -> None:
    # sent without a signature; none of them invokes anything
    for query in ("Action=ListTools&Version=2025-10-30", "Action=NoSuchAction&Version=2025-10-30"):
        request = calls.Request("POST", f"{platform.target.control_plane}/?{query}", _JSON, b"{}")
        platform.send(request)


def _sandbox(platform: Platform, token: str) -> None:
    for language, code in _CODES:
        with suppress(RefusedError):
            platform.run_code(code, language, user_id="twin", session_id=token, ttl_s=_TTL_S)


def _callable_tools(platform: Platform) -> Collection[str]:
    with platform.mcp() as client:
        tools = [tool for page in client._pages() for tool in page["tools"]]
    return {
        tool["name"] for tool in tools if not tool.get("annotations", {}).get("destructiveHint")
    }


def _mcp(platform: Platform) -> None:
    with platform.mcp() as client:
        client.tools()


def _tool(platform: Platform, name: str, token: str) -> None:
    # an agent behind a tool uses these to name its sandbox session
    who = {"user_id": "twin", "session_id": f"twin-{token}"}
    with platform.mcp(headers=who) as client:
        with suppress(RefusedError):
            client.call("no-such-tool")
        tool = next(tool for tool in client.tools() if tool.name == name)
        with suppress(RefusedError):
            client.call(name, **dict(_arguments(tool)))


def _arguments(tool: McpTool) -> Iterator[tuple[str, object]]:
    """Yield arguments that a tool's schema allows, if the schema is simple."""
    # also valid as code, for which an agent that runs it gives the same answer every time
    values = {"string": "'Hello.'", "integer": 1, "number": 1.5, "boolean": True}
    properties = tool.input_schema.get("properties", {})
    for name in tool.input_schema.get("required", ()):
        yield name, values.get(properties.get(name, {}).get("type"), {})


def _a2a(platform: Platform) -> None:
    client = platform.a2a()
    client.send("Hello.")
    list(client.stream("Hello again."))
