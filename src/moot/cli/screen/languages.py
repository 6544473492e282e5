"""What the highlighter knows of languages: words, comments, strings. Few rules for many languages, since it looks at one line at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Language", "language"]


@dataclass(frozen=True, slots=True)
class Language:
    """How to tell words, comments and strings apart."""

    keywords: frozenset[str] = frozenset()
    constants: frozenset[str] = frozenset({"true", "false", "null"})
    comments: tuple[str, ...] = ()
    """What begins a comment that goes to the end of the line."""
    enclosed: tuple[tuple[str, str], ...] = ()
    """Comments with a beginning and an end, over lines too."""
    quotes: str = "\"'"
    long_quotes: tuple[str, ...] = ()
    """Quotes of strings over several lines."""
    any_case: bool = False
    extra: str = field(default="")
    """Characters of words besides letters, digits and `_`."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PYTHON = Language(
    _words(
        "and as assert async await break case class continue def del elif else except finally for from global if import in is "
        "lambda match nonlocal not or pass raise return try while with yield type"
    ),
    _words("True False None self cls"),
    ("#",),
    long_quotes=('"""', "'''"),
)
_SCRIPT = Language(
    _words(
        "abstract as async await break case catch class const continue debugger declare default delete do else enum export "
        "extends finally for from function get if implements import in instanceof interface keyof let namespace new of private "
        "protected public readonly return set static super switch throw try type typeof var void while with yield satisfies"
    ),
    _words("true false null undefined NaN this"),
    ("//",),
    (("/*", "*/"),),
    long_quotes=("`",),
)
_C = Language(
    _words(
        "alignas auto bool break case catch char class concept const constexpr continue default delete do double else enum "
        "explicit extern float for friend goto if inline int long mutable namespace new noexcept operator override private "
        "protected public register return short signed sizeof static struct switch template throw try typedef typename union "
        "unsigned using virtual void volatile while abstract base byte decimal event fixed foreach in internal interface is lock "
        "object out params partial readonly record ref sealed string var yield async await extends final implements import "
        "instanceof package super synchronized throws fun val when data open companion func let guard defer extension protocol "
        "init where"
    ),
    _words("true false null nullptr nil this self NULL"),
    ("//",),
    (("/*", "*/"),),
)
_GO = Language(
    _words(
        "break case chan const continue default defer else fallthrough for func go goto if import interface map package range "
        "return select struct switch type var any bool byte error float32 float64 int int32 int64 rune string uint uint8"
    ),
    _words("true false nil iota"),
    ("//",),
    (("/*", "*/"),),
    long_quotes=("`",),
)
_RUST = Language(
    _words(
        "as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move mut pub ref "
        "return static struct super trait type unsafe use where while bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 "
        "u64 u128 usize"
    ),
    _words("true false None Some Ok Err Self self"),
    ("//",),
    (("/*", "*/"),),
    quotes='"',
)
_SHELL = Language(
    _words(
        "if then else elif fi for while until do done case esac function in select return export local readonly declare set unset source"
    ),
    _words("true false"),
    ("#",),
    extra="-",
)
_SQL = Language(
    _words(
        "add all alter and as asc between by case cast check column commit constraint create cross default delete desc distinct "
        "drop else end exists foreign from full group having if in index inner insert into is join key left like limit not null "
        "offset on or order outer primary references returning right rollback select set table then transaction trigger union "
        "unique update using values view when where with integer text blob real varchar boolean timestamp"
    ),
    _words("true false null"),
    ("--",),
    (("/*", "*/"),),
    any_case=True,
)
_RUBY = Language(
    _words(
        "alias and begin break case class def do else elsif end ensure for if in module next not or redo require rescue retry "
        "return then undef unless until when while yield local function repeat"
    ),
    _words("true false nil self"),
    ("#",),
)
_LUA = Language(_RUBY.keywords, _RUBY.constants, ("--",))
_YAML = Language(frozenset(), _words("true false null yes no on off"), ("#",), extra="-")
_TOML = Language(frozenset(), _words("true false"), ("#", ";"), long_quotes=('"""', "'''"), extra="-")
_JSON = Language(quotes='"')
_CSS = Language(_words("important media import keyframes from to"), frozenset(), (), (("/*", "*/"),), extra="-")
_MARKUP = Language(frozenset(), frozenset(), (), (("<!--", "-->"),), quotes='"')
_DOCKER = Language(
    _words("from run cmd label expose env add copy entrypoint volume user workdir arg onbuild stopsignal healthcheck shell as"),
    frozenset(),
    ("#",),
    any_case=True,
)
_MAKE = Language(_words("ifeq ifneq ifdef ifndef else endif include define endef export"), frozenset(), ("#",))

_NAMES: dict[str, Language] = {
    **dict.fromkeys(("python", "py", "python3", "pycon", "ipython"), _PYTHON),
    **dict.fromkeys(("javascript", "js", "jsx", "typescript", "ts", "tsx", "mjs", "svelte", "vue"), _SCRIPT),
    **dict.fromkeys(("c", "cpp", "c++", "h", "hpp", "cs", "csharp", "java", "kotlin", "kt", "swift", "scala", "php", "dart", "zig"), _C),
    **dict.fromkeys(("go", "golang"), _GO),
    **dict.fromkeys(("rust", "rs"), _RUST),
    **dict.fromkeys(("bash", "sh", "shell", "zsh", "console", "fish", "shell-session"), _SHELL),
    **dict.fromkeys(("sql", "sqlite", "postgresql", "mysql"), _SQL),
    **dict.fromkeys(("ruby", "rb", "elixir", "ex", "perl", "r"), _RUBY),
    **dict.fromkeys(("yaml", "yml"), _YAML),
    **dict.fromkeys(("toml", "ini", "cfg", "conf", "properties", "env"), _TOML),
    **dict.fromkeys(("json", "jsonc", "json5", "jsonl"), _JSON),
    **dict.fromkeys(("css", "scss", "less"), _CSS),
    **dict.fromkeys(("html", "xml", "svg"), _MARKUP),
    **dict.fromkeys(("dockerfile", "docker"), _DOCKER),
    **dict.fromkeys(("make", "makefile", "cmake"), _MAKE),
    "lua": _LUA,
}


def language(name: str) -> Language | None:
    """What is known of a language by the name that a fence gives it; None = nothing."""
    return _NAMES.get(name.lower())
