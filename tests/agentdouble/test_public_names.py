from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys

import pytest

import agentdouble
from agentdouble import agents, errors

pytestmark = pytest.mark.smoke


HEAVY = [
    *("mcp", "a2a", "sqlalchemy", "jupyter_client", "ipykernel", "zmq", "matplotlib", "IPython"),
    *("jwt", "prometheus_client"),
]


def test_the_public_names_are_fixed() -> None:
    """Adding or removing one is a decision."""
    assert [
        "A2AApp",
        "AgentDoubleError",
        "Clock",
        "Context",
        "Emulator",
        "MCPApp",
        "Settings",
        "SimpleApp",
        "agent_card",
        "run_code",
    ] == agentdouble.__all__
    assert sorted([*agentdouble.__all__, "__version__"]) == dir(agentdouble)


def test_the_names_for_agents_are_fixed() -> None:
    """These are the types that an agent receives and yields."""
    assert ["Event", "Message", "Part", "Session"] == agents.__all__


def test_every_public_name_can_be_imported() -> None:
    """Late imports work too."""
    assert [] == [name for name in agentdouble.__all__ if not hasattr(agentdouble, name)]
    assert callable(agentdouble.run_code)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'agentdouble' has no attribute 'gone'"):
        agentdouble.gone  # noqa: B018


def printed(script: str) -> str:
    command = [sys.executable, "-c", script]
    return subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, timeout=180
    ).stdout


@pytest.mark.slow
def test_heavy_modules_are_imported_on_first_use() -> None:
    """A probed double with a service has imported no kernel and no SDK."""
    script = f"""
import sys
import urllib.request
import agentdouble
with agentdouble.Emulator() as double:
    urllib.request.urlopen(double.url + "/ping").read()
    double.mcp.create("service", "http://127.0.0.1:9/mcp")
print(sorted(set({HEAVY}) & set(sys.modules)))
"""

    assert "[]\n" == printed(script)


def test_importing_the_package_is_cheap() -> None:
    """The light names import no framework."""
    script = """
import sys
import agentdouble, agentdouble.core.ledger, agentdouble.core.signing, agentdouble.core.invoke_tool
print(sorted({"httpx", "pydantic", "starlette", "uvicorn", "asyncio"} & set(sys.modules)))
"""

    assert "[]\n" == printed(script)


def drawn() -> dict[str, str]:
    """Return the base of each exception in the docstring's tree, without the root."""
    path: list[str] = []
    bases = {}
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"    (?P<branch>(?:[│ ] {3})*(?:[├└]── )?)(?P<name>\w+Error)\b", line)
        if match is None:
            continue
        depth = len(match["branch"]) // 4
        path[depth:] = [match["name"]]
        if depth:
            bases[match["name"]] = path[depth - 1]
    return bases


def test_every_exception_is_public() -> None:
    members = vars(errors).values()
    classes = [it for it in members if isinstance(it, type) and issubclass(it, BaseException)]

    assert sorted(it.__name__ for it in classes) == errors.__all__


def test_the_docstring_shows_the_tree_of_exceptions() -> None:
    bases = {name: getattr(errors, name).__bases__[0].__name__ for name in errors.__all__}

    assert bases.pop("AgentDoubleError") == "ShownShort"
    assert bases == drawn()


@pytest.mark.parametrize("name", errors.__all__)
def test_exceptions_belong_to_the_public_module(name: str) -> None:
    """Tracebacks and pickles say ``agentdouble.errors``."""
    error = getattr(errors, name)

    assert f"agentdouble.errors.{name}" == f"{error.__module__}.{error.__qualname__}"
    assert error is pickle.loads(pickle.dumps(error))


@pytest.mark.parametrize(
    "error",
    [
        errors.NotBuiltError("It"),
        errors.ProfileError("No.", file="here", unknown="U-1"),
        errors.CardError("No.", fields=["name"]),
        errors.UnknownRuntimeError("one", ["two"]),
    ],
)
def test_exceptions_survive_pickling(
    error: errors.AgentDoubleError,
) -> None:
    """A pool of processes needs their message and attributes."""
    for copied in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(error), str(error), vars(error)) == (type(copied), str(copied), vars(copied))
