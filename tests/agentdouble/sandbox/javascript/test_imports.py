from __future__ import annotations

import pytest

from agentdouble.sandbox.javascript import cells

pytestmark = [pytest.mark.once, pytest.mark.smoke]


@pytest.mark.parametrize(
    ("source", "dynamic"),
    [
        ('import "x"', 'void await import("x");'),
        ('import * as n from "x";', 'const n = await import("x");'),
        (
            'import d, {a as b} from "x"',
            'const {default: d, a: b} = __cell.named(await import("x"), "x", ["default", "a"]);',
        ),
        (
            'import {a,\n b}\nfrom "x"',
            'const {a: a, b: b} = __cell.named(await import("x"), "x", ["a", "b"]);\n\n',
        ),
        (
            'import * as j from "./j.json" with {type: "json"}',
            'const j = await import("./j.json", {with: {type: "json"}});',
        ),
        ('import "x" as y', None),
        ("import.meta", None),
        ("import a, b from 'x'", None),
    ],
)
def test_a_static_import_becomes_a_dynamic_one(source: str, dynamic: str | None) -> None:
    """Every form of the statement, and nothing that only looks like it."""
    assert dynamic == cells.rewrite(source, 0)
