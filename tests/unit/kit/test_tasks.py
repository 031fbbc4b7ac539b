"""Tasks and threads that nobody waits for, in a process of their own: it is the process that ends."""

import asyncio
import subprocess
import sys
import textwrap

import pytest
from structlog.testing import capture_logs

from herder.kit.tasks import TASK_ENDED, watched

PROGRAM = """
import asyncio, sys
from herder.kit.tasks import keep_running, keep_thread

async def fails():
    await asyncio.sleep(0)
    raise LookupError("nothing is there")

async def returns():
    await asyncio.sleep(0)

async def waits_for_what_is_cancelled():
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.cancel)
    await future

def thread_fails():
    raise LookupError("nothing is there")

async def main():
    try:
        BEGIN
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)
        print("tidied up", flush=True)

asyncio.run(main())
"""


def _run(begin: str) -> "subprocess.CompletedProcess[str]":
    program = textwrap.dedent(PROGRAM).replace("BEGIN", begin)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("begin", "why"),
    [
        ("keep_running(fails(), 'the part')", "LookupError: nothing is there"),
        ("keep_running(fails(), 'the part', may_return=True)", "LookupError: nothing is there"),
        ("keep_running(returns(), 'the part')", "it returned"),
        ("keep_running(waits_for_what_is_cancelled(), 'the part')", "something that it waited for was cancelled"),
        ("keep_thread(thread_fails, 'the part', asyncio.get_running_loop())", "LookupError: nothing is there"),
    ],
    ids=["fails", "fails although it may return", "returns", "waits for what is cancelled", "a thread fails"],
)
def test_a_part_that_ends_by_itself_ends_the_process_loudly_and_in_order(begin: str, why: str) -> None:
    ended = _run(begin)
    assert ended.returncode == TASK_ENDED, ended
    said = ended.stdout + ended.stderr
    assert "a part of this process ended by itself" in said and "the part" in said and why in said, ended
    assert "tidied up" in ended.stdout


@pytest.mark.parametrize(
    "begin",
    [
        "keep_running(asyncio.sleep(60), 'the part').cancel(); return",
        "keep_running(returns(), 'the part', may_return=True); await asyncio.sleep(0.01); return",
        "keep_thread(lambda: None, 'the part', asyncio.get_running_loop()).join(); return",
    ],
    ids=["cancelled by its owner", "may return", "a thread returns"],
)
def test_a_part_that_is_let_end_ends_nothing_else(begin: str) -> None:
    ended = _run(begin)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "tidied up\n", "")


async def test_what_fails_for_one_object_is_logged_with_its_name_and_told_there() -> None:
    async def fails() -> None:
        raise LookupError("nothing is there")

    kept: set[asyncio.Task[None]] = set()
    told: list[BaseException] = []
    with capture_logs() as logs:
        task = watched(fails(), "looking", kept_in=kept, failed=told.append, guest="web")
        assert kept == {task}
        await asyncio.wait([task])
        await asyncio.sleep(0)
    assert kept == set()
    assert [str(one) for one in told] == ["nothing is there"]
    (entry,) = logs
    assert (entry["event"], entry["guest"], entry["log_level"]) == ("looking failed", "web", "error")


async def test_what_is_expected_is_not_logged() -> None:
    async def fails() -> None:
        raise LookupError("nothing is there")

    with capture_logs() as logs:
        await asyncio.wait([watched(fails(), "looking", expected=(LookupError,)), watched(asyncio.sleep(0), "sleeping")])
        await asyncio.sleep(0)
    assert logs == []
