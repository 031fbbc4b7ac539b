"""Every task and thread of the program is watched by somebody, and every wait after failures is bounded: read from its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

HERDER = Path(__file__).parents[2] / "herder"
# The one place that may: everybody else asks it.
HELPER = HERDER / "kit" / "tasks.py"
# Where a task is begun without help, and why that is right.
BY_HAND = {
    (
        "server/quick_writes.py",
        "_take",
    ): "one for each write: `_answer` lets nothing escape, a callback for each would cost too much",
}
THREADS_BY_HAND = {("cli/terminal.py", "run"): "reads the keyboard of one command, which ends with it"}
SPAWNING = ("create_task", "ensure_future")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions() -> Iterator[tuple[Path, Function]]:
    for path in sorted(HERDER.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield path, node


def _called(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""


def _of_a_group(call: ast.Call) -> bool:
    """A TaskGroup's own: it waits for all of them, and a failure of one is its own."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
    return name.strip("_") == "group"


def _names(target: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}


def _watched_here(function: Function, call: ast.Call) -> bool:
    """Kept in a variable that the same function waits for, or whose end it has somebody look at."""
    kept: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and any(one is call for one in ast.walk(node.value)):
            kept = {name for target in node.targets if isinstance(target, ast.Name | ast.Tuple) for name in _names(target)}
    for node in ast.walk(function):
        if isinstance(node, ast.Await) and kept & _names(node.value):
            return True
        if _called(node) == "add_done_callback" and isinstance(node, ast.Call) and kept & _names(node.func):
            looks = not (isinstance(node.args[0], ast.Attribute) and node.args[0].attr == "discard")
            if looks:
                return True
    return False


def _spawned(names: tuple[str, ...]) -> Iterator[tuple[Path, Function, ast.Call]]:
    for path, function in _functions():
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and _called(node) in names and path != HELPER:
                yield path, function, node


@pytest.mark.slow
def test_every_task_is_watched() -> None:
    seen = 0
    for path, function, call in _spawned(SPAWNING):
        seen += 1
        here = (str(path.relative_to(HERDER)), function.name)
        place = f"{path.relative_to(HERDER)}:{call.lineno}: nobody would notice its end: use herder.kit.tasks"
        assert _of_a_group(call) or here in BY_HAND or _watched_here(function, call), place
    assert seen > 30, "the source was not found"


@pytest.mark.slow
def test_every_thread_is_watched() -> None:
    for path, function, call in _spawned(("Thread",)):
        here = (str(path.relative_to(HERDER)), function.name)
        assert here in THREADS_BY_HAND, f"{path.relative_to(HERDER)}:{call.lineno}: use herder.kit.tasks.keep_thread"


@pytest.mark.slow
def test_every_wait_that_is_doubled_is_bounded() -> None:
    for path in sorted(HERDER.rglob("*.py")):
        if path == HERDER / "api" / "backoff.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and isinstance(node.left, ast.Constant):
                doubling = node.left.value in (2, 2.0) and not isinstance(node.right, ast.Constant)
                assert not doubling, f"{path.relative_to(HERDER)}:{node.lineno}: use herder.api.backoff.doubled"


@pytest.mark.parametrize(
    ("source", "watched"),
    [
        ("async def f():\n    task = asyncio.create_task(g())\n    await asyncio.wait([task])", True),
        ("async def f():\n    tasks = [asyncio.create_task(g()) for _ in x]\n    await asyncio.gather(*tasks)", True),
        ("def f():\n    task = loop.create_task(g())\n    task.add_done_callback(self.look)", True),
        ("def f():\n    task = loop.create_task(g())\n    task.add_done_callback(self.tasks.discard)", False),
        ("def f():\n    self.task = loop.create_task(g())", False),
        ("def f():\n    loop.create_task(g())", False),
        (
            "async def f():\n    task = asyncio.create_task(g())\n    try:\n        await h()\n    finally:\n        task.cancel()",
            False,
        ),
    ],
)
def test_the_reader_of_the_source_tells_them_apart(source: str, watched: bool) -> None:
    (function,) = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    (call,) = [node for node in ast.walk(function) if isinstance(node, ast.Call) and _called(node) == "create_task"]
    assert _watched_here(function, call) is watched
