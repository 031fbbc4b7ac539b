"""What a node shows to other nodes: files that somebody gave it, or what the cluster has signed for it.

All of it is read anew for each connection, since others renew it, and kept as files: TLS, ours and QEMU's, reads nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from herder.api.world import World
from herder.app.node_serving import Serving
from herder.kube.errors import Misconfigured
from herder.kube.trust import Material, Trust
from herder.nodes.moving.papers import CLIENT, SERVER, Expected, Identity, Lacking, problem_with
from herder.pki import reading
from herder.pki.files import write_private


class Kept:
    """The node's files for moves, and by whom other nodes' certificates are signed."""

    def __init__(self, node: str, folder: Path, authority: Material, world: World) -> None:
        self._node = node
        self._authority = authority
        self._world = world
        self.client, self.server = (
            Identity(folder / f"{side}.crt", folder / f"{side}.key", folder / "ca.crt") for side in ("client", "server")
        )

    def keep(self, identity: Identity, certificate: bytes, key: bytes) -> Identity:
        identity.key.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path, data in ((identity.key, key), (identity.certificate, certificate), (identity.authority, self.authorities())):
            if not path.exists() or path.read_bytes() != data:
                write_private(path, data)
        return identity

    def problem(self, certificate: bytes, usages: tuple[str, ...]) -> str:
        where = " ".join(part for part in (self._authority.where, self._authority.path) if part)
        return problem_with(certificate, Expected(self._node, self.authorities(), where), usages, self._world.now())

    def is_known(self, certificate: bytes) -> bool:
        return reading.chains_to(certificate, self.authorities())

    def authorities(self) -> bytes:
        """Raises `Lacking`."""
        (found,) = read_all(self._authority)
        if not reading.split(found):
            raise Lacking(f"{self._authority.where} {self._authority.path}: holds no certificate in PEM")
        return found


class Given:
    """By options: one certificate for both directions."""

    def __init__(self, certificate: Material, key: Material, kept: Kept) -> None:
        self._certificate = certificate
        self._key = key
        self._kept = kept

    def client(self) -> Identity:
        return self._kept.keep(self._kept.client, *self.check())

    def server(self) -> Identity:
        return self._kept.keep(self._kept.server, *self.check())

    def check(self) -> tuple[bytes, bytes]:
        """Raises `Lacking`, which names the option, its file and what is wrong with it."""
        certificate, key = read_all(self._certificate, self._key)
        said = f"{self._certificate.where} {self._certificate.path}"
        if problem := self._kept.problem(certificate, (CLIENT, SERVER)):
            raise Lacking(f"{said}: {problem}")
        if problem := _key_problem(certificate, key):
            raise Lacking(f"{self._key.where} {self._key.path}: {problem}; it should be the key of {said}")
        return certificate, key


class FromCluster:
    """The certificate by which the API server knows the node, and where that is none for servers, the one that it signed."""

    def __init__(self, shown: Callable[[], Trust], serving: Serving | None, kept: Kept) -> None:
        self._shown = shown
        self._serving = serving
        self._kept = kept

    def client(self) -> Identity:
        return self._kept.keep(self._kept.client, *self._own((CLIENT,)))

    def server(self) -> Identity:
        """One that is good for both is what the embedded engine gives to nodes: it signs no other."""
        try:
            pair = self._own((CLIENT, SERVER))
        except Lacking:
            if self._serving is None:
                raise
            pair = self._signed(self._serving)
        return self._kept.keep(self._kept.server, *pair)

    def _own(self, usages: tuple[str, ...]) -> tuple[bytes, bytes]:
        try:
            trust = self._shown()
        except Misconfigured as error:
            raise Lacking(str(error)) from None
        if not (trust.certificate and trust.key):
            raise Lacking("the kubeconfig holds no client certificate; for moves, give one with --migration-cert")
        certificate, key = read_all(trust.certificate, trust.key)
        if problem := self._kept.problem(certificate, usages):
            raise Lacking(f"{trust.certificate.where}: {problem}")
        return certificate, key

    def _signed(self, serving: Serving) -> tuple[bytes, bytes]:
        certificate, key = serving.certificate.read_bytes(), serving.key.read_bytes()
        if not self._kept.is_known(certificate):
            how = f": kubectl certificate approve {serving.asked}" if serving.asked else ""
            raise Lacking(f"the cluster has not signed its certificate yet{how}")
        if problem := self._kept.problem(certificate, (SERVER,)):
            raise Lacking(f"{serving.certificate}: {problem}")
        return certificate, key


def read_all(*materials: Material) -> tuple[bytes, ...]:
    """Raises `Lacking`, which names the option or the field."""
    try:
        return tuple(one.read() for one in materials)
    except Misconfigured as error:
        raise Lacking(str(error)) from None


def _key_problem(certificate: bytes, key: bytes) -> str:
    try:
        return "" if reading.fits(certificate, key) else "is the key of another certificate"
    except (ValueError, TypeError):
        return "holds no private key in PEM that can be read without a password"
