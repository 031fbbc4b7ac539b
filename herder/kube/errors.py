"""What can go wrong between us and an API server, as one tree.

KubeError
  Misconfigured       our own side is set up wrong: a kubeconfig, a certificate, a credential plugin
  Unreachable         nobody answered, or the answer broke off: it may or may not have been done
  NotLeading          nothing was sent: somebody else may lead by now
  Unreadable          an answer, or an object, that is not what it should be
  ApiStatusError      the API server said no; below it one class for each reason that callers tell apart
"""

from __future__ import annotations

from typing import Any

import msgspec


class KubeError(Exception):
    """Base of all. `passing` is whether the same request may well succeed later."""

    passing = False


class Misconfigured(KubeError):
    """Nothing was asked of any server. The text names the file, the field, and what would be right. Files and plugins can be
    mended while we run."""

    passing = True


class Unreachable(KubeError):
    """No answer. Whether the server did what was asked is not known: only what is safe to repeat may be repeated."""

    passing = True


class NotLeading(KubeError):
    """A write that was held back, because the lease may be somebody else's by now."""

    passing = True


class Unreadable(KubeError):
    """Bytes that are not the object, list or event that they should be."""


class ApiStatusError(KubeError):
    """The API said no. `code` and `reason` are for programs, the text for people."""

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.details = details or {}

    @property
    def retry_after(self) -> float | None:
        """Seconds that the server asks us to wait."""
        seconds = self.details.get("retryAfterSeconds")
        return float(seconds) if isinstance(seconds, int) else None

    @property
    def namespace_terminating(self) -> bool:
        """The namespace goes, and all that is in it: nothing new is taken there."""
        return any(cause.get("reason") == "NamespaceTerminating" for cause in self.details.get("causes") or ())


class NotFound(ApiStatusError):
    pass


class AlreadyExists(ApiStatusError):
    pass


class Conflict(ApiStatusError):
    """Somebody else wrote first, or a precondition does not hold: look again, then decide again."""

    passing = True


class Expired(ApiStatusError):
    """The resourceVersion or the page is too old: list anew."""

    passing = True


class Invalid(ApiStatusError):
    """The object breaks a rule. The same object will break it again."""


class Forbidden(ApiStatusError):
    """We may not. Roles can change, so it is worth asking again, but not soon."""

    passing = True


class Unauthorized(ApiStatusError):
    """The server does not know us: the credentials are wrong or have ended."""

    passing = True


class TooManyRequests(ApiStatusError):
    """Slow down; for an eviction: a disruption budget says no for now."""

    passing = True


class ServerFailed(ApiStatusError):
    """The server is overloaded, restarting or broken (5xx)."""

    passing = True


_BY_REASON: dict[str, type[ApiStatusError]] = {
    "NotFound": NotFound,
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
    "Expired": Expired,
    "Gone": Expired,
    "Invalid": Invalid,
    "Forbidden": Forbidden,
    "Unauthorized": Unauthorized,
    "TooManyRequests": TooManyRequests,
    "Timeout": ServerFailed,
    "ServerTimeout": ServerFailed,
    "InternalError": ServerFailed,
    "ServiceUnavailable": ServerFailed,
}
# For answers without a reason: those of proxies on the way.
_BY_CODE: dict[int, type[ApiStatusError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    410: Expired,
    422: Invalid,
    429: TooManyRequests,
}


class _Status(msgspec.Struct):
    reason: str | None = None
    message: str | None = None
    code: int | None = None
    details: dict[str, Any] | None = None


_status = msgspec.json.Decoder(_Status)


def error_from(code: int, body: bytes) -> ApiStatusError:
    """The error in an answer: a metav1.Status, or whatever a proxy wrote."""
    try:
        status = _status.decode(body)
    except msgspec.MsgspecError:
        status = _Status(message=body[:200].decode(errors="replace").strip())
    reason = status.reason or ""
    code = status.code or code
    kind = _BY_REASON.get(reason) or _BY_CODE.get(code) or (ServerFailed if code >= 500 else ApiStatusError)
    if kind is Invalid and _is_another(status.details or {}):
        kind = Conflict
    return kind(code, reason, status.message or f"the API server answered {code}", status.details)


def _is_another(details: dict[str, Any]) -> bool:
    """A patch names the uid of the object that it is for. Of another one of that name it is invalid: a precondition that fails."""
    return any(cause.get("field") == "metadata.uid" for cause in details.get("causes") or ())
