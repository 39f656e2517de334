"""One fact of a target, and where it can be set."""

from __future__ import annotations

from dataclasses import dataclass

# The names of variables are literals here: every run of pytest imports this module, and
# agentdouble.core.environment takes 70 ms to import.
_METAVARS = {"address": "URL", "count": "N", "file": "FILE", "number": "N"}


@dataclass(frozen=True)
class Fact:
    """One fact: its name, its type (a key of ``config_files.READERS``), and where it can be set.

    Without a ``help`` text it is not an option. ``variable`` is by default ``DOUBLECHECK_`` and the
    name. ``argument`` says whether ``connect()`` takes it.
    """

    name: str
    type: str
    help: str = ""
    variable: str = ""
    argument: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "variable", self.variable or f"DOUBLECHECK_{self.name.upper()}")

    @property
    def secret(self) -> bool:
        """Whether its value must not be shown or written to a file."""
        return self.type in ("secret", "secret_by_surface")

    @property
    def key(self) -> str:
        """The key in a file; for a secret, the key that names its environment variable."""
        return f"{self.name}_env" if self.secret else self.name

    @property
    def option(self) -> str:
        """The name of the option, without the dashes in front."""
        return self.name.replace("_", "-")

    @property
    def metavar(self) -> str | None:
        """The name of the option's value in help texts; a flag has none."""
        if self.type == "flag":
            return None
        return _METAVARS.get(self.type, self.name.rpartition("_")[2].upper())
