"""What people are shown of levels, targets and a common baseline."""

from __future__ import annotations

from pathlib import Path

import msgspec
import yaml

from herder.api.core import Node
from herder.api.kinds.domain import CPUFeature
from herder.api.kinds.instance import StartedCPU
from herder.cli.migratability import baseline_text, migratability_text
from herder.cli.tables import plain
from herder.rules.migratability.baseline import Baseline, baseline_of, newness
from herder.rules.migratability.explain import explain_guest, explain_levels, explain_node
from tests.unit.rules.migratability.nodes import cpu, node

ROOT = Path(__file__).parents[4]
PLAIN = cpu("Skylake-Client", ["aes"], also=["sse4.2"], models=["Haswell", "Penryn"])
ODD = cpu("Skylake-Client", ["aes", "avx512f"], also=["sse4.2"], models=["Haswell", "Skylake-Client"])
AMD = cpu("EPYC", ["aes"], models=["Penryn"], vendor="AMD")
MIXED = [node("a", PLAIN), node("b", PLAIN), node("odd", ODD)]


def overview(nodes: list[Node]) -> list[str]:
    return plain(migratability_text(explain_levels(nodes)))


def baseline_lines(found: Baseline) -> list[str]:
    return plain(baseline_text(found))


def test_all_nodes_are_shown_with_their_level_and_what_others_lack() -> None:
    closed = node("closed", PLAIN, cordoned=True)
    assert [line.split() for line in overview([*MIXED, closed])] == [
        ["NODE", "LEVEL", "MOVES", "TO", "HOST", "MODEL", "WHAT", "OTHERS", "LACK"],
        ["a", "66", "2", "of", "3", "Skylake-Client"],
        ["b", "66", "2", "of", "3", "Skylake-Client"],
        ["odd", "0", "0", "of", "3", "Skylake-Client", "avx512f"],
        ["closed", "Skylake-Client", "(is", "cordoned)"],
    ]


def test_a_node_is_shown_with_every_other_node_and_what_that_lacks() -> None:
    first, second, heading, *rows = plain(migratability_text(explain_node(MIXED[2], [*MIXED, node("amd", AMD)])))
    assert first == "A host-model guest that is first started on odd gets model Skylake-Client."
    assert second == "Level 0: 0 of 4 nodes would take it."
    assert heading.split() == ["NODE", "TAKES", "IT", "HAS", "LACKS"]
    assert [row.split(maxsplit=5) for row in rows] == [
        ["a", "no", "2", "of", "3", "avx512f"],
        ["b", "no", "2", "of", "3", "avx512f"],
        ["amd", "no", "1", "of", "3", "vendor Intel, model Skylake-Client, avx512f"],
    ]


def test_a_guest_is_shown_with_the_nodes_that_have_what_it_was_started_with() -> None:
    started = StartedCPU(model="Skylake-Client", vendor="Intel", features=(CPUFeature(name="aes", policy="require"),))
    nodes = [*MIXED, node("amd", AMD), node("off", PLAIN, ready="False")]
    first, second, _, *rows = plain(migratability_text(explain_guest(("shop", "web"), started, "a", nodes)))
    assert first == "vm shop/web runs on a and was started with model Skylake-Client with aes."
    assert second == "2 of 4 other nodes would take it."
    assert [row.split(maxsplit=5) for row in rows] == [
        ["b", "yes", "2", "of", "2"],
        ["odd", "yes", "2", "of", "2"],
        ["amd", "no", "1", "of", "2", "vendor Intel, model Skylake-Client"],
        ["off", "no", "2", "of", "2", "(is not ready)"],
    ]


def test_of_many_missing_features_a_row_names_some_and_counts_the_others_and_the_document_names_all() -> None:
    many = [f"f{number:02}" for number in range(60)]
    started = StartedCPU(model="Haswell", features=tuple(CPUFeature(name=name) for name in many))
    old = node("old", cpu("Haswell", also=many[:20], models=["Haswell"]), cordoned=True)
    found = explain_guest(("shop", "web"), started, "a", [old])
    row = plain(migratability_text(found))[-1]
    shown = ", ".join(many[20:28])
    assert row.split(maxsplit=5) == ["old", "no", "21", "of", "61", f"{shown} and 32 more, (is cordoned)"]
    document = msgspec.to_builtins(found)
    assert document["features"] == tuple(many)
    assert document["nodes"][0]["lacks"] == tuple(many[20:])


def test_the_baseline_is_the_newest_model_and_the_features_that_all_have() -> None:
    found = baseline_of(MIXED, MIXED)
    assert (found.model, found.models) == ("Haswell", ("Haswell",))
    assert (found.features, found.beyond, found.vendors) == (("aes", "sse4.2"), ("aes",), ("Intel",))
    assert [(one.node, one.level_now, one.level_then) for one in found.changes] == [
        ("a", 66, 66),
        ("b", 66, 66),
        ("odd", 0, 66),
    ]


def test_nodes_outside_the_chosen_ones_count_where_they_have_the_baseline_too() -> None:
    found = baseline_of(MIXED[:1], [*MIXED, node("amd", AMD)])
    assert found.nodes == ("a",)
    assert [(one.node, one.level_then) for one in found.changes] == [
        ("a", 50),
        ("amd", None),
        ("b", 50),
        ("odd", 50),
    ]


def test_nodes_with_nothing_in_common_say_so() -> None:
    without = cpu("Haswell", models=["Haswell"])
    assert baseline_lines(baseline_of([MIXED[0], node("amd", cpu("EPYC", models=["EPYC"]))], MIXED))[-1].startswith(
        "They have no model in common"
    )
    assert baseline_lines(baseline_of([node("off", without, cordoned=True)], MIXED)) == ["None of these nodes takes guests now."]


def test_the_baseline_can_be_pasted_into_a_machine() -> None:
    lines = baseline_lines(baseline_of(MIXED, MIXED))
    at = lines.index("A machine that can be moved among all of them:")
    assert lines[at + 1 : at + 5] == ["  cpu:", "    model: Haswell", "    features:", "    - name: aes"]


def test_newer_models_are_told_from_older_ones_whatever_their_variant() -> None:
    listed = ["qemu64", "Penryn", "Haswell-noTSX-IBRS", "Skylake-Client-IBRS", "Skylake-Server", "SapphireRapids-v2"]
    assert sorted({*listed}, key=newness) == listed
    assert newness("EPYC-Rome-v1") > newness("EPYC-IBPB") > newness("Opteron_G5")
    assert newness("unheard-of") < newness("qemu64")


def test_the_example_shows_what_the_documentation_says() -> None:
    written = yaml.safe_load_all((ROOT / "examples" / "mixed-nodes.yaml").read_text())
    nodes = [node(one["metadata"]["name"], one["metadata"]["labels"]) for one in written]
    shown = "\n".join(overview(nodes))
    assert shown in (ROOT / "docs" / "migratability.md").read_text()
