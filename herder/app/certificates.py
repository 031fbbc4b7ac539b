"""Certificates that `herder up` signs for its own processes and its administrator: made at each start, renewed while it runs.

The authority stays: it is what others know us by. It lasts ten years; from a year before its end every day says so.
"""

from __future__ import annotations

import asyncio
import datetime
import socket
import time
from pathlib import Path

import structlog

from herder.app.kubeconfig import ADMIN, ENGINE_AT_NODES, renew_kubeconfig, write_for
from herder.app.refusal import CANNOT_USE_DATA, Refusal
from herder.pki.authority import LEAF_LIFE, Authority, Pair
from herder.pki.files import write_private
from herder.server.node_identity import AGENTS

log = structlog.get_logger()
# Of its life; what is left is for those who were away meanwhile, such as a machine that slept.
RENEW_AFTER = 2 / 3
LOOK_EVERY = 3600.0
SHARE_OF_LIFE = 0.02
WARN_BEFORE = datetime.timedelta(days=365)
WARN_EVERY = 86400.0
NEW_AUTHORITY = "stop herder, remove ca.crt and ca.key there, start it, and hand out new kubeconfigs"


class Certificates:
    def __init__(self, pki: Path, kubeconfig: Path, server: str, host: str, life: datetime.timedelta = LEAF_LIFE) -> None:
        self._pki = pki
        self._kubeconfig = kubeconfig
        self._server = server
        self._here = ("127.0.0.1", "::1", "localhost", socket.gethostname())
        self._host = host
        self._life = life
        self._authority = open_authority(pki)
        self._made = 0.0
        self._warned = 0.0

    def make(self) -> None:
        """At the start: everything anew."""
        self._sign()
        write_for(self._kubeconfig, self._server, self._authority, ADMIN, self._administrator())
        self._made = time.time()

    async def keep(self) -> None:
        """For as long as it is let. By the clock on the wall: a machine that slept has to catch up."""
        pause = min(LOOK_EVERY, self._life.total_seconds() * SHARE_OF_LIFE)
        while True:
            self._warn()
            await asyncio.sleep(pause)
            if time.time() >= self._made + RENEW_AFTER * self._life.total_seconds():
                self._renew()

    def _renew(self) -> None:
        try:
            self._sign()
            renew_kubeconfig(self._kubeconfig, self._server, self._authority, self._administrator())
        except (OSError, Refusal) as error:
            # A full disk, for example: there is a third of their life left to try.
            log.error("certificates could not be renewed, will try again", why=str(error))
            return
        self._made = time.time()
        log.info("certificates were renewed", kubeconfig=str(self._kubeconfig))

    def _sign(self) -> None:
        hosts = tuple(dict.fromkeys((*self._here, self._host)))
        write_pair(self._pki, "server", self._authority.server(hosts, life=self._life))
        # What the nodes show to the engine, and the engine to them when it asks for logs and consoles.
        write_pair(self._pki, "kubelet", self._authority.server(self._here, life=self._life, name=AGENTS))
        write_pair(self._pki, "kubelet-client", self._authority.client(ENGINE_AT_NODES, (), life=self._life))

    def _administrator(self) -> Pair:
        return self._authority.client(ADMIN, ("system:masters",), life=self._life)

    def _warn(self) -> None:
        now = time.time()
        if self._authority.until.timestamp() - now < WARN_BEFORE.total_seconds() and now - self._warned >= WARN_EVERY:
            self._warned = now
            on = _day(self._authority)
            log.warning("the certificate authority ends, and nobody is let in after that", on=on, todo=NEW_AUTHORITY)


def write_pair(folder: Path, name: str, pair: Pair) -> None:
    """The key first: whoever sees a new certificate finds its key."""
    write_private(folder / f"{name}.key", pair.key)
    write_private(folder / f"{name}.crt", pair.certificate)


def open_authority(pki: Path) -> Authority:
    try:
        authority = Authority.open(pki)
    except (ValueError, TypeError):
        why = "ca.crt and ca.key are not a certificate and its key; put them back, or remove both and hand out new kubeconfigs"
        raise Refusal(f"{pki}: {why}", CANNOT_USE_DATA) from None
    if authority.until <= datetime.datetime.now(datetime.UTC):
        raise Refusal(f"{pki / 'ca.crt'}: the certificate authority ended on {_day(authority)}: {NEW_AUTHORITY}", CANNOT_USE_DATA)
    return authority


def _day(authority: Authority) -> str:
    return f"{authority.until:%Y-%m-%d}"
