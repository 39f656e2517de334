"""Run a double that prints its address and serves until stdin closes."""

from __future__ import annotations

import sys

from agentdouble import Emulator

if __name__ == "__main__":
    with Emulator() as double:
        sys.stdout.write(f"{double.url}\n")
        sys.stdout.flush()
        sys.stdin.read()
