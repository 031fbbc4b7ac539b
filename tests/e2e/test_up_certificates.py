"""Certificates of `herder up` end, and it goes on: what it shows, and the kubeconfig that it wrote, are renewed while it runs."""

import datetime
import os
import re
import shutil
import ssl
import stat
import time
from pathlib import Path
from typing import Any

import yaml

from herder.pki import reading
from herder.pki.authority import Authority
from herder.pki.files import write_private
from tests.e2e.kubectl import Kubectl
from tests.e2e.manifests import machine
from tests.e2e.program import Up, run_up, until

# Long enough for a busy machine to do something with one before it ends.
LIFE = 15.0


def _shown(port: int) -> bytes:
    return ssl.get_server_certificate(("127.0.0.1", port)).encode()


def _changed_by_hand(kubeconfig: Path) -> None:
    document: dict[str, Any] = yaml.safe_load(kubeconfig.read_text())
    document["contexts"][0]["context"]["namespace"] = "kube-system"
    write_private(kubeconfig, yaml.safe_dump(document).encode())


def test_it_serves_on_when_its_first_certificates_have_ended(tmp_path: Path, kubectl_program: Path) -> None:
    with Up(tmp_path, "--certificate-life", str(LIFE)) as up:
        kubectl = Kubectl(kubectl_program, up.kubeconfig, tmp_path).inside("default")
        kubectl.create(machine("talker", "Always"))
        kubectl("wait", "--for=condition=Ready", "vm/talker", "--timeout=60s")
        files = [up.kubeconfig, *(up.data / "pki" / f"{name}.key" for name in ("server", "kubelet", "kubelet-client"))]
        first = {file: file.read_bytes() for file in files}
        authority = (up.data / "pki" / "ca.crt").read_bytes()
        _changed_by_hand(up.kubeconfig)
        old = tmp_path / "old"
        shutil.copy(up.kubeconfig, old)
        processes, end = up.children(), reading.ends(_shown(up.port))
        until(lambda: time.time() > end + 1, "time stands still", 2 * LIFE)

        # The engine, for whoever comes with the kubeconfig; and the nodes, for the engine.
        assert reading.ends(_shown(up.port)) > end
        assert kubectl("get", "ns", "default", "-o", "name") == "namespace/default\n"
        assert "boot" in kubectl("logs", "-l", "kubevirt.io/vm=talker", "--tail=-1")
        assert Kubectl(kubectl_program, old, tmp_path).run("get", "ns", "default").returncode != 0
        assert up.children() == processes, "nobody had to be started anew"

        for file in files:
            assert file.read_bytes() != first[file], f"{file} was not renewed"
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert yaml.safe_load(up.kubeconfig.read_text())["contexts"][0]["context"]["namespace"] == "kube-system"
        assert (up.data / "pki" / "ca.crt").read_bytes() == authority
        told = kubectl("get", "--raw", "/metrics")
        ends = dict(re.findall(r'herder_certificate_expiration_timestamp_seconds{certificate="(.+)"} (\S+)', told))
        assert set(ends) == {"ca", "server", "kubelet-client"}
        assert float(ends["server"]) > end and float(ends["ca"]) == reading.ends(authority)


def _with_authority(folder: Path, begun: datetime.timedelta, life: datetime.timedelta) -> Path:
    pki = folder / "data" / "pki"
    pki.mkdir(parents=True)
    pair = Authority.make(datetime.datetime.now(datetime.UTC) - begun, life).pair
    write_private(pki / "ca.crt", pair.certificate)
    write_private(pki / "ca.key", pair.key)
    return folder / "data"


def test_an_authority_that_ends_within_a_year_is_said_at_the_start(tmp_path: Path) -> None:
    _with_authority(tmp_path, datetime.timedelta(0), datetime.timedelta(days=300))
    with Up(tmp_path, nodes=0) as up:
        until(lambda: "the certificate authority ends" in up.err, "nothing was said")


def test_an_authority_that_has_ended_is_a_reason_not_to_start(tmp_path: Path) -> None:
    data = _with_authority(tmp_path, datetime.timedelta(days=2), datetime.timedelta(days=1))
    ended = run_up("--data", str(data), "--listen", "127.0.0.1:0", "--nodes", "0", cwd=tmp_path)
    assert ended.code == 3
    assert "ca.crt: the certificate authority ended on 20" in ended.err and "remove ca.crt and ca.key" in ended.err
    assert not os.path.exists(data / "kubeconfig")
