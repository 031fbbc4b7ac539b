"""How volumes come to be, are filled and go. Pure."""

from herder.rules.volumes.growing import GrowthPlan, GrowthSnapshot, plan_growth
from herder.rules.volumes.plan import DataVolumePlan, DataVolumeSnapshot, Source, plan_data_volume
from herder.rules.volumes.provision import ClaimPlan, plan_claim
from herder.rules.volumes.reclaim import VolumePlan, plan_volume

__all__ = [
    "ClaimPlan",
    "DataVolumePlan",
    "DataVolumeSnapshot",
    "GrowthPlan",
    "GrowthSnapshot",
    "Source",
    "VolumePlan",
    "plan_claim",
    "plan_data_volume",
    "plan_growth",
    "plan_volume",
]
