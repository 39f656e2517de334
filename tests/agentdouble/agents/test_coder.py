from __future__ import annotations

import asyncio
import re

import pytest

from agentdouble import Emulator, environment
from agentdouble.agents.shipped import coder
from agentdouble.agents.shipped.coder import CodeBlock
from agentdouble.code_tool import hosted_by
from agentdouble.errors import CredentialsMissingError
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
    """Each block with its language; a message without a block is code itself."""
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
def test_the_coder_runs_what_it_is_sent(shared: Emulator) -> None:
    """The shipped application really runs code, and the session keeps its context."""
    assert "Done, without output." == ask(shared, "x = 6")
    assert "42" == ask(shared, "Please run\n```python\nprint(x * 7)\n```")


def test_an_error_is_shown_with_its_traceback_in_plain_text(shared: Emulator) -> None:
    """No colour codes in Markdown."""
    answer = ask(shared, "print('before')\n1 / 0")

    assert answer.startswith("before\nError: ZeroDivisionError: division by zero\n\n```text\n")
    assert "\x1b" not in answer


@pytest.mark.slow
def test_an_image_is_a_data_uri(shared: Emulator) -> None:
    """A plot can be looked at in the answer."""
    answer = ask(shared, "import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()")

    assert re.search(r"!\[<Figure .*>\]\(data:image/png;base64,iVBOR[\w+/=]+\)$", answer)


def test_a_refusal_of_the_sandbox_is_shown(shared: Emulator) -> None:
    """The platform's message is the answer."""
    answer = ask(shared, "```cobol\nx\n```")

    assert answer.startswith("Error: The language 'cobol' is not known. Known are: python3, ")


def test_javascript_runs_too(shared: Emulator) -> None:
    """A block says its language; each has its own state."""
    first = ask(shared, "```js\nlet n = 6; console.log(n)\n```\n```javascript\nn * 7\n```")

    assert "6\n\n42" == first
    assert ask(shared, "```js\nnull.x\n```").startswith("Error: TypeError: Cannot read")


@pytest.mark.parametrize("prompt", ["", " \n"])
def test_an_empty_message_asks_for_code(shared: Emulator, prompt: str) -> None:
    """Nothing is run for nothing."""
    assert "Send me a code block and I run it." == ask(shared, prompt)


@pytest.mark.parametrize("prompt", [None, 1, ["x"]])
def test_a_prompt_that_is_no_text_is_refused(shared: Emulator, prompt: object) -> None:
    """The example's own error text."""
    assert "Error: Missing required field 'prompt', a string." == ask(shared, prompt)


def test_the_coder_finds_its_platform_like_any_run_code() -> None:
    """Without a platform it fails as run_code does."""
    with (
        hosted_by({environment.TOOL_ID: "t-1"}),
        pytest.raises(CredentialsMissingError),
    ):
        asyncio.run(coder.answer("1"))
