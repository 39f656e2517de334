"""Errors of runtimes that are missing or cannot handle a request, and of refused callers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agentdouble.errors.general import AgentDoubleError


class HostingError(AgentDoubleError):
    """A runtime is not available or cannot handle a request; ``name`` is the runtime's name."""

    code = "InternalError"  # in the answer of a control-plane action
    status = 500

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class AccessError(HostingError):
    """A runtime's gateway refuses a caller; ``kind`` is a short name for programs.

    ``status`` is the answer's status, and ``challenge`` its ``WWW-Authenticate``, if it has one.
    """

    def __init__(
        self,
        name: str,
        message: str,
        *,
        status: int,
        kind: str,
        challenge: str | None = None,
    ) -> None:
        super().__init__(name, message)
        self.status = status
        self.kind = kind
        self.challenge = challenge


class IssuerError(HostingError):
    """An issuer of tokens failed; ``url`` is the called URL, ``reason`` says what was observed."""

    def __init__(self, url: str, reason: str) -> None:
        self.url = url
        self.reason = reason
        super().__init__("", f"The issuer of tokens at {url[:200]} {reason}.")


class RuntimeNameError(HostingError):
    """A runtime cannot have this name; ``reason`` says why."""

    code = "InvalidParameter.DuplicateName"
    status = 409

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, f"A runtime cannot be called {name[:100]!r}: {reason}.")
        self.reason = reason


class RuntimeStartError(HostingError):
    """An instance did not start or never became ready; ``reason`` says what was observed."""

    code = "InternalError.Runtime"
    status = 502

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(
            name,
            f"The runtime {name!r} did not start: {reason}. "
            f"What it printed: /_emulator/runtimes/{name}/logs",
        )
        self.reason = reason


class RuntimeBusyError(HostingError):
    """No instance is free; ``reason`` says why, ``retry_after_s`` how long to wait."""

    def __init__(self, name: str, reason: str, retry_after_s: int) -> None:
        super().__init__(
            name, f"The runtime {name!r} is busy: {reason}. Try again in {retry_after_s} s."
        )
        self.reason = reason
        self.retry_after_s = retry_after_s


class RuntimeEndedError(HostingError):
    """A runtime has ended, and no request reaches it any more; ``reason`` says why."""

    code = "InvalidAgentKitRuntime.NotFound"
    status = 404

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, f"The runtime {name!r} has ended: {reason}.")
        self.reason = reason


class UnknownVersionError(HostingError):
    """A runtime has no version with this number; ``known`` are the existing ones."""

    code = "InvalidResource.NotFound"
    status = 404

    def __init__(self, name: str, number: int, numbers: Sequence[int]) -> None:
        has = f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else f"only {numbers[0]}"
        super().__init__(name, f"The runtime {name!r} has no version {number}; it has {has}.")
        self.number = number
        self.known = tuple(numbers)


class UnknownInstanceError(HostingError):
    """A runtime has no instance of this name; ``known`` are the existing ones."""

    code = "InvalidResource.NotFound"
    status = 404

    def __init__(self, name: str, instance: str, instances: Iterable[str] = ()) -> None:
        self.instance = instance
        self.known = tuple(instances)
        has = f"it has {', '.join(self.known)}" if self.known else "it has no instances now"
        super().__init__(name, f"The runtime {name!r} has no instance {instance[:100]!r}; {has}.")


class LogQueryError(HostingError):
    """A parameter of a log query is wrong; ``parameter`` is its name."""

    def __init__(self, parameter: str, reason: str) -> None:
        super().__init__("", f"The parameter {parameter[:100]!r} {reason}.")
        self.parameter = parameter


class InstanceLostError(HostingError):
    """An instance does not answer, or breaks off; ``instance`` is its name.

    ``unreached`` is true if the request cannot have reached it, ``amid`` if its answer had
    started.
    """

    def __init__(
        self,
        name: str,
        instance: str,
        reason: str,
        *,
        unreached: bool = False,
        amid: bool = False,
    ) -> None:
        failed = "broke off during its answer" if amid else "did not answer"
        reached = "did not reach" if unreached else "may have reached"
        super().__init__(
            name,
            f"The instance {instance!r} of the runtime {name!r} {failed}: {reason}. The "
            f"request {reached} it. What it printed: /_emulator/runtimes/{name}/logs",
        )
        self.instance = instance
        self.reason = reason
        self.unreached = unreached
        self.amid = amid


class UnknownRuntimeError(HostingError):
    """There is no such runtime; ``known`` are the existing names."""

    code = "InvalidAgentKitRuntime.NotFound"  # real clients know the name
    status = 404

    def __init__(self, name: str, names: Iterable[str] = ()) -> None:
        self.known = tuple(names)
        listed = f"There are {', '.join(self.known)}." if self.known else "There are no runtimes."
        super().__init__(name, f"There is no runtime {name[:100]!r}. {listed}")
