"""The ConfigMap herder-config in namespace herder-system: settings of our controllers, one file for each kind that has some.

A new file is one module beside `pools.py`, and one line in `FILES`.
"""

from herder.rules.herder_config.files import BUILT_IN, FILES, InUse, Refusal, news, next_in_use
from herder.rules.herder_config.jobs import JOBS, JobsConfig, JobsConfiguration
from herder.rules.herder_config.pools import MOST_BURST, POOLS, PoolsConfiguration
from herder.rules.herder_config.reading import Configuration, Unusable, example, read_file

NAME = "herder-config"

__all__ = [
    "BUILT_IN",
    "FILES",
    "JOBS",
    "MOST_BURST",
    "NAME",
    "POOLS",
    "Configuration",
    "InUse",
    "JobsConfig",
    "JobsConfiguration",
    "PoolsConfiguration",
    "Refusal",
    "Unusable",
    "example",
    "news",
    "next_in_use",
    "read_file",
]
