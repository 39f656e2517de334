"""Explorations that run from top to bottom.

``pytest notebooks`` runs each in a kernel of its own, and fails where the kinds or the texts of its
outputs are not those in its file. ``python -m notebooks`` writes what the notebooks show today, with
ids, ports and times replaced, so that a change of a display is seen in the diff.
``python -m notebooks.pictures`` draws the pictures of the front page.

A notebook imports from its own folder first, so no module here has the name of a package: one
called ``executing`` kept IPython from showing any error.
"""
