"""Certificates in TLS contexts that are in use: replaced whole, so that each new connection sees one that fits its key."""

from __future__ import annotations

import os
import ssl

from herder.pki import reading
from herder.pki.authority import Pair


def load_pair(context: ssl.SSLContext, pair: Pair) -> None:
    """Raises ValueError, and leaves the context as it was, where key and certificate are not of each other: OpenSSL would keep the
    one without the other. From memory, as files may be replaced between two reads of them."""
    if not reading.fits(pair.certificate, pair.key):
        raise ValueError("the key is that of another certificate")
    descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, pair.certificate + b"\n" + pair.key)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
