"""What a person who waits sees where there is no terminal, and how long it is waited."""

import asyncio
import io
from collections.abc import Sequence

import click
import pytest
from rich.console import Console

from herder.cli import progress
from herder.cli.asking import NOT_IN_TIME, Refusal
from herder.cli.progress import Lines, Row, Rows, reminding
from herder.cli.timeouts import Length, chosen, within


async def test_each_step_is_a_line_and_numbers_that_change_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines()
    lines.show([Row("a", "waits", "Pending"), Row("b", "moves", "Running: 1 %", 1, step="Running")])
    lines.show([Row("a", "waits", "Pending"), Row("b", "moves", "Running: 2 %", 2, step="Running")])
    lines.show([Row("a", "stays", "cannot"), Row("b", "done", "moved")])
    assert capsys.readouterr().out.splitlines() == ["a: Pending", "b: Running: 1 %", "a: cannot", "b: moved"]


async def test_on_a_terminal_what_goes_on_is_a_row_and_what_is_settled_a_line() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=60, height=5)
    rows = Rows(console)
    moving = [Row(f"vm-{number}", "moves", f"Running: {number} %", number) for number in range(5)]
    rows.show([Row("off", "done", "moved to node-2"), Row("pinned", "stays", "no node can take it"), *moving])
    with console.capture() as settled:
        rows.show([Row("vm-0", "done", "moved to node-2"), *moving[1:]])
        rows.show([Row("vm-0", "done", "moved to node-2"), *moving[1:]])
    assert settled.get() == "\x1b[32mvm-0: moved to node-2\x1b[0m\n", "said once, and in green"
    with console.capture() as frame:
        console.print(rows)
    shown = frame.get()
    assert "vm-1" in shown and "\x1b[36mRunning: 1 %" in shown
    assert "and 2 more" in shown, "no more rows than the terminal has"
    assert "pinned" not in shown and "vm-0" not in shown


async def test_what_others_wrote_does_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    Lines().show([Row("", "waits", "a\x1b[2J\nb\u202e")])
    assert capsys.readouterr().out == "a\\x1b[2J\\nb\\u202e\n"


class Told:
    """A display that remembers what it was told."""

    def __init__(self) -> None:
        self.since = asyncio.get_running_loop().time()
        self.reminders: asyncio.Queue[str] = asyncio.Queue()

    def show(self, rows: Sequence[Row]) -> None:
        self.since = asyncio.get_running_loop().time()

    def remind(self, text: str) -> None:
        self.reminders.put_nowait(text)


async def test_who_sees_nothing_happen_is_told_why_and_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {"QUIET": 0.02, "AGAIN": 0.01, "LOOK": 0.001}.items():
        monkeypatch.setattr(progress, name, seconds)

    async def why() -> str:
        return "it waits for its turn"

    told = Told()
    async with reminding(told, why):
        assert [await asyncio.wait_for(told.reminders.get(), 10) for _ in range(2)] == ["it waits for its turn"] * 2


@pytest.mark.parametrize(("text", "seconds"), [("90", 90.0), ("0.2", 0.2), ("90s", 90.0), ("1h30m", 5400.0), ("0", 0.0)])
def test_a_time_is_seconds_or_what_kubectl_takes(text: str, seconds: float) -> None:
    assert Length().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["-1", "-5s", "soon", "", "nan", "inf", "1e999", "5 m"])
def test_what_is_no_time_is_refused_with_its_value(text: str) -> None:
    with pytest.raises(click.UsageError, match="is no length of time") as refusal:
        Length().convert(text, None, None)
    assert repr(text) in str(refusal.value)


def test_zero_waits_without_end() -> None:
    assert (chosen(None, 600.0), chosen(5.0, 600.0), chosen(0.0, 600.0)) == (600.0, 5.0, None)


async def test_when_the_time_is_up_a_sentence_says_how_things_are() -> None:
    with pytest.raises(Refusal, match=r"^after 0\.001 s it is Pending$") as refusal:
        async with within(0.001, lambda: "it is Pending"):
            await asyncio.Event().wait()
    assert refusal.value.code == NOT_IN_TIME


async def test_a_time_that_is_up_elsewhere_is_not_ours() -> None:
    with pytest.raises(TimeoutError, match="the socket"):
        async with within(60, lambda: "it is Pending"):
            raise TimeoutError("the socket")
