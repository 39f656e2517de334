"""How many functions and files of agentdouble a warm InvokeTool enters, there and back.

The double has its defaults: all in memory, isolation as the machine offers it, a journal.

Run: python -m tests.benchmarks.count_calls [--names]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import agentdouble
from agentdouble import Emulator
from tests.agentdouble.calling import result

ROUNDS = 5
_OWN = str(Path(agentdouble.__file__).parent)


@contextmanager
def entered(double: Emulator) -> Iterator[set[CodeType]]:
    """Collect the agentdouble functions that a double's event loop enters inside the context."""
    codes: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(_OWN):
            codes.add(frame.f_code)

    async def profile(hook: Any) -> None:
        sys.setprofile(hook)

    double._call(profile(note))
    try:
        yield codes
    finally:
        double._call(profile(None))


def warm_invoke_tool() -> set[CodeType]:
    """Return the functions that every warm InvokeTool enters, without concurrent work."""
    with Emulator() as double:
        result(double, "1+1")
        rounds = []
        for _ in range(ROUNDS):
            with entered(double) as codes:
                result(double, "1+1")
            rounds.append(codes)
    return set.intersection(*rounds)


if __name__ == "__main__":
    functions = warm_invoke_tool()
    files = {code.co_filename for code in functions}
    if "--names" in sys.argv:
        names = sorted((code.co_filename[len(_OWN) + 1 :], code.co_name) for code in functions)
        print(*(f"{file}: {name}" for file, name in names), sep="\n")
    print(f"{len(functions)} functions in {len(files)} files")
