"""``python -m agentdouble``: the command line, run by this interpreter."""

from agentdouble.cli import main

main()
