"""Events: what happened to an object, in one sentence. One kind under two groups, with the field names of both."""

from __future__ import annotations

from herder.api.core.base import Object
from herder.api.meta import ObjectReference
from herder.api.views import MicroTime, Time, View


class EventSource(View, frozen=True, kw_only=True):
    component: str = ""
    host: str = ""


class EventSeries(View, frozen=True, kw_only=True):
    count: int = 0
    last_observed_time: MicroTime | None = None


class Event(Object, frozen=True, kw_only=True):
    """Of the core group."""

    involved_object: ObjectReference = ObjectReference()
    reason: str = ""
    message: str = ""
    source: EventSource = EventSource()
    first_timestamp: Time | None = None
    last_timestamp: Time | None = None
    count: int = 0
    type: str = ""
    event_time: MicroTime | None = None
    series: EventSeries | None = None
    action: str = ""
    related: ObjectReference | None = None
    reporting_component: str = ""
    reporting_instance: str = ""


class EventsEvent(Object, frozen=True, kw_only=True):
    """Of the group events.k8s.io."""

    regarding: ObjectReference = ObjectReference()
    related: ObjectReference | None = None
    reason: str = ""
    note: str = ""
    type: str = ""
    action: str = ""
    event_time: MicroTime | None = None
    series: EventSeries | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    deprecated_count: int = 0
    deprecated_first_timestamp: Time | None = None
    deprecated_last_timestamp: Time | None = None
