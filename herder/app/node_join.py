"""`herder node join`: asks a cluster to sign a certificate for a node, and writes the kubeconfig of its agent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from herder.app.cluster import connect_to
from herder.app.kubeconfig import check_holds_only, write_with
from herder.app.refusal import CANNOT_USE_CLUSTER, CANNOT_USE_FILE, Refusal
from herder.app.signing import Wish, ask, new_key, private, signed
from herder.kube.access import choose
from herder.kube.errors import KubeError, Misconfigured, NotFound
from herder.kube.kubeconfig import Cluster, read
from herder.pki.authority import Pair
from herder.server.access.nodes.identity import NODES, PREFIX

SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
Say = Callable[[str], None]


async def join(kubeconfig: Path, context: str | None, node: str, path: Path, say: Say) -> None:
    """Waits until somebody approves. Raises Refusal with a sentence."""
    check_holds_only(path, PREFIX + node)
    cluster, authority = _cluster(kubeconfig, context)
    transport = connect_to(kubeconfig, context, "herder-node-join")
    try:
        key = new_key()
        name = await ask(transport, Wish(node, "herder-node-", SIGNER, "client auth"), key)
        say(f"approve it, if nothing does so by itself:\n\n  kubectl certificate approve {name}\n")
        pair = Pair(await signed(transport, name), private(key))
    except NotFound:
        how = f"`herder user add {PREFIX}{node} --group {NODES}` makes the kubeconfig on the machine of an embedded engine"
        raise Refusal(f"this server signs no certificates; {how}", CANNOT_USE_CLUSTER) from None
    except KubeError as error:
        raise Refusal(f"no certificate could be asked for: {error}", CANNOT_USE_CLUSTER) from None
    finally:
        await transport.close()
    write_with(path, cluster.server, authority, PREFIX + node, pair)


def _cluster(kubeconfig: Path, context: str | None) -> tuple[Cluster, bytes]:
    """Where it is, and whom it is known by."""
    try:
        cluster = choose(read(kubeconfig), context, str(kubeconfig)).cluster
        file = kubeconfig.parent / cluster.certificate_authority
        return cluster, cluster.certificate_authority_data or (file.read_bytes() if cluster.certificate_authority else b"")
    except (Misconfigured, OSError) as error:
        raise Refusal(f"--kubeconfig {kubeconfig}: {error}", CANNOT_USE_FILE) from None
