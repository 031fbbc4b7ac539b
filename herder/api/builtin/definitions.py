"""Rules for CustomResourceDefinitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from herder.api import names
from herder.api.builtin.objectmeta import validate_meta, validate_meta_update
from herder.api.builtin.semantics import Document, Problems, refuse_change, section
from herder.api.builtin.structural import check_schema
from herder.api.problems import Problem, invalid, not_supported, required

_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MIXED_CASE: Final = "may have mixed case, but should otherwise match:"


def validate_definition(obj: Document, out: Problems) -> None:
    spec = section(obj, "spec")
    validate_meta(section(obj, "metadata"), False, _name_rule(spec), out)
    _check_spec(spec, out)
    _check_stored_versions(obj, out)


def _name_rule(spec: Document) -> names.NameRule:
    wanted = f"{section(spec, 'names').get('plural', '')}.{spec.get('group', '')}"

    def rule(name: str, prefix: bool) -> names.Complaints:
        complaints = names.name_is_subdomain(name, prefix)
        return complaints if name == wanted else (*complaints, 'must be spec.names.plural+"."+spec.group')

    return rule


def validate_definition_update(new: Document, old: Document, out: Problems) -> None:
    validate_meta_update(section(new, "metadata"), section(old, "metadata"), out)
    spec, before = section(new, "spec"), section(old, "spec")
    _check_spec(spec, out)
    _check_stored_versions(new, out)
    called, called_before = section(spec, "names"), section(before, "names")
    refuse_change(spec.get("group"), before.get("group"), "spec.group", out)
    refuse_change(called.get("plural"), called_before.get("plural"), "spec.names.plural", out)
    if _established(old):
        refuse_change(spec.get("scope"), before.get("scope"), "spec.scope", out)
        refuse_change(called.get("kind"), called_before.get("kind"), "spec.names.kind", out)


def _established(obj: Document) -> bool:
    conditions: Sequence[Document] = section(obj, "status").get("conditions") or ()
    return any(one.get("type") == "Established" and one.get("status") == "True" for one in conditions)


def _check_spec(spec: Document, out: Problems) -> None:
    _check_group(spec.get("group") or "", out)
    scope = spec.get("scope") or ""
    if not scope:
        out.append(required("spec.scope"))
    elif scope not in ("Cluster", "Namespaced"):
        out.append(not_supported("spec.scope", scope, ("Cluster", "Namespaced")))
    if spec.get("preserveUnknownFields"):
        out.append(
            invalid(
                "spec.preserveUnknownFields",
                True,
                "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
            )
        )
    versions: Sequence[Document] = spec.get("versions") or ()
    for index, version in enumerate(versions):
        _check_version_name(version, index, out)
    _check_contents(versions, out)
    called = [version.get("name") for version in versions]
    if len(set(called)) != len(called):
        out.append(invalid("spec.versions", spec.get("versions"), "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in versions) != 1:
        out.append(invalid("spec.versions", spec.get("versions"), "must have exactly one version marked as storage version"))
    _check_names(section(spec, "names"), out)
    _check_conversion(section(spec, "conversion"), out)


def _check_group(group: str, out: Problems) -> None:
    complaints = names.dns_subdomain(group)
    if not group:
        out.append(required("spec.group"))
    elif complaints:
        out.append(invalid("spec.group", group, ",".join(complaints)))
    elif "." not in group:
        out.append(invalid("spec.group", group, "should be a domain with at least one dot"))


def _check_version_name(version: Document, index: int, out: Problems) -> None:
    name, field = version.get("name") or "", f"spec.versions[{index}]"
    complaints = ",".join(names.dns_1035_label(name))
    if complaints:
        out.append(invalid(f"{field}.name", name, complaints))
        if name and index == 0:
            out.append(invalid("spec.version", name, complaints))
    warning = version.get("deprecationWarning")
    if warning is not None and not version.get("deprecated"):
        out.append(invalid(f"{field}.deprecationWarning", warning, "can only be set for deprecated versions"))
    if section(version, "schema").get("openAPIV3Schema") is None:
        out.append(required(f"{field}.schema.openAPIV3Schema"))


def _check_contents(versions: Sequence[Document], out: Problems) -> None:
    """What all versions have in common Kubernetes checks once, and calls it by the names that older CRDs had for it."""
    for part, shared, check in (
        ("schema", "spec.validation", _check_version_schema),
        ("subresources", "spec.subresources", _check_subresources),
        ("additionalPrinterColumns", "spec.additionalPrinterColumns", _check_columns),
    ):
        if all(version.get(part) == versions[0].get(part) for version in versions):
            for version in versions[:1]:
                check(version, shared, out)
        else:
            for index, version in enumerate(versions):
                check(version, f"spec.versions[{index}].{part}", out)


def _check_version_schema(version: Document, field: str, out: Problems) -> None:
    schema = section(version, "schema").get("openAPIV3Schema")
    if schema is None:
        return
    here = f"{field}.openAPIV3Schema"
    check_schema(schema, here, out)
    if schema.get("type") not in (None, "", "object") and section(version, "subresources").get("status") is not None:
        words = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        out.append(invalid(f"{here}.type", schema["type"], words))


def _check_subresources(version: Document, field: str, out: Problems) -> None:
    scale = section(version, "subresources").get("scale")
    if scale is not None:
        _check_scale(scale, f"{field}.scale", out)


def _check_columns(version: Document, field: str, out: Problems) -> None:
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        _check_column(column, f"{field}[{index}]", out)


def _check_scale(scale: Document, field: str, out: Problems) -> None:
    for name, under in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        path = scale.get(name) or ""
        if not path:
            out.append(required(f"{field}.{name}"))
        elif not _check_path(path, f"{field}.{name}", out):
            continue
        elif not path.startswith(under):
            out.append(invalid(f"{field}.{name}", path, f"should be a json path under {under[:-1]}"))
    path = scale.get("labelSelectorPath") or ""
    if path and _check_path(path, f"{field}.labelSelectorPath", out) and not path.startswith((".spec.", ".status.")):
        out.append(invalid(f"{field}.labelSelectorPath", path, "should be a json path under either .spec or .status"))


def _check_path(path: str, field: str, out: Problems) -> bool:
    if path.startswith("."):
        return True
    out.append(invalid(field, path, "must be a simple json path starting with ."))
    return False


def _check_column(column: Document, field: str, out: Problems) -> None:
    if not column.get("name"):
        out.append(required(f"{field}.name"))
    kind = column.get("type") or ""
    words = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not kind:
        out.append(required(f"{field}.type", words))
    elif kind not in _COLUMN_TYPES:
        out.append(invalid(f"{field}.type", kind, words))
    if column.get("format") and column["format"] not in _COLUMN_FORMATS:
        out.append(invalid(f"{field}.format", column["format"], f"must be one of {','.join(_COLUMN_FORMATS)}"))
    path = column.get("jsonPath") or ""
    if not path:
        out.append(required(f"{field}.JSONPath"))
    else:
        _check_path(path, f"{field}.JSONPath", out)


def _check_names(named: Document, out: Problems) -> None:
    for name in ("plural", "singular", "kind", "listKind"):
        value = named.get(name) or ""
        if not value:
            out.append(required(f"spec.names.{name}"))
            continue
        mixed = name in ("kind", "listKind")
        complaints = ",".join(names.dns_1035_label(value.lower() if mixed else value))
        if complaints:
            out.append(invalid(f"spec.names.{name}", value, f"{_MIXED_CASE} {complaints}" if mixed else complaints))
    if named.get("kind") and named.get("kind") == named.get("listKind"):
        out.append(invalid("spec.names.listKind", named["listKind"], "kind and listKind may not be the same"))
    for name in ("shortNames", "categories"):
        for index, value in enumerate(named.get(name) or ()):
            complaints = ",".join(names.dns_1035_label(value))
            if complaints:
                out.append(invalid(f"spec.names.{name}[{index}]", value, complaints))


def _check_conversion(conversion: Document, out: Problems) -> None:
    strategy = conversion.get("strategy") or ""
    if not strategy:
        out.append(required("spec.conversion.strategy"))
    elif strategy not in ("None", "Webhook"):
        out.append(not_supported("spec.conversion.strategy", strategy, ("None", "Webhook")))
    elif strategy == "Webhook" and section(conversion, "webhook").get("clientConfig") is None:
        words = "required when strategy is set to Webhook"
        out.append(required("spec.conversion.webhookClientConfig", words))
    if strategy == "Webhook" and not section(conversion, "webhook").get("conversionReviewVersions"):
        out.append(required("spec.conversion.conversionReviewVersions"))


def _check_stored_versions(obj: Document, out: Problems) -> None:
    stored: list[str] = section(obj, "status").get("storedVersions") or []
    versions: Sequence[Document] = section(obj, "spec").get("versions") or ()
    field = "status.storedVersions"
    if not stored:
        out.append(invalid(field, None, "must have at least one stored version"))
        return
    for version in versions:
        if version.get("storage") and version.get("name", "") not in stored:
            out.append(invalid(field, stored, f"must have the storage version {version.get('name')}"))
    present = {version.get("name", "") for version in versions}
    out += [_left_out(name, f"{field}[{index}]") for index, name in enumerate(stored) if name not in present]


def _left_out(name: str, field: str) -> Problem:
    words = (
        f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage "
        f"migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
    )
    return invalid(field, name, words)
