"""Errors as clients know them: a metav1.Status with code, reason, details and causes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from herder.api.problems import INVALID, Problem, shortened
from herder.api.refusal import details_of, sentence_of
from herder.server.resources import Resource

LONGEST_MESSAGE = 64 * 1024


class ApiError(Exception):
    """Ends a request with this Status."""

    def __init__(
        self, code: int, reason: str, message: str, details: dict[str, Any] | None = None, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        # Many sentences repeat what was sent.
        self.message = shortened(message, LONGEST_MESSAGE)
        self.details = details
        self.headers = headers or {}

    def document(self) -> dict[str, Any]:
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if not self.reason:
            del status["reason"]
        if self.details is not None:
            # Also empty: kubectl looks into them without asking whether they are there.
            status["details"] = self.details
        status["code"] = self.code
        return status

    def body(self) -> bytes:
        return msgspec.json.encode(self.document()) + b"\n"


def success(resource: Resource, name: str, uid: str) -> dict[str, Any]:
    """What a DELETE answers once the object is gone."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {**_details(resource, name), "uid": uid},
    }


def _details(resource: Resource, name: str) -> dict[str, Any]:
    details: dict[str, Any] = {"name": name} if name else {}
    if resource.group:
        details["group"] = resource.group
    details["kind"] = resource.plural
    return details


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized", headers={"WWW-Authenticate": 'Basic realm="herder"'})


def forbidden(resource: Resource, name: str, why: str, causes: list[dict[str, str]] | None = None) -> ApiError:
    details = _details(resource, name)
    if causes:
        details["causes"] = causes
    subject = f'{resource.qualified} "{name}"' if name else resource.qualified
    return ApiError(403, "Forbidden", f"{subject} is forbidden: {why}", details)


def no_such_path(instead: str = "") -> ApiError:
    """What an unknown group, version or resource answers. `instead`: what there is."""
    message = "the server could not find the requested resource"
    return ApiError(404, "NotFound", f"{message}: {instead}" if instead else message, {})


def not_found(resource: Resource, name: str) -> ApiError:
    return ApiError(404, "NotFound", f'{resource.qualified} "{name}" not found', _details(resource, name))


def method_not_allowed() -> ApiError:
    return ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def not_acceptable(accepted: Sequence[str]) -> ApiError:
    message = f"only the following media types are accepted: {', '.join(accepted)}"
    return ApiError(406, "NotAcceptable", message)


def cannot_be_shown(kind: str, why: str) -> ApiError:
    return ApiError(406, "NotAcceptable", f"you requested {kind}, but the requested object {why}")


def already_exists(resource: Resource, name: str, terminating: bool = False) -> ApiError:
    going = "object is being deleted: " if terminating else ""
    return ApiError(409, "AlreadyExists", f'{going}{resource.qualified} "{name}" already exists', _details(resource, name))


def conflict(resource: Resource, name: str, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(resource, name))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def expired(message: str, continue_token: str = "") -> ApiError:
    error = ApiError(410, "Expired", message)
    if continue_token:
        error = ExpiredContinue(410, "Expired", message)
        error.token = continue_token
    return error


class ExpiredContinue(ApiError):
    """An expired page: the token goes on from the same place, in the newest state."""

    token = ""

    def document(self) -> dict[str, Any]:
        return {**super().document(), "metadata": {"continue": self.token}}


def too_large(limit: int) -> ApiError:
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def too_large_to_read(why: str) -> ApiError:
    """A body whose bytes would do, and that is too much work all the same."""
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: {why}")


def unsupported_media_type(accepted: Sequence[str]) -> ApiError:
    listed = ", ".join(accepted)
    message = f"the body of the request was in an unknown format - accepted media types include: {listed}"
    return ApiError(415, "UnsupportedMediaType", message)


def invalid(resource: Resource, name: str, problems: Sequence[Problem]) -> ApiError:
    """422, in the words and with the causes that kubectl prints field by field."""
    return invalid_kind(resource.group, resource.kind, name, problems)


def invalid_options(kind: str, problems: Sequence[Problem]) -> ApiError:
    """Query parameters that make no sense: they are objects, too (ListOptions, CreateOptions, ...)."""
    return invalid_kind("meta.k8s.io", kind, "", problems)


def invalid_kind(group: str, kind: str, name: str, problems: Sequence[Problem]) -> ApiError:
    about = (group, kind, name, problems)
    return ApiError(422, "Invalid", sentence_of(*about), details_of(*about))


def patch_does_not_fit(message: str) -> ApiError:
    """A patch that is well formed and yet cannot be done."""
    return ApiError(422, "Invalid", message, {})


def invalid_patch(why: str) -> ApiError:
    """A patch that can be done and makes something that the object may not be."""
    return invalid_kind("", "", "", [Problem("patch", INVALID, f"Invalid value: {why}")])


def too_many_requests(message: str, seconds: int) -> ApiError:
    return ApiError(429, "TooManyRequests", message, {"retryAfterSeconds": seconds}, {"Retry-After": str(seconds)})


def internal(message: str) -> ApiError:
    return ApiError(500, "InternalError", f"Internal error occurred: {message}", {"causes": [{"message": message}]})


def unavailable(message: str) -> ApiError:
    return ApiError(503, "ServiceUnavailable", message, {"retryAfterSeconds": 1}, {"Retry-After": "1"})


def revision_too_large(asked: int, current: int) -> ApiError:
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return ApiError(504, "Timeout", message, details, {"Retry-After": "1"})
