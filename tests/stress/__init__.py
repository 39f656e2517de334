"""Break and crowd a double: first calls, callers who leave, floods, kills, and many rounds of all.

The short form runs with every other test and asks the same for the same seed. The long form takes
many minutes::

    python -m pytest tests/stress --stress=long --stress-seed=7

Each test prints a line at the end, with ``-q`` too: what it tried, what failed, what was lost, and
its figures. It fails where anything failed or was lost.
"""
