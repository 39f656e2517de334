"""A model of sandbox sessions and their instances: variables, files and counts."""

from __future__ import annotations

import functools
import json
import shlex
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from doublecheck.client._sync.controls import PlatformClock
from doublecheck.contracts.engine import at_once
from doublecheck.contracts.models import TEXTS, Model
from doublecheck.contracts.sandboxes import (
    COMMAND,
    JAVASCRIPT,
    PYTHON,
    TTL_S,
    Sandbox,
    failure,
    printed,
    printed_json,
    succeeded,
)
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


@dataclass
class Instance:
    """What an instance must hold.

    ``count`` is the number of executions, None after JavaScript: whether it counts is left open.
    """

    id: str = ""
    count: int | None = 0
    variables: dict[tuple[str, str], str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


class InstancesModel(Model):
    """Sessions of users with an instance each.

    ``boxes`` are the sessions, of which each sequence has new ones; ``ttl_s`` is their validity.
    """

    boxes: ClassVar[Sequence[Sandbox]]
    ttl_s: ClassVar[int | None] = TTL_S
    failing: ClassVar[Sequence[tuple[str, str]]] = FAILING
    clock: ClassVar[PlatformClock]  # for ``expire`` alone

    def __init__(self) -> None:
        super().__init__()
        suffix = uuid.uuid4().hex[:8]
        self.place = f"/tmp/doublecheck-{suffix}"  # noqa: S108 (of the sandbox)
        self.sandboxes = [
            replace(box, session_id=f"{box.session_id}-{suffix}") for box in self.boxes
        ]
        self.instances = [Instance() for _ in self.boxes]
        self.ended: set[str] = set()

    @rule(number=NUMBERS, language=LANGUAGES, name=NAMES, value=TEXTS)
    def assign(self, number: int, language: str, name: str, value: str) -> None:
        """Set a variable."""
        number %= len(self.boxes)
        if language == PYTHON:
            self._run(number, f"{name} = {value!r}")
        else:
            self._run(number, f"globalThis.{name} = {json.dumps(value)};", JAVASCRIPT)
        self.instances[number].variables[language, name] = value

    @rule(number=NUMBERS, language=LANGUAGES, name=NAMES)
    def read(self, number: int, language: str, name: str) -> None:
        """Read a variable, which has its last value or does not exist."""
        number %= len(self.boxes)
        value = self.instances[number].variables.get((language, name))
        assert value == self._value(number, language, name), f"{name} of {language}"

    @rule(number=NUMBERS, index=st.integers(0, len(FAILING) - 1))
    def fail(self, number: int, index: int) -> None:
        """Run code that raises or cannot be parsed."""
        failing = self.failing[index % len(self.failing)]
        failure(self._run(number % len(self.boxes), *failing, succeeds=False))

    @rule(number=NUMBERS, code=st.sampled_from(["pass", "6 * 7", "print('x' * 300_000)"]))
    def run(self, number: int, code: str) -> None:
        """Run code with an output, a value, or nothing."""
        self._run(number % len(self.boxes), code)

    @rule(number=NUMBERS, name=NAMES, content=TEXTS, way=WAYS)
    def write(self, number: int, name: str, content: str, way: str) -> None:
        """Write a file with Python, a command or an upload."""
        number %= len(self.boxes)
        path = f"{self.place}-{name}"
        if way == PYTHON:
            code = f"with open({path!r}, 'w', newline='') as file: _ = file.write({content!r})"
            self._run(number, code)
        elif way == COMMAND:
            command = f"printf %s {shlex.quote(content)} > {shlex.quote(path)}"
            ran = self.sandboxes[number].exec_bash(command, ttl_s=self.ttl_s)
            assert ran.exit_code == 0
        else:
            self.sandboxes[number].upload(path, content.encode(), ttl_s=self.ttl_s)
        self.instances[number].files[name] = content

    @rule(number=NUMBERS, name=NAMES, way=WAYS)
    def load(self, number: int, name: str, way: str) -> None:
        """Read a file, which has its last content or does not exist."""
        number %= len(self.boxes)
        path, content = f"{self.place}-{name}", self.instances[number].files.get(name)
        assert content == self._loaded(number, path, way), f"{path}, read with {way}"

    @rule()
    def run_at_once(self) -> None:
        """Run code in all sessions at the same time."""
        codes = [
            f"import time\ntime.sleep(0.02)\nprint({number})" for number in range(len(self.boxes))
        ]
        calls = [
            functools.partial(box.run, code, ttl_s=self.ttl_s)
            for box, code in zip(self.sandboxes, codes, strict=True)
        ]
        for number, result in enumerate(at_once(calls)):
            self._ran(number, succeeded(result))
            assert (codes[number], f"{number}\n") == (result.code, printed(result))

    @rule(number=NUMBERS, count=st.integers(2, 3))
    def run_together(self, number: int, count: int) -> None:
        """Run code in one session several times at the same time."""
        number %= len(self.boxes)
        box, texts = self.sandboxes[number], [f"together {n}\n" for n in range(count)]
        codes = [f"print({text!r}, end='')" for text in texts]
        calls = [functools.partial(box.run, code, ttl_s=self.ttl_s) for code in codes]
        results = at_once(calls, busy=(RefusedError,))
        assert texts == [printed(succeeded(result)) for result in results]
        for result in sorted(results, key=lambda result: result.execution_count or 0):
            self._ran(number, result)

    @rule(number=NUMBERS)
    def end(self, number: int) -> None:
        """End a session; the next call has a new instance, without anything of the old one."""
        number %= len(self.boxes)
        if self.instances[number].id:
            with suppress(pytest.skip.Exception):  # the platform offers no way to end one
                self.sandboxes[number].end()
                self._has_ended(number)

    @rule()
    def expire(self) -> None:
        """Wait until all instances have expired."""
        self.clock.advance(minutes=31)
        for number in range(len(self.boxes)):
            self._has_ended(number)

    def compare(self) -> None:
        """Fail if a variable differs."""
        for number, instance in enumerate(self.instances):
            for language in {language for language, _ in instance.variables}:
                for name in ("kept", "Kept"):
                    value = instance.variables.get((language, name))
                    assert value == self._value(number, language, name)

    def _has_ended(self, number: int) -> None:
        """Note the end of an instance, and look for the variables that it had."""
        instance, self.instances[number] = self.instances[number], Instance()
        if instance.id:
            self.ended.add(instance.id)
        for language, name in list(instance.variables)[-2:]:
            value = self._value(number, language, name)
            assert value is None, f"{name} of {language} has survived"

    def _value(self, number: int, language: str, name: str) -> str | None:
        value: str | None = printed_json(self._run(number, READ[language].format(name), language))
        return value

    def _run(self, number: int, code: str, language: str = PYTHON, *, succeeds: bool = True) -> Any:
        result = self.sandboxes[number].run(code, language, ttl_s=self.ttl_s)
        if language == PYTHON:
            self._ran(number, result)
        else:
            self._is_of(number, result.session_id)
            self.instances[number].count = None
        return succeeded(result) if succeeds else result

    def _ran(self, number: int, result: Any) -> None:
        self._is_of(number, result.session_id)
        instance = self.instances[number]
        if instance.count is not None:
            instance.count += 1
            assert instance.count == result.execution_count

    def _is_of(self, number: int, id_: str) -> None:
        """Fail unless an instance id is the one of this session alone."""
        instance = self.instances[number]
        others = {other.id for other in self.instances if other is not instance}
        assert id_ not in others, f"{id_} is the instance of two sessions"
        assert id_ not in self.ended, f"{id_} has ended"
        assert instance.id in ("", id_), f"{id_} instead of {instance.id}"
        instance.id = id_

    def _loaded(self, number: int, path: str, way: str) -> str | None:
        if way == PYTHON:
            code = (
                "import json, os\n"
                f"print(json.dumps(open({path!r}, newline='').read() "
                f"if os.path.exists({path!r}) else None))"
            )
            content: str | None = printed_json(self._run(number, code))
            return content
        if way == COMMAND:
            command = f"cat {shlex.quote(path)}"
            result = self.sandboxes[number].exec_bash(command, ttl_s=self.ttl_s)
            return result.stdout if result.exit_code == 0 else None
        try:
            return self.sandboxes[number].download(path, ttl_s=self.ttl_s).decode()
        except RefusedError:
            return None
