"""Completion where there is nothing to complete with: no answer, and no word about it."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from herder.app.main import cli
from tests.e2e.program import until
from tests.engines.embedded import find_program

SHELLS = {
    "bash": "complete -o nosort -F _herder_completion herder",
    "zsh": "#compdef herder",
    "fish": "complete --no-files --command herder",
}


def herder(*words: str, around: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HOME": str(around), "KUBECONFIG": str(around / "kubeconfig"), **more}
    return subprocess.run([str(find_program()), *words], capture_output=True, text=True, env=environment, timeout=120, check=False)


def completed(line: str, around: Path) -> subprocess.CompletedProcess[str]:
    """As the script of bash asks: the words, and which of them is to be completed."""
    words = line.split(" ")
    return herder(around=around, _HERDER_COMPLETE="bash_complete", COMP_WORDS="\n".join(words), COMP_CWORD=str(len(words) - 1))


def _runs(pid: int) -> bool:
    """Whether it does; one that has ended and waits for its parent has no command line any more."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except (FileNotFoundError, ProcessLookupError):
        return False


def kubeconfig(path: Path, server: str, **user: object) -> None:
    context = {"name": "here", "context": {"cluster": "c", "user": "u"}}
    named = {"contexts": [context, {**context, "name": "there"}, {**context, "name": "$(touch x)"}]}
    cluster = {"name": "c", "cluster": {"server": server}}
    content = {"current-context": "here", "clusters": [cluster], "users": [{"name": "u", "user": user}], **named}
    path.write_text(yaml.safe_dump(content))


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_gets_its_script(shell: str, tmp_path: Path) -> None:
    said = herder("completion", shell, around=tmp_path)
    assert (said.returncode, said.stderr) == (0, "")
    assert SHELLS[shell] in said.stdout and "_HERDER_COMPLETE" in said.stdout


@pytest.mark.slow
def test_who_presses_tab_does_not_wait_for_a_server_that_says_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        kubeconfig(tmp_path / "kubeconfig", f"http://127.0.0.1:{silent.getsockname()[1]}")
        said = completed("herder logs ", tmp_path)
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")


@pytest.mark.slow
def test_a_credential_plugin_is_neither_heard_nor_asks_and_does_not_hold_up_who_presses_tab(tmp_path: Path) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "IfAvailable"}
    started = tmp_path / "started"
    script = ["-c", f"echo $$ >{started}; echo password: >&2; read answer; exec sleep 3600"]
    kubeconfig(tmp_path / "kubeconfig", "https://127.0.0.1:1", exec={**plugin, "command": "sh", "args": script})
    said = completed("herder logs ", tmp_path)
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")
    until(lambda: not _runs(int(started.read_text())), "the plugin has ended, too")


@pytest.mark.slow
def test_a_kubeconfig_that_cannot_be_read_is_not_mentioned(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text("no: [kubeconfig")
    for line in ("herder logs ", "herder logs --context "):
        said = completed(line, tmp_path)
        assert (said.returncode, said.stdout.strip(), said.stderr) == (0, "", "")


@pytest.mark.parametrize(("raised", "code"), [("KubeError('no answer')", 0), ("OSError()", 0), ("AttributeError('a bug')", 1)])
def test_what_a_cluster_does_not_answer_is_no_answer_and_a_bug_of_ours_is_an_error(raised: str, code: int) -> None:
    program = f"""
from herder.cli.completion import at_once
from herder.kube.errors import KubeError
def look() -> list[str]:
    raise {raised}
print(at_once(look))"""
    python = find_program().parent / "python"
    said = subprocess.run([str(python), "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (said.returncode, said.stdout) == (code, "" if code else "[]\n")


@pytest.mark.parametrize("body", [b"<html>", b'{"rows":[{}]}', b'{"rows":[{"cells":[]},{"cells":[1]}]}'])
def test_a_server_that_answers_with_something_else_completes_nothing(tmp_path: Path, body: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        kubeconfig(tmp_path / "kubeconfig", f"http://127.0.0.1:{server.getsockname()[1]}")
        threading.Thread(target=_answer, args=(server, body), daemon=True).start()
        said = completed("herder logs ", tmp_path)
    assert (said.returncode, said.stdout.strip(), said.stderr) == (0, "plain,1" if b"1" in body else "", "")


def _answer(server: socket.socket, body: bytes) -> None:
    """One question, whatever it is."""
    connection, _ = server.accept()
    with connection:
        connection.recv(65536)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        connection.sendall(head.encode() + body)


def test_contexts_are_completed_but_for_names_that_a_shell_would_run(tmp_path: Path) -> None:
    kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:1")
    assert completed("herder logs --context ", tmp_path).stdout.split() == ["plain,here", "plain,there"]


def _commands(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def test_every_name_of_something_in_the_cluster_can_be_completed() -> None:
    names = {"VM", "VMI", "POOL", "NODE", "POD|VM", "[NODE|VM]", "VM|MIGRATION"}
    asked = [(name, one) for name, command in _commands(cli) for one in command.params if one.metavar in names]
    assert len(asked) >= 29
    assert [(name, one.name) for name, one in asked if getattr(one, "_custom_shell_complete") is None] == []  # noqa: B009


def test_every_command_that_explains_has_its_answer_as_a_document() -> None:
    others = ("drain", "evacuate", "job list", "job status", "pool status", "pool plan", "pool preserved", "pool rollout history")
    with_answers = [(name, one) for name, one in _commands(cli) if name.startswith("explain ") or name in others]
    assert len(with_answers) == 14
    assert [name for name, one in with_answers if not any("-o" in parameter.opts for parameter in one.params)] == []


def test_help_and_completion_load_nothing_that_takes_long() -> None:
    heavy = "rich structlog numpy aiohttp yaml cryptography prometheus_client"
    program = f"import sys, herder.app.main; print(sorted(set('{heavy}'.split()) & set(sys.modules)))"
    python = find_program().parent / "python"
    said = subprocess.run([str(python), "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert said.stdout == "[]\n"
