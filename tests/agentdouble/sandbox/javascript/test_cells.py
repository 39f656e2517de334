from __future__ import annotations

import pytest

from agentdouble.sandbox.result import CellOutput
from tests.agentdouble.sandbox.javascript.session import Session, failure, text_of

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("1 + 1", "2"),
        ("null", "null"),
        ("10n ** 20n", "100000000000000000000n"),
        ("-0", "-0"),
        ("'a' + `b`", '"ab"'),
        ("[1, {b: new Map([['c', 2]])}]", '[ 1, { b: Map(1) { "c" => 2 } } ]'),
        ("{a: 1, b: [2]}", "{ a: 1, b: [ 2 ] }"),
        ("Symbol('s')", "Symbol(s)"),
        ("new (class Point { x = 1 })", "Point { x: 1 }"),
        ("await new Promise(done => setTimeout(() => done('late'), 1))", '"late"'),
        ("'日本' + '😀' // at the end", '"日本😀"'),
    ],
)
def test_the_last_value_is_the_result(shared: Session, code: str, text: str) -> None:
    """It is formatted by Deno.inspect."""
    assert text == text_of(shared(code))


@pytest.mark.parametrize("code", ["undefined", "let nothing = 1", "{ let block = 1 }", ""])
def test_a_cell_without_a_value_has_no_result(shared: Session, code: str) -> None:
    """The same applies to undefined."""
    result = shared(code)

    assert ("ok", ()) == (result.status, result.outputs)


def test_declarations_persist_and_can_be_repeated(shared: Session) -> None:
    """Even let and const can be declared again."""
    shared("let a = 1; const b = 2; function f() { return a } class A { v = 3 }")
    shared("let a = 10; const b = 20;")

    assert "[ 10, 20, 10, A { v: 3 } ]" == text_of(shared("[a, b, f(), new A()]"))


def test_an_error_keeps_its_name_and_stack(shared: Session) -> None:
    """The stack names the cells and positions."""
    boom = shared("function boom() { throw new RangeError('no') }").execution_count
    result = shared("const before = 1;\n  boom()")

    assert CellOutput(
        "error",
        ename="RangeError",
        evalue="no",
        traceback=(
            "RangeError: no",
            f"    at boom (cell-{boom}.js:1:25)",
            f"    at cell-{result.execution_count}.js:2:3",
        ),
    ) == failure(result)


@pytest.mark.parametrize(
    ("code", "name", "value"),
    [
        ("throw 42", "Uncaught", "42"),
        ("throw {a: 1}", "Uncaught", "{ a: 1 }"),
        ("await Promise.reject(new TypeError('t'))", "TypeError", "t"),
        ("class Mine extends Error {}; throw new Mine('m')", "Mine", "m"),
        ("(() => { throw new Error('e') })()", "Error", "e"),
        ("foo(", "SyntaxError", "Unexpected end of input"),
        (
            "eval('import x from \"y\"')",
            "SyntaxError",
            "Cannot use import statement outside a module",
        ),
        ("prompt('?')", "Error", "prompt() is not available: nobody is there to answer"),
    ],
)
def test_any_thrown_value_is_an_error(shared: Session, code: str, name: str, value: str) -> None:
    """The error describes the value."""
    error = failure(shared(code))

    assert (name, value) == (error.ename, error.evalue)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("import path from 'node:path'; path.join('a', 'b')", '"a/b"'),
        ("import {\n  join as j, // one\n  sep,\n} from 'node:path'\nj('a', sep)", '"a/"'),
        ("import def, * as all from 'node:path'; def === all.default", "true"),
        ("import 'node:path'; 1", "1"),
        ("const text = `\nimport x from 'y'`; text.length", "18"),
        ("(await import('node:path')).basename('/a/b')", '"b"'),
        ("Deno.writeTextFileSync('m.js', 'export const v = 9');\nimport {v} from './m.js'; v", "9"),
        (
            """Deno.writeTextFileSync('d.json', '[7]');
            import data from './d.json' with {type: 'json'}
            data[0]""",
            "7",
        ),
    ],
)
def test_imports_work_in_a_cell(shared: Session, code: str, text: str) -> None:
    """Static, relative and dynamic imports can be repeated."""
    assert [text, text] == [text_of(shared(code)), text_of(shared(code))]


def test_a_missing_export_is_an_error(shared: Session) -> None:
    """It is not silently undefined."""
    error = failure(shared("import {nope} from 'node:path'"))

    assert (
        "The requested module 'node:path' does not provide an export named 'nope'" == error.evalue
    )


def test_a_promise_that_never_settles_is_an_error(shared: Session) -> None:
    """The cell does not hang once the promise is garbage."""
    code = "setTimeout(() => { for (let i = 0; i < 200; i++) new Array(1e5).fill(i) }, 1); await new Promise(() => {})"

    result = shared(code, timeout_s=5)

    assert result.error is not None
    assert result.error.ename in ("NeverSettled", "Interrupted")


@pytest.mark.slow
def test_typescript_is_accepted_as_a_language() -> None:
    """Types are stripped, enums compiled; a syntax error has its position."""
    session = Session(typescript=True)
    try:
        code = """
        import type { Stats } from "node:fs";
        interface Point { x: number }
        enum Colour { Red = 3 }
        const origin = <T extends Point>(p: T): T => p;
        origin({ x: Colour.Red }) as Point
        """
        assert "{ x: 3 }" == text_of(session(code))
        assert "{ a: 1, b: [ 2 ] }" == text_of(session("{a: 1 as number, b: [2]}"))
        assert "7" == text_of(session("{ let inner: number = 7; inner }"))
        wrong = session("let fine = 1;\nlet x: = 3")
        assert "SyntaxError" == failure(wrong).ename
        place = f"    at cell-{wrong.execution_count}.js:2:8"
        assert place == (failure(wrong).traceback or ())[-1]
    finally:
        session.close()


def test_types_are_refused_in_javascript(shared: Session) -> None:
    """A type is a syntax error."""
    assert "SyntaxError" == failure(shared("let typed: number = 1")).ename
