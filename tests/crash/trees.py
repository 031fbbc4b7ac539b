"""The processes below one of ours."""

from pathlib import Path


def _children() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name in parentheses may hold anything; the parent comes second behind it.
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has just ended
        found.setdefault(parent, []).append(int(stat.parent.name))
    return found


def below(pid: int) -> list[int]:
    """All descendants, parents before their children."""
    children, found = _children(), [pid]
    for one in found:
        found += children.get(one, [])
    return found[1:]


def children_of(pid: int, *words: str) -> list[int]:
    """Those below `pid` whose command line holds all of these words."""
    return [one for one in below(pid) if set(words) <= set(_command(one))]


def _command(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []
