"""Displays are judged where they land: in a real JupyterLab, in the light and the dark theme.

The page's theme, its sanitizer and its sandbox make of a display what it is. Hostile HTML is also
run as the notebook's own: a page that shows nothing would pass otherwise.
"""
