"""Starts the pinned kube-apiserver with its etcd for as long as a tool needs to ask it something."""

from __future__ import annotations

import json
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
START_SECONDS = 90


class Server:
    """A running API server: ask it with `request`."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.token = token
        self._context = ssl.create_default_context()
        # The server made its certificate for itself a moment ago and listens on this machine only.
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE

    def request(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """The decoded answer; an error answer is returned like any other (it is a Status)."""
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content_type, "User-Agent": "schemas/1"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self._context, timeout=30) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return json.loads(error.read())


@contextmanager
def running_server() -> Generator[Server]:
    programs = Path(_output(str(HERE / "build.sh"), "etcd", "kube-apiserver"))
    folder = Path(tempfile.mkdtemp(prefix="herder-schemas-"))
    processes: list[subprocess.Popen[bytes]] = []
    # Being told to stop must end the servers too: without this they would be left behind.
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        store = f"http://127.0.0.1:{_free_port()}"
        processes.append(_start([str(programs / "etcd"), *_etcd_flags(folder, store)], folder / "etcd.log"))
        token, port = secrets.token_hex(16), _free_port()
        (folder / "tokens").write_text(f'{token},admin,admin,"system:masters"\n')
        _output("openssl", "genrsa", "-out", str(folder / "accounts.key"), "2048")
        command = [str(programs / "kube-apiserver"), *_apiserver_flags(folder, store, port)]
        processes.append(_start(command, folder / "apiserver.log"))
        server = Server(f"https://127.0.0.1:{port}", token)
        _wait_until_ready(server, processes, folder)
        yield server
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()
        signal.signal(signal.SIGTERM, before)
        shutil.rmtree(folder, ignore_errors=True)


def _etcd_flags(folder: Path, url: str) -> list[str]:
    peer = f"http://127.0.0.1:{_free_port()}"
    return [
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peer}",
        "--unsafe-no-fsync",
    ]


def _apiserver_flags(folder: Path, store: str, port: int) -> list[str]:
    return [
        f"--etcd-servers={store}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={folder / 'certs'}",
        f"--token-auth-file={folder / 'tokens'}",
        "--authorization-mode=AlwaysAllow",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--service-account-issuer=https://kubernetes.default",
        f"--service-account-key-file={folder / 'accounts.key'}",
        f"--service-account-signing-key-file={folder / 'accounts.key'}",
        "--disable-admission-plugins=ServiceAccount",
    ]


def _wait_until_ready(server: Server, processes: list[subprocess.Popen[bytes]], folder: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if any(process.poll() is not None for process in processes):
            raise SystemExit(f"kube-apiserver or etcd stopped:\n{_last_lines(folder)}")
        try:
            if server.request("GET", "/apis/apiextensions.k8s.io/v1").get("kind") == "APIResourceList":
                return
        except (urllib.error.URLError, OSError, ValueError):
            pass
        time.sleep(0.2)
    raise SystemExit(f"kube-apiserver was not ready after {START_SECONDS} s:\n{_last_lines(folder)}")


def _last_lines(folder: Path) -> str:
    return "\n".join((folder / "apiserver.log").read_text(errors="replace").splitlines()[-15:])


def _start(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(command, stdout=output, stderr=output)


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
