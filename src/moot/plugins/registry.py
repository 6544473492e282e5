"""A table of names to import paths, joined by what installed packages declare under the same entry-point group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

from moot.errors import MootError, UsageError


def attribute(path: str) -> Any:
    """What `package.module:name` stands for; the module is imported now, and not before."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


class Registry:
    """Looks names up without importing anything; `load` imports the one that is wanted."""

    def __init__(self, group: str, built_in: Mapping[str, str], *, needs: Sequence[str] = (), families: Sequence[str] = ()) -> None:
        """`needs` are the attributes that whatever is made of an entry has to have, by its seam.

        `families` are names that may be followed by one of their own: `acp:opencode` is `acp` made with `opencode`.
        """
        self.group = group
        self._built_in = dict(built_in)
        self._needs = tuple(needs)
        self._families = frozenset(families)

    @cached_property
    def _points(self) -> list[Any]:
        return sorted(attribute("moot.plugins.installed:points")(self.group), key=lambda point: (point.name, _package(point)))

    @cached_property
    def _outside(self) -> dict[str, Any]:
        # a built-in name can't be taken over by an installed package; of two packages the first in the alphabet has the name
        return {point.name: point for point in reversed(self._points) if point.name not in self._built_in}

    def names(self) -> list[str]:
        """All known names, sorted."""
        return sorted({*self._built_in, *self._outside})

    def __contains__(self, name: str) -> bool:
        name = self._split(name)[0]
        return name in self._built_in or name in self._outside

    def _split(self, name: str) -> tuple[str, tuple[str, ...]]:
        family, _, member = name.partition(":")
        return (family, (member,)) if member and family in self._families else (name, ())

    def package(self, name: str) -> str:
        """The installed package that brings it, with its version; empty for what is built in."""
        return _package(self._outside[name]) if name not in self._built_in and name in self._outside else ""

    def clashes(self) -> list[str]:
        """Names that packages declare in vain because somebody has them already, in words."""
        found: list[str] = []
        for point in self._points:
            if point.name in self._built_in:
                found.append(f"{self.group}: {point.name!r} of {_package(point)} is not used: the name is built in")
            elif point != self._outside[point.name]:
                found.append(f"{self.group}: {point.name!r} of {_package(point)} is not used: {self.package(point.name)} has the name")
        return found

    def load(self, name: str) -> Any:
        """What the name stands for. Raises UsageError for an unknown name or a plugin that does not import."""
        if name in self._built_in:
            return attribute(self._built_in[name])
        if name in self._outside:
            try:
                return self._outside[name].load()
            except Exception as error:
                raise self._fault(name, f"does not import: {error!r}") from error
        raise UsageError(self.unknown(name))

    def make(self, name: str, *arguments: object) -> Any:
        """An instance of it. Raises UsageError as `load` does, and for a plugin that is not what its seam asks for."""
        name, member = self._split(name)
        arguments = (*member, *arguments)
        kind = self.load(name)
        if name in self._built_in:
            return kind(*arguments)
        try:
            made = kind(*arguments)
            missing = [need for need in self._needs if not hasattr(made, need)]
            called = getattr(made, "name", name)
        except MootError:
            raise
        except Exception as error:
            raise self._fault(name, f"can't be made: {error!r}") from error
        if missing:
            raise self._fault(name, f"lacks what its seam asks for: {', '.join(missing)}")
        if called != name:
            raise self._fault(name, f"calls itself {called!r}")
        return made

    def unknown(self, name: str) -> str:
        """The words for a name that is not there, with the nearest one."""
        kind = self.group.rpartition(".")[2].removesuffix("s")
        return f"no {kind} named {name!r}{attribute('moot.plugins.nearest:hint')(name, self.names())} known: {', '.join(self.names())}"

    def _fault(self, name: str, what: str) -> UsageError:
        package = self.package(name)
        return UsageError(
            f"the plugin {name!r} of {self.group}, from the package {package}, {what}",
            fix=f"tell its author, or uninstall {package.partition(' ')[0]}",
        )


def _package(point: Any) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unknown package"
