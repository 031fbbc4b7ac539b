"""HorizontalPodAutoscalers in the embedded engine; a real cluster has its own, and two of them would fight."""

from herder.controllers.autoscaling.autoscalers import Autoscalers

__all__ = ["Autoscalers"]
