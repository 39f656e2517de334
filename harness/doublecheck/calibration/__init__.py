"""Find out how a deployment behaves where the specification leaves it open.

``api_server``, ``control_plane``, ``invocation`` and ``sessions`` have a small exchange, a
``probe``, for each unknown of the ledger, and ``probing`` what these share; ``findings`` runs them
on a platform and collects each ``finding``, and ``command`` is ``doublecheck calibrate``, which
writes them as a profile. A double that is started with this profile behaves like the deployment.

The package uses the clients, and neither the contract checks nor their reports. It cannot be called
``calibrate``: an import of it would replace the function ``doublecheck.calibrate``.
"""
