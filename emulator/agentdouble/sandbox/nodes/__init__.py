"""Sessions on nodes: other machines, each with a double of its own that runs their processes.

The double that clients call is the front. It keeps everything of a session but its processes, and
has the only clock. ``node_placement`` chooses a node for each session, by memory and processor
time; ``node_processes`` are the processes of a session there, and send their requests through its
``node_part``. ``node`` is the front's view of a node, and ``proxy`` passes the data plane on. On a
node, ``node_app`` answers the front, and nobody else.

``engine`` runs a program (``python -m agentdouble.sandbox.nodes``) that starts a node on each
machine, and reports those that join and end: ``ray_cluster`` does so on the machines of a Ray
cluster. A front that has no setting ``nodes`` imports none of this.

The first request about a session makes the node's part of it. Front and node watch each other. A
node that does not answer for ``node_silence_s`` is lost, with its sessions and their snapshots. A
node that gets no request from a front for twice that time ends, with all its processes. A request
that may have run code is never sent a second time.
"""
