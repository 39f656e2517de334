"""``%%sandbox``: a cell that runs in a session's kernel and shows its outputs here."""

from __future__ import annotations

from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from agentdouble.run_code import DEFAULT_SESSION
from doublecheck.connecting import connect
from doublecheck.platform import Platform


@magics_class
class SandboxMagics(Magics):
    """Runs cells in the sandbox of a platform: a double, unless told otherwise."""

    _platform: Platform | None = None

    @magic_arguments()
    @argument("--session", default=DEFAULT_SESSION, help="The session whose kernel runs the cell.")
    @argument("--language", default="python3", help="python3, javascript or typescript.")
    @cell_magic
    def sandbox(self, line: str, cell: str) -> None:
        """Run the cell in a session's kernel and show its outputs."""
        options = parse_argstring(self.sandbox, line)
        if self._platform is None:
            self._platform = connect()
        display(self._platform.run_code(cell, options.language, session_id=options.session))
