from __future__ import annotations

import re

import pytest

from agentdouble import Emulator
from agentdouble.agents.shipped import coder
from agentdouble.agents.shipped.coder import CodeBlock
from tests.agentdouble.calling import http


@pytest.mark.parametrize(
    ("message", "blocks"),
    [
        ("1 + 1", [("python3", "1 + 1")]),
        ("Run:\n```python\nprint(1)\n```\nplease", [("python", "print(1)\n")]),
        ("```\nx\n```", [("python3", "x\n")]),
        ("``` js title=a\nx\n```\n\n```python3\ny\n```", [("js", "x\n"), ("python3", "y\n")]),
        ("```python\nprint('```')\n```", [("python", "print('```')\n")]),
        ("```python\nno end", [("python3", "```python\nno end")]),
    ],
)
def test_fenced_blocks_are_found(message: str, blocks: list[tuple[str, str]]) -> None:
    """Each block with its language; a message without a block is all code."""
    assert tuple(CodeBlock(*block) for block in blocks) == coder.code_blocks(message)


def ask(double: Emulator, prompt: object) -> str:
    response = http.post(
        f"{double.url}/invoke",
        json={"prompt": prompt},
        headers={"session_id": "coder"},
        timeout=120,
    )
    answer: str = response.json()
    return answer


@pytest.mark.slow
def test_coder_runs_the_message_s_code(shared: Emulator) -> None:
    """The shipped application really runs it, and the session keeps its context."""
    assert "Done, without output." == ask(shared, "x = 6")
    assert "42" == ask(shared, "Please run\n```python\nprint(x * 7)\n```")


@pytest.mark.slow
def test_image_is_a_data_uri(shared: Emulator) -> None:
    """A plot is visible in the answer."""
    answer = ask(shared, "import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()")

    assert re.search(r"!\[<Figure .*>\]\(data:image/png;base64,iVBOR[\w+/=]+\)$", answer)


@pytest.mark.parametrize("prompt", [None, 1, ["x"]])
def test_prompt_that_is_not_text_is_refused(shared: Emulator, prompt: object) -> None:
    """The error is the example's own text."""
    assert "Error: Missing required field 'prompt', a string." == ask(shared, prompt)
