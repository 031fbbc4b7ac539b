"""AdmissionReview v1: what an API server asks of us, and what it reads as the answer."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"
Document = dict[str, Any]


class BadReview(Exception):
    """What came is no review; the text says why."""


class GroupKind(msgspec.Struct, frozen=True):
    group: str = ""
    version: str = ""
    kind: str = ""


class GroupResource(msgspec.Struct, frozen=True):
    group: str = ""
    version: str = ""
    resource: str = ""


class UserInfo(msgspec.Struct, frozen=True):
    """Who asks, with all that an authorizer may go by."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class Question(msgspec.Struct, frozen=True, rename="camel"):
    """One write that somebody wants to make. With `dry_run` it will not be kept; we change nothing outside in any case."""

    uid: str
    kind: GroupKind
    resource: GroupResource
    operation: Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    object: Document | None = None
    old_object: Document | None = None
    dry_run: bool | None = None
    user_info: UserInfo = UserInfo()


class Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: Question


class Answer(msgspec.Struct, frozen=True):
    """`refusal` is a metav1.Status; without one the write may go on, with the changes of `patch`."""

    refusal: Document | None = None
    patch: Sequence[Document] = ()
    warnings: Sequence[str] = ()


_review = msgspec.json.Decoder(Review)


def read_review(body: bytes) -> Question:
    try:
        review = _review.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise BadReview(f"the body is no {KIND} of {API_VERSION}: {error}") from None
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        raise BadReview(f"the body is {review.kind} of {review.api_version}; only {KIND} of {API_VERSION} is answered")
    if not review.request.uid:
        raise BadReview("request.uid is empty; an answer must carry it")
    return review.request


def write_answer(uid: str, answer: Answer) -> bytes:
    response: Document = {"uid": uid, "allowed": answer.refusal is None}
    if answer.refusal is not None:
        response["status"] = answer.refusal
    if answer.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(answer.patch)).decode()
    if answer.warnings:
        response["warnings"] = answer.warnings
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})
