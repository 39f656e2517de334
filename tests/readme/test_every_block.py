"""Tests run every block of every page."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from tests import readme
from tests.readme.consoles import commands_of
from tests.readme.pages import Block, untaken
from tests.readme.test_emulator_page import OURS, made_ready

pytestmark = pytest.mark.once


def test_every_block_is_run() -> None:
    """A console block may contain only our commands instead, whose options are checked."""
    for module in pkgutil.iter_modules(readme.__path__, f"{readme.__name__}."):
        importlib.import_module(module.name)

    missing = [str(block) for block in untaken() if not _looked_up(block)]
    assert [] == missing, "take each with block(...) in a test of tests/readme, and run it"


def _looked_up(block: Block) -> bool:
    return block.language == "console" and all(
        command.words[0] in OURS or made_ready(command) for command in commands_of(block.text)
    )
