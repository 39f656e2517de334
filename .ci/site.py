"""Build the documentation site in ``build/site``: ``python .ci/site.py``.

The pages keep their places, so that their links work here and in the repository. The notebooks
become pages. Settings, commands, clauses, unknowns and the Python interface are generated from the
code. Any warning fails the build, and so does what ``site_checks`` finds on the built pages: a dead
link, or a public name or fixture that the reference lacks.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import site_checks

from agentdouble import __version__
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
KEPT_LINES = re.compile(r"^\x08\n((?:.+\n)+)", re.M)
LINK = re.compile(r"\]\(([^)\s#:]*?)(notebooks|LICENSE|[\w/.-]+\.ipynb)\)")
ATTACHED = re.compile(r"\]\(([^)\s#:]+\.(?:json|txt))\)")
NAVIGATION: dict[str, Any] = {
    "Start": [
        "README.md",
        "harness/docs/first-test.md",
        "emulator/docs/install.md",
        "harness/README.md",
        "emulator/README.md",
    ],
    "How-to": {
        "Test an agent": [
            "harness/docs/client.md",
            "harness/docs/fixtures.md",
            "harness/docs/copies.md",
            "harness/docs/models.md",
            "harness/docs/continuous-integration.md",
            "harness/docs/test-libraries.md",
        ],
        "Explore in a notebook": ["harness/docs/notebooks.md", "emulator/docs/jupyter.md"],
        "Check a deployment": [
            "harness/docs/contract-checks.md",
            "harness/docs/profiles.md",
            "harness/docs/comparing.md",
        ],
        "Host an application": [
            "emulator/docs/applications.md",
            "emulator/docs/api-server.md",
            "emulator/docs/mcp-tools.md",
            "emulator/docs/mcp-services.md",
            "emulator/docs/a2a.md",
            "emulator/docs/runtimes.md",
        ],
        "Call the double": [
            "emulator/docs/clients.md",
            "emulator/docs/sessions.md",
            "emulator/docs/data-plane.md",
            "emulator/docs/other-languages.md",
        ],
        "Operate a double": [
            "emulator/docs/settings.md",
            "emulator/docs/containers.md",
            "emulator/docs/console.md",
            "emulator/docs/inspecting.md",
            "emulator/docs/nodes.md",
        ],
        "Notebooks": [
            "notebooks/README.md",
            *(f"notebooks/{file.stem}.md" for file in sorted((ROOT / "notebooks").glob("*.ipynb"))),
        ],
    },
    "Reference": {
        "Python": [
            "reference/python.md",
            "reference/fixtures.md",
            "reference/results.md",
            "reference/errors.md",
        ],
        "Commands and settings": ["reference/commands.md", "reference/settings.md"],
        "Specification": [
            "reference/clauses.md",
            "reference/unknowns.md",
            "emulator/docs/definitions.md",
            "emulator/docs/model.md",
        ],
    },
    "Background": {
        "The double": [
            "emulator/docs/coverage.md",
            "emulator/docs/limits.md",
            "emulator/docs/figures.md",
            "emulator/docs/stability.md",
            "harness/docs/implementations.md",
        ],
        "Project": ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"],
    },
}
_SETTING = ("setting", "type", "default", "meaning")
CONFIGURATION = """
[project]
site_name = "agentdouble {version}"
site_description = "The double of a hosted agent platform, and the harness that checks both"
docs_dir = "pages"
site_dir = "site"
nav = {navigation}

[project.theme]
font = false
features = [
    "content.code.copy",
    "navigation.footer",
    "navigation.sections",
    "navigation.tabs",
    "navigation.top",
    "search.highlight",
]

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
inherited_members = true
separate_signature = true
show_signature_annotations = true
heading_level = 2
"""
# The pages of the Python reference: what each shows, beside the public names of its modules.
PYTHON = {
    "python": ("Python", ["agentdouble", "agentdouble.agents", "doublecheck"]),
    "fixtures": (
        "Fixtures",
        [
            "doublecheck.fixtures",
            "doublecheck.mock.PlatformMock",
        ],
    ),
    "results": ("Results", ["doublecheck.results"]),
    "errors": ("Errors", ["agentdouble.errors", "doublecheck.errors"]),
}
# Groups of settings, each with its first one; the order is that of the class.
SETTINGS = {
    "host": "Address and access",
    "console": "Web console",
    "upload_limit": "Files and agents",
    "access_key": "Control plane",
    "state": "State",
    "provisioner": "Kernels and isolation",
    "memory_limit": "Limits of a session",
    "nodes": "Nodes",
    "browser": "Browser",
    "max_session_snapshots": "Snapshots and sleep",
    "session_ttl_s": "Lifetime and execution",
    "runtimes": "Runtimes",
    "journal_size": "Journal, model and faults",
    "unknowns": "What the specification leaves open",
}
# Groups of commands; a command that is in none comes last.
GROUPS = {
    "The programs": ["agentdouble", "doublecheck"],
    "Start a double": [
        "agentdouble demo",
        "agentdouble serve",
        "agentdouble exec",
        "agentdouble env",
        "agentdouble doctor",
    ],
    "Look into a double": ["agentdouble journal", "agentdouble session", "agentdouble unknowns"],
    "Control a double": [
        "agentdouble call",
        "agentdouble clock",
        "agentdouble faults",
        "agentdouble mcp",
        "agentdouble nodes",
    ],
    "Check a platform": [
        "doublecheck run",
        "doublecheck report",
        "doublecheck twin",
        "doublecheck calibrate",
        "doublecheck contracts",
    ],
}


def main() -> None:
    """Write the pages, build the site, and check what was built."""
    shutil.rmtree(ROOT / "build", ignore_errors=True)
    for path, text in (*_written(), *_notebooks(), *_generated()):
        target = PAGES / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    shutil.copytree(ROOT / "notebooks" / "pictures", PAGES / "notebooks" / "pictures")
    configuration = ROOT / "build" / "zensical.toml"
    paths = [str(ROOT / "emulator"), str(ROOT / "harness")]
    navigation = _toml(NAVIGATION)
    configuration.write_text(
        CONFIGURATION.format(navigation=navigation, paths=paths, version=__version__), "utf-8"
    )
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    subprocess.run([*command, "--config-file", str(configuration)], check=True)
    site_checks.check(SITE, PAGES, navigation, PYTHON)


def _toml(part: Mapping[str, Any] | list[str]) -> str:
    """Return a part of the navigation in TOML."""
    if isinstance(part, list):
        return json.dumps(part)
    return f"[{', '.join(f'{{ {json.dumps(name)} = {_toml(it)} }}' for name, it in part.items())}]"


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
    for name, (title, shown) in PYTHON.items():
        yield f"reference/{name}.md", f"# {title}\n" + "".join(f"\n::: {it}\n" for it in shown)
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


def _settings() -> str:
    tables = ""
    for name, field in Settings.model_fields.items():
        if name in SETTINGS:
            tables += f"\n## {SETTINGS[name]}\n\n" + _rows([_SETTING, ["---"] * len(_SETTING)])
        meaning, default = field.description or "", field.get_default(call_default_factory=True)
        tables += _rows([(f"`{name}`", _type(field.annotation), f"`{default!r}`", meaning)])
    return f"# All settings\n{tables}"


def _type(annotation: object) -> str:
    name = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    return f"`{re.sub(r'[a-z_]+[.]', '', name)}`".replace(" | ", " or ")


def _commands() -> str:
    """Return all commands in their groups, from the documentation that typer writes."""
    sections: dict[str, str] = {}
    for program, module in COMMANDS.items():
        command = [sys.executable, "-m", "typer", module, "utils", "docs", "--name", program]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        printed = KEPT_LINES.sub(_kept_lines, printed)
        whole, *others = re.split("^## ", printed, flags=re.M)
        sections[program] = re.sub("^# ", "### ", whole.partition("**Commands**")[0], flags=re.M)
        for section in others:
            below = re.sub("^#", "##", section, flags=re.M)
            sections[section.partition("\n")[0].strip("`")] = f"### {below}"
    grouped = {name for names in GROUPS.values() for name in names}
    groups = {**GROUPS, "More commands": sorted(sections.keys() - grouped)}
    return "# All commands\n" + "".join(
        f"\n## {title}\n\n" + "\n".join(sections[name] for name in names)
        for title, names in groups.items()
        if names
    )


def _kept_lines(paragraph: re.Match[str]) -> str:
    """Return a paragraph of the help that keeps its lines: its title, and a block of the others."""
    head, _, lines = re.sub(r"^(?=  )", "\0", paragraph[1], count=1, flags=re.M).partition("\0")
    title = f"**{head.strip()}**" if head.count("\n") == 1 else head.strip()
    return f"{title}\n\n```text\n{textwrap.dedent(lines).strip()}\n```\n"


def _alternative(alternative: ledger.Alternative) -> str:
    return f"`{alternative.name}`: {alternative.meaning}"


def _list(alternatives: Iterable[ledger.Alternative]) -> str:
    return "<br>".join(map(_alternative, alternatives))


def _table(title: str, head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heading = list(head)
    return f"# {title}\n\n" + _rows([heading, ["---"] * len(heading), *rows])


def _rows(rows: Iterable[Iterable[str]]) -> str:
    cells = (" | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in it) for it in rows)
    return "".join(f"| {line} |\n" for line in cells)


if __name__ == "__main__":
    main()
