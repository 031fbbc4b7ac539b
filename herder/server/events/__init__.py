"""Events: one stored object that two groups show, limited in how fast they come."""

from herder.server.events.limits import EventLimits
from herder.server.events.views import CORE, EVENTS, NEW, NEW_GROUP, View

__all__ = ["CORE", "EVENTS", "NEW", "NEW_GROUP", "EventLimits", "View"]
