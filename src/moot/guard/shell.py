"""Splitting of a shell line into all its commands, using bash's grammar.

If a line contains anything unexpected, the whole line counts as not understood, so that results are always certain.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from posixpath import basename

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from moot.guard.commands.coverage import depends_on_folder
from moot.guard.commands.wrappers import ELSEWHERE, Piece, inner

MAX_CHARACTERS = 10_000
MAX_PIECES = 50
"""Maximum number of commands in a line. Lines with more are not split and need approval."""

_DEPTH = 4
"""Maximum depth of scripts inside scripts, such as `bash -c`, that are split."""

_BETWEEN = re.compile(r"(?:[ \t\n]|(?<=\s)\\\n)*")
_RESERVED = frozenset(
    ("if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "select", "function")
) | frozenset(("{", "}", "!", "[[", "]]", "in"))
_GLOB = re.compile(r"[*?\[]")
_MOVING = frozenset({"cd", "pushd", "popd"})
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED_IN_STRING = re.compile(r'\\([$`"\\\n])')
_CONTROL = frozenset({"program", "list", "pipeline", "subshell", "compound_statement", "do_group", "else_clause", "negated_command"})
_CONTROL_TOO = _CONTROL | {"elif_clause", "if_statement", "while_statement"}
_CONSTRUCTS = {
    "for_statement": "a loop sets a variable",
    "c_style_for_statement": "a loop sets a variable",
    "case_statement": "a case matches patterns",
    "case_item": "",
    "function_definition": "defines a function",
    "test_command": "a test may run commands in its values",
    "variable_assignment": "sets a variable",
    "variable_assignments": "sets variables",
    "declaration_command": "sets variables",
    "unset_command": "unsets variables",
}
_HARMLESS = re.compile(r"\d*>&[12-]|(?:\d|&)?>>?\s*/dev/null|\d?<\s*/dev/null")
_LANGUAGE = Language(tree_sitter_bash.language())


class _NotUnderstood(Exception):
    """Raised if the meaning of the line is uncertain."""


def split(line: str) -> tuple[Piece, ...] | None:
    """Return every command of the line, in order. Return None if the line is not understood, so that no rule can allow it."""
    try:
        pieces = tuple(_after_moves(_Walk(line, 0).pieces()))
    except (_NotUnderstood, RecursionError):
        return None
    return pieces if 0 < len(pieces) <= MAX_PIECES else None


def _after_moves(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """Yield the pieces. Mark those that follow `cd` and depend on the folder's files, so that no rule covers them."""
    moved = False
    for piece in pieces:
        names = {basename(word) for word in piece.words if word}
        elsewhere = moved and bool(piece.words) and not names & _MOVING and depends_on_folder(piece.known)
        yield replace(piece, leftover=(*piece.leftover, ELSEWHERE)) if elsewhere else piece
        moved = moved or bool(names & _MOVING)


class _Walk:
    """A walk through the syntax tree of a line. The tree is checked against the line's text."""

    def __init__(self, line: str, depth: int) -> None:
        if len(line) > MAX_CHARACTERS or depth > _DEPTH or not all(map(_is_ordinary, line)):
            raise _NotUnderstood
        self._source = line.encode()
        self._depth = depth
        self._count = 0

    def pieces(self) -> Iterator[Piece]:
        root = Parser(_LANGUAGE).parse(self._source).root_node
        if root.has_error:
            raise _NotUnderstood
        self._check_nothing_is_skipped(root)
        yield from self._statements(root)

    def _text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode()

    def _check_nothing_is_skipped(self, root: Node) -> None:
        """Check that there is only whitespace between tokens, and that comments start where the shell also starts them."""
        at = 0
        for leaf in _leaves(root):
            gap = self._source[at : leaf.start_byte].decode("utf-8", "replace")
            before = self._source[max(0, leaf.start_byte - 1) : leaf.start_byte]
            if leaf.is_missing or not _BETWEEN.fullmatch(gap) or (leaf.type == "comment" and before not in (b"", b" ", b"\t", b"\n", b";")):
                raise _NotUnderstood
            at = max(at, leaf.end_byte)
        if not _BETWEEN.fullmatch(self._source[at:].decode("utf-8", "replace")):
            raise _NotUnderstood

    # ── statements ────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _statements(self, node: Node) -> Iterator[Piece]:
        for child in node.named_children:
            yield from self._statement(child)

    def _statement(self, node: Node, leftover: tuple[str, ...] = ()) -> Iterator[Piece]:
        if node.type == "comment":
            return
        if node.type == "command":
            yield from self._command(node, leftover)
        elif node.type == "redirected_statement":
            yield from self._redirected(node, leftover)
        elif node.type == "pipeline":
            for at, child in enumerate(node.named_children):
                yield from (replace(piece, fed=piece.fed or at > 0) for piece in self._statement(child))
        elif node.type in _CONTROL_TOO:
            yield from self._statements(node)
        elif node.type in _CONSTRUCTS:
            yield Piece(self._text(node), (), (*leftover, _CONSTRUCTS[node.type]))
            yield from self._below(node)
        else:
            raise _NotUnderstood

    def _below(self, node: Node) -> Iterator[Piece]:
        """Yield the commands anywhere inside a construct."""
        for child in node.named_children:
            if child.type in _CONTROL_TOO or child.type in ("command", "redirected_statement"):
                yield from self._statement(child)
            elif child.type in ("command_substitution", "process_substitution"):
                yield from self._statements(child)
            else:
                yield from self._below(child)

    def _redirected(self, node: Node, leftover: tuple[str, ...]) -> Iterator[Piece]:
        body = node.child_by_field_name("body")
        redirects = [child for child in node.named_children if child != body]
        words = tuple(filter(None, (self._redirect(child) for child in redirects)))
        single = body is not None and body.type == "command"
        fed = any(word.startswith("reads") for word in words)
        if body is not None:
            found = self._statement(body, (*leftover, *words) if single else leftover)
            yield from (replace(piece, fed=piece.fed or fed) for piece in found)
        if words and not single:  # redirects of a list or group of commands
            yield Piece(" ".join(map(self._text, redirects)), (), words)
        for child in redirects:
            yield from self._below(child)

    def _redirect(self, node: Node) -> str:
        if node.type == "file_redirect":
            text = self._text(node)
            if _HARMLESS.fullmatch(text):
                return ""
            return f"{'reads' if '<' in text and '>' not in text else 'writes to'} a file: {text}"
        if node.type == "heredoc_redirect" or node.type == "herestring_redirect":
            return "reads the given text"
        raise _NotUnderstood

    # ── one command ───────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _command(self, node: Node, leftover: tuple[str, ...]) -> Iterator[Piece]:
        words: list[str | None] = []
        reasons = list(leftover)
        opened = 0
        for child in node.children:
            if child.type == "variable_assignment":
                reasons.append(f"sets {self._text(child)} for it")
            elif child.type.endswith("_redirect"):
                reasons += filter(None, (self._redirect(child),))
            elif child.type == "comment":
                raise _NotUnderstood
            else:
                word = child.children[0] if child.type == "command_name" else child
                words.append(self._word(word, first=not words))
                opened += bool(opened) or self._begins_with_wildcard(word)
        if words and words[0] in _RESERVED:
            words[0] = None
        if None in words:
            reasons.append("a part of it is only known at run time")
        fed = any(reason.startswith("reads") for reason in reasons)
        piece = Piece(self._text(node), tuple(words), tuple(reasons), fed=fed, open_words=opened)
        yield piece
        yield from self._wrapped(piece)
        yield from self._below(node)

    def _wrapped(self, piece: Piece) -> Iterator[Piece]:
        for command in inner(piece.known):
            if isinstance(command, tuple):
                part = Piece(" ".join(command), command, within=True)
                yield part
                yield from self._wrapped(part)
                continue
            for found in _Walk(command, self._depth + 1).pieces():
                yield Piece(found.text, found.words, found.leftover, within=True)

    def _word(self, node: Node, *, first: bool) -> str | None:
        """Return the word as it is passed to the command; None if the shell expands it. `first` is True for the command's name."""
        bits = [self._bit(child) for child in (node.children if node.type == "concatenation" else [node])]
        known = [bit for bit in bits if bit is not None]
        bare = "".join(bare for _, bare in known)
        if len(known) < len(bits) or "{" in bare.replace("{}", "") or (first and (_GLOB.search(bare) or bare.startswith("~"))):
            return None
        return "".join(text for text, _ in known)

    def _begins_with_wildcard(self, node: Node) -> bool:
        bits = map(self._bit, node.children if node.type == "concatenation" else [node])
        return any(_GLOB.match(bare) for _, bare in itertools.islice((bit for bit in bits if bit is not None and bit[0]), 1))

    def _bit(self, node: Node) -> tuple[str, str] | None:
        """Return a part of a word without quotes, and the text in it that the shell may still expand.

        Return None if the part is not known.
        """
        text = self._text(node)
        match node.type:
            case "word" | "number" | "==" | "=~":
                return _ESCAPED.sub(r"\1", text), _ESCAPED.sub("", text)
            case "raw_string":
                return text[1:-1], ""
            case "string":
                if any(child.type not in ('"', "string_content") for child in node.children) or "$" in text.replace("\\$", ""):
                    return None
                return _ESCAPED_IN_STRING.sub(lambda match: "" if match[1] == "\n" else match[1], text[1:-1]), ""
            case _:
                return None


def _is_ordinary(character: str) -> bool:
    """Return True unless the character is a control character, a format character or unusual whitespace."""
    return character in "\n\t" or (
        unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") and (character == " " or not character.isspace())
    )


def _leaves(node: Node) -> Iterator[Node]:
    if all(child.type in ('"', "string_content") for child in node.children):
        yield node
        return
    children: Sequence[Node] = node.children
    for child in children:
        yield from _leaves(child)
