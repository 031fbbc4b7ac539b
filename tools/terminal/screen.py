"""What a terminal shows of what a program wrote to it: lines, with colours, after all that was written over is gone."""

from __future__ import annotations

import re

from rich.text import Text

# Control sequences that move or erase; those that colour (ending in m) stay in the line, for rich to read.
MOVES = re.compile(r"\x1b\[\??(\d*)([A-HJKSThl])|(\r)|(\n)")
UP, ERASE = "A", "K"


def shown(written: str) -> list[Text]:
    """The lines that are left. Enough of a terminal for progress bars: back to the beginning, up, erase, and on."""
    lines, row, at_beginning = [""], 0, False
    for piece in _pieces(written):
        if isinstance(piece, str):
            lines[row] = piece if at_beginning else lines[row] + piece
            at_beginning = False
        elif piece[4]:
            row, at_beginning = row + 1, False
            lines += [""] * (row + 1 - len(lines))
        elif piece[3]:
            at_beginning = True
        elif piece[2] == UP:
            row = max(0, row - int(piece[1] or 1))
        elif piece[2] == ERASE:
            lines[row] = ""
    while lines and not lines[-1].strip():
        lines.pop()
    return [Text.from_ansi(line) for line in lines]


def _pieces(written: str) -> list[str | re.Match[str]]:
    pieces: list[str | re.Match[str]] = []
    end = 0
    for move in MOVES.finditer(written.replace("\r\n", "\n")):
        pieces += [move.string[end : move.start()], move]
        end = move.end()
    pieces.append(written.replace("\r\n", "\n")[end:])
    return [piece for piece in pieces if piece]
