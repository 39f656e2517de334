from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path

import pytest

from agentdouble.core.threads import import_in_thread
from tests.agentdouble.calling import TIMEOUT_S, background


def test_threads_can_import_a_circular_package_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each module runs only once."""
    monkeypatch.syspath_prepend(str(tmp_path))
    package = tmp_path / "circular"
    package.mkdir()
    count = "from tests.agentdouble.core.test_imports import imported\nimported.append(__name__)\n"
    (package / "__init__.py").write_text(f"{count}from circular import one, two\n")
    (package / "one.py").write_text(f"{count}import circular.two\nfrom circular import two\n")
    (package / "two.py").write_text(f"{count}import circular\nvalue = 42\n")
    parts = [("circular",), ("circular.one", "circular"), ("circular.two",)]
    begin = threading.Barrier(12)

    def import_part(number: int) -> None:
        begin.wait(TIMEOUT_S)
        asyncio.run(import_in_thread(*parts[number % 3]))

    threads = [background(lambda number=number: import_part(number)) for number in range(12)]  # type: ignore[misc]
    for thread in threads:
        thread.result(TIMEOUT_S)

    assert ["circular", "circular.one", "circular.two"] == sorted(imported)
    assert 42 == sys.modules["circular"].two.value
    for name in imported:
        del sys.modules[name]


imported: list[str] = []
