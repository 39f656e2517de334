from __future__ import annotations

import asyncio
import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from agentdouble.imports import import_now, import_theirs
from agentdouble.threads import import_in_thread
from tests.agentdouble.calling import TIMEOUT_S, background, eventually

EVENTS = "from tests.agentdouble.test_imports import happenings\n"
COUNTED = f"{EVENTS}happenings.append(__name__)\n"

happenings: list[str] = []
_let_go = threading.Event()


def wait(name: str) -> None:
    """Say that a module is being imported, and wait until it may go on."""
    happenings.append(name)
    assert _let_go.wait(TIMEOUT_S)


Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Give what writes a module that can be imported until the end of the test."""
    happenings.clear()
    _let_go.clear()
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))

    def write_module(name: str, source: str) -> None:
        path = tmp_path.joinpath(*name.split("."))
        path.parent.mkdir(exist_ok=True)
        file = path.with_suffix(".py") if "." in name else path / "__init__.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(source)
        importlib.invalidate_caches()

    yield write_module
    for name in set(sys.modules) - before:
        del sys.modules[name]


def somebody_waits() -> bool:
    """Whether a thread waits for a module that another one imports."""
    waiting = importlib._bootstrap._blocking_on  # type: ignore[attr-defined]
    if isinstance(waiting, dict):
        return any(list(waiting.values()))
    return any(waited() for waited in list(waiting.data.values()))  # weakly, from Python 3.13 on


def many(function: Callable[[int], object]) -> None:
    """Call a function in many threads at once, and wait for them."""
    begin = threading.Barrier(12)

    def call(number: int) -> object:
        begin.wait(TIMEOUT_S)
        return function(number)

    for one in [background(lambda n=number: call(n)) for number in range(12)]:  # type: ignore[misc]
        one.result(TIMEOUT_S)


def test_threads_that_import_parts_of_a_package_all_get_whole_ones(write: Write) -> None:
    """Whichever part each needs, on whichever loop: every module is run once."""
    write("circular", f"{COUNTED}from circular import one, two\n")
    write("circular.one", f"{COUNTED}import circular.two\nfrom circular import two\n")
    write("circular.two", f"{COUNTED}import circular\nvalue = 42\n")
    parts = [("circular",), ("circular.one", "circular"), ("circular.two",)]

    many(lambda number: asyncio.run(import_in_thread(*parts[number % 3])))

    assert ["circular", "circular.one", "circular.two"] == sorted(happenings)
    assert 42 == sys.modules["circular"].two.value


def test_an_import_outlives_who_waits_for_it(write: Write) -> None:
    """One of two that wait is cancelled; the module is run once, and the other has it."""
    write("awaited", "from tests.agentdouble import test_imports\ntest_imports.wait(__name__)\n")

    async def wait_for_it() -> None:
        leaving, staying = (asyncio.ensure_future(import_in_thread("awaited")) for _ in range(2))
        await asyncio.to_thread(eventually, lambda: happenings, bool)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        _let_go.set()
        await staying

    asyncio.run(wait_for_it())

    assert ["awaited"] == happenings


def test_an_import_that_fails_is_told_and_leaves_nothing_half_made(write: Write) -> None:
    """Who asks again gets it whole, once it can be had."""
    write("failing", f"{COUNTED}import failing.part\nraise OSError('too many open files')\n")
    write("failing.part", COUNTED)

    async def ask() -> list[object]:
        both = (import_in_thread("failing"), import_in_thread("failing"))
        return list(await asyncio.gather(*both, return_exceptions=True))

    assert ["OSError('too many open files')"] * 2 == list(map(repr, asyncio.run(ask())))
    assert not {"failing", "failing.part"} & set(sys.modules)
    write("failing", f"{COUNTED}import failing.part\nvalue = 1\n# of another length\n")
    asyncio.run(import_in_thread("failing"))
    assert 1 == sys.modules["failing"].value
    assert sys.modules["failing.part"] is sys.modules["failing"].part


def begun_elsewhere(write: Write, package: str) -> None:
    """Have another thread be in the way of whoever imports a package first.

    The package, once let go, imports its part, which the other thread has begun and for which
    it needs the package. Python refuses one of the two.
    """
    write(
        package,
        "from tests.agentdouble import test_imports\n"
        f"test_imports.wait(__name__)\nfrom {package}.part import value\n",
    )
    write(f"{package}.part", f"import {package}\nvalue = 42\n")


def in_the_way(package: str) -> None:
    eventually(lambda: happenings, bool)
    other = background(lambda: importlib.import_module(f"{package}.part"))
    eventually(somebody_waits, bool)
    _let_go.set()
    other.exception(TIMEOUT_S)


def test_another_thread_of_the_process_does_not_break_an_import(write: Write) -> None:
    """The user's own threads ask nobody when they import."""
    begun_elsewhere(write, "disturbed")

    ours = background(lambda: import_now("disturbed", "disturbed.part"))
    in_the_way("disturbed")

    ours.result(TIMEOUT_S)
    assert 42 == sys.modules["disturbed"].part.value


def test_what_the_double_imports_does_not_break_the_user_s_module(write: Write) -> None:
    """It is imported again when the double is through."""
    begun_elsewhere(write, "theirs_needs")
    write("theirs", f"{COUNTED}from theirs_needs import value\n")
    write("ours_needs", "import theirs_needs.part\n")

    theirs = background(lambda: import_theirs("theirs"))
    eventually(lambda: happenings, bool)
    ours = background(lambda: import_now("ours_needs"))
    eventually(somebody_waits, bool)
    _let_go.set()

    ours.result(TIMEOUT_S)
    module: ModuleType = theirs.result(TIMEOUT_S)
    assert 42 == module.value


def test_a_module_that_takes_long_holds_nothing_else(write: Write) -> None:
    """Of the user's: the double goes on importing meanwhile, and so do others of theirs."""
    write("slow_one", "from tests.agentdouble import test_imports\ntest_imports.wait(__name__)\n")
    write("quick_one", COUNTED)
    write("quick_theirs", COUNTED)

    slow = background(lambda: import_theirs("slow_one"))
    eventually(lambda: happenings, bool)
    import_now("quick_one")
    import_theirs("quick_theirs")

    assert ["slow_one", "quick_one", "quick_theirs"] == happenings
    assert not slow.done()
    _let_go.set()
    slow.result(TIMEOUT_S)
