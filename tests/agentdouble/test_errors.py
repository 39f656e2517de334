from __future__ import annotations

import copy
import pickle
import re

import pytest

from agentdouble import errors

pytestmark = pytest.mark.smoke


def drawn() -> dict[str, str]:
    """Return the base of each exception but the first, as the tree in the docstring has it."""
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


def test_the_tree_is_the_one_that_is_drawn() -> None:
    """Whoever reads the package's docstring knows every exception, and what catches it."""
    bases = {name: getattr(errors, name).__bases__[0].__name__ for name in errors.__all__}

    assert bases.pop("AgentDoubleError") == "ShownShort"
    assert bases == drawn()


@pytest.mark.parametrize("name", errors.__all__)
def test_an_exception_is_called_by_where_it_is_imported_from(name: str) -> None:
    """A traceback and a pickle say ``agentdouble.errors``, whatever file it stands in."""
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
def test_an_exception_comes_out_of_another_process_as_it_was(
    error: errors.AgentDoubleError,
) -> None:
    """Message and attributes; a pool of processes would break where it did not."""
    for copied in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(error), str(error), vars(error)) == (type(copied), str(copied), vars(copied))
