"""Links within the repository have targets."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.readme.pages import PAGES, ROOT, read

pytestmark = [pytest.mark.once, pytest.mark.smoke]

LINKED = (*PAGES, "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")


def links(page: str) -> list[str]:
    text = re.sub(r"^```.*?^```$", "", read(page), flags=re.M | re.S)
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub generates for the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", LINKED)
def test_links_have_targets(page: str) -> None:
    """Each file exists and has the linked heading."""
    source = ROOT / page

    dead = []
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = source.parent / path if path else source
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(link)

    assert [] == dead


@pytest.mark.slow
def test_source_archive_contains_link_targets(tmp_path: Path) -> None:
    """This covers the pages, the picture and the notebooks."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=300)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}

    linked = {
        ((ROOT / page).parent / link.partition("#")[0]).resolve().relative_to(ROOT)
        for page in LINKED
        for link in links(page)
        if not link.startswith("#")
    }
    missing = [link for link in linked if not any(_is_in(link, name) for name in names)]
    assert ([], True) == (missing, len(linked) > 5)


def _is_in(linked: Path, name: str) -> bool:
    return name == str(linked) or name.startswith(f"{linked}/")
