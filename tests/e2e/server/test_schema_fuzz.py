"""Every operation with input generated from its description: no internal errors, and every response matches the description."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

from e2e.server.conftest import FIXED, ServedHome
from e2e.server.test_serve import ask
from moot.server.app import routed
from moot.server.routes.documentation import specification

pytestmark = pytest.mark.slow

STREAMS = ("/stream", "/events")
"""Streams that don't end; other tests cover them."""

EXAMPLES = int(os.environ.get("MOOT_FUZZ", "3"))
"""Number of generated requests per operation."""

SEED = 20261122


def described() -> Any:
    told: Any = specification(routed())
    told["paths"] = {path: methods for path, methods in told["paths"].items() if not path.endswith(STREAMS) and path != "/api/logout"}
    return told


@pytest.mark.parametrize("scope", ["admin", "read"])
def test_no_generated_request_breaks_the_server_or_its_description(server_process: ServedHome, scope: str) -> None:
    import schemathesis
    from schemathesis import checks

    wanted = [
        checks.not_a_server_error,
        checks.response_schema_conformance,
        checks.content_type_conformance,
        checks.status_code_conformance,
    ]
    token = FIXED
    if scope != "admin":
        status, made = ask(f"{server_process.url}/api/tokens", data={"name": scope, "scopes": [scope]})
        assert status == 201
        token = made["secret"]
    headers = {"authorization": f"Bearer {token}"}
    schema = schemathesis.openapi.from_dict(described())
    asked = 0
    for found in schema.get_all_operations():
        operation = found.ok()

        @seed(SEED)
        @settings(
            max_examples=EXAMPLES,
            database=None,
            deadline=None,
            phases=[Phase.explicit, Phase.generate],
            verbosity=Verbosity.quiet,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def conforms(case: Any) -> None:
            nonlocal asked
            asked += 1
            answer = case.call(base_url=server_process.url, headers=headers, timeout=60)
            case.validate_response(
                answer,
                headers=headers,
                checks=wanted,
            )

        conforms()
    assert asked >= len(described()["paths"])
    assert ask(f"{server_process.url}/readyz")[0] == 200
