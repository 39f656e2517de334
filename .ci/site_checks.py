"""What must hold on the built pages of the site; ``site.py`` calls ``check``."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from doublecheck import fixtures

ELSEWHERE = re.compile(
    r"""<(?:script|img|iframe|link)\b[^>]*(?:src|href)=["']?https?://[^"'\s>]+"""
)
LOCAL = re.compile(r"""(?:href|src)="?(?![\w+.-]+:|//)([^"#?&\s>]+)""")
ANCHOR = re.compile(r"""\bid="?([^"\s>]+)""")
OWN = ("agentdouble", "doublecheck")
Shown = Mapping[str, tuple[str, Sequence[str]]]


def check(site: Path, pages: Path, navigation: str, python: Shown) -> None:
    """End the build if a page, a link or a public name is wrong or missing.

    ``pages`` are the sources of ``site``, and ``python`` is what the Python reference shows.
    """
    built = {page: page.read_text("utf-8") for page in site.rglob("*.html")}
    sources = {str(page.relative_to(pages)) for page in pages.rglob("*.md")}
    problems = {
        "These pages are only in the navigation, or not in it": (
            sources ^ set(re.findall(r'"([^"]+\.md)"', navigation))
        ),
        "These pages load something from other sites": {
            (str(page.relative_to(site)), match[0])
            for page, text in built.items()
            for match in ELSEWHERE.finditer(text)
        },
        "These links of pages are dead": {
            (str(page.relative_to(site)), link)
            for page, text in built.items()
            for link in LOCAL.findall(text)
            if page.parent != site and not (page.parent / link).exists()
        },
        "These pages show text between dollar signs as a formula": {
            str(page.relative_to(site))
            for page, text in built.items()
            if "arithmatex" in text and page.parents[1].name != "notebooks"
        },
        "The Python reference lacks these": missing(site / "reference", python),
    }
    for problem, found in problems.items():
        if found:
            sys.exit(f"{problem}: {sorted(found)}")


def missing(reference: Path, python: Shown) -> set[str]:
    """Return the public names, members and fixtures without an anchor on a built page."""
    pages = (reference / name / "index.html" for name in python)
    anchors = {anchor for page in pages for anchor in ANCHOR.findall(page.read_text("utf-8"))}
    classes = {anchor.rpartition(".")[2] for anchor in anchors}
    wanted = {name for _, shown in python.values() for it in shown for name in _names(it)}
    wanted |= {f"{fixtures.__name__}.{name}" for name, _ in _fixtures()}
    given = {name for _, returned in _fixtures() for name in returned}
    return (wanted - anchors) | (given - classes)


def _names(shown: str) -> Iterator[str]:
    """Yield the names of what the reference shows: a module or a class, with their members."""
    parent, _, name = shown.rpartition(".")
    if name[0].isupper():
        yield from _members(shown, getattr(import_module(parent), name))
        return
    module = import_module(shown)
    own = (name for name, it in vars(module).items() if getattr(it, "__module__", "") == shown)
    listed: Iterable[str] = getattr(module, "__all__", own)
    for name in (it for it in listed if it[0] != "_"):
        value = getattr(module, name)
        if not inspect.getdoc(value):
            sys.exit(f"This public name has no docstring: {shown}.{name}")
        yield f"{shown}.{name}"
        if inspect.isclass(value):
            yield from _members(f"{shown}.{name}", value)


def _members(path: str, value: type) -> Iterator[str]:
    """Yield a class's own and inherited methods and properties that have a docstring."""
    bases = [base for base in value.__mro__ if base.__module__.startswith(OWN)]
    members = {name: it for base in reversed(bases) for name, it in vars(base).items()}
    for name, member in members.items():
        function = member.fget if isinstance(member, property) else inspect.unwrap(member)
        ours = str(getattr(function, "__module__", "")).startswith(OWN)
        if ours and inspect.isroutine(function) and name[0] != "_" and function.__doc__:
            yield f"{path}.{name}"


def _fixtures() -> Iterator[tuple[str, set[str]]]:
    """Yield each fixture, as its source has it, with the classes of what it gives a test."""
    for file in Path(fixtures.__file__).parent.glob("*.py"):
        for node in ast.parse(file.read_text("utf-8")).body:
            if not isinstance(node, ast.FunctionDef) or node.name[0] == "_" or not node.returns:
                continue
            if any(ast.unparse(it).startswith("pytest.fixture") for it in node.decorator_list):
                words = re.findall(r"\b[A-Z]\w+", ast.unparse(node.returns))
                yield node.name, {*words} - {"Callable", "Iterator"}
