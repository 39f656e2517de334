"""A request of the journal as a test, by whatever package makes tests of requests.

The double knows none: a package that does names a function in the entry point group
``agentdouble.console``, as ``test``. It takes complete entries as ``/_emulator/journal`` shows them,
the oldest first, and returns the text of a module.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from importlib.metadata import entry_points

from agentdouble.errors import AgentDoubleError
from agentdouble.journal import Journal
from agentdouble.resending import gone
from agentdouble.what_if.earlier import relied_on

GROUP = "agentdouble.console"
NAME = "test"


class NoTestError(AgentDoubleError):
    """A request of which no test can be made; ``status`` is that of the answer."""

    def __init__(self, message: str, status: int = 409) -> None:
        super().__init__(message)
        self.status = status


def saved_test(journal: Journal, id_: int, known: Collection[str] = ()) -> str:
    """Return a test of a request and of those that it relied on; it may take a second.

    ``known`` are ids that every double has. Raises CannotRepeatError or NoTestError.
    """
    entry = journal.find(id_)
    if entry is None:
        raise gone()
    make = _maker()
    try:
        earlier = relied_on(entry, journal.entries(), known)
        return make([one.to_dict() for one in (*earlier, entry)])
    except Exception as error:  # the package is not ours, and raises what it likes
        raise NoTestError(f"No test can be made of this request: {error}") from error


def _maker() -> Callable[[Sequence[object]], str]:
    found = next(iter(entry_points(group=GROUP, name=NAME)), None)
    if found is None:
        raise NoTestError(
            "Nothing that is installed here makes tests of requests. doublecheck does: "
            "pip install 'agentdouble[emulator,test]'.",
            501,
        )
    try:
        maker: Callable[[Sequence[object]], str] = found.load()
    except (ImportError, AttributeError) as error:
        raise NoTestError(f"{found.value} makes tests, but: {error}", 501) from error
    return maker
