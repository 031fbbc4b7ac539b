"""metrics.k8s.io: what nodes and pods use, asked of the nodes again and again, and shown as a metrics-server shows it."""

from herder.server.resource_metrics.kinds import MEASURED, measured_kind
from herder.server.resource_metrics.samples import Measured, Samples

__all__ = ["MEASURED", "Measured", "Samples", "measured_kind"]
