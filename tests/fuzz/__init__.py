"""Schemathesis reads the two OpenAPI documents of a double, and asks it what they allow and forbid.

``nox -f .ci/noxfile.py -s fuzz`` runs it in an environment of its own, with what follows ``--`` as
options of ``schemathesis run``, for example ``--include-name 'POST /run' -n 200 --seed 7``.
"""
