"""A guest is asked how it is: over its network, and through its agent. Debian's cloud kernel with a busybox answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from herder.api.kinds.probes import Probe
from herder.nodes.runtimes.base import FileVolume
from herder.nodes.runtimes.qemu.guest_agent import AgentError
from herder.nodes.runtimes.qemu.probes import NotWell
from tests.e2e.guest.linux import initramfs
from tests.e2e.guest.test_linux import linux  # a fixture
from tests.e2e.qemu.node import Node

__all__ = ["linux"]
# A web server, and an agent that knows as much of qemu-ga's language as we speak.
SCRIPT = """
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
for name in $(cat /modules/order); do insmod /modules/$name.ko; done
ifconfig eth0 10.0.2.15 up
mkdir /www && echo well > /www/index.html && httpd -p 8080 -h /www
echo; echo linux is up
exec 3<> $(echo /dev/vport*p1)
while :; do
  # Without anybody at the other end there is nothing to read.
  read -r line <&3 || { sleep 0.1; continue; }
  case "$line" in
    *guest-sync-delimited*) id=${line##*'"id":'}; printf '\\377{"return": %s}\\n' "${id%%\\}*}" >&3 ;;
    *guest-ping*) echo '{"return": {}}' >&3 ;;
    *guest-exec-status*) echo "{\\"return\\": {\\"exited\\": true, \\"exitcode\\": $code}}" >&3 ;;
    *missing*) echo '{"error": {"class": "GenericError", "desc": "No such file or directory"}}' >&3 ;;
    *guest-exec*) path=${line#*'"path":"'}; ${path%%'"'*}; code=$?; echo '{"return": {"pid": 7}}' >&3 ;;
  esac
done
"""


def probe(**about: Any) -> Probe:
    return msgspec.convert({"timeoutSeconds": 20, **about}, Probe)


PORTS = {"interfaces": [{"name": "default", "ports": [{"name": "web", "port": 8080}, {"port": 8081}]}]}
PING, OTHER = {"guestAgentPing": {}}, {"tcpSocket": {"port": 8080}}


@pytest.fixture
async def up(node: Node, linux: Path, tmp_path: Path) -> str:
    folder = tmp_path / "claim"
    folder.mkdir()
    (folder / "vmlinuz").write_bytes((linux / "vmlinuz").read_bytes())
    (folder / "initrd").write_bytes(initramfs(linux / "busybox", SCRIPT, linux / "modules"))
    boot = {
        "volume": {"name": "linux", "kernelPath": "vmlinuz", "initrdPath": "initrd"},
        "kernelArgs": "console=ttyS0 quiet panic=-1",
    }
    domain = {"firmware": {"kernelBoot": boot}, "devices": PORTS}
    spec = {"livenessProbe": PING, "readinessProbe": OTHER}
    guest = await node.start(memory="256Mi", domain=domain, spec=spec, volumes={"linux": FileVolume(folder)})
    await node.says(guest, "linux is up")
    print(await node.text(guest))
    return guest


async def test_a_guest_answers_by_http_by_tcp_and_through_its_agent(node: Node, up: str) -> None:
    async def ask(**about: Any) -> bool:
        return await node.runtime.probe(up, probe(**about))

    assert await ask(httpGet={"port": 8080})
    assert await ask(httpGet={"port": "web", "path": "/index.html"})
    with pytest.raises(NotWell, match="port 8080 of the guest answered with HTTP status 404"):
        await ask(httpGet={"port": 8080, "path": "/nothing"})
    with pytest.raises(NotWell, match="port 8081 of the guest does not answer"):
        await ask(httpGet={"port": 8081})
    assert await ask(tcpSocket={"port": "web"})
    with pytest.raises(NotWell, match="the guest takes no connection there"):
        await ask(tcpSocket={"port": 8081})
    assert await ask(guestAgentPing={})
    assert await ask(exec={"command": ["/bin/true", "or not"]})
    with pytest.raises(NotWell, match="/bin/false ended with exit code 1"):
        await ask(exec={"command": ["/bin/false"]})
    with pytest.raises(AgentError, match="the guest agent says: No such file"):
        await ask(exec={"command": ["/bin/missing"]})


async def test_without_an_agent_there_is_no_answer(node: Node) -> None:
    guest = await node.start(spec={"livenessProbe": PING})
    with pytest.raises(TimeoutError):
        await node.runtime.probe(guest, probe(guestAgentPing={}, timeoutSeconds=1))
    await node.ticked(guest, 3)
