"""Cells of many kinds, in a kernel and as programs of Deno: what they print, and how they fail.

Deno runs each as a file, with the rights that a cell has. Where the two differ, ``DIFFERENCES`` says
why, and what the kernel does instead.
"""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agentdouble.sandbox.javascript import deno
from tests.agentdouble.sandbox.javascript.session import Session

Outcome = tuple[str, str]  # what it printed, and the name of its error, or ""

JAVASCRIPT = {
    # modules
    "bare": "import fs from 'fs'; console.log(typeof fs.readFileSync)",
    "bare names": "import { join, sep as s } from 'path'; console.log(join('a', 'b'), s)",
    "bare subpath": "import { readdir } from 'fs/promises'; console.log(typeof readdir)",
    "bare namespace": "import * as path from 'path'; console.log(path.basename('/a/b'))",
    "node prefix": "import { EventEmitter } from 'node:events'; console.log(EventEmitter.name)",
    "prefix only": "import { DatabaseSync } from 'node:sqlite'; console.log(DatabaseSync.name)",
    "side effect": "import 'fs'; console.log(1)",
    "dynamic": "const { default: os } = await import('os'); console.log(os.EOL === '\\n')",
    "conditional": "if (true) { const u = await import('util'); console.log(u.inspect({ a: 1 })) }",
    "mixed": "import a, { join } from 'path'; console.log(a.join === join)",
    "several lines": "import {\n  join, // one\n  basename,\n} from 'path';\nconsole.log(join('a'), basename('b/c'))",
    "missing name": "import { nothing } from 'fs'; console.log(1)",
    "missing package": "import left from 'left-pad-of-nobody'; console.log(1)",
    "missing file": "import './nothing.js'; console.log(1)",
    "remote": "import 'https://example.com/a.js'; console.log(1)",
    "npm": "import 'npm:chalk'; console.log(1)",
    "data": "import n from 'data:text/javascript,export default 7'; console.log(n)",
    "file": "Deno.writeTextFileSync('./m1.js', 'export const v = 4');\n"
    "const m = await import('./m1.js'); console.log(m.v)",
    "typed file": "Deno.writeTextFileSync('./m2.ts', 'export const v: number = 5');\n"
    "const m2 = await import('./m2.ts'); console.log(m2.v)",
    "json": "Deno.writeTextFileSync('./d.json', '{\"a\": 1}');\n"
    "const d = await import('./d.json', { with: { type: 'json' } }); console.log(d.default.a)",
    "export const": "export const e1 = 1; console.log(e1)",
    "export let": "export let e2 = 1, e3 = 2; console.log(e2 + e3)",
    "export pattern": "export const { e4, ...e5 } = { e4: 1, b: 2 }; console.log(e4, e5)",
    "export function": "console.log(e6()); export function e6() { return 'hoisted' }",
    "export async": "export async function e7() { return 1 }\nconsole.log(await e7())",
    "export generator": "export function* e8() { yield 1 }\nconsole.log([...e8()])",
    "export class": "export class E9 { #a = 1; get a() { return this.#a } }\nconsole.log(new E9().a)",
    "export list": "const e10 = 1; export { e10, e10 as other }; console.log(e10)",
    "export nothing": "export {}; console.log(1)",
    "export default": "export default { a: 1 }; console.log(1)",
    "export default function": "export default function e11() { return 2 }\nconsole.log(e11())",
    "export default class": "export default class E12 {}\nconsole.log(E12.name)",
    "export default arrow": "export default async () => 1;\nconsole.log(1)",
    "export from": "export { join as j, sep } from 'path'; console.log(typeof j)",
    "export all": "export * from 'path'; console.log(1)",
    "export all as": "export * as p from 'node:path'; console.log(1)",
    "export missing": "export { nothing } from 'path'; console.log(1)",
    "export in a text": "console.log(`\nexport const a = 1`)",
    "meta": "console.log(import.meta.main, typeof import.meta.url, typeof import.meta.resolve)",
    "meta spaced": "console.log(typeof import . meta . dirname)",
    "hashbang": "#!/usr/bin/env node\nconsole.log(1)",
    "hashbang later": "console.log(1)\n#!/usr/bin/env node",
    "require": "const fs = require('fs')",
    "module": "module.exports = 1",
    "typeof require": "console.log(typeof require, typeof module)",
    "createRequire": "import { createRequire } from 'module';\n"
    "console.log(typeof createRequire(import.meta.url)('os').cpus)",
    # the language
    "await": "console.log(await Promise.resolve(4))",
    "for await": "async function* g() { yield 1; yield 2 }\nfor await (const x of g()) console.log(x)",
    "timer": "setTimeout(() => console.log('late'), 5); await new Promise((r) => setTimeout(r, 30))",
    "throw": "throw new RangeError('r')",
    "throw a text": "throw 'text'",
    "rejection": "await Promise.reject(new TypeError('t'))",
    "own error": "class Mine extends Error {}\nthrow new Mine('m')",
    "undefined name": "nothing_of_that_name",
    "syntax": "let 1x = 2",
    "unfinished": "foo(",
    "console": "console.log('%s is %d', 'a', 1, { b: [1, { c: 2 }] }, new Map([[1, 2]]), null)",
    "table": "console.table([{ a: 1 }])",
    "unicode": "console.log('héllo 🎉', '\\u{1F600}'.length)",
    "big": "console.log('x'.repeat(100000).length, 10n ** 20n)",
    "structured": "console.log(structuredClone({ a: new Date(0) }).a.toISOString())",
    "url": "console.log(new URL('../b', 'http://h/a/c').href, btoa('a'), crypto.randomUUID().length)",
    "stdin": "console.log(await Deno.readAll?.(Deno.stdin) ?? 'none')",
    # refusals
    "fetch": "await fetch('http://example.com')",
    "command": "new Deno.Command('ls').outputSync()",
    "read": "Deno.readTextFileSync('/etc/shadow')",
    "execSync": "import { execSync } from 'child_process'; execSync('ls')",
}
TYPESCRIPT = {
    "types": "const n: number = 1; console.log(n as unknown as string)",
    "enum": "enum E { A = 1, B }\nconsole.log(E.B, E[1])",
    "const enum": "const enum C { X = 'x' }\nconsole.log(C.X)",
    "namespace": "namespace N { export const x = 1 }\nconsole.log(N.x)",
    "parameter property": "class P { constructor(public a: number) {} }\nconsole.log(new P(3).a)",
    "type imports": "import type { Stats } from 'node:fs'; import { type Dirent, existsSync } from 'node:fs';\n"
    "console.log(existsSync('.'))",
    "type exports": "export type T = string; export interface I { a: T }\nconsole.log(1)",
    "export enum": "export enum F { A }\nconsole.log(F.A)",
    "export default interface": "export default interface G {}\nconsole.log(1)",
    "satisfies": "const s = { a: 1 } satisfies Record<string, number>; console.log(s.a)",
    "overloads": "function f(a: string): string; function f(a: any) { return a }\nconsole.log(f('x'))",
    "generics": "const id = <T,>(x: T): T => x; console.log(id<number>(4))",
    "declare": "declare const z: number; abstract class A { abstract f(): void }\nconsole.log(typeof A)",
    "hashbang": "#!/usr/bin/env -S deno run\nlet n2: number = 2; console.log(n2)",
    "not null": "let v!: string; v = 'a'; console.log(v!.length)",
    "cast": "let u: unknown = 5; console.log(<any>u + 1)",
    "syntax": "let x: = 3",
    "unchecked": "const wrong: number = 'text'; console.log(wrong)",
    "decorator": "function d(c: any, _: any) { return c }\n@d class D {}\nconsole.log(D.name)",
    "jsx": "const el = <div>hi</div>",
}

# The kernel's outcome, and why it is another.
DIFFERENCES: dict[str, tuple[Outcome, str]] = {
    "own error": (("", "Mine"), "the name of an error is its class, as in Python cells"),
    "decorator": (
        ("", "SyntaxError"),
        "V8 has no decorators, and what removes types leaves them; the error says what to do",
    ),
}


@pytest.fixture(scope="module", params=["javascript", "typescript"])
def outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, dict[str, tuple[Outcome, Outcome]]]:
    """The outcomes of all cells of a language, in the kernel and in Deno."""
    cells = JAVASCRIPT if request.param == "javascript" else TYPESCRIPT
    session = Session(typescript=request.param == "typescript")
    directory = tmp_path_factory.mktemp("deno")
    with ThreadPoolExecutor(2) as pool:
        theirs = [
            pool.submit(_in_deno, directory / f"{n}", code, request.param)
            for n, code in enumerate(cells.values())
        ]
        ours = [_in_kernel(session, code) for code in cells.values()]
    session.close()
    both = zip(ours, (future.result() for future in theirs), strict=True)
    return request.param, dict(zip(cells, both, strict=True))


def _in_kernel(session: Session, code: str) -> Outcome:
    result = session(code)
    printed = "".join(it.text or "" for it in result.outputs if it.name == "stdout")
    return printed, "" if result.error is None else str(result.error.ename)


def _in_deno(directory: Path, code: str, language: str) -> Outcome:
    directory.mkdir()
    file = directory / ("cell.ts" if language == "typescript" else "cell.js")
    file.write_text(code)
    rights = [
        f"--allow-read={directory}",
        f"--allow-write={directory}",
        "--allow-env",
        "--no-prompt",
    ]
    alone = ["--cached-only", "--no-config", "--no-lock", "--quiet"]
    done = subprocess.run(
        [deno.find(), "run", *rights, *alone, str(file)],
        cwd=directory,
        env={"PATH": os.environ["PATH"], "DENO_DIR": "/dev/null/none", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode == 0:
        return done.stdout, ""
    found = re.search(r"^error: (Uncaught )?(?:\(in promise\) )?(\w+)\b", done.stderr, re.M)
    assert found is not None, done.stderr
    # Its loader names no class before it runs a program; import() throws a TypeError then.
    loading = found[1] is None and not found[2].endswith(("Error", "Uncaught"))
    return done.stdout, "TypeError" if loading else found[2]


def test_cells_do_what_programs_of_deno_do(
    outcomes: tuple[str, dict[str, tuple[Outcome, Outcome]]],
) -> None:
    language, all_ = outcomes

    differing = {name: ours for name, (ours, theirs) in all_.items() if ours != theirs}

    expected = {name: ours for name, (ours, _) in DIFFERENCES.items() if name in all_}
    assert expected == differing, {name: all_[name] for name in {*differing} ^ {*expected}}
    assert len(all_) == len(JAVASCRIPT if language == "javascript" else TYPESCRIPT)


REFUSED = {
    "await fetch('http://example.com')": "use a Python cell or bash",
    "Deno.listen({ port: 0 })": "use a Python cell or bash",
    "new Deno.Command('ls').outputSync()": "run programs in a Python cell or in bash",
    "import { execSync } from 'child_process'; execSync('ls')": "run programs in a Python cell",
    "import cp from 'node:child_process'; cp.execFileSync('ls')": "run programs in a Python cell",
    "Deno.readTextFileSync('/etc/passwd')": "they read the session's own directory",
    "import fs from 'fs'; fs.writeFileSync('/etc/x', '')": "they write to the session's own",
    "Deno.symlinkSync('/etc', 'link')": "not available in JavaScript cells",
    "Deno.dlopen('libc.so.6', {})": "which JavaScript cells do not have",
    "import 'npm:chalk'": "a JavaScript cell can import built-in modules",
    "import 'jsr:@std/assert'": "a JavaScript cell can import built-in modules",
    "import chalk from 'chalk'": "a JavaScript cell can import built-in modules",
    "await import('https://example.com/a.js')": "a JavaScript cell can import built-in modules",
    "const fs = require('fs')": "write `import fs from 'fs'`",
    "module.exports = {}": "later cells see its variables",
    "__dirname": "write `import.meta.dirname`",
    "localStorage.getItem('a')": "write to files, which the session keeps",
}


@pytest.mark.parametrize("code", REFUSED)
def test_refusals_say_what_a_user_can_do(shared: Session, code: str) -> None:
    """Thrown or printed, they name no flag of Deno, because nobody here can set one."""
    printed = f"try {{ {code} }} catch (error) {{ console.error(error); console.log(error.stack) }}"
    results = [shared(code)]
    if not code.startswith("import "):
        results.append(shared(printed))

    for result in results:
        said = result.message + "".join(f"{it.text}{it.traceback}" for it in result.outputs)
        if "ReferenceError" not in said or result.status == "error":  # these only if thrown
            assert REFUSED[code] in said
        assert not re.search(r"--(allow|no|unstable)-", said)
