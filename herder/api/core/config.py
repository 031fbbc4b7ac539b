"""Configuration and identity: ConfigMaps, Secrets, ServiceAccounts."""

from __future__ import annotations

from msgspec import field

from herder.api.core.base import Named, Object


class ConfigMap(Object, frozen=True, kw_only=True):
    data: dict[str, str] = field(default_factory=dict)
    binary_data: dict[str, bytes] = field(default_factory=dict)
    immutable: bool | None = None


class Secret(Object, frozen=True, kw_only=True):
    """`data` is already decoded from base64; `string_data` is only ever written, never read back."""

    data: dict[str, bytes] = field(default_factory=dict)
    string_data: dict[str, str] = field(default_factory=dict)
    type: str = "Opaque"
    immutable: bool | None = None


class ServiceAccount(Object, frozen=True, kw_only=True):
    secrets: tuple[Named, ...] = ()
    image_pull_secrets: tuple[Named, ...] = ()
    automount_service_account_token: bool | None = None
