"""What the platform's vendor publishes, unmodified, against the double.

veadk and agentkit pin libraries that exclude ours, so they run in an environment of their own::

    python -m tests.vendor

makes it (once, below ``.nox``, with the machinery of ``tests.real_clients``) and runs these tests.
With pytest alone, ``DOUBLECHECK_VENDOR_PYTHON`` names an interpreter with both packages.

- ``programs/``: what each client does, told as values. They import nothing of ours.
- ``conftest.py``: runs a program beside a double. The tests say what must come of it.
"""
