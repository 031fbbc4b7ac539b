"""Whether guests can come to a node by post-copy, as its Node says it."""

import msgspec

from herder.api import labels
from herder.api.core import Node
from herder.nodes.node import NodeSettings, metadata_changes, node_document, node_labels, written_post_copy
from herder.nodes.runtimes.base import Host
from herder.nodes.runtimes.simulated.runtime import CPU

SETTINGS = NodeSettings(name="n1")
WHY = "the kernel lets QEMU's user have no userfaultfd"


def host(cannot: str = "", runtime: str = "qemu") -> Host:
    return Host(runtime, "10.0.2", "tcg", CPU, ("q35",), cannot_post_copy=cannot)


def as_made(of: Host) -> Node:
    return msgspec.convert({"metadata": node_document(SETTINGS, of)["metadata"]}, Node)


def test_a_new_node_says_whether_and_why_not() -> None:
    can, cannot = as_made(host()), as_made(host(WHY))
    assert (can.labels[labels.POST_COPY], can.annotations) == ("true", {})
    assert (cannot.labels[labels.POST_COPY], cannot.annotations) == ("false", {labels.NO_POST_COPY: WHY})


def test_what_was_found_out_anew_takes_the_place_of_what_was_said() -> None:
    assert metadata_changes(SETTINGS, host(), as_made(host())) == {}
    assert metadata_changes(SETTINGS, host(WHY), as_made(host(WHY))) == {}
    allowed = {"labels": {labels.POST_COPY: "true"}, "annotations": {labels.NO_POST_COPY: None}}
    assert metadata_changes(SETTINGS, host(), as_made(host(WHY))) == allowed
    forbidden = {"labels": {labels.POST_COPY: "false"}, "annotations": {labels.NO_POST_COPY: WHY}}
    assert metadata_changes(SETTINGS, host(WHY), as_made(host())) == forbidden


def test_a_simulated_node_is_what_somebody_wrote() -> None:
    written = {**node_labels(SETTINGS, host(runtime="simulated")), labels.POST_COPY: "false"}
    node = msgspec.convert({"metadata": {"name": "n1", "labels": written}}, Node)
    assert metadata_changes(SETTINGS, host(runtime="simulated"), node) == {}
    assert "herder.dev/post-copy" in written_post_copy(written)
    assert written_post_copy({labels.POST_COPY: "true"}) == written_post_copy({}) == ""
