"""Magics for IPython and Jupyter: ``%load_ext doublecheck`` adds ``%%sandbox`` and ``%sandbox``.

``sandbox`` registers both. ``cells`` runs a cell and shows its output, ``commands`` has the
subcommands of ``%sandbox``, and ``options`` parses the options of both. ``platforms`` finds the
platform that cells run on, and ``completion`` completes with the tab key.
"""
