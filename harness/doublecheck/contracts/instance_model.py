"""A model of sandbox sessions and their instances: variables, files and counts."""

from __future__ import annotations

import functools
import json
import shlex
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import strategies as st

from doublecheck.client._sync.clock import PlatformClock
from doublecheck.contracts import inputs, sandboxes
from doublecheck.contracts.engine import at_once
from doublecheck.contracts.sandboxes import COMMAND, JAVASCRIPT, PYTHON, CheckSandbox, succeeded
from doublecheck.contracts.sentences import instead
from doublecheck.contracts.sequences import TEXTS, Model, call, step
from doublecheck.errors import RefusedError

NUMBERS = st.integers(0, 2)
NAMES = st.sampled_from(["kept", "Kept", "kept_1"])
LANGUAGES = st.sampled_from([PYTHON, JAVASCRIPT])
WAYS = st.sampled_from([PYTHON, COMMAND, "file"])
FAILING = (
    ("1 / 0", PYTHON),
    ("def f(:", PYTHON),
    ("throw new Error('on purpose')", JAVASCRIPT),
    ("let broken = {", JAVASCRIPT),
)
READ = {
    PYTHON: "import json\nprint(json.dumps(globals().get({!r})))",
    JAVASCRIPT: "console.log(JSON.stringify(globalThis[{!r}] ?? null))",
}
LOAD = """
import json, os
path = {!r}
print(json.dumps(open(path, newline="").read() if os.path.exists(path) else None))
"""


@dataclass
class ModelledInstance:
    """A session, and what its instance must hold.

    ``count`` is the number of executions, None after JavaScript: whether it counts is left open.
    """

    box: CheckSandbox
    id: str = ""
    count: int | None = 0
    variables: dict[tuple[str, str], str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


class InstancesModel(Model):
    """Sessions of users with an instance each.

    Each sequence gets new sessions beside ``boxes``. ``clock`` is for ``expire`` alone.
    """

    scenario = (
        call("assign", number=0, language=PYTHON, name="kept", value=inputs.INVISIBLE),
        call("assign", number=0, language=JAVASCRIPT, name="kept", value=inputs.INVISIBLE),
        call("fail", number=0, index=0),
        call("read", number=0, language=PYTHON, name="kept"),
        call("read", number=0, language=JAVASCRIPT, name="kept"),
        call("fail", number=0, index=2),
        call("read", number=0, language=JAVASCRIPT, name="kept"),
        call("write", number=0, name="kept", content=" a ", way=COMMAND),
        call("run", number=1, code="6 * 7"),
        call("run", number=1, code="6 * 7"),
        call("assign", number=1, language=JAVASCRIPT, name="kept", value="b"),
        call("assign", number=1, language=PYTHON, name="Kept", value="c"),
        call("run_at_once"),
        call("load", number=0, name="kept", way="file"),
        call("write", number=0, name="kept", content="", way="file"),
        call("fail", number=0, index=1),
        call("load", number=0, name="kept", way=PYTHON),
        call("run", number=0, code="print('x' * 300_000)"),
        call("run_together", number=0, count=3),
        call("fail", number=1, index=3),
        call("read", number=1, language=JAVASCRIPT, name="kept"),
        call("assign", number=0, language=PYTHON, name="kept_1", value="before many"),
        call("run_often", number=0, count=inputs.MANY),
        call("read", number=0, language=PYTHON, name="kept_1"),
        call("expire"),
        call("read", number=1, language=PYTHON, name="Kept"),
        call("end", number=1),
        call("read", number=0, language=PYTHON, name="kept"),
        call("read", number=1, language=PYTHON, name="Kept"),
        call("run", number=1, code="pass"),
    )

    def __init__(
        self,
        boxes: Sequence[CheckSandbox],
        *,
        failing: Sequence[tuple[str, str]] = FAILING,
        clock: PlatformClock | None = None,
    ) -> None:
        suffix = uuid.uuid4().hex[:8]
        self.path = f"/tmp/doublecheck-{suffix}-{{}}"  # noqa: S108 (of the sandbox)
        self.instances = [ModelledInstance(box.with_session(suffix)) for box in boxes]
        self.ended: set[str] = set()
        self._failing, self._clock = failing, clock

    @step(number=NUMBERS, language=LANGUAGES, name=NAMES, value=TEXTS)
    def assign(self, number: int, language: str, name: str, value: str) -> None:
        """Set a variable."""
        instance = self._at(number)
        if language == PYTHON:
            self._run(instance, f"{name} = {value!r}")
        else:
            self._run(instance, f"globalThis.{name} = {json.dumps(value)};", JAVASCRIPT)
        instance.variables[language, name] = value

    @step(number=NUMBERS, language=LANGUAGES, name=NAMES)
    def read(self, number: int, language: str, name: str) -> None:
        """Read a variable, which has its last value or does not exist."""
        self._read(self._at(number), language, name)

    @step(number=NUMBERS, index=st.integers(0, len(FAILING) - 1))
    def fail(self, number: int, index: int) -> None:
        """Run code that raises or cannot be parsed."""
        failing = self._failing[index % len(self._failing)]
        sandboxes.failure(self._run(self._at(number), *failing, succeeds=False))

    @step(number=NUMBERS, code=st.sampled_from(["pass", "6 * 7", "print('x' * 300_000)"]))
    def run(self, number: int, code: str) -> None:
        """Run code with an output, a value, or nothing."""
        self._run(self._at(number), code)

    @step(number=NUMBERS, count=st.integers(2, 5))
    def run_often(self, number: int, count: int) -> None:
        """Run code several times, one after the other."""
        for _ in range(count):
            self._run(self._at(number), "pass")

    @step(number=NUMBERS, name=NAMES, content=TEXTS, way=WAYS)
    def write(self, number: int, name: str, content: str, way: str) -> None:
        """Write a file with Python, a command or an upload."""
        instance, path = self._at(number), self.path.format(name)
        if way == PYTHON:
            code = f"with open({path!r}, 'w', newline='') as file: _ = file.write({content!r})"
            self._run(instance, code)
        elif way == COMMAND:
            ran = instance.box.exec_bash(f"printf %s {shlex.quote(content)} > {path}")
            assert ran.exit_code == 0, f"a command that writes a file ends with {ran.exit_code}"
        else:
            instance.box.upload(path, content.encode())
        instance.files[name] = content

    @step(number=NUMBERS, name=NAMES, way=WAYS)
    def load(self, number: int, name: str, way: str) -> None:
        """Read a file, which has its last content or does not exist."""
        instance, path = self._at(number), self.path.format(name)
        content: str | None
        if way == PYTHON:
            content = sandboxes.printed_json(self._run(instance, LOAD.format(path)))
        elif way == COMMAND:
            ran = instance.box.exec_bash(f"cat {path}")
            content = ran.stdout if ran.exit_code == 0 else None
        else:
            downloaded = instance.box.read_file(path)
            content = downloaded if downloaded is None else downloaded.decode()
        expected = instance.files.get(name)
        assert expected == content, f"a file read by {way} has {instead(content, expected)}"

    @step()
    def run_at_once(self) -> None:
        """Run code in all sessions at the same time."""
        codes = [
            f"import time\ntime.sleep(0.02)\nprint({number})"
            for number in range(len(self.instances))
        ]
        pairs = zip(self.instances, codes, strict=True)
        results = at_once([functools.partial(it.box.run, code) for it, code in pairs])
        for number, (instance, result) in enumerate(zip(self.instances, results, strict=True)):
            self._ran(instance, succeeded(result))
            assert codes[number] == result.code, "the result has the code of another session"
            assert f"{number}\n" == result.stdout, f"another session's output: {result.stdout!r}"

    @step(number=NUMBERS, count=st.integers(2, 3))
    def run_together(self, number: int, count: int) -> None:
        """Run code in one session several times at the same time."""
        instance, texts = self._at(number), [f"together {n}\n" for n in range(count)]
        codes = [f"print({text!r}, end='')" for text in texts]
        calls = [functools.partial(instance.box.run, code) for code in codes]
        results = at_once(calls, busy=(RefusedError,))
        printed = [succeeded(result).stdout for result in results]
        assert texts == printed, f"at the same time, code prints {instead(printed, texts)}"
        for result in sorted(results, key=lambda result: result.execution_count or 0):
            self._ran(instance, result)

    @step(number=NUMBERS)
    def end(self, number: int) -> None:
        """End a session; the next call has a new instance, without anything of the old one."""
        instance = self._at(number)
        if instance.id:
            with suppress(pytest.skip.Exception):  # the platform offers no way to end one
                instance.box.end()
                self._has_ended(instance)

    @step()
    def expire(self) -> None:
        """Wait until all instances have expired."""
        assert self._clock is not None, "expire needs a clock"
        self._clock.advance(minutes=31)
        for instance in self.instances:
            self._has_ended(instance)

    def compare(self) -> None:
        """Fail if a variable differs."""
        for instance in self.instances:
            for language in {language for language, _ in instance.variables}:
                for name in ("kept", "Kept"):
                    self._read(instance, language, name)

    def _at(self, number: int) -> ModelledInstance:
        return self.instances[number % len(self.instances)]

    def _has_ended(self, instance: ModelledInstance) -> None:
        """Note the end of an instance, and look for the variables that it had.

        A platform may refuse calls of a session that has ended (U-TTL-AFTER). Then another takes its
        place.
        """
        self.ended |= {instance.id} - {""}
        variables = list(instance.variables)[-2:]
        vars(instance).update(vars(ModelledInstance(instance.box)))
        try:
            self._run(instance, "pass")
        except RefusedError:
            box = instance.box.with_session("next")
            vars(instance).update(vars(ModelledInstance(box)))
            return
        for language, name in variables:
            self._read(instance, language, name)

    def _read(self, instance: ModelledInstance, language: str, name: str) -> None:
        value = sandboxes.printed_json(self._run(instance, READ[language].format(name), language))
        expected = instance.variables.get((language, name))
        assert expected == value, f"a variable of {language} is {instead(value, expected)}"

    def _run(
        self,
        instance: ModelledInstance,
        code: str,
        language: str = PYTHON,
        *,
        succeeds: bool = True,
    ) -> Any:
        result = instance.box.run(code, language)
        if language == PYTHON:
            self._ran(instance, result)
        else:
            self._is_of(instance, result.session_id)
            instance.count = None
        return succeeded(result) if succeeds else result

    def _ran(self, instance: ModelledInstance, result: Any) -> None:
        self._is_of(instance, result.session_id)
        if instance.count is not None:
            instance.count += 1
            told = result.execution_count
            assert instance.count == told, f"execution_count is {told} instead of {instance.count}"

    def _is_of(self, instance: ModelledInstance, id_: str) -> None:
        """Fail unless an instance id is the one of this session alone."""
        others = {other.id for other in self.instances if other is not instance}
        assert id_ not in others, f"{id_} is the instance of two sessions"
        assert id_ not in self.ended, f"{id_} has ended, but is used again"
        assert instance.id in ("", id_), f"the session has a new instance: {id_}"
        instance.id = id_
