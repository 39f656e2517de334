"""Checks that sessions and users are isolated, and of terminals and files (SBX)."""

from __future__ import annotations

import functools
import hashlib
import shlex
from dataclasses import replace

from agentdouble.core import ledger
from doublecheck.contracts import inputs, sandboxes, sequences
from doublecheck.contracts.clauses import clause, for_clauses
from doublecheck.contracts.engine import Examples, at_once, for_each
from doublecheck.contracts.instance_model import FAILING, InstancesModel
from doublecheck.contracts.sandboxes import CheckSandbox, succeeded
from doublecheck.contracts.sentences import instead, listed, short
from doublecheck.contracts.verdicts import not_observable

# pairs of a user and a session; {} is a new id
NAMES = {
    "SBX-04": [("doublecheck", id_) for id_ in ("{}-a", "{}-A", "{}_a", "x{}-a", "{0}{0}-a")],
    "SBX-12": [
        *((user, "{}") for user in ("dc-somebody-a", "dc-somebody-b", "dc-ab", "dc-aB", "7", "07")),
        *(("dc-a", "b{}"), ("dc-somebody-a", "{}-2")),
    ],
}


@for_clauses(NAMES, writes=True)
def test_sessions_with_similar_names_are_separate(sandbox: CheckSandbox, id_: str) -> None:
    """Names that differ in one character, in case or at an end, or that only join to one text."""
    boxes = [
        replace(sandbox, user_id=user, session_id=name.format(sandbox.session_id))
        for user, name in NAMES[id_]
    ]
    _need_names(*boxes)
    numbers = [f"{number}\n" for number in range(len(boxes))]
    ids = {succeeded(box.run(f"kept = {number}")).session_id for number, box in enumerate(boxes)}

    alone = [box.run("print(kept)").stdout for box in boxes]
    assert numbers == alone, f"a session reads a variable of another: {instead(alone, numbers)}"
    reads = [functools.partial(box.run, "print(kept)") for box in boxes]
    together = [result.stdout for result in at_once(reads)]
    assert numbers == together, f"at the same time, a session reads {instead(together, numbers)}"
    assert len(boxes) == len(ids), f"{len(boxes)} sessions have {len(ids)} instances"


@for_clauses(("SBX-04", "SBX-12"), writes=True)
def test_sessions_do_not_see_each_other(sandbox: CheckSandbox, id_: str) -> None:
    """A session shows no state of another session or user, before or after it has its own."""
    is_of_user = id_ == "SBX-12"
    other = sandbox.with_user("somebody-else") if is_of_user else sandbox.with_session("other")
    _need_names(sandbox, other)
    paths = sandboxes.leave(sandbox, "one")

    sandboxes.require_state(other, paths, None)
    sandboxes.leave(other, "other")
    sandboxes.require_state(other, paths, "other")
    sandboxes.require_state(sandbox, paths, "one")


STEPS = {
    "SBX-02": "assign read fail run run_often write load run_together",
    "SBX-04": "assign read write load run_at_once end",
    "SBX-07": "run run_often fail run_at_once run_together end",
}


@for_clauses(STEPS, writes=True)
def test_instances_match_their_model(sandbox: CheckSandbox, examples: Examples, id_: str) -> None:
    """Whatever ran before, even at the same time, each session has its own state and counts it."""
    boxes = [sandbox, *map(sandbox.with_session, ("other", "third"))]
    failing = FAILING[:2] if id_ == "SBX-07" else FAILING  # whether JavaScript counts is open
    steps = InstancesModel.sequences(STEPS[id_].split(), 12 if id_ == "SBX-07" else 24)
    sequences.run(examples, lambda: InstancesModel(boxes, failing=failing), steps)


def _need_names(*boxes: CheckSandbox) -> None:
    """Skip if the deployment names sessions by their ids alone."""
    named_alike = len({sandbox.user_session_id for sandbox in boxes}) < len(boxes)
    if named_alike and ledger.choose("U-USER-SESSION-ID") == "session":
        not_observable("sessions are named only by their ids (U-USER-SESSION-ID)")


LARGE = 25_001  # characters, printed before an error; a terminal may cut more than 30,000
FOLDER = "/tmp/doublecheck"  # noqa: S108 (of the sandbox)
FILE = f"{FOLDER}/Doublecheck of Files/Grüße 日本.Bin"
DIGEST = "import hashlib\nprint(end=hashlib.sha256(open({!r}, 'rb').read()).hexdigest())"


@clause("SBX-09", writes=True)
@for_each(text=inputs.texts(nul=False, long=8_000))
def test_a_command_prints_what_it_is_told(sandbox: CheckSandbox, text: str) -> None:
    """Any characters, many lines and piped text arrive, separate from error output."""
    quoted = shlex.quote(text)

    ran = sandbox.exec_bash(f"printf %s {quoted} | cat\nprintf %s {shlex.quote(text[-50:])} >&2")

    assert 0 == ran.exit_code, f"the command ends with exit code {ran.exit_code}"
    assert text == ran.stdout, f"stdout is {instead(ran.stdout, text)}"
    assert text[-50:] == ran.stderr, f"stderr is {instead(ran.stderr, text[-50:])}"


@clause("SBX-09", writes=True)
def test_commands_work_as_in_a_shell(sandbox: CheckSandbox) -> None:
    """Variables, arithmetic, pipes and lines work; each command has its own output and exit code."""
    lines = "line 3\nline 2\nline 1\nlast\n"
    commands = {
        "word=ok; echo $word-$(( 6 * 7 ))": (0, "ok-42\n", ""),
        "echo out; echo err >&2; (exit 3)": (3, "out\n", "err\n"),
        "for n in 1 2 3; do echo line $n; done | sort -r\necho last": (0, lines, ""),
        "false": (1, "", ""),
        "true": (0, "", ""),
        "(exit 42)": (42, "", ""),
        "(exit 255)": (255, "", ""),
        r"printf 'a\0b'": (0, "a\0b", ""),
        "test -d . && echo there": (0, "there\n", ""),
        f"head -c {LARGE} /dev/zero | tr '\\0' x; echo end >&2; exit 3": (
            *(3, "x" * LARGE, "end\n"),
        ),
    }

    for command, expected in commands.items():
        ran = sandbox.exec_bash(command)

        actual = ran.exit_code, ran.stdout, ran.stderr
        assert expected == actual, f"{short(command)} gives {short(actual)}"


@clause("SBX-09", writes=True)
def test_each_command_runs_once(sandbox: CheckSandbox) -> None:
    """A command runs once, however often its text was run before, and has its own output."""
    count = f"echo x >> {FOLDER}-runs; wc -l < {FOLDER}-runs"

    runs = [int(sandbox.exec_bash(count).stdout) for _ in range(6)]
    assert [*range(1, 7)] == runs, f"six commands have run {listed(runs)} times"
    texts = [f"of command {number}" for number in range(4)]
    calls = [functools.partial(sandbox.exec_bash, f"printf %s '{text}'") for text in texts]
    printed = [result.stdout for result in at_once(calls)]
    assert texts == printed, f"at the same time, a command prints {instead(printed, texts)}"


@clause("SBX-09", writes=True)
def test_a_terminal_works_in_the_session_s_sandbox(sandbox: CheckSandbox) -> None:
    """Commands and code share files in one instance; terminals of other sessions do not see them."""
    written = "with open('from-code', 'w') as file: print('6 * 7', end='', file=file); print('ok')"
    code = succeeded(sandbox.run(f"import os\nprint(os.getcwd())\n{written}"))
    home = shlex.quote(code.stdout.splitlines()[0])

    ran = sandbox.exec_bash(f"cd {home}; echo $(( $(cat from-code) )); echo from-shell > seen")

    assert "42\n" == ran.stdout, f"a command reads {ran.stdout!r} from a file that code wrote"
    assert code.session_id == ran.session_id, "a command runs in another instance than code"
    seen = sandbox.run("print(end=open('seen').read())").stdout
    assert "from-shell\n" == seen, f"code reads {seen!r} from a file that a command wrote"
    for other in (sandbox.with_session("other"), sandbox.with_user("somebody-else")):
        result = other.exec_bash(f"cd {home}; cat from-code")
        failed = result.exit_code != 0 and not result.stdout
        assert failed, f"a file of another session is read: {short(result.stdout)}"
        assert code.session_id != result.session_id, "two sessions share an instance"


@clause("SBX-10", writes=True)
@for_each(content=inputs.files())
def test_uploaded_files_are_seen_and_downloaded(sandbox: CheckSandbox, content: bytes) -> None:
    """A new content replaces the old one; code and a download read each of its bytes."""
    stored_path = sandbox.upload(FILE, content)

    downloaded = sandbox.read_file(FILE)
    assert content == downloaded, f"the download has {len(downloaded or b'')} other bytes"
    for path in (stored_path, FILE):
        digest = succeeded(sandbox.run(DIGEST.format(path))).stdout
        same = hashlib.sha256(content).hexdigest() == digest
        assert same, f"code reads other bytes from {path} than were uploaded"


@clause("SBX-10", writes=True)
def test_many_files_are_kept_apart(sandbox: CheckSandbox) -> None:
    """Each of many files keeps its last content, however often another one is uploaded."""
    contents = {f"{FOLDER}/many/{number}": b"%d" % number for number in range(inputs.MANY)}
    for path, content in contents.items():
        sandbox.upload(path, b"first")
        sandbox.upload(path, content)

    wrong = {path for path, content in contents.items() if sandbox.read_file(path) != content}
    assert set() == wrong, "files with another content"


@clause("SBX-10", writes=True)
def test_files_of_other_sessions_are_not_downloaded(sandbox: CheckSandbox) -> None:
    """A path of one session does not exist in another, whether or not it existed in the first."""
    sandbox.upload(f"{FOLDER}-mine", b"mine")
    assert b"mine" == sandbox.read_file(f"{FOLDER}-mine"), "an uploaded file is not downloaded"

    for other in (sandbox.with_session("other"), sandbox.with_user("somebody-else")):
        assert other.read_file(f"{FOLDER}-mine") is None, "a file of another session is downloaded"
    assert sandbox.read_file(f"{FOLDER}-never") is None, "a file that never existed is downloaded"
