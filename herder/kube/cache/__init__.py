"""Objects of a kind, kept up to date from the API: what controllers read instead of asking the server again and again."""

from herder.kube.cache.cache import Cache
from herder.kube.cache.caches import Caches
from herder.kube.cache.indexes import BY_LABEL, BY_NAMESPACE, BY_NODE, BY_OWNER, Index, label, owned
from herder.kube.cache.metrics import CacheMetrics, cache_metrics_of
from herder.kube.cache.stored import Change, Owner, Stored, view_of

__all__ = [
    "BY_LABEL",
    "BY_NAMESPACE",
    "BY_NODE",
    "BY_OWNER",
    "Cache",
    "CacheMetrics",
    "Caches",
    "Change",
    "Index",
    "Owner",
    "Stored",
    "cache_metrics_of",
    "label",
    "owned",
    "view_of",
]
