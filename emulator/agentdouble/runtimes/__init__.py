"""Managed runtimes: each application runs in its own processes, behind one gateway (sections 1, 5).

``definition`` defines a runtime, and reads it from a table. ``registry`` holds and stores the
runtimes that are declared or created, and ``runtimes`` runs them by name. A
``Runtime`` has versions, and scales each between zero and several ``Instance``s. ``launching``
starts the process of an instance. ``gateway`` finds the runtime of a request, and ``proxying``
passes the request to a leased instance. A request passes the gateway, the authentication, the
lease and the proxy, and the answer comes back as a stream.
"""

# Nothing else is here, so that a double knows its paths without importing the hosting code.
PREFIX = "/runtimes/"
ADMIN_PATHS = ("/metrics", "/runtimes", "/runtimes/{name:path}/logs")
