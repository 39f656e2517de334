"""Links inside the repository lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.readme.pages import PAGES, ROOT, read

LINKED = (*PAGES, "CONTRIBUTING.md", "CHANGELOG.md")


def links(page: str) -> list[str]:
    text = re.sub(r"^```.*?^```$", "", read(page), flags=re.M | re.S)
    return [one for one in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in one]


def anchors(page: Path) -> set[str]:
    """Return the names that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}


@pytest.mark.parametrize("page", LINKED)
def test_each_link_leads_somewhere(page: str) -> None:
    """To a file that is there, and to a heading of it."""
    here = ROOT / page

    dead = []
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = here.parent / path if path else here
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(link)

    assert [] == dead
