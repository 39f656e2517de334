"""Compare a double with another platform, and tests under the alternatives of unknowns.

``twin`` sends the calls of a ``conversation`` to both platforms (``run``). ``answers`` compares two
answers to one call: ``pairs`` matches their ids and times, ``fields`` declares which values differ
between any two platforms. ``differences`` has the results, ``explaining`` their explanations by
unknowns, and ``rendering`` shows them.

``pytest_unknowns`` has pytest's options for this. ``pytest_relied_on`` reports which tests relied on
which unknowns, as ``journal_reader`` finds them; ``pytest_sweep`` repeats each test under their
alternatives.

This package may import the clients and what they use, but not the contract checks.
"""
