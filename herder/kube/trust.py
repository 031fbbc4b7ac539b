"""Whom we trust and whom we are, in TLS: contexts made anew when the files under them change."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Generic, TypeVar

import msgspec

from herder.kube.errors import Misconfigured

T = TypeVar("T")


class Material(msgspec.Struct, frozen=True):
    """Some PEM: held here, or in a file that may be rotated under us. `where` is the field of the kubeconfig, for sentences."""

    where: str
    data: bytes = b""
    path: str = ""

    def __bool__(self) -> bool:
        return bool(self.data or self.path)

    def read(self) -> bytes:
        """What is held goes before the file."""
        if self.data:
            return self.data
        try:
            return Path(self.path).read_bytes()
        except (OSError, ValueError) as error:
            raise Misconfigured(f"{self.where}: {self.path}: cannot be read: {reason_of(error)}") from None


class Trust(msgspec.Struct, frozen=True):
    """Certificate authorities of the server (those of this machine unless given), and our own certificate, if any."""

    authority: Material = Material("certificate-authority")
    certificate: Material = Material("client-certificate")
    key: Material = Material("client-key")
    insecure: bool = False

    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=self._authorities()) if self.authority else ssl.create_default_context()
        # As Go reads certificates: an authority may lack what newer rules ask for, and need not be a root.
        context.verify_flags = (context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN) & ~ssl.VERIFY_X509_STRICT
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.certificate:
            self._load_ourselves(context)
        return context

    def _authorities(self) -> str:
        text = self.authority.read().decode("ascii", errors="replace")
        try:
            ssl.create_default_context(cadata=text)
        except (ssl.SSLError, ValueError) as error:
            raise Misconfigured(f"{self.authority.where}: holds no certificate in PEM: {reason_of(error)}") from None
        return text

    def _load_ourselves(self, context: ssl.SSLContext) -> None:
        """The ssl module reads only files, so what is held in memory goes through one that nobody else can read."""
        with TemporaryDirectory(prefix="herder-") as folder:
            certificate, key = Path(folder) / "crt", Path(folder) / "key"
            for path, material in ((certificate, self.certificate), (key, self.key)):
                path.touch(mode=0o600)
                path.write_bytes(material.read())
            try:
                # A password is never asked for: nobody may be there to answer.
                context.load_cert_chain(certificate, key, password="")
            except (ssl.SSLError, ValueError, OSError) as error:
                where = f"{self.certificate.where} and {self.key.where}"
                raise Misconfigured(f"{where}: are no certificate and its key in PEM: {reason_of(error)}") from None

    def files(self) -> tuple[str, ...]:
        return tuple(one.path for one in (self.authority, self.certificate, self.key) if one.path and not one.data)


class Watched(Generic[T]):
    """A value made from files, and made again when one of them changes. Looking costs a few microseconds."""

    def __init__(self, files: tuple[str, ...], make: Callable[[], T]) -> None:
        self._files = files
        self._make = make
        self._seen: tuple[object, ...] | None = None
        self._value: T | None = None

    def get(self) -> T:
        """While a file is away or half written, the last good value is good enough."""
        seen = tuple(_state_of(file) for file in self._files)
        if self._value is None or seen != self._seen:
            try:
                self._value = self._make()
            except Misconfigured:
                if self._value is None:
                    raise
            else:
                self._seen = seen
        return self._value


def _state_of(file: str) -> object:
    try:
        state = os.stat(file)
    except (OSError, ValueError):
        return None
    return state.st_ino, state.st_mtime_ns, state.st_size


def reason_of(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).replace("_", " ").lower()
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
