"""Compare a double with another platform, and tests with the answers that unknowns leave open.

``twin`` sends the calls of a ``conversation`` to both platforms (``run``). ``answers`` compares two
answers to one call: their heads, and their bodies with ``documents``. ``fields`` declares which
values differ between any two platforms, ``ids`` matches those that mean the same, and ``explaining``
names the unknown of the ledger that leaves a difference open. ``differences`` has the results, which
``html_page`` and ``text`` show. ``leftovers`` removes the sandbox sessions of a conversation.

``pytest_unknowns`` reports which tests relied on which unknowns; ``pytest_sweep`` runs each test
again under their alternatives.
"""
