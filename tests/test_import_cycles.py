"""Modules import in one direction: those in a cycle can only be read and moved together."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

pytestmark = pytest.mark.smoke

ROOT = Path(__file__).parents[1]
PACKAGES = {"agentdouble": "emulator", "doublecheck": "harness"}
# In these packages, as many modules as LARGEST may import each other. Elsewhere none may.
ALLOWED = (
    "agentdouble.runtimes",
    "agentdouble.processes",
    "doublecheck.client",
    "doublecheck.wire",
)
LARGEST = 3
# ``agentdouble`` exports the Emulator lazily, and its platform reports the version.
ROOT_CYCLE = ["agentdouble", "agentdouble.emulator", "agentdouble.platform"]

Imports = Mapping[str, frozenset[str]]


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_modules_do_not_import_each_other(package: str) -> None:
    """Imports in functions and under TYPE_CHECKING count, because readers follow them too."""
    found = [cycle for cycle in cycles(imports_of(package)) if not _is_allowed(cycle)]

    assert [] == found, "move what they share into a module of its own"


def _is_allowed(cycle: list[str]) -> bool:
    is_small = len(cycle) <= LARGEST and all(module.startswith(ALLOWED) for module in cycle)
    return is_small or cycle == ROOT_CYCLE


def test_cycles_are_found() -> None:
    """Largest cycles come first; modules outside a cycle are in none."""
    two = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}, "g": {"g"}}

    assert [["a", "b", "c"], ["d", "e"]] == cycles({name: frozenset(two[name]) for name in two})


def test_all_kinds_of_imports_count(tmp_path: Path) -> None:
    """Imports in functions, under conditions, of names in a package and of its modules."""
    (tmp_path / "__init__.py").write_text("from p.low import x\n")
    (tmp_path / "low.py").write_text("def late():\n    import p.high\n")
    (tmp_path / "high.py").write_text("if TYPE_CHECKING:\n    from p import late, low\n")

    assert {"p": {"p.low"}, "p.low": {"p.high"}, "p.high": {"p", "p.low"}} == read(tmp_path, "p")


def imports_of(package: str) -> Imports:
    """Return the imports among the modules of a package."""
    return read(ROOT / PACKAGES[package] / package, package)


def read(folder: Path, package: str) -> Imports:
    files = {_module(file.relative_to(folder), package): file for file in folder.rglob("*.py")}
    return {
        module: frozenset(_imported(ast.parse(file.read_text("utf-8")), frozenset(files)))
        for module, file in files.items()
    }


def _module(file: Path, package: str) -> str:
    return ".".join((package, *file.with_suffix("").parts)).removesuffix(".__init__")


def _imported(tree: ast.Module, modules: frozenset[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                yield below if below in modules else node.module


def cycles(imports: Imports) -> list[list[str]]:
    """Return the import cycles as lists of modules, largest first."""
    reached = {module: _reached_from(module, imports) for module in imports}
    sccs = {
        tuple(sorted(member for member in reached[module] if module in reached[member]))
        for module in imports
    }
    return sorted((list(scc) for scc in sccs if len(scc) > 1), key=lambda scc: (-len(scc), scc))


def _reached_from(module: str, imports: Imports) -> frozenset[str]:
    cycles_found: set[str] = set()
    ahead = [module]
    while ahead:
        new = imports[ahead.pop()] - cycles_found
        cycles_found |= new
        ahead += new
    return frozenset(cycles_found)
