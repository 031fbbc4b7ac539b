"""The official JavaScript client. Installed once, into a cache outside the tree."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import EngineMissing
from tests.engines.api import Api, Json
from tests.engines.resources import CRDS
from tests.engines.waiting import eventually

VERSION = "1.4.0"
SCRIPT = Path(__file__).with_name("client_node.mjs")


@pytest.fixture(scope="session")
def client_node() -> Path:
    """The folder that has it."""
    if not shutil.which("node") or not shutil.which("npm"):
        raise EngineMissing("node and npm are not installed: the JavaScript client was not tried")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "herder" / "npm"
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"client-node-{VERSION}"
    with open(cache / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes side by side install once
        if not folder.exists():
            _install(folder)
    return folder


def _install(folder: Path) -> None:
    new = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    (new / "package.json").write_text('{"private":true}')
    quiet = ("--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--silent")
    command = ["npm", "install", *quiet, f"@kubernetes/client-node@{VERSION}"]
    done = subprocess.run(command, cwd=new, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise EngineMissing(f"npm could not install the JavaScript client: {done.stderr.strip()[:300]}")
    new.rename(folder)  # whole or not at all


async def test_the_javascript_client_reads_writes_watches_and_finds_kinds(
    api: Api, client_node: Path, kubeconfig: Path, namespace: str, definition: Json, tmp_path: Path
) -> None:
    await api.create(CRDS, definition)
    group = definition["spec"]["group"]

    async def served() -> bool:
        return (await api.request("GET", f"/apis/{group}/v1/sheep")).code == 200

    await eventually(served)
    # Modules are looked for from where the script is.
    shutil.copy(SCRIPT, tmp_path)
    (tmp_path / "node_modules").symlink_to(client_node / "node_modules")
    command = ["node", str(tmp_path / SCRIPT.name), namespace, group]
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    run = partial(subprocess.run, command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    done = await asyncio.to_thread(run)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["lives", "watches", "informs", "finds"]
