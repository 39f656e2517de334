"""What the double's page shows of the sandbox and of settings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentdouble import Settings
from agentdouble.sandbox.browser import chromium
from tests.readme.pages import DOUBLE, block
from tests.readme.projects import pytest_in

JAVASCRIPT = block(DOUBLE, "python", "# test_my_javascript.py")
BROWSER = block(DOUBLE, "python", "# test_my_browser.py")
SETTINGS = block(DOUBLE, "toml", "# agentdouble.toml")


def test_the_test_of_javascript_passes(tmp_path: Path) -> None:
    """A cell imports, another one awaits."""
    (tmp_path / "test_my_javascript.py").write_text(JAVASCRIPT)

    assert "1 passed" in pytest_in(tmp_path)


def test_the_test_of_the_browser_passes(tmp_path: Path) -> None:
    """The page is written on."""
    if "CI" not in os.environ and chromium.find(None) is None:
        pytest.skip(f"needs Chromium: {chromium.INSTALL}")
    (tmp_path / "test_my_browser.py").write_text(BROWSER)

    assert "1 passed" in pytest_in(tmp_path)


def test_the_settings_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The choice among the unknowns is one that can be made, and so is the key."""
    (tmp_path / "agentdouble.toml").write_text(SETTINGS)
    monkeypatch.chdir(tmp_path)

    settings = Settings.load()

    assert {"U-TTL-EXTENDS": "sliding"} == settings.unknowns
    assert ["AKLTreader"] == [key.access_key for key in settings.keys]
