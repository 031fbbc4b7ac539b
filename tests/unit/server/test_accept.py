"""Which answer a client gets for what it says that it accepts."""

from __future__ import annotations

import pytest

from herder.server.accept import Accepted, parse_accept, parse_discovery_accept

KUBECTL_GET = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
KUBECTL_DISCOVERY = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)


def test_kubectl_get_is_answered_with_a_table() -> None:
    assert parse_accept(KUBECTL_GET) == Accepted("Table", "meta.k8s.io", "v1")


@pytest.mark.parametrize("header", ["", "  ", "*/*", "*", "application/*", "application/json", "application/json;charset=utf-8"])
def test_who_does_not_mind_gets_json(header: str) -> None:
    assert parse_accept(header) == Accepted()


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("application/yaml", Accepted(media_type="yaml")),
        ("application/vnd.kubernetes.protobuf,application/json", Accepted()),
        ("application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1, application/yaml", Accepted(media_type="yaml")),
        ("application/yaml;as=Table;v=v1;g=meta.k8s.io", Accepted("Table", "meta.k8s.io", "v1", "yaml")),
        (
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            Accepted("PartialObjectMetadataList", "meta.k8s.io", "v1"),
        ),
        ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", Accepted()),
        ("application/json;q=0.5,application/yaml;q=0.9", Accepted(media_type="yaml")),
        ("*/*,application/yaml", Accepted(media_type="yaml")),
        ("application/json;stream=watch", Accepted()),
        ("application/json; pretty=1", Accepted(pretty=True)),
    ],
)
def test_the_first_clause_that_can_be_served_is_chosen(header: str, accepted: Accepted) -> None:
    assert parse_accept(header) == accepted


@pytest.mark.parametrize(
    "header",
    [
        "text/html",
        "application/vnd.kubernetes.protobuf",
        "application/json;as=Bogus;v=v1;g=meta.k8s.io",
        "application/json;as=Table",
        "application/json;stream=other",
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    ],
)
def test_nothing_acceptable_is_said_to_be_so(header: str) -> None:
    assert parse_accept(header) is None


def test_discovery_is_given_all_at_once_to_those_who_know_the_form() -> None:
    assert parse_discovery_accept(KUBECTL_DISCOVERY) == Accepted("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2")
    assert parse_discovery_accept("application/json") == Accepted()
    assert parse_discovery_accept("application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList") is None


def test_the_content_type_follows_the_media_type() -> None:
    assert [Accepted().content_type, Accepted(media_type="yaml").content_type] == ["application/json", "application/yaml"]
