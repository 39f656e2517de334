"""Notebooks: the displays of values, streams as they arrive, and the magics.

``display`` has the functions that draw values as HTML. A value names its function
(``core.notebook_repr``), so no other package imports this one. ``live_display`` is
``doublecheck.show``. ``magics`` are ``%%sandbox`` and ``%sandbox``, which ``%load_ext doublecheck``
registers; only they import IPython.

This package is at the top: it may use every other one except ``cli``, ``plugin`` and ``fixtures``.
"""
