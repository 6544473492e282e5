"""Encryption of push messages: the example of RFC 8291, and the signature of RFC 8292."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePublicKey, derive_private_key
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from moot.errors import ConfigError, UsageError
from moot.features.webhooks.encryption import VALID_SECONDS, check_keys, decode, encode, encrypt, server_key

PLAINTEXT = b"When I grow up, I want to be a watermelon"
SERVER_PRIVATE = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
BROWSER_PUBLIC = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
AUTH = "BTBZMqHH6r4Tts7J_aSIgg"
SALT = "DGv6ra1nlYgDCS1FRnbzlw"
ENCRYPTED = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPT"
    "pK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)


def test_the_example_of_the_standard_is_reproduced() -> None:
    private = derive_private_key(int.from_bytes(decode(SERVER_PRIVATE)), SECP256R1())
    assert encode(encrypt(PLAINTEXT, decode(BROWSER_PUBLIC), decode(AUTH), salt=decode(SALT), private=private)) == ENCRYPTED


def test_each_message_has_a_salt_and_a_key_of_its_own() -> None:
    first, second = (encrypt(PLAINTEXT, decode(BROWSER_PUBLIC), decode(AUTH)) for _ in range(2))
    assert first[:16] != second[:16] and first[21:86] != second[21:86]


def test_the_signature_names_the_push_service_and_can_be_verified(tmp_path: Path) -> None:
    key = server_key(tmp_path)
    header = key.authorization("https://push.example.com:8443/send/secret", now=1000, contact="mailto:me@example.com")
    scheme, _, rest = header.partition(" ")
    token, _, public = rest.partition(", k=")
    assert scheme == "vapid" and public == key.public and "secret" not in header
    head, claims, signature = token.removeprefix("t=").split(".")
    assert json.loads(decode(head)) == {"typ": "JWT", "alg": "ES256"}
    assert json.loads(decode(claims)) == {
        "aud": "https://push.example.com:8443",
        "exp": 1000 + VALID_SECONDS,
        "sub": "mailto:me@example.com",
    }
    raw = decode(signature)
    assert len(raw) == 64
    point = EllipticCurvePublicKey.from_encoded_point(SECP256R1(), decode(public))
    point.verify(encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:])), f"{head}.{claims}".encode(), ECDSA(SHA256()))


def test_the_key_is_kept_in_a_file_that_only_its_owner_can_read(tmp_path: Path) -> None:
    key = server_key(tmp_path)
    (file,) = (tmp_path / "state").glob("*.pem")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert server_key(tmp_path).public == key.public and len(decode(key.public)) == 65


@pytest.mark.parametrize("text", ["no key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
def test_a_damaged_key_is_reported_and_not_replaced(tmp_path: Path, text: str) -> None:
    file = tmp_path / "state" / "push-key.pem"
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(ConfigError, match="not a private key"):
        server_key(tmp_path)
    assert file.read_text() == text


@pytest.mark.parametrize(
    ("p256dh", "auth"),
    [
        (b"\x04" + b"\x01" * 64, b"a" * 16),
        (b"", b"a" * 16),
        (decode(BROWSER_PUBLIC), b"short"),
        (b"\x02" + decode(BROWSER_PUBLIC)[1:33], b"a" * 16),
    ],
)
def test_keys_that_no_browser_has_are_refused(p256dh: bytes, auth: bytes) -> None:
    with pytest.raises(UsageError):
        check_keys(p256dh, auth)
