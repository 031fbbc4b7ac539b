"""`kubectl get -w`: a change is shown while it happens."""

import queue
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager

from tests.e2e.kubectl import Kubectl
from tests.e2e.manifests import config_map, machine, pod, pool


class Lines:
    """What a command prints, line by line, for as long as it runs."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.strip())

    def next(self) -> list[str]:
        return self._lines.get(timeout=15).split()

    def next_soon(self) -> str:
        """Nothing, where nothing comes in half a second."""
        try:
            return self._lines.get(timeout=0.5)
        except queue.Empty:
            return ""


@contextmanager
def _watching(kubectl: Kubectl, *words: str) -> Generator[Lines]:
    process = kubectl.start("get", *words)
    try:
        yield Lines(process)
    finally:
        process.kill()
        process.communicate()


def test_a_change_is_shown_as_a_new_row(here: Kubectl) -> None:
    here.create(pool("herd", 1))
    with _watching(here, "vmpool", "-w") as lines:
        assert lines.next()[:2] == ["NAME", "DESIRED"]
        assert lines.next()[:2] == ["herd", "1"]
        here("scale", "vmpool", "herd", "--replicas", "7")
        assert lines.next()[:2] == ["herd", "7"]


def test_what_comes_and_goes_is_named(here: Kubectl) -> None:
    here.create(config_map("first"))
    with _watching(here, "cm", "--watch", "--output-watch-events", "--no-headers") as lines:
        assert lines.next()[:2] == ["ADDED", "first"]
        here.create(config_map("second"))
        assert lines.next()[:2] == ["ADDED", "second"]
        here("label", "cm", "first", "a=b")
        assert lines.next()[:2] == ["MODIFIED", "first"]
        here("delete", "cm", "second")
        assert lines.next()[:2] == ["DELETED", "second"]


def test_a_selected_object_leaves_the_watch_with_its_label(here: Kubectl) -> None:
    here.create(machine("in", labels={"watched": "yes"}), machine("out"))
    with _watching(here, "vm", "-w", "-l", "watched", "--output-watch-events", "--no-headers") as lines:
        assert lines.next()[:2] == ["ADDED", "in"]
        here("label", "vm", "in", "watched-")
        assert lines.next()[:2] == ["DELETED", "in"]


def test_only_what_changes_from_now_on_is_shown_on_demand(here: Kubectl) -> None:
    here.create(pod("old"))
    with _watching(here, "pod", "old", "--watch-only", "-o", "jsonpath={.metadata.labels}{'\\n'}") as lines:
        shown, turn = "", 0
        # The watch says nothing when it begins: change until it shows something.
        while not shown and turn < 30:
            turn += 1
            here("label", "pod", "old", f"turn=t{turn}", "--overwrite")
            shown = lines.next_soon()
        assert shown.startswith('{"turn":"t')
