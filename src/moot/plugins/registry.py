"""A table of names to import paths, joined by what installed packages declare under the same entry-point group."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from typing import Any

from moot.errors import UsageError


def attribute(path: str) -> Any:
    """What `package.module:name` stands for; the module is imported now, and not before."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


class Registry:
    """Looks names up without importing anything; `load` imports the one that is wanted."""

    def __init__(self, group: str, built_in: Mapping[str, str]) -> None:
        self.group = group
        self._built_in = dict(built_in)

    @cached_property
    def _outside(self) -> dict[str, Any]:
        # a built-in name can't be taken over by an installed package
        points = attribute("moot.plugins.installed:points")(self.group)
        return {point.name: point for point in points if point.name not in self._built_in}

    def names(self) -> list[str]:
        """All known names, sorted."""
        return sorted({*self._built_in, *self._outside})

    def __contains__(self, name: str) -> bool:
        return name in self._built_in or name in self._outside

    def load(self, name: str) -> Any:
        """What the name stands for. Raises UsageError for an unknown name or a plugin that does not import."""
        if name in self._built_in:
            return attribute(self._built_in[name])
        if name in self._outside:
            try:
                return self._outside[name].load()
            except Exception as error:
                raise UsageError(f"the plugin {name!r} of {self.group} does not import: {error!r}") from error
        raise UsageError(self.unknown(name))

    def unknown(self, name: str) -> str:
        """The words for a name that is not there, with the nearest one."""
        kind = self.group.rpartition(".")[2].removesuffix("s")
        return f"no {kind} named {name!r}{attribute('moot.plugins.nearest:hint')(name, self.names())} known: {', '.join(self.names())}"
