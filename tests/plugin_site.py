"""The package of examples/plugin, installed offline and without an installer."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "plugin"


def install(site: Path, project: Path = EXAMPLE) -> Path:
    """Write the package's folder and metadata to `site`. Return the folder for PYTHONPATH."""
    told = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name = told["name"].replace("-", "_")
    metadata = site / f"{name}-{told['version']}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {told['name']}\nVersion: {told['version']}\n")
    sections = [
        f"[{group}]\n" + "".join(f"{key} = {path}\n" for key, path in names.items()) for group, names in told["entry-points"].items()
    ]
    (metadata / "entry_points.txt").write_text("\n".join(sections))
    (site / name).symlink_to(project / "src" / name)
    return site


def environ(site: Path) -> dict[str, str]:
    """The current environment with the site first on the path."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])}
