"""The command line as ``python -m doublecheck``."""

from doublecheck.cli import main

main()
