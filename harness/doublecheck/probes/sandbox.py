"""Probes of the sandbox: what executing code comes to."""

from __future__ import annotations

from doublecheck.probes.held import Held
from doublecheck.probes.probe import NotSettledError, probe
from doublecheck.probes.probing import (
    WITHIN_S,
    Probing,
    answered_meanwhile,
    background,
    inner,
    printed,
    unlike,
)


@probe("U-EXEC-SUCCESS", "sandbox", writes=True)
def success(at: Probing) -> str:
    """Run code that raises."""
    return "true" if inner(at.run("1/0")).get("success") is True else "false"


@probe("U-EXEC-TIMEOUT", "sandbox", writes=True)
def timeout(at: Probing) -> str:
    """Run code that never ends, with a timeout, and look whether the context is kept."""
    at.run("mark = 1").ok()
    ended = inner(at.run("while True: pass", timeout_s=1))
    if ended.get("success"):
        raise NotSettledError("code that never ends has succeeded")
    return (
        "interrupted"
        if printed(at.run("print('mark' in globals())")) == "True"
        else "instance-lost"
    )


@probe("U-EXEC-CONCURRENCY", "sandbox", writes=True)
def at_once(at: Probing) -> str:
    """Run code while other code waits to be let go."""
    at.begin()
    held = Held(at, WITHIN_S)
    first = background(lambda: at.run(held.code, timeout_s=held.timeout_s))
    held.wait_until_begun()
    second = background(lambda: at.run("1"))
    # a refusal comes at once
    answered_meanwhile(second, lambda: at.run("true", "bash", ttl_s=None))
    held.let_go()
    if first.result(WITHIN_S).error:
        raise NotSettledError(f"the first call is refused: {first.result().error}")
    return "refused" if second.result(WITHIN_S).error else "queued"


@probe("U-EXECBASH-STATE", "sandbox", writes=True)
def bash_state(at: Probing) -> str:
    """Set a variable with one command and print it with the next."""
    at.run("mark=kept", "bash").ok()
    found = printed(at.run("echo value:$mark", "bash"))
    answers = {"value:kept": "kept", "value:": "fresh"}
    if found not in answers:
        raise unlike("the command prints", found)
    return answers[found]


@probe("U-KERNEL-NAMES", "sandbox", writes=True)
def kernel_names(at: Probing) -> str:
    """Run code in ``python``, which is ``python3`` where aliases are taken."""
    at.run("0").ok()
    return "python3-only" if at.run("0", "python").error else "aliases"
