"""Which files herder-config may hold, and what is in use of them after each change.

A file that is wrong is not used, and what it said before stays in use. One that is taken away means "as it is built in", and so
does a ConfigMap that is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from herder.api.core import ConfigMap
from herder.api.problems import nearest, quoted, shortened
from herder.rules.herder_config.jobs import JOBS, JobsConfiguration
from herder.rules.herder_config.pools import POOLS, PoolsConfiguration
from herder.rules.herder_config.reading import LONGEST_SHOWN, MOST_TOLD, Configuration, Unusable, example, read_file

FILES: Final[Mapping[str, type[Configuration]]] = MappingProxyType(
    {
        POOLS: PoolsConfiguration,
        JOBS: JobsConfiguration,
    }
)
# Under this name it is said which files nobody knows.
UNKNOWN: Final = ""


class Refusal(msgspec.Struct, frozen=True):
    """Why a file is not used. `written` is what it holds: the same is said once."""

    sentence: str
    written: str


class InUse(msgspec.Struct, frozen=True):
    """By the names of the files."""

    values: Mapping[str, Configuration]
    refused: Mapping[str, Refusal]


BUILT_IN: Final = InUse({name: kind() for name, kind in FILES.items()}, {})


def next_in_use(before: InUse, config_map: ConfigMap | None) -> InUse:
    """`before` is what was in use until now; None is a ConfigMap that is not there."""
    if config_map is None:
        return BUILT_IN
    unknown = sorted({*config_map.data, *config_map.binary_data} - set(FILES))
    # A file of a wrong name is no file that was taken away.
    kept = {meant for name in unknown if (meant := _meant(name))}
    values: dict[str, Configuration] = {}
    refused: dict[str, Refusal] = {}
    for name, kind in FILES.items():
        last = before.values[name]
        try:
            written = _written(config_map, name)
            values[name] = read_file(written, kind) if written is not None else last if name in kept else kind()
        except Unusable as error:
            values[name] = last
            refused[name] = Refusal(f"{name}: {error}; still in use: {example(last)}", config_map.data.get(name, ""))
    if unknown:
        refused[UNKNOWN] = Refusal(_about(unknown), "\n".join(unknown))
    return InUse(values, refused)


def news(before: InUse, after: InUse) -> list[str]:
    """What a person is told of files that are right: that what they say now holds."""
    right = (name for name in FILES if name not in after.refused)
    changed = (name for name in right if name in before.refused or before.values[name] != after.values[name])
    return [f"{name}: in use: {example(after.values[name])}" for name in changed]


def _written(config_map: ConfigMap, name: str) -> str | None:
    """kubectl puts into binaryData what is no UTF-8."""
    if name in config_map.binary_data:
        raise Unusable("it is in binaryData, and is to be text in data, in UTF-8")
    return config_map.data.get(name)


def _about(unknown: list[str]) -> str:
    told = "; ".join(map(_unknown, unknown[:MOST_TOLD]))
    more = f"; and {len(unknown) - MOST_TOLD} more" if len(unknown) > MOST_TOLD else ""
    return f"{told}{more}; known are {', '.join(FILES)}"


def _unknown(name: str) -> str:
    meant = _meant(name)
    hint = f", did you mean {meant}?" if meant else ""
    return f"unknown file {quoted(shortened(name, LONGEST_SHOWN))}{hint}"


def _meant(name: str) -> str | None:
    """By what stands before the dot: all of them end alike."""
    stems = {file.partition(".")[0]: file for file in FILES}
    near = nearest(name.partition(".")[0], stems)
    return stems[near] if near else None
