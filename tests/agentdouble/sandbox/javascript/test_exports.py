"""The syntax of modules other than imports, as a cell runs it."""

from __future__ import annotations

import pytest

from agentdouble.sandbox.javascript.module_syntax import rewrite, without_hashbang

pytestmark = [pytest.mark.once, pytest.mark.smoke]

EXPORT = "Unexpected token 'export'"


@pytest.mark.parametrize(
    ("source", "script"),
    [
        ("export const a = 1", "       const a = 1"),
        ("export\nfunction f() {}", "      \nfunction f() {}"),
        ("export default 5", "0,             5"),
        ("export default class A {}", "               class A {}"),
        ("export default class extends A {}", "0,             class extends A {}"),
        ("export default async function* f() {}", "               async function* f() {}"),
        ("export default function () {}", "0,             function () {}"),
        ("export {\n a,\n};b", ";\n\nb"),
        (
            "export { a as b } from 'x'",
            'void __cell.named(await import("x"), "x", ["a"]);',
        ),
        ("export * as n from 'x';", 'void __cell.named(await import("x"), "x", []);'),
        ("export = 5", None),
        ("exported", None),
    ],
)
def test_exports_are_left_out(source: str, script: str | None) -> None:
    """The code after it keeps its line and, if there is room, its column."""
    assert script == rewrite(source, 0, EXPORT)


def test_import_meta_becomes_an_object() -> None:
    source = "a; import . meta.url"
    refusal = "Cannot use 'import.meta' outside a module"

    assert "a; __cell . meta.url" == rewrite(source, 12, refusal)
    assert rewrite(source, 0, refusal) is None


def test_other_errors_are_left_alone() -> None:
    assert rewrite("export const a = 1", 0, "Unexpected identifier") is None


def test_a_hashbang_becomes_a_comment() -> None:
    assert "///usr/bin/env node\n1" == without_hashbang("#!/usr/bin/env node\n1")
    assert "1\n#!x" == without_hashbang("1\n#!x")
