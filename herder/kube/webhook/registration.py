"""Telling the API server to ask us, and whom it may trust when it does. One replica does this: the leader."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from typing import Any, Final

import structlog

from herder.api.account import ACCOUNT
from herder.api.crds import PART_OF, PRODUCT
from herder.api.defaulting import DEFAULTERS
from herder.api.registry import KINDS, KindInfo
from herder.api.reserved_annotations import OWNERS, RESERVED
from herder.api.validation import VALIDATORS
from herder.api.world import World
from herder.kube.client import Client
from herder.kube.errors import KubeError, NotFound
from herder.kube.webhook.certificates import Certificates
from herder.kube.webhook.registered import MUTATING, NAME, VALIDATING
from herder.kube.webhook.settings import Settings

log = structlog.get_logger()
RETRY: Final = 5.0
TIMEOUT_SECONDS: Final = 5
Document = dict[str, Any]

# Where we are not asked, so that nobody is locked out when we are away.
CONDITIONS: Final = [
    {
        # Our own controllers judge and complete what they make, and must be able to heal the cluster while the webhook is away.
        "name": "not-by-our-own-accounts",
        "expression": "!('system:serviceaccounts:{namespace}' in request.userInfo.groups)",
    },
    {
        # The end of an object: finalizers are taken off by updates. Its spec is still not to be changed unseen.
        "name": "not-while-only-ending",
        "expression": "request.operation != 'UPDATE' || !has(object.metadata.deletionTimestamp)"
        " || !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec",
    },
]


class NoWebhooks(KubeError):
    """The API server knows no webhooks: the embedded one judges by itself."""


class Registration:
    def __init__(self, client: Client, world: World, settings: Settings) -> None:
        self._client = client
        self._settings = settings
        self._certificates = Certificates(client, world, settings)
        self.registered = asyncio.Event()

    async def keep(self) -> None:
        """For ever: what is registered stays right, also after somebody changed or deleted it. Ends when it is cancelled, or when
        the API server calls nobody."""
        while True:
            try:
                await self.register()
                self.registered.set()
                await asyncio.sleep(self._settings.look_again)
            except NoWebhooks as error:
                log.warning("the webhook is not registered", why=str(error))
                return
            except KubeError as error:
                log.warning("the webhook could not be registered; trying again", why=str(error), seconds=RETRY)
                await asyncio.sleep(RETRY)

    async def register(self) -> None:
        kept = await self._certificates.look()
        bundle = kept.bundle()
        for resource, document in (
            (VALIDATING, validating(self._settings, bundle, kept.words[0])),
            (MUTATING, mutating(self._settings, bundle)),
        ):
            try:
                await self._client.apply(resource, NAME, document, manager=PRODUCT)
            except NotFound as error:
                raise NoWebhooks("this API server calls no webhooks: start without a webhook address") from error

    async def remove(self) -> None:
        """Uninstalls: first nobody asks us any more, then the certificates go."""
        for resource in (VALIDATING, MUTATING):
            with contextlib.suppress(NotFound):
                await self._client.delete(resource, NAME)
        await self._certificates.remove()


def validating(settings: Settings, bundle: bytes, word: str = "") -> Document:
    kinds = [info for info in KINDS if (info.group, info.kind) in VALIDATORS]
    return _configuration(
        _webhook("validate", kinds, settings, bundle), _evictions(settings, bundle, word), restricting(settings, bundle)
    )


def mutating(settings: Settings, bundle: bytes) -> Document:
    """Only kinds that have defaults beyond those of their schema. Asked again where another webhook changed the object after us."""
    kinds = [info for info in KINDS if (info.group, info.kind) in DEFAULTERS]
    return _configuration({**_webhook("mutate", kinds, settings, bundle), "reinvocationPolicy": "IfNeeded"})


def _configuration(*webhooks: Document) -> Document:
    return {"metadata": {"labels": {PART_OF: PRODUCT}}, "webhooks": list(webhooks)}


def _evictions(settings: Settings, bundle: bytes, word: str) -> Document:
    """Of every pod: an eviction says nothing about its labels. Without an answer it goes on, and budgets protect our guests."""
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["pods/eviction"],
        "operations": ["CREATE"],
        "scope": "Namespaced",
    }
    return {
        "name": "evict.herder.dev",
        "clientConfig": {**_address(f"evict/{word}", settings), "caBundle": base64.b64encode(bundle).decode()},
        "rules": [rule],
        "matchPolicy": "Equivalent",
        "failurePolicy": "Ignore",
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": TIMEOUT_SECONDS,
        "admissionReviewVersions": ["v1"],
    }


def restricting(settings: Settings, bundle: bytes) -> Document:
    """Of pods, but only where an annotation that nodes obey changes, and not by who may give orders: other pods and our own
    controllers never depend on us. Without an answer it is refused. Annotations of a binding become those of its pod."""
    resources = ["pods", "pods/status", "pods/ephemeralcontainers", "pods/resize", "pods/binding", "bindings"]
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": resources,
        "operations": ["CREATE", "UPDATE"],
        "scope": "Namespaced",
    }
    return {
        "name": "restrict.herder.dev",
        "clientConfig": {**_address("restrict", settings), "caBundle": base64.b64encode(bundle).decode()},
        "rules": [rule],
        "matchPolicy": "Equivalent",
        "matchConditions": [{"name": "orders-to-nodes-by-others", "expression": orders_by_others(settings.namespace)}],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_SECONDS,
        "admissionReviewVersions": ["v1"],
    }


def orders_by_others(namespace: str) -> str:
    """In CEL. One expression, so that nobody's rights are asked for where no such annotation changes."""
    names = ", ".join(f"'{name}'" for name in RESERVED)
    changed = f"[{names}].exists(a, {_annotation('object')} != (oldObject == null ? [] : {_annotation('oldObject')}))"
    account = f"authorizer.group('').resource('serviceaccounts').namespace('{namespace}').name('{ACCOUNT}')"
    may = f"request.userInfo.username == 'system:serviceaccount:{namespace}:{ACCOUNT}' || {account}.check('impersonate').allowed()"
    owners = " || ".join(_is_owner(group, kind) for group, kind in OWNERS)
    controlled = f"object.metadata.ownerReferences.exists(o, has(o.controller) && o.controller && !({owners}))"
    return f"{changed} && (!({may}) || has(object.metadata.ownerReferences) && {controlled})"


def _annotation(of: str) -> str:
    """A list of its value, which is empty where there is none: an annotation may be the empty text, too."""
    return f"(has({of}.metadata.annotations) && a in {of}.metadata.annotations ? [{of}.metadata.annotations[a]] : [])"


def _is_owner(group: str, kind: str) -> str:
    version = f"o.apiVersion.startsWith('{group}/')" if group else "o.apiVersion == 'v1'"
    return f"o.kind == '{kind}' && {version}"


def _webhook(path: str, kinds: list[KindInfo], settings: Settings, bundle: bytes) -> Document:
    return {
        "name": f"{path}.herder.dev",
        "clientConfig": {**_address(path, settings), "caBundle": base64.b64encode(bundle).decode()},
        "rules": [_rule(info) for info in kinds],
        "matchPolicy": "Equivalent",
        "matchConditions": [
            {**one, "expression": one["expression"].replace("{namespace}", settings.namespace)} for one in CONDITIONS
        ],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_SECONDS,
        "admissionReviewVersions": ["v1"],
    }


def _address(path: str, settings: Settings) -> Document:
    if settings.url:
        return {"url": f"{settings.url.rstrip('/')}/{path}"}
    return {"service": {"namespace": settings.namespace, "name": settings.service, "path": f"/{path}", "port": 443}}


def _rule(info: KindInfo) -> Document:
    """No DELETE and no subresources: what ends, and what is reported of it, never waits for us."""
    return {
        "apiGroups": [info.group],
        "apiVersions": [info.version],
        "resources": [info.plural],
        "operations": ["CREATE", "UPDATE"],
        "scope": info.scope,
    }
