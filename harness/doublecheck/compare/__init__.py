"""Compare a double with another platform, and tests with the answers that unknowns leave open.

``twin`` sends the calls of a ``conversation`` to both platforms (``run``). ``answers`` compares two
answers to one call. ``fields`` declares which values differ between any two platforms.
``differences`` has the results, which ``rendering`` shows.

``pytest_unknowns`` reports which tests relied on which unknowns; ``pytest_sweep`` runs each test
again under their alternatives.
"""
