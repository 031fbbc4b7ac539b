"""Does an object have the shape that the server's own OpenAPI v3 document says it has?"""

from collections.abc import Iterator
from typing import Any

from tests.engines.api import Api, Json
from tests.engines.resources import Resource

_REFERENCE = "#/components/schemas/"
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


async def published(api: Api, resource: Resource) -> Json:
    """The components of the document that describes the resource."""
    path = f"apis/{resource.api_version}" if "/" in resource.api_version else f"api/{resource.api_version}"
    return (await api.request("GET", f"/openapi/v3/{path}")).ok["components"]["schemas"]


def violations(components: Json, resource: Resource, kind: str, value: Json) -> list[str]:
    group, _, version = resource.api_version.rpartition("/")
    wanted = {"group": group, "version": version, "kind": kind}
    (schema,) = [one for one in components.values() if wanted in one.get("x-kubernetes-group-version-kind", ())]
    return list(_Check(components).look(schema, value, kind))


class _Check:
    def __init__(self, components: Json) -> None:
        self._components = components

    def look(self, schema: Json, value: Any, at: str) -> Iterator[str]:
        if "$ref" in schema:
            yield from self.look(self._components[schema["$ref"].removeprefix(_REFERENCE)], value, at)
        for part in schema.get("allOf", ()):
            yield from self.look(part, value, at)
        for choices in (schema[word] for word in ("oneOf", "anyOf") if word in schema):
            if all(list(self.look(choice, value, at)) for choice in choices):
                yield f"{at}: {value!r} is none of {choices}"
        if value is None and schema.get("nullable"):
            return
        yield from self._of_type(schema, value, at)
        if isinstance(value, dict):
            yield from self._fields(schema, value, at)
        elif isinstance(value, list) and "items" in schema:
            for number, item in enumerate(value):
                yield from self.look(schema["items"], item, f"{at}[{number}]")

    def _of_type(self, schema: Json, value: Any, at: str) -> Iterator[str]:
        types = _TYPES.get(schema.get("type", ""))
        if types and (not isinstance(value, types) or (isinstance(value, bool) and bool not in types)):
            yield f"{at}: {value!r} is no {schema['type']}"
        if "enum" in schema and value not in schema["enum"]:
            yield f"{at}: {value!r} is none of {schema['enum']}"

    def _fields(self, schema: Json, value: Json, at: str) -> Iterator[str]:
        for missing in (name for name in schema.get("required", ()) if name not in value):
            yield f"{at}.{missing} is missing"
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        for name, field in value.items():
            if name in known:
                yield from self.look(known[name], field, f"{at}.{name}")
            elif isinstance(others, dict):
                yield from self.look(others, field, f"{at}.{name}")
            elif known and not others and not schema.get("x-kubernetes-preserve-unknown-fields"):
                yield f"{at}.{name} is in no schema"
