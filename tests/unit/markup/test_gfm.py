"""The parser agrees with GitHub's own, cmark-gfm, on every recorded answer; the known differences are listed."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options
from markdown_it.renderer import RendererHTML

from moot.markup.markdown import new_parser

ANSWERS = sorted((Path(__file__).parents[2] / "recorded" / "answers").glob("*.md"))
DIFFERENT = {
    "autolinks": "an address without a scheme is plain text",
    "footnotes": "footnotes stay where they are defined",
    "french-grammar": "`<br>` is a line break",
    "html": "`<br>` is a line break, other HTML is plain text",
    "links-strange": "a link without a target is plain text",
    "math": "formulas",
    "math-unclosed": "formulas",
    "quiz": "HTML is plain text",
    "strike-and-tilde": "one tilde means about, only two strike out",
    "table-after-list": "a table may directly follow a list",
    "table-breaks": "`<br>` is a line break",
    "xml-answer": "HTML is plain text",
}
"""Answers that are shown in another way on purpose."""


class Outline(HTMLParser):
    """The elements and texts of a page, without those that differ between renderers."""

    IGNORED = frozenset({"p", "tbody", "thead", "section", "sup", "label"})
    VOID = frozenset({"br", "hr", "img", "input", "li"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "input":
            self.found.append("<checked>" if "checked" in values else "<unchecked>")
        elif tag not in self.IGNORED:
            tag = "del" if tag == "s" else tag
            align = values.get("align") or (values.get("style") or "").removeprefix("text-align:")
            self.found.append(" ".join(filter(None, [f"<{tag}", values.get("href"), values.get("start"), align])))

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.IGNORED | self.VOID:
            self.found.append(f"</{'del' if tag == 's' else tag}")

    def handle_data(self, data: str) -> None:
        if text := re.sub(r"\s+", " ", data).strip():
            if self.found and not self.found[-1].startswith("<"):
                text = f"{self.found.pop()} {text}"
            self.found.append(text)


def outlines(text: str) -> tuple[list[str], list[str]]:
    """Return the outline of our parse and of cmark-gfm's."""
    parser = new_parser()
    environment: dict[str, object] = {}
    tokens = [token for token in parser.parse(text, environment) if token.type != "definition"]
    ours = RendererHTML(parser).render(tokens, parser.options, environment)
    return Outline(ours).found, Outline(cmarkgfm.github_flavored_markdown_to_html(text, options=Options.CMARK_OPT_FOOTNOTES)).found


@pytest.mark.parametrize("path", ANSWERS, ids=lambda path: path.stem)
def test_an_answer_is_parsed_like_on_github(path: Path) -> None:
    ours, theirs = outlines(path.read_text())
    if path.stem in DIFFERENT:
        assert ours != theirs, "this difference is gone"
    else:
        assert ours == theirs
