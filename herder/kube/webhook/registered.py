"""The two objects that tell an API server whom to ask."""

from __future__ import annotations

from typing import Any, Final

from msgspec import field

from herder.api.core.base import Object
from herder.api.meta import LabelSelector
from herder.api.views import View
from herder.kube.client import Client
from herder.kube.resources import Key, Resource

GROUP: Final = "admissionregistration.k8s.io"
NAME: Final = Key("", "herder")


class ClientConfig(View, frozen=True, kw_only=True):
    ca_bundle: bytes = b""


class RegisteredRule(View, frozen=True, kw_only=True):
    """What is asked about; "*" is everything."""

    api_groups: tuple[str, ...] = ()
    api_versions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()

    def covers(self, kind: Resource[Any], *operations: str) -> bool:
        asked = ((self.api_groups, kind.group), (self.api_versions, kind.version), (self.resources, kind.plural))
        return all(_has(known, wanted) for known, wanted in (*asked, *((self.operations, one) for one in operations)))


class RegisteredWebhook(View, frozen=True, kw_only=True):
    name: str = ""
    client_config: ClientConfig = ClientConfig()
    rules: tuple[RegisteredRule, ...] = field(default_factory=tuple)
    failure_policy: str = ""
    object_selector: LabelSelector | None = None


class WebhookConfiguration(Object, frozen=True, kw_only=True):
    webhooks: tuple[RegisteredWebhook, ...] = field(default_factory=tuple)


def _has(known: tuple[str, ...], wanted: str) -> bool:
    return wanted in known or "*" in known


def _configurations(which: str) -> Resource[WebhookConfiguration]:
    kind = f"{which}WebhookConfiguration"
    return Resource(group=GROUP, version="v1", plural=f"{kind.lower()}s", kind=kind, namespaced=False, view=WebhookConfiguration)


VALIDATING: Final = _configurations("Validating")
MUTATING: Final = _configurations("Mutating")


async def trusts(client: Client, certificate: bytes) -> bool:
    """Whether all that is registered trusts this authority. Read live: showing what is not trusted would lock people out."""
    for resource in (VALIDATING, MUTATING):
        found = await client.find(resource, NAME)
        if found is not None and not all(certificate in one.client_config.ca_bundle for one in found.webhooks):
            return False
    return True
