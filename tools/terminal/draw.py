"""Draws the terminal of the README: `python -m tools.terminal.draw FILE`, or `make terminal`.

Commands of the README's tour are typed in a terminal, against a `herder up` of their own, and what they print is drawn as it came.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tools.terminal.screen import shown

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / ".venv" / "bin" / "herder"
WIDTH = 100
READY = "Ctrl-C stops it."
# Lines of the tour, as they stand there (tests/unit/docs/test_picture.py).
COMMANDS = (
    "kubectl get nodes",
    'kubectl create configmap counter-kernel --from-file=guest.elf="$(make -s guest)"',
    "kubectl apply -f examples/counter.yaml",
    "kubectl wait --for=condition=Ready vm/counter --timeout=60s",
    "before=$(mktemp)",
    '.venv/bin/herder logs counter -f > "$before" &',
    ".venv/bin/herder migrate counter --wait; wait",
    'tail -n 2 "$before"; .venv/bin/herder logs counter | head -n 2',
    ".venv/bin/herder explain target counter",
)
MARK = "\x1e"


@contextmanager
def herder_up(folder: Path) -> Generator[Path]:
    """A `herder up` as people start it, on a free port; its kubeconfig."""
    command = [PROGRAM, "up", "--data", folder / "data", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as up:
        try:
            assert up.stdout is not None
            if not any(READY in line for line in up.stdout):
                raise SystemExit("herder up has ended")
            yield folder / "data" / "kubeconfig"
        finally:
            up.send_signal(signal.SIGTERM)


def play(commands: tuple[str, ...], kubeconfig: Path, folder: Path) -> list[str]:
    """What a terminal gets to see of each, one after the other in one shell. What fails is no picture."""
    script = "\n".join(["set -e", *(f"printf '{MARK}'\n{command}" for command in commands)])
    person, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, WIDTH, 0, 0))
    plain = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
    surroundings = plain | {"KUBECONFIG": str(kubeconfig), "TMPDIR": str(folder), "TERM": "xterm-256color"}
    shell = subprocess.Popen(["bash", "-c", script], cwd=ROOT, env=surroundings, stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    written = b"".join(_all_of(person)).decode()
    os.close(person)
    if shell.wait():
        raise SystemExit(f"a command failed:\n{written}")
    return written.split(MARK)[1:]


def _all_of(person: int) -> Iterator[bytes]:
    """Until the other side is closed, which a pty tells as an error."""
    while True:
        try:
            yield os.read(person, 65536)
        except OSError:
            return


def picture(commands: tuple[str, ...], answers: list[str]) -> str:
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True, color_system="truecolor")
    for command, answer in zip(commands, answers, strict=True):
        console.print(Text.assemble(("$ ", "bold green"), (command, "bold")), soft_wrap=True)
        for line in shown(answer):
            console.print(line, soft_wrap=True)
    # No fonts from elsewhere: whoever looks has one.
    return re.sub(r"@font-face \{.*?\}\s*", "", console.export_svg(title="herder", unique_id="terminal"), flags=re.DOTALL)


def main(file: Path) -> None:
    with tempfile.TemporaryDirectory() as name, herder_up(Path(name)) as kubeconfig:
        answers = play(COMMANDS, kubeconfig, Path(name))
    file.write_text(picture(COMMANDS, answers), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
