"""Compare a double with another platform, and tests under the alternatives of unknowns.

``twin`` sends the calls of a ``conversation`` to both platforms (``run``), and compares the answers
with ``agentdouble.core.diff``. ``differences`` has the results, ``explaining`` their explanations
by unknowns; ``absent_surfaces`` finds the surfaces that only one platform has. ``rendering`` shows
the results as text and JSON, ``page`` as HTML, in the frame of ``reports.page``. ``alternatives``
asks a double how it answers if unknowns have other answers, for ``twin`` and for the sweep.

``pytest_unknowns`` has pytest's options for this. ``pytest_relied_on`` reports which tests relied
on which unknowns, as ``journal_reader`` finds them; ``pytest_sweep`` repeats each test under their
alternatives.

This package may import the clients and what they use, but not the contract checks.
"""
