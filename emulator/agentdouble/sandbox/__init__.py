"""The sandbox: session instances, each with real Jupyter kernels (sections 1 and 3).

``instances`` is its door. This file imports nothing: the fork server lives here too, and
whatever it imports, every kernel carries.
"""
