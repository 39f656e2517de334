"""Explorations that run from top to bottom; ``python -m notebooks`` writes what they show.

A notebook imports from its own folder first, so no module here has the name of a package: one
called ``executing`` kept IPython from showing any error.
"""
