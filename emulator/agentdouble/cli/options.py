"""Options that commands which start a double share, and that mean the same in each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Tls = Annotated[
    bool, typer.Option("--tls", help="Serve https, with a certificate made on the spot.")
]
Agents = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Agents directory of API-server mode (the shipped agents)."),
]
UnknownChoices = Annotated[
    list[str] | None,
    typer.Option("--unknown", metavar="ID=NAME", help="Choose an alternative of an unknown."),
]
Profile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="profile.toml of a deployment, from doublecheck calibrate (none)."
    ),
]
State = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="Keep tools and records: sqlite:///FILE, postgresql://... (memory)."
    ),
]
Faults = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help=r"Faults to arm: [\[faults]] tables, TOML (none)."),
]
Config = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Settings file (agentdouble.toml, if there is one)."),
]
