"""Options shared by several commands.

The options about a platform are generated from the facts of a target.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from doublecheck.cli import completion
from doublecheck.target.fact import Fact
from doublecheck.target.facts import BY_NAME

Command = TypeVar("Command", bound=Callable[..., None])

Double = Annotated[
    str | None, typer.Option(metavar="URL", help="A running double (default: one is started).")
]
Apps = Annotated[
    list[str] | None,
    typer.Option("--app", metavar="MODULE:APP", help="The application to serve; may be repeated."),
]
Profile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A profile in TOML that the double uses."),
]
Html = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write an HTML page.")]
_COMPLETED = {"level": completion.levels, "target": completion.targets}  # facts, by name

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def with_facts(*names: str, **help_texts: str) -> Callable[[Command], Command]:
    """Add the options of facts to a command before its own; it gets them as ``**platform``.

    An omitted option is None. ``help_texts`` replace the help texts of the facts. An option of the
    command replaces the fact with the same name.
    """

    def give(command: Command) -> Command:
        of_facts = {name: _parameter(BY_NAME[name], help_texts.get(name)) for name in names}
        parameters = {
            name: parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for name, parameter in inspect.signature(command, eval_str=True).parameters.items()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        }
        # typer reads the signature and does not accept ** for options
        command.__signature__ = inspect.Signature([*(of_facts | parameters).values()])  # type: ignore[attr-defined]
        return command

    return give


def _parameter(fact: Fact, help_text: str | None) -> inspect.Parameter:
    option: Any = typer.Option(
        f"--{fact.option}",
        metavar=fact.metavar,
        help=help_text or fact.help,
        autocompletion=_COMPLETED.get(fact.name),
    )
    kind = bool if fact.type == "flag" else str
    return inspect.Parameter(
        fact.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[kind | None, option],
    )
