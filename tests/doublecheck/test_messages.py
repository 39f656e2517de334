"""Wrong arguments of clients, fixtures and checks: what is wrong, where, and what to do."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import doublecheck
from agentdouble import Emulator
from agentdouble.errors import AgentDoubleError
from doublecheck import Platform, PlatformConfig, Target
from doublecheck.errors import DoubleCheckError

pytestmark = pytest.mark.once

EXPECTED = (AgentDoubleError, DoubleCheckError)


def message(call: Callable[[], Any]) -> str:
    with pytest.raises(EXPECTED) as refused:
        call()
    return str(refused.value)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda p: p.run_code(b"1"), "run_code() takes code as text, not b'1': decode it first."),
        (lambda p: p.run_code(None), "run_code() takes code as text, not None."),
        (lambda p: p.sandbox().exec_bash(["ls"]), "exec_bash() takes command as text, not ['ls']."),
        (lambda p: p.sandbox().complete(b"im"), "complete() takes code as text, not b'im'"),
        (lambda p: p.sandbox().upload("a", "text"), "takes content as bytes: encode text first"),
        (lambda p: p.run_code("1", timeout_s="5"), "run_code() takes timeout_s as a whole number"),
        (lambda p: p.run_code("1", language="pyton"), "'pyton'"),
        (lambda p: p.invoke(b"x"), "b'x' is of type bytes: decode it first."),
        (lambda p: p.invoke({"prompt": {1}}), "{1} is of type set: make a list of it."),
        (lambda p: p.invoke({"at": dt.date(2030, 1, 1)}), "is of type date: send its isoformat()."),
        (lambda p: p.invoke({"path": Path("x")}), "is of type PosixPath: send its str()."),
        (lambda p: p.clock.advance("soon"), "A duration looks like 90s, 30m, 2h or 1h30m, not 'soon'"),
        (lambda p: p.clock.advance("-5m"), "The clock cannot move back (-300 seconds)."),
        (lambda p: p.clock.advance(30), "takes a duration such as '30m', a timedelta, or units"),
        (lambda p: p.clock.advance(minutes="5"), "advance() takes minutes as a number, not '5'."),
        (lambda p: p.clock.advance(days=float("inf")), "The clock cannot be advanced: cannot convert"),
        (lambda p: p.faults.fail("InvokeTol"), "no operation 'InvokeTol'. Did you mean InvokeTool?"),
        (lambda p: p.faults.arm("fial", "ping"), "no kind of fault 'fial'. Did you mean fail?"),
        (lambda p: p.faults.arm("fail", "ping", statsu=5), "Did you mean status?"),
        (lambda p: p.faults.fail("ping", nth=0), "The nth of a fault of kind 'fail': "),
        (lambda p: p.reset(keep=["stat"]), "cannot keep 'stat'"),
        (lambda p: p.sandbox().resume("x"), "takes the snapshot that snapshot() returned, not 'x'"),
    ],
)  # fmt: skip
def test_client_methods_explain_wrong_arguments(
    platform: Platform, call: Callable[[Platform], Any], says: str
) -> None:
    assert says in message(lambda: call(platform))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"apps": ["x:app"]}, 'Applications come first: make_platform("x:app"), Emulator(app)'),
        ({"prot": 1}, "Unknown setting in the arguments: prot. Did you mean port?"),
        ({"nodes": "foo://x"}, "must be ray://HOST:PORT or local://N, not 'foo://x'."),
        ({"port": "abc"}, "must be a valid integer"),
        ({"session_ttl_s": 0}, "must be greater than or equal to 1, not 0."),
        ({"isolation": "nine"}, "must be 'auto' or 'none', not 'nine'."),
        ({"access_key": "a b"}, "must be printable ASCII without spaces, commas and slashes."),
        ({"unknowns": {"U-TTL-EXTEND": "x"}}, "Did you mean U-TTL-EXTENDS?"),
        ({"faults": [{"kind": "fial"}]}, "no kind of fault 'fial'. Did you mean fail?"),
        ({"runtimes": [{"nmae": "x"}]}, "there is no such key. Did you mean name?"),
    ],
)
def test_fixtures_explain_wrong_settings(
    make_platform: Callable[..., Platform], settings: dict[str, Any], says: str
) -> None:
    """So does Emulator, which starts the same double."""
    assert says in message(lambda: make_platform(**settings))
    assert says in message(lambda: Emulator(**settings).start())


def test_secrets_are_not_shown_when_they_are_wrong(make_platform: Callable[..., Platform]) -> None:
    for wrong in (
        {"secret_key": ["s3cret"]},
        {"access_key": "s3 cret"},
        {"state": "x://a:s3cret@b"},
    ):
        assert "s3" not in message(lambda wrong=wrong: make_platform(**wrong))  # type: ignore[misc]


@pytest.mark.parametrize(
    ("apps", "says"),
    [
        (("x",), "No module named 'x'"),
        ((5,), "5 is a int, not an application."),
    ],
)
def test_applications_that_cannot_be_served_are_explained(
    make_platform: Callable[..., Platform], apps: tuple[Any, ...], says: str
) -> None:
    assert says in message(lambda: make_platform(*apps))


def test_the_name_of_an_application_is_no_application() -> None:
    """Only what loads applications takes names; and a list of names is no name."""
    emulator = message(lambda: Emulator("x:app"))  # type: ignore[arg-type]
    config = message(lambda: PlatformConfig(apps="x:app"))

    assert "Import it, or use doublecheck.connect(apps=['x:app'])" in emulator
    assert config == "PlatformConfig takes apps as a list: apps=['x:app']."
    settings = message(lambda: PlatformConfig(settings=["a"]))  # type: ignore[arg-type]
    assert settings == (
        "PlatformConfig takes settings as a dict, such as {'session_ttl_s': 60}, not ['a']."
    )
    assert "apps must be a list: connect(apps=[app])." == message(
        lambda: doublecheck.connect(apps="x:app")
    )


@pytest.mark.parametrize(
    ("only", "says"),
    [
        ("INV AND", "only='INV AND' ends after AND: write 'INV and PRB-01'."),
        ("INV and", "only='INV and' ends after and: write 'INV and PRB-01'."),
        ("INV AND PRB", "operators are in lower case: write 'INV and PRB'."),
        ("INV PRB", "only='INV PRB' is not an expression. Join names by and, or, not"),
        ("(INV", "only='(INV' is not an expression."),
        ("U-NOPE", "U-NOPE is not a clause. Clauses: "),
        ("INV or U-TTL-EXTENDS", "unknowns are for calibrate."),
        ("INV-99", "INV-99 is not a clause. Did you mean INV-09?"),
    ],
)
def test_selections_of_checks_are_explained(only: str, says: str) -> None:
    """Before anything starts, by ``check()`` and by the command."""
    refused = message(lambda: doublecheck.check(only=only))

    assert says in refused
    assert refused.count("\n") == 0


def test_other_names_are_explained() -> None:
    """Of kinds of targets, and of unknowns."""
    kind = message(lambda: Target(url="http://127.0.0.1:1", kind="duble"))  # type: ignore[arg-type]
    with pytest.raises(KeyError, match=r"no unknown 'U-TTL-EXTEND'. Did you mean U-TTL-EXTENDS\?"):
        doublecheck.unknowns()["U-TTL-EXTEND"]

    assert kind == "The kind of a target is double or live, not 'duble'."


def test_all_groups_are_named() -> None:
    named = re.search(r"Clauses: ([A-Z0-9 ]+),", message(lambda: doublecheck.check(only="U-NOPE")))

    assert named is not None
    assert {"INV", "PRB", "SBX", "CTL"} <= {*named[1].split()}


def test_time_is_moved_by_a_text(platform: Platform) -> None:
    """As commands and magics take it; the clock of an Emulator takes it, too."""
    before = platform.clock.read().moved
    platform.clock.advance("29m58s")
    platform.clock.advance("1h 30m", minutes=1)

    assert dt.timedelta(hours=2, seconds=58) == platform.clock.read().moved - before
    with Emulator() as double, double.clock.freeze():
        start = double.clock.now()
        double.clock.advance("1.5h")
        assert dt.timedelta(minutes=90) == double.clock.now() - start
