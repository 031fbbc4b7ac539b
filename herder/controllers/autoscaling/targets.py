"""What autoscalers scale: anything that has a scale subresource, found by discovery."""

from __future__ import annotations

import msgspec

from herder.api.core import Scale
from herder.api.core.autoscaling import CrossVersionObjectReference
from herder.kube.client import Client
from herder.kube.discovery import Discovery
from herder.kube.errors import ApiStatusError, Conflict, KubeError, NotFound, ServerFailed, TooManyRequests
from herder.kube.resources import Key, Resource

# Statuses of targets are written all the time, and each write is a new version: so often it is tried again at once.
TRIES = 5


class NotScalable(Exception):
    """Why there is no scale to read or to write: news for people, and nothing that passes by itself."""


class ScaledMeanwhile(KubeError):
    """Somebody else has scaled it since we looked: it is looked at once more, and decided anew."""

    passing = True


class FoundScale(msgspec.Struct, frozen=True):
    resource: Resource[Scale]
    key: Key
    scale: Scale


class Targets:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._discovery = Discovery(client)

    async def find(self, namespace: str, reference: CrossVersionObjectReference) -> FoundScale:
        """As it is at this moment. Raises NotScalable."""
        group, _, version = reference.api_version.rpartition("/")
        served = await self._discovery.find(group, version, reference.kind)
        if served is None:
            raise NotScalable(f'no matches for kind "{reference.kind}" in version "{reference.api_version}"')
        if not served.scalable or not served.resource.namespaced:
            raise NotScalable(f"{served.resource.qualified} have no scale subresource in a namespace")
        key = Key(namespace, reference.name)
        try:
            scale = await self._client.get(served.resource, key, subresource="scale")
        except NotFound as error:
            # It may be the kind that is not there any more, and not the object.
            self._discovery.forget(group)
            raise NotScalable(str(error)) from None
        except ApiStatusError as error:
            raise _told(error) from None
        return FoundScale(served.resource, key, scale)

    async def scale(self, found: FoundScale, replicas: int) -> None:
        """From the number that was found, and from no other: what a person has set meanwhile is not overwritten. Raises NotScalable
        or ScaledMeanwhile."""
        scale = found.scale
        for _ in range(TRIES):
            metadata = {"uid": scale.uid, "resourceVersion": scale.metadata.resource_version}
            patch = {"metadata": metadata, "spec": {"replicas": replicas}}
            try:
                await self._client.patch(found.resource, found.key, patch, subresource="scale")
                return
            except Conflict:
                scale = await self._again(found)
            except ApiStatusError as error:
                raise _told(error) from None
        raise ScaledMeanwhile(f"{found.resource.qualified} {found.key} changes faster than it can be scaled")

    async def _again(self, found: FoundScale) -> Scale:
        try:
            scale = await self._client.get(found.resource, found.key, subresource="scale")
        except ApiStatusError as error:
            raise _told(error) from None
        if (scale.uid, scale.spec.replicas) != (found.scale.uid, found.scale.spec.replicas):
            raise ScaledMeanwhile(f"{found.resource.qualified} {found.key} was scaled to {scale.spec.replicas} by somebody else")
        return scale


def _told(error: ApiStatusError) -> Exception:
    """What passes by itself is tried again, and is no news."""
    return error if isinstance(error, ServerFailed | TooManyRequests) else NotScalable(str(error))
