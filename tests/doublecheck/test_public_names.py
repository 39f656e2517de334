from __future__ import annotations

import ast
import inspect
import pickle
import subprocess
import sys
from importlib import import_module

import pytest

import doublecheck
from doublecheck import errors

pytestmark = pytest.mark.smoke


NAMES = [
    "AsyncPlatform",
    "Credentials",
    "DoubleCheckError",
    "Platform",
    "PlatformConfig",
    "Secret",
    "Target",
    "calibrate",
    "check",
    "connect",
    "connect_async",
    "prepared_sandbox",
    "show",
    "twin",
    "unknowns",
]

RESULTS = [
    "A2aAnswer",
    "A2aClient",
    "AgentEvent",
    "AgentEvents",
    "AgentSession",
    "AgentSessions",
    "Agents",
    "ArmedFault",
    "AsyncA2aClient",
    "AsyncAgents",
    "AsyncBrowser",
    "AsyncMcpClient",
    "AsyncModelScript",
    "AsyncPlatformClock",
    "AsyncPlatformFaults",
    "AsyncPlatformModel",
    "AsyncSandbox",
    "BashResult",
    "Browser",
    "BrowserInfo",
    "Check",
    "Clause",
    "CodeError",
    "CodeResult",
    "Comparison",
    "Completion",
    "Difference",
    "Exchange",
    "ExitCode",
    "Finding",
    "Findings",
    "Journal",
    "JournalEntry",
    "LiveOutput",
    "McpClient",
    "McpResult",
    "McpTool",
    "McpTools",
    "ModelScript",
    "Output",
    "PlatformClock",
    "PlatformFaults",
    "PlatformModel",
    "Report",
    "Reports",
    "Sandbox",
    "SandboxInfo",
    "SandboxInfos",
    "SessionSnapshot",
    "StreamEvent",
    "Unknown",
    "Unknowns",
]

_LIGHT = """
import sys

for name in ("starlette", "uvicorn", "pydantic", "pydantic_settings", "jupyter_client", "zmq"):
    sys.modules[name] = None

import doublecheck

platform = doublecheck.Platform(doublecheck.Target("http://127.0.0.1:1"))
platform.close()
try:
    doublecheck.connect()
except doublecheck.errors.MissingExtraError as error:
    print(error)
"""


def test_public_names() -> None:
    """They are sorted and can be imported."""
    assert NAMES == doublecheck.__all__ == dir(doublecheck)
    assert NAMES == [getattr(doublecheck, name).__name__ for name in NAMES]


@pytest.mark.parametrize(
    "name",
    [
        "agentdouble",
        "agentdouble.agents",
        "agentdouble.errors",
        "doublecheck",
        "doublecheck.fixtures",
        "doublecheck.results",
    ],
)
def test_names_are_written_out(name: str) -> None:
    """A tool that reads code without running it, such as the reference's, sees no other names."""
    module = import_module(name)
    statements = ast.parse(inspect.getsource(module)).body
    assigned = [
        it.value
        for it in statements
        if isinstance(it, ast.Assign) and ast.unparse(it.targets[0]) == "__all__"
    ]

    assert [module.__all__] == [ast.literal_eval(value) for value in assigned]


def test_names_of_results() -> None:
    results = import_module("doublecheck.results")

    assert RESULTS == results.__all__ == dir(results)
    assert RESULTS == [getattr(results, name).__name__ for name in results.__all__]


@pytest.mark.parametrize("name", ["Platform", *(it[5:] for it in RESULTS if it[:5] == "Async")])
def test_awaited_classes_have_the_same_names(name: str) -> None:
    """Their methods have the same arguments."""
    module = doublecheck if name == "Platform" else import_module("doublecheck.results")
    blocking, awaited = getattr(module, name), getattr(module, f"Async{name}")

    def public(kind: type) -> dict[str, list[str]]:
        """Return the parameters of each method; a property has none."""
        methods = {name: getattr(kind, name) for name in dir(kind) if name[0] != "_"}
        methods["close"] = methods.pop("aclose", methods.get("close"))
        return {
            name: [*inspect.signature(method).parameters][1:] if callable(method) else []
            for name, method in methods.items()
        }

    assert public(blocking) == public(awaited)


def test_importing_the_package_is_lazy() -> None:
    """A name imports its module on first use."""
    output = _python(
        "import sys, doublecheck; print(*sorted(m for m in sys.modules if 'doublec' in m))"
    )

    assert "doublecheck doublecheck.core doublecheck.core.lazy_names\n" == output


def test_a_light_install_has_clients_but_no_double() -> None:
    """connect() names the pip command."""
    expected = "The double is not installed. Install it: pip install 'agentdouble[emulator]'\n"

    assert expected == _python(_LIGHT)


def _python(code: str) -> str:
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    "error",
    [
        errors.ArgumentError("No."),
        errors.ConfigurationError("No.", source="pyproject.toml", key="url"),
        errors.MissingExtraError("respx", install="agentdouble[mock]"),
        errors.RefusedError("No.", status=409, body="{}", code="Conflict"),
        errors.ResultError("It failed:", result=("it",), ename="E", evalue="no", traceback="t"),
        errors.UnseenRequestError("example.com", ["cloud.com"], "requests"),
        errors.InterruptedRunError("s1", double=True),
    ],
    ids=lambda error: type(error).__name__,
)
def test_exceptions_can_be_pickled(error: BaseException) -> None:
    """Process pools rely on it."""
    copied = pickle.loads(pickle.dumps(error))

    assert (type(error), str(error), vars(error)) == (type(copied), str(copied), vars(copied))
