"""Displays are checked in a real JupyterLab, in the light and the dark theme.

The page's theme, its sanitizer and its sandbox make of a display what it is. Hostile HTML is also
run as the notebook's own: a page that shows nothing would pass otherwise. Each text must stand out
from what is behind it, and nothing may come from elsewhere. A second JupyterLab has a double as its
gateway: its launcher opens the sessions of agents. Only an eye can judge the rest; this keeps a
picture of each output::

    pip install -e '.[emulator,test,lab]'
    DOUBLECHECK_SCREENSHOTS=pictures python -m pytest tests/jupyterlab
"""
