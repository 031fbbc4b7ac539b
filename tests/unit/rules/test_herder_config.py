"""What a person writes into herder-config is used as a whole or not at all, and a sentence says why not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herder.api.core import ConfigMap
from herder.rules.herder_config import BUILT_IN, FILES, POOLS, InUse, PoolsConfiguration, Unusable, news, next_in_use, read_file

WANTED = "must be a whole number of machines per pool from 1 to 5000, or left out for 250"


def config_map(*, binary: dict[str, bytes] | None = None, **stems: str) -> ConfigMap:
    return ConfigMap(data={f"{stem}.yaml": text for stem, text in stems.items()}, binary_data=binary or {})


def burst(in_use: InUse) -> int:
    pools = in_use.values[POOLS]
    assert isinstance(pools, PoolsConfiguration)
    return pools.burst


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("burst: 7", 7),
        ("burst: 1\n", 1),
        ('{"burst": 5000}', 5000),
        ("", 250),
        ("# nothing\n", 250),
        ("{}", 250),
        ("burst: 1e3", 1000),
    ],
)
def test_what_is_right_is_used(text: str, value: int) -> None:
    assert read_file(text, PoolsConfiguration) == PoolsConfiguration(burst=value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("burst: 0", f"burst: 0 is wrong: {WANTED}"),
        ("burst: -1", f"burst: -1 is wrong: {WANTED}"),
        ("burst: 5001", f"burst: 5001 is wrong: {WANTED}"),
        ("burst: 18446744073709551616", f"burst: 18446744073709551616 is wrong: {WANTED}"),
        ("burst: 2.5", f"burst: 2.5 is wrong: {WANTED}"),
        ("burst: '250'", f'burst: "250" is wrong: {WANTED}'),
        ("burst: many", f'burst: "many" is wrong: {WANTED}'),
        ("burst: yes", f"burst: true is wrong: {WANTED}"),
        ("burst:", f"burst: null is wrong: {WANTED}"),
        ("burst: [1]", f"burst: [1] is wrong: {WANTED}"),
        ("burts: 1", 'unknown key "burts": did you mean burst?'),
        ("Burst: 1", 'unknown key "Burst": did you mean burst?'),
        ("parallelism: 1", 'unknown key "parallelism": known are burst'),
        ("parallelism: 1\nburst: 0", f'unknown key "parallelism": known are burst; burst: 0 is wrong: {WANTED}'),
        ("burst: 1\nburst: 2", 'line 2: key "burst" already set in map: say it once'),
        ("- burst: 1", '[{"burst":1}] is no mapping of keys to values; write for example burst: 250'),
        ("250", "250 is no mapping of keys to values; write for example burst: 250"),
        (
            "a: &a 1\nburst: *a",
            "line 2: the alias 'a' may not be used here: write what it stands for",
        ),
        ("burst: 1\n---\nburst: 2", "it is not YAML that can be read: more than one document; write for example burst: 250"),
        ("burst: !!python/object:os.system x", "the tag tag:yaml.org,2002:python/object:os.system has no meaning in JSON"),
        ("burst: [", "while parsing a flow node did not find expected node content at line 2, column 1"),
        ("#" * 16385, "it is larger than 16384 bytes; write only what is to be set, such as burst: 250"),
        ("[" * 5000, "it is nested deeper than 150 levels"),
        ("\n".join(f"k{one}: 1" for one in range(1000)), "; and 995 more"),
        ("burst: '\x1b[2J'", "it is not YAML that can be read"),
        (r'burst: "\e[2J"', r'burst: "\x1b[2J" is wrong'),
    ],
    ids=lambda text: text[:20],
)
def test_what_is_wrong_is_told_with_the_key_the_value_and_what_would_be_right(text: str, why: str) -> None:
    with pytest.raises(Unusable) as refused:
        read_file(text, PoolsConfiguration)
    assert why in str(refused.value)
    assert len(str(refused.value)) < 1024, "it is to fit into an Event"


def test_the_last_good_one_stays_in_use_until_the_next_good_one() -> None:
    good = next_in_use(BUILT_IN, config_map(pools="burst: 7"))
    bad = next_in_use(good, config_map(pools="burst: 0"))
    assert (burst(good), good.refused) == (7, {})
    assert burst(bad) == 7
    assert bad.refused[POOLS].sentence == f"pools.yaml: burst: 0 is wrong: {WANTED}; still in use: burst: 7"
    worse = next_in_use(bad, config_map(pools="burst: ["))
    assert burst(worse) == 7
    assert burst(next_in_use(worse, config_map(pools="burst: 9"))) == 9


def test_a_bad_one_after_a_start_leaves_what_is_built_in() -> None:
    assert burst(next_in_use(BUILT_IN, config_map(pools="burst: 0"))) == 250


@pytest.mark.parametrize("away", [None, config_map(), config_map(pools="")], ids=["ConfigMap", "file", "key"])
def test_what_is_taken_away_is_as_it_is_built_in(away: ConfigMap | None) -> None:
    assert next_in_use(next_in_use(BUILT_IN, config_map(pools="burst: 7")), away) == BUILT_IN


@pytest.mark.parametrize("name", ["pool.yaml", "pools.yml", "Pools.yaml", "pools"])
def test_a_file_of_a_wrong_name_is_told_and_is_not_one_that_was_taken_away(name: str) -> None:
    good = next_in_use(BUILT_IN, config_map(pools="burst: 7"))
    renamed = next_in_use(good, ConfigMap(data={name: "burst: 9"}))
    assert burst(renamed) == 7
    (refusal,) = renamed.refused.values()
    assert refusal.sentence == f'unknown file "{name}", did you mean pools.yaml?; known are pools.yaml, jobs.yaml'


def test_of_many_unknown_files_the_first_are_told_and_the_known_one_is_used() -> None:
    found = next_in_use(BUILT_IN, ConfigMap(data={"pools.yaml": "burst: 7", **{f"x{one}.json": "" for one in range(9)}}))
    (refusal,) = found.refused.values()
    assert burst(found) == 7
    assert refusal.sentence.startswith('unknown file "x0.json"; unknown file "x1.json"; ')
    assert refusal.sentence.endswith('"x4.json"; and 4 more; known are pools.yaml, jobs.yaml')


def test_bytes_that_are_no_text_are_refused() -> None:
    found = next_in_use(BUILT_IN, config_map(binary={POOLS: b"\xff"}))
    assert found.refused[POOLS].sentence.startswith("pools.yaml: it is in binaryData, and is to be text in data, in UTF-8")


def test_what_holds_from_now_on_is_told_when_it_changed_or_was_refused_before() -> None:
    good = next_in_use(BUILT_IN, config_map(pools="burst: 7"))
    bad = next_in_use(good, config_map(pools="burst: x"))
    assert news(BUILT_IN, good) == ["pools.yaml: in use: burst: 7"]
    assert news(good, bad) == []
    assert news(bad, good) == ["pools.yaml: in use: burst: 7"]
    assert news(good, good) == []


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["burst", "a"]), inner, max_size=3),
    max_leaves=6,
)


@given(st.text("burst: 0123'\"&*a[]{}<!|-\n\t\x00\ud800", max_size=40) | st.text(max_size=40) | values.map(repr), values)
def test_whatever_is_written_is_used_or_refused(text: str, value: Any) -> None:
    for written in (text, f"burst: {text}", f"burst: {value!r}"):
        found = next_in_use(BUILT_IN, config_map(pools=written))
        assert 1 <= burst(found) <= 5000
        assert all(len(one.sentence.encode(errors="replace")) < 4096 for one in found.refused.values())
        assert all(one.sentence.isprintable() for one in found.refused.values())
        assert set(found.values) == set(FILES)
