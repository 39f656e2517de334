import asyncio
import sys
from collections.abc import Callable, Generator

# A pytester run forgets what it has imported. These would not work if they were imported in one
# and once more after it: httpx knows its errors by the classes of httpcore, and two copies of
# protobuf's messages end the process.
import a2a.types  # noqa: F401
import httpcore  # noqa: F401
import pytest
from _pytest import pytester

pytest_plugins = ["pytester"]


class ModulesSnapshot:
    """What is imported, kept over a pytester run, which forgets what it has imported.

    pytester's own empties ``sys.modules`` and fills it again. A thread that imports something
    at that moment, a double's say, makes it anew, and breaks it for the whole process.
    """

    def __init__(self, preserve: Callable[[str], bool] = lambda _name: False) -> None:
        self._saved = dict(sys.modules)
        self._preserve = preserve

    def restore(self) -> None:
        """Forget what is new, and bring back what was replaced."""
        for name in set(sys.modules) - set(self._saved):
            if not self._preserve(name):
                sys.modules.pop(name, None)
        kept = [name for name in self._saved if not self._preserve(name)]
        sys.modules.update({name: self._saved[name] for name in kept})


pytester.SysModulesSnapshot = ModulesSnapshot  # type: ignore[misc, assignment]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the scale and the seed of ``tests/stress``."""
    group = parser.getgroup("stress tests of agentdouble")
    group.addoption("--stress", choices=["short", "long"], default="short")
    group.addoption("--stress-seed", type=int, default=1, metavar="N")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Give pytest-asyncio a loop to put back, as it makes one otherwise and never closes it."""
    if item.get_closest_marker("asyncio") is None:
        return (yield)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return (yield)
    finally:
        asyncio.set_event_loop(None)
        loop.close()
