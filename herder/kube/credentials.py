"""Who we are to a server: asked for before each request, since tokens and certificates are renewed while we run."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from herder.kube.errors import Misconfigured
from herder.kube.trust import Trust, Watched, reason_of


class Shown(msgspec.Struct, frozen=True):
    """What one request shows. A new TLS context means a new connection, so a rotated certificate is used at once."""

    authorization: str = ""
    tls: ssl.SSLContext | None = None


class Credentials(Protocol):
    async def show(self) -> Shown: ...

    async def refused(self, shown: Shown) -> bool:
        """The server did not know us. Whether there is something else to show now."""
        ...


class Anonymous:
    """For unix sockets, where the socket's file mode is the lock, and for plain HTTP, where nothing secret is sent."""

    async def show(self) -> Shown:
        return Shown()

    async def refused(self, shown: Shown) -> bool:
        return False


class Kept:
    """Certificates and tokens that are at hand: in the kubeconfig, or in files that others renew."""

    def __init__(self, trust: Trust, authorization: Callable[[], str]) -> None:
        self._tls = Watched(trust.files(), trust.context)
        self._authorization = authorization

    async def show(self) -> Shown:
        return Shown(self._authorization(), self._tls.get())

    async def refused(self, shown: Shown) -> bool:
        """Only if a file changed between the request and its refusal."""
        return await self.show() != shown


def bearer(token: str) -> str:
    return f"Bearer {token}" if token else ""


def basic(username: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{username}:{password}'.encode()).decode()}"


def always(authorization: str) -> Callable[[], str]:
    return lambda: authorization


def from_file(path: str, where: str, otherwise: str = "") -> Callable[[], str]:
    """The token in a file, read again when it changes; `otherwise` is used until the file can be read."""

    def read() -> str:
        try:
            token = Path(path).read_text(encoding="ascii").strip()
        except (OSError, ValueError) as error:
            raise Misconfigured(f"{where}: {path}: cannot be read: {reason_of(error)}") from None
        if not token or not token.isprintable() or " " in token:
            raise Misconfigured(f"{where}: {path}: should hold a token, one word of printable characters")
        return bearer(token)

    watched = Watched((path,), read)

    def current() -> str:
        try:
            return watched.get()
        except Misconfigured:
            if not otherwise:
                raise
            return bearer(otherwise)

    return current
