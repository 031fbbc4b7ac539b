"""Certificates that the supervisor renews on disk, as the processes that show them see it: new connections get the new one."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import structlog

from herder.pki import reading
from herder.pki.authority import Pair
from herder.pki.contexts import load_pair

log = structlog.get_logger()
LOOK_EVERY = 60.0
# Of what is left of a certificate's life: those that end soon are looked at more often.
SHARE_OF_REST = 0.1
SOONEST = 0.05


class Reloading:
    """One context and its two files."""

    def __init__(self, context: ssl.SSLContext, folder: Path, name: str, ends: Callable[[float], None] = lambda _: None) -> None:
        """`ends` is told until when the certificate is good that is shown."""
        self._context = context
        self._certificate, self._key = folder / f"{name}.crt", folder / f"{name}.key"
        self._tell = ends
        self._shown = self._certificate.read_bytes()
        self.ends = reading.ends(self._shown)
        ends(self.ends)

    async def keep(self) -> None:
        """For as long as it is let."""
        while True:
            await asyncio.sleep(max(SOONEST, min(LOOK_EVERY, (self.ends - time.time()) * SHARE_OF_REST)))
            try:
                self.look()
            except (OSError, ValueError) as error:
                # Also between the two files of a renewal: the next look finds both.
                log.warning("a new certificate is not shown yet", file=str(self._certificate), why=str(error))

    def look(self) -> None:
        """Raises OSError or ValueError where there is nothing to show; the old one is shown on."""
        certificate = self._certificate.read_bytes()
        if certificate == self._shown:
            return
        load_pair(self._context, Pair(certificate, self._key.read_bytes()))
        self._shown, self.ends = certificate, reading.ends(certificate)
        self._tell(self.ends)
        log.info("a renewed certificate is shown from now on", file=str(self._certificate))
