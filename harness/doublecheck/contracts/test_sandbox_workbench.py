"""Checks of a session's terminal and files (SBX-09, SBX-10)."""

from __future__ import annotations

import hashlib
import json
import shlex

from doublecheck.contracts import inputs
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.examples import for_each
from doublecheck.contracts.sandboxes import JAVASCRIPT, Sandbox, printed, printed_json, succeeded
from doublecheck.errors import RefusedError

FOLDER = "Doublecheck of Files"
NAMES = (f"{FOLDER}/Grüße 日本.Bin", f"{FOLDER}/second/Grüße 日本.Bin", "doublecheck-UPPER.txt")
LARGE = 1_200_000  # bytes: above 1 MiB
_READ_BY_JAVASCRIPT = """
(async () => {{
    const files = await import("node:fs");
    globalThis.content = files.readFileSync({path}, "utf8");
}})();
"""


@clause("SBX-09", writes=True)
@for_each(text=inputs.texts(long=8_000))
def test_a_command_prints_what_it_is_told(sandbox: Sandbox, text: str) -> None:
    """Any characters arrive, of many lines and through a pipe, apart from what is an error."""
    quoted = shlex.quote(text)

    ran = sandbox.exec_bash(f"printf %s {quoted} | cat\nprintf %s {shlex.quote(text[-50:])} >&2")

    assert (0, text, text[-50:]) == (ran.exit_code, ran.stdout, ran.stderr)


@clause("SBX-09", writes=True)
def test_commands_work_as_in_a_shell(sandbox: Sandbox) -> None:
    """Variables, arithmetic, pipes, several lines; each command has its own output and exit code."""
    commands = {
        "word=ok; echo $word-$(( 6 * 7 ))": (0, "ok-42\n", ""),
        "echo out; echo err >&2; (exit 3)": (3, "out\n", "err\n"),
        "for n in 1 2 3; do echo line $n; done | sort -r\necho last": (
            *(0, "line 3\nline 2\nline 1\nlast\n"),
            "",
        ),
        "false": (1, "", ""),
        "true": (0, "", ""),
        "(exit 42)": (42, "", ""),
        "test -d . && echo there": (0, "there\n", ""),
    }

    for command, expected in commands.items():
        ran = sandbox.exec_bash(command)

        assert expected == (ran.exit_code, ran.stdout, ran.stderr), command


@clause("SBX-09", writes=True)
def test_a_terminal_works_in_the_session_s_sandbox(sandbox: Sandbox) -> None:
    """Commands and code see each other's files in one instance; other sessions' terminals do not."""
    written = "with open('from-code', 'w') as file: print('6 * 7', end='', file=file); print('ok')"
    code = succeeded(sandbox.run(f"import os\nprint(os.getcwd())\n{written}"))
    home = shlex.quote(printed(code).splitlines()[0])

    ran = sandbox.exec_bash(f"cd {home}; echo $(( $(cat from-code) )); echo from-shell > seen")

    assert ("42\n", code.session_id) == (ran.stdout, ran.session_id)
    assert "from-shell\n" == printed(sandbox.run("print(end=open('seen').read())"))
    for other in (sandbox.with_session("other"), sandbox.with_user("somebody-else")):
        theirs = other.exec_bash(f"cd {home}; cat from-code")
        assert (theirs.exit_code != 0, "") == (True, theirs.stdout)
        assert code.session_id != theirs.session_id


@clause("SBX-10", writes=True)
@for_each(cost=2, content=inputs.files())
def test_uploaded_files_are_seen_and_downloaded(sandbox: Sandbox, content: bytes) -> None:
    """Code sees every byte at the path it was uploaded to, and it is what a download has."""
    path = f"{_home(sandbox)}/{NAMES[0]}"

    for uploaded in (b"before", content):
        told = sandbox.upload(path, uploaded)

        assert uploaded == sandbox.download(path)
        assert [_digest(uploaded)] * 2 == _seen(sandbox, path, told)


@clause("SBX-10", writes=True)
def test_large_files_go_in_and_out(sandbox: Sandbox) -> None:
    """More than a megabyte arrives whole; a file that code has changed is downloaded as it is now."""
    path, content = f"{_home(sandbox)}/large.bin", bytes(range(256)) * (LARGE // 256) + b"\r\n"

    told = sandbox.upload(path, content)
    assert [_digest(content)] * 2 == _seen(sandbox, path, told)

    succeeded(sandbox.run(f"with open({path!r}, 'ab') as file: size = file.write(b'\\xff more')"))
    assert _digest(content + b"\xff more") == _digest(sandbox.download(path))


@clause("SBX-10", writes=True)
def test_files_are_kept_apart(sandbox: Sandbox) -> None:
    """Each path has its own content, also where names differ in their folder; JavaScript sees it."""
    home = _home(sandbox)
    contents = {f"{home}/{name}": name.encode() for name in NAMES}

    told = {path: sandbox.upload(path, content) for path, content in contents.items()}

    assert contents == {path: sandbox.download(path) for path in contents}
    for path, content in contents.items():
        assert [_digest(content)] * 2 == _seen(sandbox, path, told[path])
    path = f"{home}/{NAMES[0]}"
    sandbox.run(_READ_BY_JAVASCRIPT.format(path=json.dumps(path)), JAVASCRIPT)
    assert f"{NAMES[0]}\n" == printed(sandbox.run("console.log(content)", JAVASCRIPT))


@clause("SBX-10", writes=True)
def test_files_of_other_sessions_are_not_downloaded(sandbox: Sandbox) -> None:
    """A path of this session has nothing in another one's, whether it was there or never was."""
    path = f"{_home(sandbox)}/doublecheck-mine.txt"
    sandbox.upload(path, b"mine")
    assert b"mine" == sandbox.download(path)

    for other in (sandbox.with_session("other"), sandbox.with_user("somebody-else")):
        assert _refuses(other, path), f"{path} of another session can be downloaded"
    assert _refuses(sandbox, f"{path}-never"), "a file that was never there can be downloaded"


def _home(sandbox: Sandbox) -> str:
    """Return the folder in which code runs."""
    home = printed_json(sandbox.run("import json, os\nprint(json.dumps(os.getcwd()))"))
    return str(home).rstrip("/")


def _seen(sandbox: Sandbox, *paths: str) -> list[str]:
    """Return the digests of files as code reads them."""
    read = (
        "import hashlib, json\n"
        f"print(json.dumps([hashlib.sha256(open(path, 'rb').read()).hexdigest() "
        f"for path in {paths!r}]))"
    )
    digests: list[str] = printed_json(succeeded(sandbox.run(read)))
    return digests


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _refuses(sandbox: Sandbox, path: str) -> bool:
    """Whether a download is refused."""
    try:
        sandbox.download(path)
    except RefusedError:
        return True
    return False
