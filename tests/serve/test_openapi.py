"""The description of the APIs (OpenAPI) and what the server really answers: schemathesis sends what it allows."""

from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from serve.live import running
from serve.stub import stub_app

LANGUAGES = {"source": "en", "target": "it", "source_lang": "EN", "target_lang": "IT"}
TRIES = settings(
    max_examples=6, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


def use_served_languages(schema: Any) -> None:
    """Let language fields of a body have the languages of the stub only.

    Else nearly every generated request would be refused for its languages, and nothing behind them tried.
    """
    for item in schema if isinstance(schema, list) else schema.values() if isinstance(schema, dict) else ():
        use_served_languages(item)
    properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
    for name in LANGUAGES.keys() & properties.keys():
        properties[name] = {"type": "string", "enum": [LANGUAGES[name]]}


@pytest.mark.slow
@pytest.mark.parametrize("prefix", ["/translate", "/d", "/languages", "/suggest", "/frontend", "/v1", "/v2", "/v3"])
def test_every_answer_is_one_that_is_described_and_none_is_an_error_of_the_program(prefix: str, tmp_path: Path) -> None:
    app = stub_app(suggestions=str(tmp_path / "suggestions.jsonl"))
    described = app.openapi()
    bodies = [route["requestBody"] for routes in described["paths"].values() for route in routes.values()
              if "requestBody" in route]  # fmt: skip
    models = [model for name, model in described["components"]["schemas"].items() if name.endswith("Request")]
    use_served_languages(bodies + models)
    described["paths"] = {
        path: routes
        for path, routes in described["paths"].items()
        if path.startswith(prefix) and path != "/v1/explain"  # which needs a model
    }
    results: list[Any] = list(schemathesis.openapi.from_dict(described).get_all_operations())
    operations = [result.ok() for result in results]
    assert operations
    with running(app) as url:
        for operation in operations:

            @settings(
                max_examples=6, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
            )
            @given(case=operation.as_strategy())
            def check(case: Any) -> None:
                case.call_and_validate(base_url=url, checks=CHECKS)

            check()
