"""Asking an API server what somebody else may do."""

from __future__ import annotations

from herder.api.core.base import Object
from herder.api.views import View
from herder.kube.client import Client
from herder.kube.resources import Key, Resource
from herder.kube.webhook.reviews import UserInfo


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


async def may_evict(client: Client, user: UserInfo, pod: Key) -> bool:
    """Of this very pod: a role may name single ones."""
    wanted = {"verb": "create", "resource": "pods", "subresource": "eviction", "namespace": pod.namespace, "name": pod.name}
    who = {"user": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra}
    review = await client.create(ACCESS_REVIEWS, {"spec": {**who, "resourceAttributes": {**wanted, "group": "", "version": "v1"}}})
    return review.status.allowed
