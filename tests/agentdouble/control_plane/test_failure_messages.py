"""``message`` of a failed execution: the last error among its outputs."""

from __future__ import annotations

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import run

SHOWN_WITH_ERRORS = {
    "a number that is too long": "10**5000",
    "repr raises": "class A:\n    def __repr__(self): raise ValueError('no')\nA()",
    "repr is no text": "class A:\n    def __repr__(self): return 3\nA()",
    "html raises": "class A:\n    def _repr_html_(self): raise ValueError('no')\nA()",
    "bundle raises": "class A:\n    def _repr_mimebundle_(self, **_): raise ValueError('no')\nA()",
    "display raises": "class A:\n    def _ipython_display_(self): raise KeyError('k')\nA()",
    "repr exits": "class A:\n    def __repr__(self): raise SystemExit(3)\nA()",
    "hook raises": "import sys\ndef hook(value): raise OSError(5)\nsys.displayhook = hook\n1",
    "error without text": "class A(Exception):\n    def __str__(self): raise ValueError('no')\nraise A",
    "two errors": "class A:\n    def __repr__(self): raise ValueError('no')\ndisplay(A())\n1 / 0",
    "a syntax error": "1 +",
    "an error of a magic": "%nothing",
    "an error in a thread's result": "from concurrent.futures import ThreadPoolExecutor as P\n"
    "P().submit(lambda: {}['k']).result()",
    "an exception group": "import sys\nif sys.version_info < (3, 11): raise OSError\nraise ExceptionGroup('g', [ValueError(1)])",
    "an exit": "raise SystemExit('bye')",
    "an error after clear_output": "from IPython.display import clear_output\nclear_output()\n1 / 0",
}


@pytest.mark.parametrize("kind", SHOWN_WITH_ERRORS)
def test_the_message_is_the_last_error(shared: Emulator, kind: str) -> None:
    inner = run(shared, SHOWN_WITH_ERRORS[kind], kind.replace(" ", "-").replace("'", ""))

    assert (False, "error") == (inner["success"], inner["data"]["status"])
    errors = [out for out in inner["data"]["outputs"] if out["output_type"] == "error"]
    assert (
        f"Code execution failed: {errors[-1]['ename']}: {errors[-1]['evalue']}" == inner["message"]
    )
    assert "NoneType" not in inner["message"]


@pytest.mark.parametrize(
    "code",
    ["throw new RangeError('far')", "await Promise.reject('text')", "let x = ;", "null.x"],
)
def test_the_message_of_javascript(shared: Emulator, code: str) -> None:
    inner = run(shared, code, "message", language="javascript")

    error = inner["data"]["outputs"][-1]
    assert f"Code execution failed: {error['ename']}: {error['evalue']}" == inner["message"]
