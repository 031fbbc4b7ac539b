"""Tokens of ServiceAccounts: signed claims (JWT, ES256), in the shape that Kubernetes gives them."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import OrderedDict
from pathlib import Path

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from herder.pki.files import write_private

KEY_FILE = "service-accounts.key"
ALGORITHM = "ES256"
NUMBER_BYTES = 32
LONGEST_TOKEN = 16 * 1024
MOST_REMEMBERED = 4096
_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")


class Named(msgspec.Struct, frozen=True, omit_defaults=True):
    """An object, and which one of those that had its name."""

    name: str = ""
    uid: str = ""


class Bound(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whose token it is, and with what it ends."""

    namespace: str
    serviceaccount: Named
    node: Named | None = None
    pod: Named | None = None
    secret: Named | None = None


class Claims(msgspec.Struct, frozen=True, omit_defaults=True, rename={"bound": "kubernetes.io"}):
    aud: tuple[str, ...]
    exp: int
    iat: int
    iss: str
    jti: str
    bound: Bound
    nbf: int
    sub: str


class _Header(msgspec.Struct):
    alg: str
    kid: str = ""


class Signer:
    """One key, which signs and knows its own signature again."""

    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        self._key = key
        self._public = key.public_key()
        public = self._public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        self._id = _encode(hashlib.sha256(public).digest())
        # A signature that was right stays right. Wrong ones are not remembered: there is no end of them.
        self._verified: OrderedDict[str, Claims] = OrderedDict()

    @classmethod
    def make(cls) -> Signer:
        return cls(ec.generate_private_key(ec.SECP256R1()))

    @classmethod
    def open(cls, folder: Path) -> Signer:
        """The one of this data directory; made where there is none yet. ValueError where the file holds something else."""
        path = folder / KEY_FILE
        if not path.exists():
            key = ec.generate_private_key(ec.SECP256R1())
            plain = serialization.NoEncryption()
            write_private(path, key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
        key = serialization.load_pem_private_key(path.read_bytes(), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
            raise ValueError("it is no P-256 key")
        return cls(key)

    def sign(self, claims: Claims) -> str:
        header = _encode(msgspec.json.encode({"alg": ALGORITHM, "kid": self._id}))
        signed = f"{header}.{_encode(msgspec.json.encode(claims))}"
        r, s = utils.decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{_encode(r.to_bytes(NUMBER_BYTES) + s.to_bytes(NUMBER_BYTES))}"

    def read(self, token: str) -> Claims | None:
        """What a token says, if it is one of ours. Whether that still holds is for others to find out."""
        known = self._verified.get(token)
        if known is not None:
            self._verified.move_to_end(token)
            return known
        claims = self._verify(token)
        if claims is not None:
            self._verified[token] = claims
            if len(self._verified) > MOST_REMEMBERED:
                self._verified.popitem(last=False)
        return claims

    def _verify(self, token: str) -> Claims | None:
        if len(token) > LONGEST_TOKEN or not _COMPACT.fullmatch(token):
            return None
        header, payload, signature = token.split(".")
        try:
            about = msgspec.json.decode(_decode(header), type=_Header)
            numbers = _decode(signature)
            if about.alg != ALGORITHM or about.kid not in ("", self._id) or len(numbers) != 2 * NUMBER_BYTES:
                return None
            r, s = int.from_bytes(numbers[:NUMBER_BYTES]), int.from_bytes(numbers[NUMBER_BYTES:])
            encoded = utils.encode_dss_signature(r, s)
            self._public.verify(encoded, f"{header}.{payload}".encode(), ec.ECDSA(hashes.SHA256()))
            return msgspec.json.decode(_decode(payload), type=Claims)
        except (ValueError, InvalidSignature, msgspec.MsgspecError):
            return None


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
