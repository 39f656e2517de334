"""``python -m doublecheck``: the command line, run by this interpreter."""

from doublecheck.cli import main

main()
