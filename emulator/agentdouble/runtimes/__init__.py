"""Managed runtimes: each application runs in its own processes, behind one gateway (sections 1, 5).

``definition`` has the definition of a runtime, as a table of the settings declares it. ``registry``
holds and stores the runtimes that are declared or created. A ``Runtime`` has versions, scales the
one in force between zero and several ``Instance``s, and lends one to each request. ``launching``
starts the process of an instance. ``gateway`` finds the runtime of a request, and ``proxying``
passes the request to the instance. A request passes the gateway, the authentication, the lease and
the proxy, and the answer comes back as a stream. ``hosting`` starts and stops all of this.

This package may import ``processes``, ``state``, ``journal`` and ``server``, and neither the
sandbox nor a surface. ``runner`` runs inside instances and imports only the standard library.
"""

# Nothing else is here, so that a double knows its paths without importing the hosting code.
PREFIX = "/runtimes/"
ADMIN_PATHS = (
    *("/metrics", "/runtimes", "/runtimes/{name:path}/logs"),
    *("/identity/.well-known/openid-configuration", "/identity/.well-known/jwks.json"),
)
