"""Which certificates others take for a node's, and what is said of the rest."""

from __future__ import annotations

import time

import pytest

from herder.nodes.moving.papers import CLIENT, SERVER, Expected, problem_with
from herder.pki import reading
from herder.pki.authority import Authority, Pair

GROUP = ("system:nodes",)
AUTHORITY = Authority.make()
EXPECTED = Expected("n1", AUTHORITY.pair.certificate, "--migration-ca ca.crt")
GOOD = AUTHORITY.client("system:node:n1", GROUP, hosts=("n1", "10.0.0.7"))


def problem(pair: Pair, *usages: str, expected: Expected = EXPECTED, later: float = 0.0) -> str:
    return problem_with(pair.certificate, expected, usages or (CLIENT, SERVER), time.time() + later)


def test_the_certificate_of_the_node_is_good_for_both() -> None:
    assert problem(GOOD) == ""


def test_one_for_clients_is_good_for_that_alone() -> None:
    client = AUTHORITY.client("system:node:n1", GROUP)
    assert problem(client, CLIENT) == ""
    assert problem(client) == "may not be used for server auth; it needs the extended key usages client auth and server auth"


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        (Pair(b"hello", b""), "holds no certificate in PEM"),
        (AUTHORITY.client("jane", GROUP), "is the certificate of CN=jane,O=system:nodes, and should be that of CN=system:node:n1"),
        (AUTHORITY.client("system:node:n1", ("people",)), "should be that of CN=system:node:n1,O=system:nodes"),
        (AUTHORITY.client("system:node:n2", GROUP, hosts=("n1",)), "is the certificate of CN=system:node:n2,O=system:nodes"),
        (AUTHORITY.client("system:node:n1", GROUP, hosts=("n2",)), "is good for n2, and should be for DNS:n1"),
        (
            Authority.make().client("system:node:n1", GROUP, hosts=("n1",)),
            "was not signed by an authority of --migration-ca ca.crt",
        ),
    ],
)
def test_others_are_refused_with_what_would_be_right(pair: Pair, said: str) -> None:
    assert said in problem(pair)


def test_one_that_is_over_is_refused_with_its_dates() -> None:
    assert "and not now" in problem(GOOD, later=3 * 365 * 86400)
    assert "and not now" in problem(GOOD, later=-86400)


def test_several_authorities_may_sign() -> None:
    both = Authority.make().pair.certificate + AUTHORITY.pair.certificate
    assert problem(GOOD, expected=Expected("n1", both, "ca")) == ""


def test_a_certificate_of_an_authority_in_between_brings_that_along() -> None:
    """The authority that is known is the one above."""
    assert reading.chains_to(GOOD.certificate + AUTHORITY.pair.certificate, AUTHORITY.pair.certificate)
    stranger = Authority.make()
    assert not reading.chains_to(GOOD.certificate + stranger.pair.certificate, stranger.pair.certificate)
    assert not reading.chains_to(b"", AUTHORITY.pair.certificate)
