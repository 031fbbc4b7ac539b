"""How many pods there should be by what they use, as Kubernetes' HorizontalPodAutoscaler decides (autoscaling.md).

`plan` goes the whole way; `metrics` makes one number of all metrics, with one `replica_calculator` for each; `stabilization` and
`behavior` keep it from going up and down with every sample.
"""

from herder.rules.autoscaling.plan import AutoscalerPlan, failed_rescale, plan_autoscaler
from herder.rules.autoscaling.snapshot import AutoscalerSnapshot, NoSelector, Target, Usage
from herder.rules.autoscaling.stabilization import History

__all__ = [
    "AutoscalerPlan",
    "AutoscalerSnapshot",
    "History",
    "NoSelector",
    "Target",
    "Usage",
    "failed_rescale",
    "plan_autoscaler",
]
