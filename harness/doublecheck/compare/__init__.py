"""Compare a double with another platform, and tests under the alternatives of unknowns.

``twin`` sends the calls of a ``conversation`` to both platforms (``run``). ``answers`` compares two
answers to one call. ``fields`` declares which values differ between any two platforms.
``differences`` has the results, which ``rendering`` shows.

``pytest_unknowns`` reports which tests relied on which unknowns; ``pytest_sweep`` repeats each test
under their alternatives.

This package may import the clients and what they use, but not the contract checks.
"""
