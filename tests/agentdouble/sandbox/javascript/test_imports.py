from __future__ import annotations

import pytest

from agentdouble.sandbox.javascript.module_syntax import rewrite

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
def test_static_imports_become_dynamic_ones(source: str, dynamic: str | None) -> None:
    """Every form is rewritten, and lookalikes are left alone."""
    assert dynamic == rewrite(source, 0, "Cannot use import statement outside a module")
