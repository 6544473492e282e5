from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from moot.guard.urls import blocked_reason, literal_address

PRIVATE = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.0.192",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd00:ec2::254",
    "ff02::1",
    "2001:db8::1",
    "2001:2::1",
    "3fff::1",
    "100::1",
    "5f00::1",
    "64:ff9b:1::7f00:1",
]
WRAPS = [
    "::ffff:{}",
    "::ffff:{hex}",
    "64:ff9b::{}",
    "64:ff9b::{hex}",
    "2002:{hex}::",
    "2002:{hex}::1",
    "2600:1::5efe:{}",
    "2600:1::200:5efe:{}",
]


def wrapped(pattern: str, address: str) -> IPv6Address:
    number = int(IPv4Address(address))
    return IPv6Address(pattern.format(address, hex=f"{number >> 16:x}:{number & 0xFFFF:x}"))


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_rejected(address: str):
    assert blocked_reason(ip_address(address))


@pytest.mark.parametrize("address", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "100.64.0.1", "192.168.0.1", "224.0.0.1"])
@pytest.mark.parametrize("pattern", WRAPS)
def test_wrapped_private_addresses_stay_private(pattern: str, address: str):
    assert blocked_reason(wrapped(pattern, address))


def test_both_addresses_inside_a_teredo_address_are_checked():
    server, client = int(IPv4Address("8.8.8.8")), int(IPv4Address("127.0.0.1")) ^ 0xFFFFFFFF
    assert blocked_reason(IPv6Address((0x20010000 << 96) | (server << 64) | client))
    assert blocked_reason(IPv6Address((0x20010000 << 96) | (int(IPv4Address("10.0.0.1")) << 64) | (server ^ 0xFFFFFFFF)))
    assert blocked_reason(IPv6Address((0x20010000 << 96) | (server << 64) | (server ^ 0xFFFFFFFF))) == ""


@pytest.mark.parametrize("address", ["1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1"])
def test_public_addresses_pass_also_wrapped(address: str):
    assert blocked_reason(ip_address(address)) == ""
    if ":" not in address:
        assert not any(blocked_reason(wrapped(pattern, address)) for pattern in WRAPS)


# shows why the standard library's own classification is not enough
@pytest.mark.parametrize("address", ["64:ff9b::7f00:1", "2002:7f00:1::", "192.0.0.8", "224.0.0.1"])
def test_special_addresses_that_python_calls_global_are_rejected(address: str):
    assert blocked_reason(ip_address(address))


@pytest.mark.parametrize(
    "spelling",
    [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "0x7f.1",
        "0x7f000001",
        "2130706433",
        "0177.0.0.1",
        "017700000001",
        "①②⑦.0.0.1",
        "127。0。0。1",
        "0X7F.0.0.1",
    ],
)
def test_every_spelling_in_figures_is_the_address(spelling: str):
    host = URL(f"http://{spelling}/").host
    assert host is not None
    assert literal_address(host) == IPv4Address("127.0.0.1")


@pytest.mark.parametrize(
    "host", ["example.com", "deadbeef.example", "a.b", "", "1.2.3.4.5", "300.1.1.1", "0x", "1.1.1.1 x", "abc", "face.de"]
)
def test_a_host_name_is_not_an_address(host: str):
    assert literal_address(host) is None


def test_only_configured_networks_are_allowed():
    allow = [ip_network("10.0.0.0/8"), ip_network("::1/128")]
    assert blocked_reason(ip_address("10.1.1.1"), allow) == ""
    assert blocked_reason(ip_address("::ffff:10.1.1.1"), allow) == ""
    assert blocked_reason(ip_address("::1"), allow) == ""
    assert blocked_reason(ip_address("127.0.0.1"), allow)


@given(st.ip_addresses(v=6))
def test_every_address_gets_a_verdict(address: IPv6Address):
    assert isinstance(blocked_reason(address), str)


@given(st.text(max_size=40))
def test_arbitrary_hosts_never_raise(host: str):
    literal_address(host)
