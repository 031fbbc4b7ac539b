"""Where the webhook listens, how the API server reaches it, and how long its certificates live."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

DAY = 86_400.0
NAMESPACE = "herder-system"
SERVICE = "herder-webhook"
SECRET = "herder-webhook-certificate"


class BadUrl(ValueError):
    """The text is a sentence for the one who started us."""


class Settings(msgspec.Struct, frozen=True):
    """Without a `url` the API server reaches us through the Service, as it does inside a cluster."""

    host: str = "0.0.0.0"
    port: int = 9443
    url: str = ""
    namespace: str = NAMESPACE
    service: str = SERVICE
    authority_life: float = 5 * 365 * DAY
    serving_life: float = 90 * DAY
    # How long a new authority is trusted before it signs anything: API servers notice a registration a moment after it was written.
    settling: float = 600.0
    look_again: float = 60.0

    def __post_init__(self) -> None:
        if self.url:
            _check(self.url)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names under which the API server calls us, and so those that the certificate must have."""
        if self.url:
            return (urlsplit(self.url).hostname or "",)
        return (f"{self.service}.{self.namespace}.svc", f"{self.service}.{self.namespace}.svc.cluster.local")


def _check(url: str) -> None:
    """As strict as API servers are, but in words, and before anything is started."""
    try:
        parts = urlsplit(url)
        wrong = parts.scheme != "https" or not parts.hostname or not parts.hostname.isascii() or parts.port == 0
    except ValueError:
        raise BadUrl(f"{url!r} is no address: give https://HOST:PORT, as the API server reaches this machine") from None
    if wrong or parts.query or parts.fragment or parts.username or parts.path not in ("", "/"):
        raise BadUrl(f"{url!r} is not https://HOST:PORT, the address by which the API server reaches this machine")
