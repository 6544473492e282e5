"""A registry: a table of names and import paths, extended by entry points of installed packages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

from moot.errors import MootError, UsageError


def attribute(path: str) -> Any:
    """Import and return the object with the path `package.module:name`."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


class Registry:
    """A table of names and import paths. Only `load` and `make` import an entry."""

    def __init__(
        self, group: str, built_in: Mapping[str, str], *, needs: Sequence[str] = (), families: Sequence[str] = (), plain: bool = False
    ) -> None:
        """`needs` are attributes that instances of the entries must have. Entries of a `plain` registry are data or functions, not classes.

        `families` are names that can have a suffix: `make("acp:opencode")` creates `acp` with the argument `opencode`.
        """
        self.group = group
        self._built_in = dict(built_in)
        self._needs = tuple(needs)
        self._families = frozenset(families)
        self._plain = plain

    @cached_property
    def _points(self) -> list[Any]:
        return sorted(attribute("moot.plugins.installed:points")(self.group), key=lambda point: (point.name, _package(point)))

    @cached_property
    def _outside(self) -> dict[str, Any]:
        # packages can't replace built-in names; of two packages, the alphabetically first one is used
        return {point.name: point for point in reversed(self._points) if point.name not in self._built_in}

    def names(self) -> list[str]:
        """Return all names, sorted."""
        return sorted({*self._built_in, *self._outside})

    def __contains__(self, name: str) -> bool:
        name = self._split(name)[0]
        return name in self._built_in or name in self._outside

    def _split(self, name: str) -> tuple[str, tuple[str, ...]]:
        family, _, member = name.partition(":")
        return (family, (member,)) if member and family in self._families else (name, ())

    def package(self, name: str) -> str:
        """Return the name and version of the installed package that provides the entry; empty for a built-in name."""
        return _package(self._outside[name]) if name not in self._built_in and name in self._outside else ""

    def clashes(self) -> list[str]:
        """Return messages about entry points that are ignored because their names are already used."""
        found: list[str] = []
        for point in self._points:
            if point.name in self._built_in:
                found.append(f"{self.group}: {point.name!r} of {_package(point)} is ignored because the name is built in.")
            elif point != self._outside[point.name]:
                found.append(
                    f"{self.group}: {point.name!r} of {_package(point)} is ignored because {self.package(point.name)} has the same name."
                )
        return found

    def load(self, name: str) -> Any:
        """Import and return an entry. Raise UsageError for an unknown name or a broken plugin."""
        if name in self._built_in:
            return attribute(self._built_in[name])
        if name in self._outside:
            try:
                return self._outside[name].load()
            except Exception as error:
                raise self._fault(name, f"could not be imported: {error!r}.") from error
        raise UsageError(self.unknown(name))

    def make(self, name: str, *arguments: object) -> Any:
        """Return an instance of an entry. Raise UsageError if `load` raises it, or if a plugin lacks required attributes."""

        name, member = self._split(name)
        arguments = (*member, *arguments)
        kind = self.load(name)
        if self._plain:
            return kind
        if name in self._built_in:
            return kind(*arguments)
        try:
            made = kind(*arguments)
            missing = [need for need in self._needs if not hasattr(made, need)]
            called = getattr(made, "name", name)
        except MootError:
            raise
        except Exception as error:
            raise self._fault(name, f"could not be created: {error!r}.") from error
        if missing:
            raise self._fault(name, f"lacks required attributes: {', '.join(missing)}.")
        if called != name:
            raise self._fault(name, f"has the wrong name {called!r}.")
        return made

    def unknown(self, name: str) -> str:
        """Return the error message for an unknown name, with a suggestion."""
        kind = self.group.rpartition(".")[2].removesuffix("s").replace("_", " ")
        return f"{kind.capitalize()} {name!r} not found.{hint(name, self.names())} Known {kind}s: {', '.join(self.names())}."

    def _fault(self, name: str, what: str) -> UsageError:
        package = self.package(name)
        return UsageError(
            f"The plugin {name!r} of {self.group} from the package {package} {what}",
            fix=f"Report this to its author, or uninstall {package.partition(' ')[0]}.",
        )


def _package(point: Any) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unknown package"


def hint(name: str, known: Sequence[str]) -> str:
    """Return ` Did you mean 'run'?`, to append to an error message, or nothing if no name is close."""
    close = attribute("difflib:get_close_matches")(name, known, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
