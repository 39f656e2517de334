"""Links have targets, tables match the modules, and every block of the pages is run."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests import readme
from tests.readme.consoles import commands_of
from tests.readme.pages import PAGES, ROOT, Block, read, untaken
from tests.readme.test_emulator_page import OURS, made_ready

pytestmark = pytest.mark.once


LINKED = (*PAGES, "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")


def links(page: str) -> list[str]:
    text = re.sub(r"^```.*?^```$", "", read(page), flags=re.M | re.S)
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub generates for the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.smoke
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


@pytest.mark.smoke
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


PACKAGES = {
    "emulator/agentdouble": "The double, `emulator/agentdouble`",
    "harness/doublecheck": "The harness, `harness/doublecheck`",
}
NOT_LISTED = {"__init__.py", "__main__.py"}


@pytest.mark.smoke
@pytest.mark.parametrize("package", PACKAGES)
def test_tables_name_every_module(package: str) -> None:
    """The tables of CONTRIBUTING.md name every module, and no other."""
    actual = set(filter(None, map(_spelled, (ROOT / package).iterdir()))) - NOT_LISTED
    table = read("CONTRIBUTING.md").split(PACKAGES[package])[1].split("\n\n")[1]
    listed = {name for row in table.splitlines() for name in re.findall(r"`(\S+)`", _names_in(row))}

    assert actual == listed, f"name each module of {package} in CONTRIBUTING.md, section Packages"


def _spelled(path: Path) -> str | None:
    """Return a module's name in the table, or None for data and leftover caches."""
    if path.is_dir():
        return f"{path.name}/" if any(path.glob("*.py")) else None
    return path.name if path.suffix == ".py" else None


def _names_in(row: str) -> str:
    return row.split("|")[1]


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
