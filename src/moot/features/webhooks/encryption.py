"""Encryption of push messages (RFC 8291, RFC 8188) and the signature by which push services recognize this server (RFC 8292)."""

from __future__ import annotations

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from pathlib import Path
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDH,
    ECDSA,
    SECP256R1,
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from moot.config.home import lock_file, read_text, write_atomically
from moot.errors import ConfigError, UsageError
from moot.types.canonical import dumps

LONGEST_MESSAGE = 3993
"""Maximum number of bytes of a message: push services accept 4,096 bytes after encryption."""

VALID_SECONDS = 12 * 3600
"""Number of seconds for which a signature is valid. At most 24 hours are allowed."""

_FILE = ("state", "push-key.pem")
_RECORD_SIZE = 4096
_LAST_RECORD = b"\x02"
_POINT_BYTES, _AUTH_BYTES = 65, 16


class ServerKey:
    """The key pair of this server. Browsers accept only messages that are signed with it."""

    def __init__(self, private: EllipticCurvePrivateKey) -> None:
        self._private = private

    @property
    def public(self) -> str:
        """The public key in base64url, as browsers expect it."""
        return encode(_point_of(self._private.public_key()))

    def authorization(self, endpoint: str, *, now: int, contact: str) -> str:
        """Return the header Authorization for a request to a push service. `now` is in seconds."""
        parts = urlsplit(endpoint)
        claims = {"aud": f"{parts.scheme}://{parts.netloc}", "exp": now + VALID_SECONDS, "sub": contact}
        signed = f"{encode(dumps({'typ': 'JWT', 'alg': 'ES256'}))}.{encode(dumps(claims))}"
        r, s = decode_dss_signature(self._private.sign(signed.encode(), ECDSA(SHA256())))
        return f"vapid t={signed}.{encode(r.to_bytes(32) + s.to_bytes(32))}, k={self.public}"


def server_key(home: Path) -> ServerKey:
    """Return the key of a home. It is created on first use, in a file that only the home's owner can read. This function blocks.

    Raise ConfigError if the file can't be read or written.
    """
    path = home.joinpath(*_FILE)
    if not (text := read_text(path)):
        with lock_file(path):
            if not (text := read_text(path)):  # another process may have created it
                made = generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
                write_atomically(path, made)
                text = made.decode()
    try:
        private = load_pem_private_key(text.encode(), None)
    except ValueError:
        private = None
    if not isinstance(private, EllipticCurvePrivateKey) or not isinstance(private.curve, SECP256R1):
        fix = "Delete the file. Then turn on notifications again on each device."
        raise ConfigError("The file is not a private key for push notifications.", file=str(path), fix=fix)
    return ServerKey(private)


def check_keys(p256dh: bytes, auth: bytes) -> None:
    """Raise UsageError unless these can be the keys of a browser's subscription."""
    try:
        EllipticCurvePublicKey.from_encoded_point(SECP256R1(), p256dh)
    except ValueError as error:
        raise UsageError("`p256dh` is not a point on the curve P-256.", fix="Send the keys of the browser's subscription.") from error
    if len(p256dh) != _POINT_BYTES or len(auth) != _AUTH_BYTES:
        raise UsageError(
            f"`p256dh` must have {_POINT_BYTES} bytes and `auth` {_AUTH_BYTES}.", fix="Send the keys of the browser's subscription."
        )


def encrypt(message: bytes, p256dh: bytes, auth: bytes, *, salt: bytes = b"", private: EllipticCurvePrivateKey | None = None) -> bytes:
    """Return the message as one record of the encoding `aes128gcm`. Only the browser with these keys can decrypt it.

    `salt` and `private` are random by default and must not be used twice.
    """
    salt, private = salt or os.urandom(16), private or generate_private_key(SECP256R1())
    sender = _point_of(private.public_key())
    shared = private.exchange(ECDH(), EllipticCurvePublicKey.from_encoded_point(SECP256R1(), p256dh))
    secret = HKDF(SHA256(), 32, auth, b"WebPush: info\x00" + p256dh + sender).derive(shared)
    key = HKDF(SHA256(), 16, salt, b"Content-Encoding: aes128gcm\x00").derive(secret)
    nonce = HKDF(SHA256(), 12, salt, b"Content-Encoding: nonce\x00").derive(secret)
    header = salt + _RECORD_SIZE.to_bytes(4) + bytes([len(sender)]) + sender
    return header + AESGCM(key).encrypt(nonce, message + _LAST_RECORD, None)


def _point_of(public: EllipticCurvePublicKey) -> bytes:
    return public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def encode(data: bytes) -> str:
    """Return the data in base64url without padding."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    """Parse base64url with or without padding. Raise ValueError if it is something else."""
    return urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
