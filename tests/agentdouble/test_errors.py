from __future__ import annotations

import copy
import pickle
import re

import pytest

from agentdouble import errors

pytestmark = pytest.mark.smoke


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
