"""Detection of secrets in stored texts. Unlike redaction, it skips what is probably not a secret: examples, placeholders, hashes, code.

It works on bytes and searches for literal texts first, because stores are large.
"""

from __future__ import annotations

import base64
import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from typing import NamedTuple

from moot.guard.secrets import CODE, COUNTED, SECRET_NAME, SHAPES, Shape
from moot.types.canonical import loads_object


class Detection(NamedTuple):
    """A secret in a text."""

    begin: int
    end: int
    kind: str


_VERSION = 1
"""Increment this if the functions below detect different secrets than before."""

_WORD = re.compile(rb"[A-Za-z0-9_-]{16,}+")
_WEB_TOKEN = "JSON Web Token"
_UPPER = "AWS access key"
"""Kind of keys that have no lowercase letters, and often no digits."""
_WINDOW = 80
"""Bytes that are read for a match that begins before its anchor."""

_PEM = re.compile(
    rb"-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?P<body>(?:[^-]|-(?!----)){64,20000}+)"
    rb"(?P<end>-----END [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?"
)
_PEM_LINE = re.compile(rb"(?<![A-Za-z0-9+/=])(?:(?<=\\)[nrt])?([A-Za-z0-9+/]{40,80}={0,2})(?![A-Za-z0-9+/=])|([A-Za-z0-9+/]{200,}={0,2})")
_PEM_GAP = 40
_URL = re.compile(rb"://[^\s/@:\"'`<>\\]{0,100}:([^\s/@\"'`<>\\]{4,200})@[A-Za-z0-9\[]")
_HEADER = re.compile(rb"(?:bearer|basic)\s{1,4}([A-Za-z0-9._~+/-]{16,2000}={0,2})", re.IGNORECASE)
_CURL = re.compile(rb"-u[ =]?[\"']?[^\s:\"'\\]{1,64}:([^\s\"'\\]{6,200})")

_NAMES = (
    b"passw",
    b"passphrase",
    b"secret",
    b"token",
    b"credential",
    b"_pwd",
    b"_pass",
    b"_key",
    b"-key",
    b"apikey",
    b"accesskey",
    b"accountkey",
)
_LEFT = re.compile(rb"[\w.-]{0,40}\Z")
_VALUE = re.compile(
    rb"(?P<rest>[\w-]{0,32})(?:\\{0,3}[\"'`])?(?:(?P<sign>\s{0,4}(?::=|=>|[:=])\s{0,4})|\s(?=[^\s-]))"
    rb"(?:(?P<quote>\\{0,3}[\"'`])(?P<quoted>[^\s\"'`\\]{6,250})(?P=quote)|(?P<bare>[^\s\"'`,;&{}\[\]()<>\\|=]{6,250}={0,2}))"
)
_SECRET = re.compile(
    SECRET_NAME.encode() + rb"|_pwd|_pass\Z"
    rb"|(?:encryption|auth|signing|master|account|shared|service|admin|deploy|app|license)[_-]?key\Z",
    re.IGNORECASE,
)
_PASSWORD = re.compile(rb"passw|passphrase|_pwd|_pass\Z", re.IGNORECASE)
_COUNTED = re.compile(COUNTED.pattern.encode(), re.IGNORECASE)
_OTHER = re.compile(
    rb"(?:next|prev\w*|page|continuation|sync|cursor|pagination|csrf|xsrf|request|cache|idempotency|cancellation|sub)[_-]?\w{0,6}token"
    rb"|signature|cookie|public|hash|digest|checksum|fingerprint|sha\d"
    rb"|[_-](?:ids?|names?|path|file|dir|ur[li]|type|kind|env|var|at|in|expir\w*|length|len|size|prefix|suffix|format|pattern|regex|field"
    rb"|header|version|arn|ref|count|policy|status|manager|provider|stdin)\Z",
    re.IGNORECASE,
)
"""Matches names of values that are not secret, although a part of the name suggests it."""
_CODE = re.compile(CODE.pattern.encode(), re.IGNORECASE)

_PLACEHOLDER = re.compile(
    rb"example|sample|placeholder|your|change[-_]?me|insert|replace|dummy|fake|mock|redact|hidden|xxxx|\*\*\*|\.\.\.|\xe2\x80\xa6|[<>]"
    rb"|\A[${]|\$[{(]|\{\{|%[sd(]|todo|foobar|lorem|john.?doe|not[-_]?(?:a[-_]?)?(?:real|valid|secret)|(.)\1{5}"
    rb"|(?:test|my|some|the|new|old|invalid|wrong|user|super)[-_](?:api[-_]?)?(?:key|token|secret|password|pass)",
    re.IGNORECASE,
)
_SEQUENCE = re.compile(
    b"|".join(
        line[at : at + 6]
        for line in (b"abcdefghijklmnopqrstuvwxyz", b"01234567890", b"9876543210", b"qwertyuiop", b"deadbeef", b"cafebabe")
        for at in range(len(line) - 5)
    ),
    re.IGNORECASE,
)
_COMMON = frozenset(
    b"password passw0rd password1 password123 passwd secret secret1 secret123 hunter2 letmein postgres postgresql mysql redis rabbitmq"
    b" guest guest1 admin admin123 root root123 toor test123 test1234 testing pass123 p4ssw0rd p@ssw0rd p@ssword minioadmin changeit"
    b" default docker user123 foo123 bar123 abc123 guest123 token123 pass1234 password1234".split()
)
"""Passwords used in documentation and by services on developers' machines."""
_KNOWN = frozenset(
    b"sk_test_4eC39HqLyjWDarjtT1zdp7dc sk_test_BQokikJOvBiI2HlWgH4olfQ2 sk_test_26PHem9AhJZvU623DfE1x4sd"
    b" pk_test_TYooMQauvdEDq54NiTphI7jx 5cef7ed7eb7a4a2eab0f2cfad6e0ed1d".split()
)
"""Keys in vendors' documentation that look like real ones."""
_EXAMPLE_CLAIMS = re.compile(rb"1234567890|john.?doe|example", re.IGNORECASE)
_UUID = re.compile(rb"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_HEX = re.compile(rb"[0-9a-fA-F]+")
_OPAQUE = re.compile(rb"[A-Za-z0-9+/=_.~-]+")
_REFERENCE = re.compile(rb"[A-Za-z_$][\w$]*(?:(?:\.|::|->)[A-Za-z_$][\w$]*)*")
"""Matches variables and attributes of programs."""
_PATH = re.compile(rb"[~.]{0,2}/[a-z._-]{2,}(?:/|\Z)|#|0x[0-9A-Fa-f]{1,8}\Z|[A-Za-z]:\\|[a-z+]{2,12}://")
_CAMEL = re.compile(rb"[A-Z][a-z]{2,}")
_ENCODED = re.compile(rb"[A-Za-z0-9+/]{30}\Z|(?:sha\d{1,3}|md5)[=:-]\Z")
"""Matches the end of base64 data or of a hash's name. Anything after it that looks like a key is a coincidence."""
_MIXED = re.compile(rb"[A-Za-z0-9]{6,}")
_CHANGE = re.compile(rb"(?<=[a-z])(?=[0-9A-Z])|(?<=[0-9])(?=[A-Za-z])|(?<=[A-Z])(?=[0-9])")
_DIGIT = re.compile(rb"[0-9]")
_LETTER = re.compile(rb"[A-Za-z\x80-\xff]")
_NO_WORD = re.compile(rb"[^A-Za-z_.\x80-\xff-]")
_UNICODE = re.compile(rb"\\u00([2-7][0-9a-fA-F])")


@cache
def rules() -> str:
    """Return a short text that changes whenever the detection changes."""
    patterns = (_PLACEHOLDER, _SEQUENCE, _OTHER, _VALUE, _SECRET, _URL, _HEADER, _CURL, _PEM)
    known = repr((_VERSION, SHAPES, _NAMES, sorted(_COMMON | _KNOWN), [pattern.pattern for pattern in patterns]))
    return blake2b(known.encode(), digest_size=8).hexdigest()


def detect(text: bytes) -> list[Detection]:
    """Return the secrets in a text, in order and without overlaps."""
    found = sorted([*_blocks(text), *_shaped(text), *_in_urls(text), *_named(text)], key=lambda one: one.begin)
    result: list[Detection] = []
    for one in found:  # a key inside a named value or URL is found twice; the first kind in the list above says more
        if not result or one.begin >= result[-1].end:
            result.append(one)
    return result


def unescape(data: bytes) -> bytes:
    """Return JSON with the escape sequences of its strings decoded once, so that it can be searched. Other data is unchanged."""
    if b"\\" not in data or not data.lstrip().startswith((b"{", b"[", b'"', b"data:", b"event:")):
        return data
    for escaped, plain in ((b"\\\\", b"\0"), (b"\\n", b"\n"), (b'\\"', b'"'), (b"\\t", b"\t"), (b"\\r", b"\r"), (b"\\/", b"/")):
        data = data.replace(escaped, plain)
    if b"\\u00" in data:
        data = _UNICODE.sub(lambda match: bytes((int(match[1], 16),)), data)
    return data.replace(b"\0", b"\\")


def core(secret: bytes) -> bytes:
    """Return the part that all spellings of a secret have in common: for a private key, the letters in its lines."""
    found = _PEM.match(secret)
    return secret if found is None else b"".join(line[1] or line[2] for line in _lines(found))


def _places(text: bytes, anchor: bytes) -> Iterator[int]:
    at = text.find(anchor)
    while at >= 0:
        yield at
        at = text.find(anchor, at + len(anchor))


def _lines(found: re.Match[bytes]) -> list[re.Match[bytes]]:
    """Return the lines of a private key, which may be cut, indented or numbered."""
    lines: list[re.Match[bytes]] = []
    for line in _PEM_LINE.finditer(found.string, *found.span("body")):
        if line.start() - (lines[-1].end() if lines else found.start("body")) > (_PEM_GAP if lines else 10 * _PEM_GAP):
            break
        lines.append(line)
    return lines


def _blocks(text: bytes) -> Iterator[Detection]:
    for at in _places(text, b"-----BEGIN "):
        found = _PEM.match(text, at)
        lines = [] if found is None else _lines(found)
        if found is not None and lines and _entropy(core(found[0])) > 4:
            yield Detection(at, found.end() if found["end"] else lines[-1].end(), "private key")


@cache
def _candidates() -> tuple[dict[bytes, list[tuple[Shape, re.Pattern[bytes]]]], list[tuple[Shape, re.Pattern[bytes], bytes]]]:
    """Return the shapes to match against words, by a word's first two letters, and the shapes to find by searching for their anchors."""
    words: dict[bytes, list[tuple[Shape, re.Pattern[bytes]]]] = {}
    others: list[tuple[Shape, re.Pattern[bytes], bytes]] = []
    for shape in SHAPES:
        pattern = re.compile(shape.pattern.encode())
        if all(_WORD.match(anchor.encode() * 8) for anchor in shape.anchors):
            for head in {anchor[:2].encode() for anchor in shape.anchors}:
                words.setdefault(head, []).append((shape, pattern))
        else:
            others += [(shape, pattern, anchor.encode()) for anchor in shape.anchors]
    return words, others


def _shaped(text: bytes) -> Iterator[Detection]:
    words, others = _candidates()
    for word in _WORD.finditer(text):
        at = word.start() + _escaped(text, word.start())
        for shape, pattern in words.get(text[at : at + 2], ()):
            if (found := pattern.match(text, at)) is not None and _is_key(shape, found):
                yield Detection(*found.span(), shape.kind)
    for shape, pattern, anchor in others:
        for at in _places(text, anchor):
            begin = max(0, at - shape.before)
            found = pattern.search(text, begin, at + _WINDOW) if shape.before else pattern.match(text, at)
            if found is not None and found.start() <= at and _is_key(shape, found):
                yield Detection(*found.span(), shape.kind)


def _escaped(text: bytes, at: int) -> int:
    """Return how many bytes at the beginning of a word belong to an escape sequence such as `\\n` or `%3D`."""
    before = text[at - 1] if at else 0
    return 1 if before == 0x5C and text[at] in b"nrtbf" else 2 if before == 0x25 and _HEX.match(text, at, at + 2) else 0


def _is_key(shape: Shape, found: re.Match[bytes]) -> bool:
    key, text = found[0], found.string
    if text[found.end() : found.end() + 1].isalnum() or _ENCODED.search(text, max(0, found.start() - 30), found.start()):
        return False
    if shape.kind == _WEB_TOKEN:
        return _is_web_token(key)
    if key in _KNOWN or _PLACEHOLDER.search(key) or _SEQUENCE.search(key):
        return False
    body = key[next((len(anchor) for anchor in shape.anchors if key.startswith(anchor.encode())), 0) :]
    return _entropy(body) >= 3 and (shape.kind == _UPPER or _is_mixed(body))


def _is_web_token(token: bytes) -> bool:
    head, payload, signature = token.split(b".")[:3]
    if len(signature) < 20 or _PLACEHOLDER.search(signature):
        return False
    try:
        fields = loads_object(_decoded(head))
        claims = _decoded(payload)
    except ValueError:
        return False
    return "alg" in fields and _EXAMPLE_CLAIMS.search(claims) is None


def _decoded(text: bytes) -> bytes:
    return base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4))


def _in_urls(text: bytes) -> Iterator[Detection]:
    for at in _places(text, b"://"):
        found = _URL.match(text, at)
        if found is not None and (_is_password(found[1]) or (found[1].isalpha() and _is_value(found[1]) and _is_varied(found[1]))):
            yield Detection(*found.span(1), "password in a URL")
    for at in _places(text, b"-u"):
        found = _CURL.match(text, at) if text.rfind(b"curl", max(0, at - 200), at) >= 0 else None
        if found is not None and _is_password(found[1]):
            yield Detection(*found.span(1), "password")


def _named(text: bytes) -> Iterator[Detection]:
    lower = text.lower()
    for scheme in (b"bearer ", b"basic "):
        for at in _places(lower, scheme):
            found = _HEADER.match(text, at)
            if found is not None and _is_credential(found[1], basic=scheme == b"basic "):
                yield Detection(*found.span(1), "authorization header")
    for name in _NAMES:
        for at in _places(lower, name):
            found = _VALUE.match(text, at)
            if found is not None and (kind := _named_kind(text, at, found)):
                group = "bare" if found["quoted"] is None else "quoted"
                end = found.end(group)
                while group == "bare" and text[end - 1] in b".:":
                    end -= 1
                yield Detection(found.start(group), end, kind)


def _is_credential(value: bytes, *, basic: bool) -> bool:
    if not basic:
        return _is_token(value)
    try:
        name, colon, password = _decoded(value.replace(b"+", b"-").replace(b"/", b"_")).partition(b":")
    except ValueError:
        return False
    return bool(colon) and name.isascii() and password.isascii() and _is_password(password)


def _named_kind(text: bytes, at: int, found: re.Match[bytes]) -> str:
    """Return the kind of secret if the name and the value of an assignment look like one; otherwise an empty string."""
    left = _LEFT.search(text, max(0, at - 40), at)
    name = (b"" if left is None else left[0]) + text[at : found.end("rest")]
    value = found["quoted"] or found["bare"].rstrip(b".:")
    is_option = name.startswith(b"--")
    if not (found["sign"] or is_option) or not _SECRET.search(name) or _COUNTED.search(name) or _OTHER.search(name):
        return ""
    if found["quoted"] is None:
        is_setting = is_option or name.isupper() or b":" in found["sign"]
        if _REFERENCE.fullmatch(value) and (b"." in value or _is_name(value) or not (is_setting or _is_token(value))):
            return ""  # a variable or type of a program
        if text[found.end() : found.end() + 1] in (b"(", b"["):
            return ""
    if _PASSWORD.search(name):
        return "password" if _is_password(value) else ""
    return "named secret" if _is_token(value) else ""


def _is_token(value: bytes) -> bool:
    """Return True if the value after a secret's name is random enough to be a key."""
    return len(value) >= 16 and _OPAQUE.fullmatch(value) is not None and _is_mixed(value) and _entropy(value) >= 3 and _is_value(value)


def _is_password(value: bytes) -> bool:
    """Return True if the value may be a password: it has letters and other characters, and is not code, a common word or a placeholder."""
    return _LETTER.search(value) is not None and _NO_WORD.search(value.rstrip(b"?!,:;")) is not None and _is_value(value)


def _is_value(value: bytes) -> bool:
    return not (
        value in _KNOWN
        or value.lower() in _COMMON
        or _PLACEHOLDER.search(value)
        or _SEQUENCE.search(value)
        or _UUID.fullmatch(value)
        or _CODE.fullmatch(value)
        or _PATH.match(value)
    )


def _is_mixed(value: bytes) -> bool:
    """Return True if digits and letters alternate in a word of the value, as in random texts, unlike in `sonnet-20241022`."""
    return any(_is_varied(word) and _DIGIT.search(word) for word in _MIXED.findall(value))


def _is_name(value: bytes) -> bool:
    """Return True if most of the value is words in camel case, as in `Ed25519PrivateKey`."""
    return sum(map(len, _CAMEL.findall(value))) * 2 >= len(value)


def _is_varied(word: bytes) -> bool:
    return len(_CHANGE.findall(word)) >= max(2, len(word) // 6)


def _entropy(value: bytes) -> float:
    """Return the Shannon entropy in bits per byte."""
    return -sum(count / len(value) * math.log2(count / len(value)) for count in Counter(value).values()) if value else 0.0
