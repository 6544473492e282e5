"""The files in deploy/: what they start exists, and the protection that docs/deployment.md promises is there."""

from __future__ import annotations

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"
SYSTEM, USER = DEPLOY / "systemd" / "moot.service", DEPLOY / "systemd" / "moot-user.service"


def section(unit: Path) -> configparser.SectionProxy:
    parser = configparser.RawConfigParser(strict=True, delimiters=("=",), interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(unit)
    return parser["Service"]


def test_the_container_runs_without_root_and_checks_its_health() -> None:
    lines = (DEPLOY / "Containerfile").read_text().splitlines()
    assert "USER moot" in lines and "VOLUME /data" in lines
    assert lines.index("USER moot") < next(at for at, line in enumerate(lines) if line.startswith("ENTRYPOINT"))
    assert any("/healthz" in line for line in lines)


def test_the_system_unit_can_write_only_its_home() -> None:
    service = section(SYSTEM)
    assert (service["ProtectSystem"], service["ProtectHome"], service["NoNewPrivileges"]) == ("strict", "true", "true")
    assert (service["User"], service["StateDirectory"], service["CapabilityBoundingSet"]) == ("moot", "moot", "")
    assert "ReadWritePaths" not in service and "RestrictNamespaces" not in service  # the sandbox of commands needs namespaces


@pytest.mark.slow
@pytest.mark.parametrize("unit", [SYSTEM, USER], ids=["system", "user"])
def test_systemd_accepts_the_units(unit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if (program := shutil.which("systemd-analyze")) is None:
        pytest.skip("systemd-analyze is not installed")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    copy = tmp_path / "moot.service"
    text = unit.read_text().replace("/opt/moot/bin/moot", "/bin/true").replace("%h/.local/bin/moot", "/bin/true")
    copy.write_text(text.replace("User=moot", "User=daemon").replace("Group=moot", "Group=daemon"))
    scope = ["--user"] if unit == USER else []
    checked = subprocess.run([program, *scope, "verify", str(copy)], capture_output=True, text=True, timeout=60, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
