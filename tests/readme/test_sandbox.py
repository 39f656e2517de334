"""What the double's page shows of the sandbox and of settings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentdouble import Settings
from agentdouble.sandbox.browser import chromium
from tests.readme.pages import DOUBLE, block
from tests.readme.projects import pytest_in

pytestmark = pytest.mark.once

JAVASCRIPT = block(DOUBLE, "python", "# test_my_javascript.py")
BROWSER = block(DOUBLE, "python", "# test_my_browser.py")
SETTINGS = block(DOUBLE, "toml", "# agentdouble.toml")


@pytest.mark.slow
def test_the_tests_of_javascript_and_the_browser_pass(tmp_path: Path) -> None:
    """A cell imports, another one awaits; a page is written on, where there is a Chromium."""
    (tmp_path / "test_my_javascript.py").write_text(JAVASCRIPT)
    with_a_browser = "CI" in os.environ or chromium.find(None) is not None
    if with_a_browser:
        (tmp_path / "test_my_browser.py").write_text(BROWSER)

    assert f"{1 + with_a_browser} passed" in pytest_in(tmp_path)


def test_the_settings_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The choice among the unknowns is one that can be made, and so is the key."""
    (tmp_path / "agentdouble.toml").write_text(SETTINGS)
    monkeypatch.chdir(tmp_path)

    settings = Settings.load()

    assert {"U-TTL-EXTENDS": "sliding"} == settings.unknowns
    assert ["AKLTreader"] == [key.access_key for key in settings.keys]
