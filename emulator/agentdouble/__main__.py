"""``python -m agentdouble``: the command line, of this very interpreter."""

from agentdouble.cli import main

main()
