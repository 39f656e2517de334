"""Options that several commands have, and that mean the same in each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Target = Annotated[
    str | None,
    typer.Option(metavar="TARGET", help="double, live, or a target of the configuration."),
]
Config = Annotated[str | None, typer.Option(metavar="FILE", help="A TOML file with targets.")]
Double = Annotated[
    str | None, typer.Option(metavar="URL", help="A running double (default: one is started).")
]
Apps = Annotated[
    list[str] | None,
    typer.Option("--app", metavar="MODULE:APP", help="What the double serves; may be repeated."),
]
AllowWrites = Annotated[
    bool, typer.Option("--allow-writes", help="Make and delete on it, though it is live.")
]
Html = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write a page for browsers as well.")
]
Junit = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write JUnit XML as well, for CI.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
