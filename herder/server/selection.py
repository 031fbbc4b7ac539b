"""What a list or a watch asks for: a namespace, a label selector, a field selector. Parsed once, asked often."""

from __future__ import annotations

from herder.api.field_selectors import FieldSelector, parse_field_selector
from herder.api.selector_text import parse_selector
from herder.api.selectors import Selector
from herder.server.request import Request, Target
from herder.server.selectable import META_FIELDS, Extract
from herder.server.served import Served
from herder.server.status import bad_request
from herder.server.store import Record


class Selection:
    """`prefix` limits by key (a namespace); `pin` is a field that must have one exact value, by which watchers are indexed."""

    __slots__ = ("_fields", "_labels", "_name", "extract", "pin", "prefix", "selective")

    def __init__(self, namespace: str, labels: Selector | None, fields: FieldSelector | None, extract: Extract) -> None:
        self.prefix = f"{namespace}/" if namespace else ""
        self.extract = extract
        self._labels = labels if labels is not None and not labels.empty else None
        self._fields = fields if fields is not None and not fields.empty else None
        self._name = self._fields.exact_value("metadata.name") if self._fields else None
        self.selective = self._labels is not None or self._fields is not None
        self.pin = self._pin()

    def _pin(self) -> tuple[str, str] | None:
        for one in self._fields.requirements if self._fields else ():
            if one.equal and one.field != "metadata.namespace":
                return (one.field, one.value)
        return None

    @property
    def name(self) -> str | None:
        """The one name that can match, where the field selector says so."""
        return self._name

    def covers(self, record: Record) -> bool:
        return not self.prefix or record.key.startswith(self.prefix)

    def matches(self, record: Record) -> bool:
        if self._labels is not None and not self._labels.matches(record.labels):
            return False
        return self._fields is None or all(
            (self.value(record, one.field) == one.value) is one.equal for one in self._fields.requirements
        )

    def value(self, record: Record, field: str) -> str:
        if field == "metadata.name":
            return record.name
        if field == "metadata.namespace":
            return record.namespace
        return record.fields(self.extract).get(field, "")


def selection_of(request: Request, target: Target, served: Served) -> Selection:
    labels = fields = None
    if text := request.query.get("labelSelector"):
        try:
            labels = parse_selector(text)
        except ValueError as error:
            raise bad_request(f"unable to parse requirement: {error}") from None
    if text := request.query.get("fieldSelector"):
        fields = _parse_fields(text, served)
    return Selection(target.namespace, labels, fields, served.selectable.extract)


def _parse_fields(text: str, served: Served) -> FieldSelector:
    try:
        selector = parse_field_selector(text)
    except ValueError as error:
        raise bad_request(str(error)) from None
    for one in selector.requirements:
        if not served.selectable.supports(one.field):
            supported = ", ".join([*META_FIELDS, *sorted(served.selectable.names)])
            raise bad_request(f"field label not supported: {one.field} (supported for {served.resource.qualified}: {supported})")
    return selector
