"""CustomResourceDefinitions: kinds that are objects themselves. Schemas stay plain JSON."""

from __future__ import annotations

from typing import Any

from msgspec import field

from herder.api.core.base import Object
from herder.api.views import Time, View


class CustomResourceNames(View, frozen=True, kw_only=True):
    plural: str = ""
    kind: str = ""
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


class Scale(View, frozen=True, kw_only=True):
    spec_replicas_path: str = ""
    status_replicas_path: str = ""
    label_selector_path: str | None = None


class Subresources(View, frozen=True, kw_only=True):
    status: dict[str, Any] | None = None
    scale: Scale | None = None


class PrinterColumn(View, frozen=True, kw_only=True):
    name: str = ""
    type: str = ""
    json_path: str = field(default="", name="jsonPath")
    format: str = ""
    description: str = ""
    priority: int = 0


class SelectableField(View, frozen=True, kw_only=True):
    json_path: str = field(default="", name="jsonPath")


class Validation(View, frozen=True, kw_only=True):
    schema: dict[str, Any] | None = field(default=None, name="openAPIV3Schema")


class Version(View, frozen=True, kw_only=True):
    name: str = ""
    served: bool = False
    storage: bool = False
    deprecated: bool = False
    deprecation_warning: str | None = None
    schema: Validation | None = None
    subresources: Subresources | None = None
    additional_printer_columns: tuple[PrinterColumn, ...] = ()
    selectable_fields: tuple[SelectableField, ...] = ()


class ServiceReference(View, frozen=True, kw_only=True):
    namespace: str = ""
    name: str = ""
    path: str | None = None
    port: int | None = None


class WebhookClient(View, frozen=True, kw_only=True):
    url: str | None = None
    service: ServiceReference | None = None
    ca_bundle: bytes = b""


class WebhookConversion(View, frozen=True, kw_only=True):
    client_config: WebhookClient | None = None
    conversion_review_versions: tuple[str, ...] | None = ()


class Conversion(View, frozen=True, kw_only=True):
    strategy: str = ""
    webhook: WebhookConversion | None = None


class CustomResourceDefinitionSpec(View, frozen=True, kw_only=True):
    group: str = ""
    names: CustomResourceNames = CustomResourceNames()
    scope: str = ""
    versions: tuple[Version, ...] = ()
    conversion: Conversion | None = None
    preserve_unknown_fields: bool = False


class DefinitionCondition(View, frozen=True, kw_only=True):
    type: str = ""
    status: str = "Unknown"
    observed_generation: int | None = None
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class CustomResourceDefinitionStatus(View, frozen=True, kw_only=True):
    """A real API server writes null for the empty lists."""

    conditions: tuple[DefinitionCondition, ...] | None = ()
    accepted_names: CustomResourceNames = CustomResourceNames()
    stored_versions: tuple[str, ...] | None = ()


class CustomResourceDefinition(Object, frozen=True, kw_only=True):
    spec: CustomResourceDefinitionSpec = CustomResourceDefinitionSpec()
    status: CustomResourceDefinitionStatus = CustomResourceDefinitionStatus()
