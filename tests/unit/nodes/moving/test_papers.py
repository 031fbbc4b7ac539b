"""Which certificates others take for a node's, and what is said of the rest."""

from __future__ import annotations

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from herder.api.world import RealWorld
from herder.nodes.moving.papers import CLIENT, SERVER, Expected, problem_with
from herder.pki.authority import Authority, Pair

GROUP = ("system:nodes",)
AUTHORITY = Authority.make()
EXPECTED = Expected("n1", AUTHORITY.pair.certificate, "--migration-ca ca.crt")
GOOD = AUTHORITY.client("system:node:n1", GROUP, hosts=("n1", "10.0.0.7"))


def problem(pair: Pair, *usages: str, expected: Expected = EXPECTED, later: float = 0.0) -> str:
    return problem_with(pair.certificate, expected, usages or (CLIENT, SERVER), RealWorld().now() + later)


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


def test_an_authority_in_between_is_brought_along() -> None:
    """The one that is known is the one above it."""
    between = _between(AUTHORITY)
    pair = between.client("system:node:n1", GROUP, hosts=("n1",))
    assert "was not signed" in problem(pair)
    assert problem(Pair(pair.certificate + between.pair.certificate, pair.key)) == ""
    assert "was not signed" in problem(Pair(pair.certificate + Authority.make().pair.certificate, pair.key))


def test_who_brings_their_own_authority_along_is_not_known_by_it() -> None:
    stranger = Authority.make()
    pair = stranger.client("system:node:n1", GROUP, hosts=("n1",))
    assert "was not signed" in problem(Pair(pair.certificate + stranger.pair.certificate, pair.key))


def _between(above: Authority) -> Authority:
    issuer = x509.load_pem_x509_certificate(above.pair.certificate)
    signing = serialization.load_pem_private_key(above.pair.key, None)
    assert isinstance(signing, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(
        issuer.subject,
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "between")]),
        key.public_key(),
        x509.random_serial_number(),
    )
    builder = builder.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    made = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), True).sign(signing, hashes.SHA256())
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Authority(Pair(made.public_bytes(serialization.Encoding.PEM), private))
