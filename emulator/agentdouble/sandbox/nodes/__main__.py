"""The program that starts nodes: ``python -m agentdouble.sandbox.nodes ray://HOST:PORT``."""

import importlib
import sys

from agentdouble.sandbox.nodes.engine import CLUSTERS, orders

if __name__ == "__main__":
    scheme, _, address = sys.argv[1].partition("://")
    received = orders()
    importlib.import_module(CLUSTERS[scheme]).main(address, next(received, {}), received)
