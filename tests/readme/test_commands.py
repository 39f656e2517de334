"""Each command of ours that a page shows exists, with its options; so do the extras it installs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib.metadata import metadata

import pytest
from packaging.requirements import Requirement

from tests.readme.consoles import Shown, commands_of, known_options, unknown
from tests.readme.pages import PAGES, blocks, read

pytestmark = pytest.mark.once

OURS = ("agentdouble", "doublecheck", "pytest")
PIP = ("pip install", "clients/bin/pip install")
MAKING_READY = (*PIP, "python3 -m venv", ". .venv", "jupyter lab")


def commands() -> Iterator[tuple[str, Shown]]:
    for page in PAGES:
        for block in blocks(page, "console"):
            yield from ((str(block), command) for command in commands_of(block.text))


def test_each_command_and_option_exists(pytestconfig: pytest.Config) -> None:
    """Of agentdouble, doublecheck and pytest with its plugin, also inside ``$(...)``."""
    options = known_options(pytestconfig)
    own_commands = [
        (place, words) for place, cmd in commands() for words in _all_words(cmd) if words[0] in OURS
    ]

    wrong = [(place, words, unknown(words, options)) for place, words in own_commands]

    assert ([], True) == ([row for row in wrong if row[2]], len(own_commands) > 40)


def _all_words(command: Shown) -> Iterator[list[str]]:
    yield command.words
    for inner in re.findall(r"\$\(([^$]*?)\)", command.command):
        yield inner.split()
    if "--" in command.words:
        yield command.words[command.words.index("--") + 1 :]


def test_each_extra_exists() -> None:
    """Whoever installs ``agentdouble[...]`` gets what the page says."""
    extras = set(metadata("agentdouble").get_all("Provides-Extra") or ())
    named = re.findall(r"agentdouble\[([\w,]+)\]", "".join(map(read, PAGES)))

    assert len(named) > 5
    assert set() == {extra for value in named for extra in value.split(",")} - extras


def test_what_is_installed_can_be_asked_for() -> None:
    """Each is a requirement, or this project's clone with extras."""
    lines = [
        word.replace("/path/to/", "")
        for _, command in commands()
        for part in command.command.split("&&")
        if "pip install" in part
        for word in shlex.split(part)[2:]
    ]

    assert {"agentdouble", "agentkit-sdk-python"} <= {Requirement(line).name for line in lines}


def made_ready(command: Shown) -> bool:
    """Whether all that a command does is to make an environment or to open JupyterLab."""
    return all(part.strip().startswith(MAKING_READY) for part in command.command.split("&&"))
