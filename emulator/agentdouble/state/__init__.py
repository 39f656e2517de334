"""The state that outlives the process: records by kind and id, in memory or in a database.

``store`` has the store in memory, and ``store_urls`` makes the one that a URL names. ``sqlite`` and
``postgresql`` have the stores in databases; they share ``database``. A
``Registry`` keeps resources that requests create in a store: it finds, changes and deletes them,
and answers a repeated client token with the same resource.

This package may import ``core`` and ``errors``.
"""

from agentdouble.state.registry import Registry, Resource, digest, times_of
from agentdouble.state.store import Change, Record, Store, unbroken
from agentdouble.state.store_urls import check_url, make_store

__all__ = [
    "Change",
    "Record",
    "Registry",
    "Resource",
    "Store",
    "check_url",
    "digest",
    "make_store",
    "times_of",
    "unbroken",
]
