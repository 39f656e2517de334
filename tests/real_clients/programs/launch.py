"""Runs the conversation of a client in the environment that has it.

The arguments are the program's name, the file with the facts, and the file for the outcome.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from pathlib import Path

if __name__ == "__main__":
    name, facts, outcome = sys.argv[1:]
    talk = importlib.import_module(name).converse(json.loads(Path(facts).read_text("utf-8")))
    Path(outcome).write_text(json.dumps(asyncio.run(talk)), "utf-8")
