"""``python -m doublecheck``: the command line, of this very interpreter."""

from doublecheck.cli import main

main()
