from __future__ import annotations

import logging

import pytest

from moot.cli.console.lines import innermost, report
from moot.cli.console.output import Output
from moot.cli.runner import logging_to
from moot.errors import Busy, ConfigError, LimitReached, MootError, NeedsApproval, OutputContract, ProviderError, Refused, StoreFull
from moot.types.canonical import loads_object

SECRET = "canary-0123456789"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x"), 2),
        (NeedsApproval("x"), 3),
        (OutputContract("x"), 4),
        (ProviderError("x"), 5),
        (LimitReached("x"), 6),
        (Busy("x"), 7),
        (Refused("x"), 1),
        (StoreFull("x"), 1),
    ],
)
def test_every_error_has_an_exit_code_and_a_fix(error: MootError, code: int, capfd: pytest.CaptureFixture[str]) -> None:
    error.fix = "Do this."
    assert report(error, Output(), as_json=True) == code
    out, err = capfd.readouterr()
    assert "moot: x\n  Do this.\n" in err
    assert loads_object(out)["error"] == {"code": error.code, "message": error.message, "fix": "Do this.", "retryable": False}


def test_a_bug_is_one_line_and_its_traceback_is_printed_on_demand(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise KeyError(f"\x1b[2J{SECRET}")

    output = Output()
    output.hide([SECRET])
    for debug in ("", "1"):
        monkeypatch.setenv("MOOT_DEBUG", debug)
        with pytest.raises(KeyError) as caught:
            fail()
        assert report(caught.value, output, as_json=False) == 1
        out, err = capfd.readouterr()
        assert (out, "moot doctor" in err, "Traceback" in err, SECRET in err, "\x1b" in err) == ("", True, debug == "1", False, False)


def test_the_first_cause_in_nested_exception_groups_is_found() -> None:
    cause = Busy("x")
    assert innermost(ExceptionGroup("", [ExceptionGroup("", [cause, ValueError()])])) is cause
    assert innermost(cause) is cause


def test_log_records_are_clean_lines_and_logging_is_restored(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MOOT_DEBUG", raising=False)
    before = logging.getLogger().handlers
    with logging_to(Output()):
        logging.getLogger("moot.x").warning("careful \x1b[2J%s", "now")
        logging.getLogger("moot.x").info("quiet")
        logging.getLogger("somebody").error("else")
        try:
            raise ValueError
        except ValueError:
            logging.getLogger("moot.x").exception("went wrong")
    assert capfd.readouterr().err == "moot: careful now\nmoot: went wrong\n"
    assert logging.getLogger().handlers is before
