"""The private names of libraries that copies of kernels rely on are listed, and exist."""

from __future__ import annotations

import ast
import asyncio
import asyncio.tasks
import concurrent.futures
import contextlib
import functools
import multiprocessing.pool
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

import ipykernel.ipkernel
import ipykernel.utils
import pytest
import zmq
from ipykernel.iostream import IOPubThread, OutStream
from ipykernel.kernelapp import IPKernelApp
from ipykernel.subshell_manager import SubshellManager
from ipykernel.zmqshell import ZMQInteractiveShell
from IPython.core.history import HistoryManager
from IPython.core.profiledir import ProfileDir
from IPython.core.shellapp import InteractiveShellApp
from tornado.platform.asyncio import BaseAsyncIOLoop

from agentdouble.processes import copies, fork_server

with warnings.catch_warnings():
    warnings.simplefilter(
        "ignore"
    )  # the oldest matplotlib uses what the newest pyparsing warns about
    import matplotlib_inline.backend_inline

OWNERS: Mapping[str, type | ModuleType] = {
    "asyncio": asyncio,
    "asyncio.Handle": asyncio.Handle,
    "asyncio.SelectorEventLoop": asyncio.SelectorEventLoop,
    "asyncio.tasks": asyncio.tasks,
    "concurrent.futures.ProcessPoolExecutor": concurrent.futures.ProcessPoolExecutor,
    "concurrent.futures.ThreadPoolExecutor": concurrent.futures.ThreadPoolExecutor,
    "ipykernel.IPKernelApp": IPKernelApp,
    "ipykernel.IPythonKernel": ipykernel.ipkernel.IPythonKernel,
    "ipykernel.IOPubThread": IOPubThread,
    "ipykernel.OutStream": OutStream,
    "ipykernel.SubshellManager": SubshellManager,
    "ipykernel.ipkernel": ipykernel.ipkernel,
    "ipykernel.utils": ipykernel.utils,
    "IPython.HistoryManager": HistoryManager,
    "IPython.InteractiveShell": ZMQInteractiveShell,
    "IPython.InteractiveShellApp": InteractiveShellApp,
    "IPython.ProfileDir": ProfileDir,
    "matplotlib_inline.backend_inline": matplotlib_inline.backend_inline,
    "multiprocessing.pool.Pool": multiprocessing.pool.Pool,
    "tempfile": tempfile,
    "tornado.BaseAsyncIOLoop": BaseAsyncIOLoop,
    "zmq.Context": zmq.Context,
}
LISTED = {
    owner: names.split()
    for owner, names in re.findall(r"^([\w.]+): ((?:\w+\s+)+)", copies.__doc__ or "", re.MULTILINE)
}
OURS = {"_loop", "_run"}  # libraries have these names as well
KERNEL = ("kernel_app", "kernel_output", "kernel_traces", "python_kernel", "session_history")
SOURCES = [
    *Path(*copies.__path__).glob("*.py"),
    *(Path(*fork_server.__path__, f"{name}.py") for name in KERNEL),
]


@pytest.mark.parametrize("owner", LISTED)
def test_listed_names_exist(owner: str) -> None:
    """After an upgrade, a name that is gone fails here instead of in each copy."""
    gone = [name for name in LISTED[owner] if not has(OWNERS[owner], name)]

    assert [] == gone, f"{owner} has them no longer: see agentdouble/processes/copies"


def test_used_names_are_listed() -> None:
    """The page is complete, for what the owners on it have."""
    listed = {name for names in LISTED.values() for name in names}
    used = {name for source in SOURCES for name in private_names(ast.parse(source.read_text()))}
    foreign = {name for name in used if any(has(owner, name) for owner in OWNERS.values())}

    assert set() == foreign - listed - OURS
    assert set() == listed - used


@pytest.mark.parametrize("name", ["_selector", "_no_longer"])
def test_a_name_that_is_gone_is_noticed(name: str) -> None:
    """A name that an event loop only sets on itself exists; another one does not."""
    with contextlib.closing(asyncio.SelectorEventLoop()) as loop:
        assert hasattr(loop, name) == has(asyncio.SelectorEventLoop, name)


def has(owner: type | ModuleType, name: str) -> bool:
    """Return whether a module or class has a name, or its methods set it on instances."""
    if hasattr(owner, name) or isinstance(owner, ModuleType):
        return hasattr(owner, name)
    return any(name in attributes_set_in(base) for base in owner.__mro__)


@functools.cache
def attributes_set_in(kind: type) -> set[str]:
    file = getattr(sys.modules[kind.__module__], "__file__", None) or ""
    if not file.endswith(".py"):  # it is written in C
        return set()
    classes = (node for node in ast.walk(parsed(file)) if isinstance(node, ast.ClassDef))
    nodes = (node for found in classes if found.name == kind.__name__ for node in ast.walk(found))
    attributes = (node for node in nodes if isinstance(node, ast.Attribute))
    return {node.attr for node in attributes if isinstance(node.ctx, ast.Store)}


@functools.cache
def parsed(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text("utf-8"))


def private_names(tree: ast.Module) -> Iterator[str]:
    """Yield the private names that a module uses, imports, overrides, or has in strings."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name) | ast.FunctionDef(name=name) | ast.alias(name=name):
                names = [name]
            case ast.AsyncFunctionDef(name=name) | ast.keyword(arg=str(name)):
                names = [name]
            case ast.Constant(value=str(text)):
                names = re.findall(r"^_\w+", text)
            case _:
                continue
        yield from (name for name in names if re.match("_[a-z]", name))
