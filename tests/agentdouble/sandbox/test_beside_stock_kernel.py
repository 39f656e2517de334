"""Cells of many kinds, in a session and in a stock kernel: each message that they cause.

Both run the same cells in the same order and in an empty directory of their own. The stock kernel
is ipykernel as jupyter_client starts it, from a client without standard input. Where the two differ,
``DIFFERENCES`` says why.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import background, run

pytestmark = pytest.mark.once

PATIENCE_S = 60

OUTPUTS = {
    "print": "print('a', 'b', sep='-')",
    "two streams": "import sys\nprint('out')\nprint('err', file=sys.stderr)",
    "interleaved": "for n in range(3):\n    print(n, flush=True)\n    print(n, file=sys.stderr, flush=True)",
    "no newline": "print('x', end='')",
    "carriage return": "print('10%\\r20%\\r30%')",
    "value": "6 * 7",
    "none": "None",
    "suppressed": "6 * 7;",
    "last of several": "1\n2\n'three'",
    "assignment": "x = 5",
    "walrus": "(y := 3)",
    "underscore": "_ + 1",
    "history": "Out[max(Out)], len(In), _ih is In, _oh is Out, In[-2], _i, _ii",
    "directories": "_dh",
    "text": "'two\\nlines'",
    "bytes": "b'\\x00\\xff'",
    "pretty dict": "{f'key{n}': list(range(n)) for n in range(12)}",
    "pretty nested": "[{'a': {'b': [1, (2, {3})]}}] * 3",
    "long list": "list(range(2000))",
    "set": "{3, 1, 2}",
    "recursive": "loop = []\nloop.append(loop)\nloop",
    "function": "def f(a, b=1): pass\nf",
    "class": "class K: pass\nK",
    "module": "import json\njson",
    "lambda": "(lambda: 1).__name__",
    "float": "0.1 + 0.2, float('nan'), float('-inf'), 1e300",
    "complex": "3 + 4j",
    "big number": "2 ** 200",
    "ellipsis": "...",
    "empty": "# nothing",
    "unicode": "print('héllo 🎉 中文 \\u202e rtl')\n'é'",
    "surrogate": "'\\ud800'",
    "control characters": "print('\\x1b[31mred\\x1b[0m \\x07 \\x08')",
    "null character": "print('a\\x00b')",
    "identifier": "größe = 3\ngröße",
    "many lines": "for n in range(5000): print(n)",
    "large value": "'x' * 50_000",
    "print to __stdout__": "sys.stdout.write('w') and None",
    "docstring": "'''doc'''",
    "f-string": "name = 'n'\nf'{name!r:>5} {1000000:,}'",
    "match": "match (1, 2):\n    case (a, b): print(a + b)",
    "star": "first, *rest = range(4)\nrest",
    "dataclass": "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\nP(1)",
    "enum": "from enum import Enum\nclass Colour(Enum):\n    RED = 1\nColour.RED",
    "path": "from pathlib import Path\nPath('a') / 'b'",
    "date": "import datetime as dt\ndt.date(2026, 1, 2)",
    "decimal": "from decimal import Decimal\nDecimal('1.10')",
    "ordered": "from collections import Counter, OrderedDict, defaultdict, deque\n"
    "Counter('aab'), OrderedDict(a=1), defaultdict(list, a=[1]), deque([1])",
    "namespace": "import types\ntypes.SimpleNamespace(a=1)",
    "array": "import numpy\nnumpy.arange(6).reshape(2, 3)",
    "large array": "numpy.zeros((1000, 1000))",
    "scalar": "numpy.float64(1.5)",
}
DISPLAYS = {
    "display": "display(1, 'two')",
    "html": "from IPython.display import HTML, JSON, SVG, Image, Markdown, Latex, Javascript\nHTML('<b>b</b>')",
    "markdown": "display(Markdown('# m'))",
    "latex": "Latex('$x$')",
    "json": "JSON({'a': 1})",
    "javascript": "Javascript('1')",
    "svg": "SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>')",
    "png": "Image(data=b'\\x89PNG\\r\\n\\x1a\\n' + b'0' * 20, format='png')",
    "repr html": "class H:\n    def _repr_html_(self): return '<i>h</i>'\nH()",
    "repr markdown": "class M:\n    def _repr_markdown_(self): return '*m*'\n    def __repr__(self): return 'M'\nM()",
    "mimebundle": "class B:\n    def _repr_mimebundle_(self, include=None, exclude=None):\n"
    "        return {'text/plain': 'b', 'application/x-b': {'b': 1}}, {'application/x-b': {'m': 2}}\nB()",
    "ipython display": "class D:\n    def _ipython_display_(self): print('shown')\nD()",
    "raw": "display({'text/plain': 'p', 'text/html': '<p>'}, raw=True)",
    "metadata": "display(HTML('m'), metadata={'text/html': {'isolated': True}})",
    "update": "handle = display('before', display_id='one')\nhandle.update('after')",
    "clear": "from IPython.display import clear_output\nprint('gone')\nclear_output()\nprint('kept')",
    "clear and wait": "print('gone')\nclear_output(wait=True)\nprint('kept')",
    "table": "class Table:\n    def _repr_html_(self): return '<table><tr><td>1</td></tr></table>'\n"
    "    def __repr__(self): return '   a\\n0  1'\nTable()",
    "exclude": "display(Table(), include=['text/plain'])",
    "progress": "from IPython.display import ProgressBar\nProgressBar(3)",
    "formatter": "get_ipython().display_formatter.formatters['text/plain'].for_type(K, lambda o, p, c: p.text('K!'))\nK()",
}
ERRORS = {
    "raise": "1 / 0",
    "after output": "print('before')\n{}['k']",
    "in a function": "def g(n): return 1 / n\ng(0)",
    "chained": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('v') from e",
    "context": "try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise KeyError('k')",
    "suppressed context": "try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise KeyError('k') from None",
    "group": "raise ExceptionGroup('g', [ValueError(1), TypeError(2)])",
    "syntax": "x = = 1",
    "indentation": "if True:\nprint(1)",
    "unfinished": "foo(",
    "undefined": "nothing_here",
    "attribute": "json.nothing",
    "import": "import nothing_here",
    "import from": "from json import nothing",
    "assertion": "assert 1 == 2, 'no'",
    "own": "class Mine(Exception):\n    def __str__(self): return 'mine'\nraise Mine",
    "note": "e = ValueError('v')\ne.add_note('note')\nraise e",
    "recursion": "def deep(): return deep()\n"
    "try:\n    deep()\nexcept RecursionError as e:\n    print(e)",
    "no text": "raise ValueError",
    "unicode text": "raise ValueError('ü🎉')",
    "base exception": "raise BaseException('b')",
    "interrupt": "raise KeyboardInterrupt",
    "generator exit": "raise GeneratorExit",
    "stop iteration": "next(iter(()))",
    "str raises": "class Bad(Exception):\n    def __str__(self): raise ValueError('no')\nraise Bad",
    "repr raises": "class R:\n    def __repr__(self): raise ValueError('no')\nR()",
    "html raises": "class Q:\n    def _repr_html_(self): raise ValueError('no')\nQ()",
    "too many digits": "10 ** 5000",
    "sys.exit": "sys.exit(3)",
    "sys.exit with a text": "sys.exit('bye')",
    "system exit": "raise SystemExit",
    "exec": "exec('1 / 0')",
    "eval": "eval('1 +')",
    "warning": "import warnings\nwarnings.warn('careful')",
    "deprecated": "warnings.warn('old', DeprecationWarning)",
    "traceback": "import traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    print(traceback.format_exc().splitlines()[-1])",
    "logging": "import logging\nlogging.warning('w')",
    "excepthook": "sys.excepthook.__name__",
    "del raises": "class X:\n    def __del__(self): raise ValueError('del')\nx = X(); del x",
}
MAGICS = {
    "time": "%time pass",
    "timeit": "%timeit -n1 -r1 pass",
    "who": "%who_ls function",
    "env": "%env HOMELESS=1\nimport os; os.environ['HOMELESS']",
    "cell writefile": "%%writefile note.txt\nhello",
    "read back": "print(open('note.txt').read())",
    "capture": "%%capture out\nprint('caught')",
    "captured": "out.stdout",
    "bang": "!echo shell",
    "bang assigned": "lines = !echo a; echo b\nlines",
    "bang variable": "word = 'w'\n!echo {word} $word",
    "bang fails": "!false",
    "exit code": "_exit_code",
    "bash": "%%bash\necho bash; echo err >&2",
    "bash fails": "%%bash\nexit 3",
    "sh assigned": "%%bash --out captured\necho kept",
    "script": "%%script python\nprint('in python')",
    "html magic": "%%html\n<b>h</b>",
    "markdown magic": "%%markdown\n# m",
    "javascript magic": "%%javascript\n1",
    "unknown magic": "%nothing_here",
    "unknown cell magic": "%%nothing_here\n1",
    "precision": "%precision 3\n3.14159",
    "precision back": "%precision",
    "xmode": "%xmode Plain",
    "plain error": "1 / 0",
    "xmode back": "%xmode Context",
    "magic function": "get_ipython().run_line_magic('who_ls', 'int')[:0]",
    "run": "%run -i note.py",
    "help": "len?",
    "source": "f??",
    "auto call": "%autocall 0",
    "alias": "%alias hi echo hi\n%hi",
    "cd": "import os; os.mkdir('below')\n%cd below",
    "cd back": "%cd -",
    "dhist": "%dhist",
    "rerun": "%rerun -l 1",
    "recall": "%recall 1",
    "macro": "%macro again 1\nagain",
    "history magic": "%history -n 1-1",
    "load": "%load note.txt",
    "prun": "%%prun -q\npass",
    "reset selective": "%reset_selective -f word",
}
CONCURRENCY = {
    "await": "import asyncio\nawait asyncio.sleep(0, 'slept')",
    "gather": "await asyncio.gather(*(asyncio.sleep(0, n) for n in range(3)))",
    "task": "task = asyncio.create_task(asyncio.sleep(0, 't'))\nawait task",
    "async for": "async def ag():\n    yield 1\n    yield 2\n[x async for x in ag()]",
    "async with": "from contextlib import asynccontextmanager\n@asynccontextmanager\nasync def cm():\n    yield 1\n"
    "async with cm() as c: print(c)",
    "asyncio.run": "nap = asyncio.sleep(0)\ntry:\n    asyncio.run(nap)\nfinally:\n    nap.close()",
    "timeout": "await asyncio.wait_for(asyncio.sleep(5), 0.01)",
    "await raises": "async def bad(): raise ValueError('async')\nawait bad()",
    "coroutine": "type(co := bad()).__name__, co.close()",
    "thread": "import threading\nt = threading.Thread(target=print, args=('thread',))\nt.start()\nt.join()",
    "thread raises": "t = threading.Thread(target=lambda: 1 / 0)\nt.start()\nt.join()",
    "pool": "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(2) as pool: r = list(pool.map(str, range(3)))\nr",
    "to thread": "await asyncio.to_thread(len, 'abc')",
    "subprocess": "import subprocess\nsubprocess.run(['echo', 'hi'], capture_output=True, text=True)",
    "subprocess prints": "subprocess.run(['echo', 'inherited']).returncode",
    "python": "subprocess.run(['python', '-c', 'print(6 * 7)'], capture_output=True, text=True).stdout",
    "os.system": "os.system('echo system')",
    "async subprocess": "p = await asyncio.create_subprocess_exec('echo', 'async', stdout=-1)\n(await p.communicate())[0]",
    "fork": "pid = os.fork()\nif not pid: os._exit(0)\nos.waitpid(pid, 0)[1]",
    "descriptor": "os.write(1, b'fd\\n')",
    "redirect": "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as s: print('caught')\ns.getvalue()",
    "signal": "import signal\nsignal.getsignal(signal.SIGTERM) == signal.SIG_DFL",
    "timer": "import time\nstarted = time.monotonic()\ntime.sleep(0.01)\ntime.monotonic() > started",
}
STDIN = {
    "input": "input('?')",
    "getpass": "import getpass\ngetpass.getpass()",
    "read": "sys.stdin.read()",
    "readline": "sys.stdin.readline()",
    "lines": "list(sys.stdin)",
    "isatty": "sys.stdin.isatty()",
    "breakpoint": "breakpoint()",
    "breakpoint between": "x = 1\nbreakpoint()\nprint('after', x)",
    "breakpoint in a function": "def h():\n    breakpoint()\n    return 5\nh()",
    "breakpoint in a loop": "for n in range(3): breakpoint()\nn",
    "breakpoint with arguments": "breakpoint(header='h')",
    "pdb": "def traced():\n    import pdb; pdb.set_trace()\n    return 1\ntraced()",
    "debug": "%debug",
    "pdb.run": "import pdb; pdb.run('1 + 1')",
    "post mortem": "pdb.post_mortem()",
    "interact": "import code\ncode.interact()",
}
LIFE = {
    "name": "__name__",
    "argv": "len(sys.argv), sys.argv[1]",
    "file": "'__file__' in globals()",
    "ipython": "type(get_ipython()).__name__",
    "executable": "sys.executable",
    "prefix": "sys.prefix",
    "path first": "sys.path[0] == ''",
    "which": "import shutil\nshutil.which('python') == sys.executable",
    "gc": "import gc\ngc.isenabled()",
    "main": "import __main__\n__main__.x",
    "pickle": "import pickle\npickle.loads(pickle.dumps(P(2)))",
    "inspect": "import inspect\nprint(inspect.getsource(h))",
    "doctest": "import doctest\ndoctest.testmod().failed",
    "unittest": "import unittest\nclass T(unittest.TestCase):\n    def test(self): pass\n"
    "unittest.TextTestRunner(stream=io.StringIO()).run(unittest.defaultTestLoader.loadTestsFromTestCase(T)).wasSuccessful()",
    "recursion limit": "sys.getrecursionlimit()",
    "locale": "import locale\nlocale.getpreferredencoding()",
    "encoding": "sys.stdout.encoding, sys.stdin.encoding, sys.getfilesystemencoding()",
    "matplotlib backend": "os.environ.get('MPLBACKEND')",
    "pager": "os.environ.get('PAGER'), os.environ.get('TERM')",
    "interactive": "hasattr(sys, 'ps1'), sys.flags.interactive",
    "exit kept": "exit(True)",
    "reset": "%reset -f\n'x' in globals()",
}
CELLS = {
    f"{kind}: {name}": code
    for kind, cells in {
        "outputs": OUTPUTS,
        "displays": DISPLAYS,
        "errors": ERRORS,
        "magics": MAGICS,
        "concurrency": CONCURRENCY,
        "stdin": STDIN,
        "life": LIFE,
    }.items()
    for name, code in cells.items()
}

# The cells that differ, and why. The test compares all else, also in these cells.
_REPLIED = ("others", "the result has the error that a stock kernel only replies, and prints")
DIFFERENCES = {
    "errors: group": _REPLIED,
    "magics: unknown magic": _REPLIED,
    "magics: unknown cell magic": _REPLIED,
    "stdin: breakpoint with arguments": (
        "status others",
        "debugpy's hook takes no arguments, and pdb's does, so they are passed like any other",
    ),
}

Outcome = dict[str, Any]


def comparable(status: str, count: int, outputs: Iterable[dict[str, Any]], home: str) -> Outcome:
    """Return what should be the same: the text of each stream, and the other outputs in order."""
    outputs = [output for output in outputs if "clear" not in output]
    streams = {
        name: "".join(it["text"] for it in outputs if it.get("name") == name)
        for name in ("stdout", "stderr")
    }
    others = [
        {key: output.get(key) for key in ("output_type", *_FIELDS[output["output_type"]])}
        for output in outputs
        if output["output_type"] != "stream"
    ]
    text = json.dumps({"status": status, "count": count, **streams, "others": others})
    for form, replacement in ((re.escape(home), "/home/gem"), *_INCIDENTAL):
        text = re.sub(form, replacement, text)
    outcome: Outcome = json.loads(text)
    return outcome


_FIELDS = {
    "display_data": ("data", "metadata"),
    "execute_result": ("data", "metadata", "execution_count"),
    "error": ("ename", "evalue", "traceback"),
}
_INCIDENTAL = (
    (r"/tmp/ipykernel_\d+/\d+\.py", "CELL"),
    (r"0x[0-9a-f]+", "0x0"),
    (r"\d+(\.\d+)?(e\+\d+)?( \\u00b1 [\d.]+)? (ns|\\u00b5s|\\u03bcs|us|ms|s)\b", "TIME"),
    (r"Thread-\d+", "Thread-1"),
)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Outcome, Outcome]]:
    """The outcomes of all cells: in the session, and in the stock kernel beside it."""
    directory = str(tmp_path_factory.mktemp("stock"))
    file = tmp_path_factory.mktemp("answers") / "answers.json"
    module = "tests.agentdouble.sandbox.stock_kernel"
    program = [sys.executable, "-m", module, directory, str(file)]
    cells = json.dumps([*CELLS.values()])
    with Emulator() as double:
        stock = background(
            lambda: subprocess.run(program, input=cells, capture_output=True, text=True, check=True)
        )
        ours = [_in_session(double, code) for code in CELLS.values()]
        stock.result(PATIENCE_S)
    theirs = [comparable(**answer, home=directory) for answer in json.loads(file.read_text())]
    return dict(zip(CELLS, zip(ours, theirs, strict=True), strict=True))


def _in_session(double: Emulator, code: str) -> Outcome:
    data = run(double, code, "beside")["data"]
    return comparable(data["status"], data["execution_count"], data["outputs"], "/home/gem")


def test_cells_do_what_they_do_in_a_stock_kernel(
    outcomes: dict[str, tuple[Outcome, Outcome]],
) -> None:
    differing = {}
    for name, (ours, theirs) in outcomes.items():
        parts = " ".join(part for part in ours if ours[part] != theirs[part])
        if parts:
            differing[name] = parts

    expected = {name: parts for name, (parts, _) in DIFFERENCES.items()}
    unexpected = sorted({name for name, _ in differing.items() ^ expected.items()})
    assert expected == differing, "\n".join(f"{it}: {outcomes[it]}"[:2000] for it in unexpected)
    assert len(outcomes) > 150
