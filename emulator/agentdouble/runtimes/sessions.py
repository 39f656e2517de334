"""Which instance a session's requests go to, while that instance lives."""

from __future__ import annotations

from collections import OrderedDict

from agentdouble.runtimes.instance import Instance

KEPT = 10_000
_LENGTH = 512  # of what tells sessions apart; longer ones that begin alike share an instance


class Sessions:
    """The instances of sessions, bounded: the session that was longest not heard of is forgotten."""

    def __init__(self) -> None:
        self._instances: OrderedDict[str, Instance] = OrderedDict()

    def find(self, session: str | None) -> Instance | None:
        """Return the instance of a session, if it has one that takes requests."""
        if session is None:
            return None
        instance = self._instances.get(session[:_LENGTH])
        if instance is None or instance.state != "ready" or not instance.alive:
            return None
        return instance

    def keep(self, session: str | None, instance: Instance) -> None:
        """Remember that a session's requests go to an instance."""
        if session is None:
            return
        self._instances[session[:_LENGTH]] = instance
        self._instances.move_to_end(session[:_LENGTH])
        if len(self._instances) > KEPT:
            self._instances.popitem(last=False)

    def forget(self, instance: Instance) -> None:
        """Forget an instance that takes no requests any more."""
        for session in [one for one, kept in self._instances.items() if kept is instance]:
            del self._instances[session]
