"""A shared page without redacted text, wherever the page puts its elements."""

from __future__ import annotations

import html
import re
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.config.settings import Settings
from moot.formats.html.markup import block, rendered, text
from moot.store import open_store
from moot.store.maintenance.purge.redactor import Redactor, without
from moot.types.conversation import Conversation
from moot.types.maintenance import REDACTION_MARK, Secret
from moot.types.share import NewShare, Share, SharedPage

KEY = "sk-ant-api03-Zebra_Finch/42"


def shown(page: bytes) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", page.decode())).rstrip("\n")


@pytest.mark.parametrize("language", ["", "bash", "python", "javascript"])
def test_strings_are_found_in_highlighted_code(language: str) -> None:
    page = block(f"export KEY={KEY} # and 'more'", language).encode()
    found = without(Redactor(Secret((KEY,))), page)
    assert shown(found) == f"export KEY={REDACTION_MARK} # and 'more'"
    assert found.count(b"<") == page.count(b"<")


def test_patterns_are_found_in_highlighted_code() -> None:
    found = without(Redactor(Secret(patterns=("sk-[a-z0-9-]{4,20}",))), block(f"KEY={KEY}", "bash").encode())
    assert shown(found) == f"KEY={REDACTION_MARK}Zebra_Finch/42"


@pytest.mark.parametrize("secret", ["pa*ss*word", "a_long_ *secret* `name`", "back\\_slash_es", "two\nlines of it"])
def test_strings_are_found_where_markdown_removed_characters(secret: str) -> None:
    page = rendered(f"The word is {secret}, and so on.").encode()
    found = without(Redactor(Secret((secret,))), page)
    bare = "".join(letter for letter in secret if letter.isalnum())
    assert bare in "".join(letter for letter in shown(page) if letter.isalnum())
    assert bare not in "".join(letter for letter in shown(found) if letter.isalnum()) and REDACTION_MARK in shown(found)
    assert "The word is" in shown(found) and "and so on." in shown(found)


@given(st.text(string.printable + "äß€😀", max_size=60), st.text(string.ascii_letters, min_size=4, max_size=9))
def test_a_page_without_a_match_is_unchanged(said: str, secret: str) -> None:
    page = f"<p>{text(said.replace(secret[:4], ''))}</p>".encode()
    if secret not in shown(page) and not Redactor(Secret((secret,))).spans(page.decode()):
        assert REDACTION_MARK.encode() not in without(Redactor(Secret((secret,))), page) or secret in re.sub(r"[\s*_~`\\]", "", shown(page))


@pytest.mark.anyio
async def test_stored_pages_are_redacted(tmp_path: Path) -> None:
    store = await open_store(Settings(tmp_path))
    conversation = await store.conversations.create(Conversation("c"))
    share = Share("s", conversation.id, f"About {KEY}", 1 << 50)
    await store.shares.add(NewShare(share, SharedPage(block(f"KEY={KEY}", "bash").encode(), "policy"), b"digest"))
    receipt = await store.erasure.redact(Secret((KEY,)))
    page = await store.shares.page(b"digest")
    assert page is not None and shown(page.content) == f"KEY={REDACTION_MARK}"
    assert receipt.rows["share"] == 1 and receipt.unseen
    assert [one.title for one in await store.shares.list()] == [f"About {REDACTION_MARK}"]
    await store.close()
