"""Names and code: built-in ones, and those of installed packages."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moot import plugins
from moot.errors import UsageError
from moot.plugins import Registry

REGISTRIES = {name: value for name, value in vars(plugins).items() if isinstance(value, Registry)}

OUTSIDE = """
[moot.gadgets]
json = outside:take_over
lamp = outside:Lamp
broken = outside_that_is_not_there:Thing
blank = outside:nothing
"""


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[None]:
    """An installed package, as pip leaves it on the path."""
    metadata = tmp_path / "outside-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(OUTSIDE)
    (tmp_path / "outside.py").write_text("class Lamp: ...\ndef take_over(): ...\n")
    sys.path.insert(0, str(tmp_path))
    yield
    sys.path.remove(str(tmp_path))
    sys.modules.pop("outside", None)


@pytest.fixture
def gadgets(outside: None) -> Registry:
    return Registry("moot.gadgets", {"json": "json:loads", "path": "pathlib:Path"})


def test_names_are_sorted_and_joined_by_what_is_installed(gadgets: Registry) -> None:
    assert gadgets.names() == ["blank", "broken", "json", "lamp", "path"]
    assert "lamp" in gadgets
    assert "json" in gadgets
    assert "kettle" not in gadgets


def test_a_built_in_name_cannot_be_taken_over(gadgets: Registry) -> None:
    assert gadgets.load("json")("[1]") == [1]


def test_an_installed_plugin_is_loaded(gadgets: Registry) -> None:
    assert gadgets.load("lamp").__name__ == "Lamp"


@pytest.mark.parametrize("name", ["broken", "blank"])
def test_a_broken_plugin_is_named(gadgets: Registry, name: str) -> None:
    with pytest.raises(UsageError, match=rf"The plugin '{name}' of moot.gadgets from the package outside 1.0 could not be imported"):
        gadgets.load(name)


def test_the_error_for_an_unknown_name_suggests_the_nearest_and_lists_all(gadgets: Registry) -> None:
    with pytest.raises(UsageError) as caught:
        gadgets.load("lmap")
    assert str(caught.value) == "Gadget 'lmap' not found. Did you mean 'lamp'? Known gadgets: blank, broken, json, lamp, path."
    assert "did you mean" not in gadgets.unknown("zzzzzz")


def test_a_plugin_is_imported_on_first_use() -> None:
    program = "import sys, moot.plugins as p; [getattr(p, n).names() for n in p.__all__ if n.isupper()]; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    ours = {name for name in loaded if name.startswith("moot.")}
    assert ours == {"moot.errors", "moot.plugins", "moot.plugins.installed", "moot.plugins.registry"}


@pytest.mark.parametrize(("registry", "name"), [(key, name) for key, value in REGISTRIES.items() for name in value.names()])
def test_every_built_in_name_can_be_loaded(registry: str, name: str) -> None:
    assert REGISTRIES[registry].load(name)


def test_a_member_of_a_family_is_made_with_its_name() -> None:
    registry = Registry("moot.gadgets", {"path": "pathlib:PurePath", "lamp": "pathlib:PurePath"}, families=("path",))
    assert str(registry.make("path:opencode")) == "opencode" and str(registry.make("path")) == "."
    assert "path:anything" in registry and "lamp:anything" not in registry and registry.names() == ["lamp", "path"]
    with pytest.raises(UsageError, match="Gadget 'lamp:anything' not found"):
        registry.make("lamp:anything")
