"""Build the documentation site in ``build/site``: ``python .ci/site.py``.

The pages keep their places, so that their links work here and in the repository. The notebooks
become pages. Settings, commands, clauses, unknowns and the Python interface are generated from the
code. Any warning, dead link or undocumented public name fails the build.
"""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from agentdouble.core import ledger
from agentdouble.settings import Settings
from doublecheck.contracts.clauses import clauses

ROOT = Path(__file__).parents[1]
SITE = ROOT / "build" / "site"
PAGES = ROOT / "build" / "pages"
SOURCES = (
    *(
        "README.md",
        "CHANGELOG.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "emulator/README.md",
        "harness/README.md",
    ),
    *(str(page.relative_to(ROOT)) for page in ROOT.glob("*/docs/*.md")),
)
COMMANDS = {"agentdouble": "agentdouble.cli.app", "doublecheck": "doublecheck.cli"}
LINK = re.compile(r"\]\(([^)\s#:]*?)(notebooks|LICENSE|[\w/.-]+\.ipynb)\)")
ELSEWHERE = re.compile(
    r"""<(?:script|img|iframe|link)\b[^>]*(?:src|href)=["']?https?://[^"'\s>]+"""
)
LOCAL = re.compile(r"""(?:href|src)="?(?![\w+.-]+:|//)([^"#?&\s>]+)""")
ATTACHED = re.compile(r"\]\(([^)\s#:]+\.(?:json|txt))\)")
NAVIGATION: dict[str, list[str]] = {
    "Start": ["README.md"],
    "The harness": [
        "harness/README.md",
        "harness/docs/client.md",
        "harness/docs/fixtures.md",
        "harness/docs/copies.md",
        "harness/docs/models.md",
        "harness/docs/continuous-integration.md",
        "harness/docs/test-libraries.md",
        "harness/docs/notebooks.md",
        "harness/docs/contract-checks.md",
        "harness/docs/profiles.md",
        "harness/docs/comparing.md",
        "harness/docs/implementations.md",
    ],
    "The double": [
        "emulator/README.md",
        "emulator/docs/applications.md",
        "emulator/docs/mcp-tools.md",
        "emulator/docs/mcp-services.md",
        "emulator/docs/definitions.md",
        "emulator/docs/a2a.md",
        "emulator/docs/api-server.md",
        "emulator/docs/runtimes.md",
        "emulator/docs/sessions.md",
        "emulator/docs/jupyter.md",
        "emulator/docs/data-plane.md",
        "emulator/docs/clients.md",
        "emulator/docs/model.md",
        "emulator/docs/other-languages.md",
        "emulator/docs/console.md",
        "emulator/docs/inspecting.md",
        "emulator/docs/settings.md",
        "emulator/docs/nodes.md",
        "emulator/docs/limits.md",
        "emulator/docs/figures.md",
        "emulator/docs/coverage.md",
        "emulator/docs/stability.md",
    ],
    "Reference": [
        "reference/settings.md",
        "reference/commands.md",
        "reference/python.md",
        "reference/errors.md",
        "reference/clauses.md",
        "reference/unknowns.md",
    ],
    "Notebooks": [
        "notebooks/README.md",
        *(f"notebooks/{file.stem}.md" for file in sorted((ROOT / "notebooks").glob("*.ipynb"))),
    ],
    "Project": ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"],
}
CONFIGURATION = """
[project]
site_name = "agentdouble"
site_description = "The double of a hosted agent platform, and the harness that checks both"
docs_dir = "pages"
site_dir = "site"
nav = {navigation}

[project.theme]
font = false
features = ["content.code.copy", "navigation.footer", "navigation.top", "search.highlight"]

[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"

[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"

[project.plugins.mkdocstrings.handlers.python]
paths = {paths}

[project.plugins.mkdocstrings.handlers.python.options]
docstring_style = "sphinx"
show_source = false
show_root_heading = true
show_if_no_docstring = false
members_order = "source"
heading_level = 2
"""


def main() -> None:
    """Write the pages, build the site, and look for dead links and requests to other sites."""
    shutil.rmtree(ROOT / "build", ignore_errors=True)
    for path, text in (*_written(), *_notebooks(), *_generated()):
        target = PAGES / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    shutil.copytree(ROOT / "notebooks" / "pictures", PAGES / "notebooks" / "pictures")
    sections = ", ".join(f"{{ {name!r} = {pages!r} }}" for name, pages in NAVIGATION.items())
    configuration = ROOT / "build" / "zensical.toml"
    paths = [str(ROOT / "emulator"), str(ROOT / "harness")]
    configuration.write_text(CONFIGURATION.format(navigation=f"[{sections}]", paths=paths), "utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    subprocess.run([*command, "--config-file", str(configuration)], check=True)
    missing = {page for pages in NAVIGATION.values() for page in pages} ^ {
        str(page.relative_to(PAGES)) for page in PAGES.rglob("*.md")
    }
    if missing:
        sys.exit(f"These pages are only in the navigation, or not in it: {sorted(missing)}")
    elsewhere = {
        (str(page.relative_to(SITE)), match[0])
        for page in SITE.rglob("*.html")
        for match in ELSEWHERE.finditer(page.read_text("utf-8"))
    }
    if elsewhere:
        sys.exit(f"These pages load something from other sites: {sorted(elsewhere)}")
    dead = {
        (str(page.relative_to(SITE)), link)
        for page in SITE.rglob("*/*.html")
        for link in LOCAL.findall(page.read_text("utf-8"))
        if not (page.parent / link).exists()
    }
    if dead:
        sys.exit(f"These links of pages are dead: {sorted(dead)}")


def _written() -> Iterator[tuple[str, str]]:
    """Yield the pages of the repository."""
    for source in SOURCES:
        text = (ROOT / source).read_text("utf-8")
        yield source, LINK.sub(_page_link, text)
        for link in ATTACHED.findall(text):
            file = (ROOT / source).parent.joinpath(link).resolve()
            yield str(file.relative_to(ROOT)), file.read_text("utf-8")


def _page_link(match: re.Match[str]) -> str:
    pages = {"notebooks": "notebooks/README.md", "LICENSE": "README.md"}
    return f"]({match[1]}{pages.get(match[2], match[2].replace('.ipynb', '.md'))})"


def _notebooks() -> Iterator[tuple[str, str]]:
    """Yield a page for each notebook, and their list."""
    folder = PAGES / "notebooks"
    folder.mkdir(parents=True)
    files = sorted((ROOT / "notebooks").glob("*.ipynb"))
    command = [sys.executable, "-m", "nbconvert", "--to", "markdown", "--log-level", "WARN"]
    subprocess.run([*command, "--output-dir", str(folder), *map(str, files)], check=True)
    for page in folder.glob("*.md"):  # a comment keeps two outputs apart
        text = re.sub(r"\n{3,}", "\n\n<!-- -->\n\n", page.read_text("utf-8"))
        page.write_text(LINK.sub(_page_link, text), "utf-8")
    rows = [f"- [{_title(folder / f'{file.stem}.md')}]({file.stem}.md)" for file in files]
    yield "notebooks/README.md", "# Notebooks\n\n" + "\n".join(rows) + "\n"


def _title(page: Path) -> str:
    return page.read_text("utf-8").partition("\n")[0].lstrip("# ")


def _generated() -> Iterator[tuple[str, str]]:
    """Yield the pages of the reference."""
    yield "reference/settings.md", _settings()
    yield "reference/commands.md", _commands()
    for name, title, modules in (
        ("python", "Python", ["agentdouble", "doublecheck"]),
        ("errors", "Errors", ["agentdouble.errors", "doublecheck.errors"]),
    ):
        _require_docstrings(modules)
        yield f"reference/{name}.md", f"# {title}\n" + "".join(f"\n::: {it}\n" for it in modules)
    rows = ((it.id, it.section, it.level, it.text) for it in clauses().values())
    yield "reference/clauses.md", _table("Clauses", ("clause", "section", "level", "text"), rows)
    choices = (
        (
            *(it.id, it.section, it.question, _alternative(it.default), _list(it.alternatives)),
            "<br>".join(map(str, it.evidence)),
        )
        for it in ledger.unknowns().values()
    )
    head = ("unknown", "section", "question", "default", "alternatives", "evidence")
    title, _, table = _table("Unknowns", head, choices).partition("\n\n")
    counted = f"{ledger.Ledger().summary()} Count again: `agentdouble unknowns`."
    yield "reference/unknowns.md", f"{title}\n\n{counted}\n\n{table}"


def _require_docstrings(modules: Iterable[str]) -> None:
    """End the build if a public name has no docstring."""
    public = [
        (f"{name}.{member}", getattr(module, member))
        for name, module in ((name, importlib.import_module(name)) for name in modules)
        for member in getattr(module, "__all__", ())
    ]
    undocumented = [name for name, value in public if not inspect.getdoc(value)]
    if undocumented:
        sys.exit(f"These public names have no docstring: {undocumented}")


def _settings() -> str:
    rows = (
        (f"`{name}`", _type(field.annotation), f"`{field.default!r}`", field.description or "")
        for name, field in Settings.model_fields.items()
    )
    return _table("All settings", ("setting", "type", "default", "meaning"), rows)


def _type(annotation: object) -> str:
    name = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    return f"`{re.sub(r'[a-z_]+[.]', '', name)}`".replace(" | ", " or ")


def _commands() -> str:
    pages = []
    for name, module in COMMANDS.items():
        command = [sys.executable, "-m", "typer", module, "utils", "docs", "--name", name]
        pages.append(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return "# All commands\n\n" + "\n".join(re.sub("^#", "##", page, flags=re.M) for page in pages)


def _alternative(alternative: ledger.Alternative) -> str:
    return f"`{alternative.name}`: {alternative.meaning}"


def _list(alternatives: Iterable[ledger.Alternative]) -> str:
    return "<br>".join(map(_alternative, alternatives))


def _table(title: str, head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heading = list(head)
    lines = [heading, ["---"] * len(heading), *rows]
    cells = (" | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in it) for it in lines)
    return f"# {title}\n\n" + "".join(f"| {line} |\n" for line in cells)


if __name__ == "__main__":
    main()
