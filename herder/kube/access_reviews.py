"""Asking an API server what somebody else may do."""

from __future__ import annotations

import msgspec

from herder.api.core.base import Object
from herder.api.views import View
from herder.kube.client import Client
from herder.kube.resources import Resource
from herder.kube.webhook.reviews import UserInfo


class ResourceAttributes(msgspec.Struct, frozen=True, kw_only=True):
    """What they want to do, and with what."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    version: str = "*"


class ReviewStatus(View, frozen=True, kw_only=True):
    allowed: bool = False


class AccessReview(Object, frozen=True, kw_only=True):
    status: ReviewStatus = ReviewStatus()


ACCESS_REVIEWS: Resource[AccessReview] = Resource(
    group="authorization.k8s.io",
    version="v1",
    plural="subjectaccessreviews",
    kind="SubjectAccessReview",
    namespaced=False,
    view=AccessReview,
)


async def is_allowed(client: Client, user: UserInfo, wanted: ResourceAttributes) -> bool:
    who = {"user": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra}
    review = await client.create(ACCESS_REVIEWS, {"spec": {**who, "resourceAttributes": msgspec.to_builtins(wanted)}})
    return review.status.allowed
