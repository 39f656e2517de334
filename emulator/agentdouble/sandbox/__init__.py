"""The sandbox: session instances, each with real Jupyter kernels (sections 1 and 3).

``instances`` is the entry point. This file imports nothing, because the fork server imports
modules of this package, and every kernel carries what the fork server has imported.
"""
