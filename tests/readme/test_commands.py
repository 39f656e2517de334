"""Each command of ours that a page shows exists, with its options; so do the extras it installs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib.metadata import metadata

import pytest
from packaging.requirements import Requirement

from tests.readme.consoles import Shown, known, shown, unknown
from tests.readme.pages import PAGES, blocks, read

pytestmark = pytest.mark.once

OURS = ("agentdouble", "doublecheck", "pytest")
MAKING_READY = (
    "python3 -m venv",
    "pip install",
    "clients/bin/pip install",
    ". .venv",
    "jupyter lab",
)


def commands() -> Iterator[tuple[str, Shown]]:
    for page in PAGES:
        for one in blocks(page, "console"):
            yield from ((str(one), each) for each in shown(one.text))


def test_each_command_and_option_exists(pytestconfig: pytest.Config) -> None:
    """Of agentdouble, doublecheck and pytest with its plugin, also inside ``$(...)``."""
    options = known(pytestconfig)
    ours = [
        (place, words) for place, one in commands() for words in _all_words(one) if words[0] in OURS
    ]

    wrong = [(place, words, unknown(words, options)) for place, words in ours]

    assert ([], True) == ([one for one in wrong if one[2]], len(ours) > 40)


def _all_words(one: Shown) -> Iterator[list[str]]:
    yield one.words
    for inner in re.findall(r"\$\(([^$]*?)\)", one.command):
        yield inner.split()
    if "--" in one.words:
        yield one.words[one.words.index("--") + 1 :]


def test_each_extra_exists() -> None:
    """Whoever installs ``agentdouble[...]`` gets what the page says."""
    extras = set(metadata("agentdouble").get_all("Provides-Extra") or ())
    named = re.findall(r"agentdouble\[([\w,]+)\]", "".join(map(read, PAGES)))

    assert len(named) > 5
    assert set() == {extra for one in named for extra in one.split(",")} - extras


def test_what_is_installed_can_be_asked_for() -> None:
    """Each is a requirement, or this project's clone with extras."""
    asked = [
        word.replace("/path/to/", "")
        for _, one in commands()
        for part in one.command.split("&&")
        if "pip install" in part
        for word in shlex.split(part)[2:]
    ]

    assert {"agentdouble", "agentkit-sdk-python"} <= {Requirement(one).name for one in asked}


def made_ready(one: Shown) -> bool:
    """Whether all that a command does is to make an environment or to open JupyterLab."""
    return all(part.strip().startswith(MAKING_READY) for part in one.command.split("&&"))
