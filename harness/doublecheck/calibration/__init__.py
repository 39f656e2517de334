"""Find out how a deployment behaves where the specification leaves it open.

``probes`` has a small exchange for each unknown of the ledger; ``findings`` runs them on a platform
and collects the answers, and ``command`` is ``doublecheck calibrate``, which writes them as a
profile. A double that is started with this profile behaves like the deployment.

The room uses the clients, and neither the contract checks nor their reports. It cannot be called
``calibrate``: an import of it would replace the function ``doublecheck.calibrate``.
"""
