"""Secrets: what is removed from texts and errors, and what stays."""

from __future__ import annotations

import pytest

from kg_retrievers.errors import DatabaseQueryError, KGRetrieversError
from kg_retrievers.redaction import hide_secrets, names_secret, without_secrets

SECRET = "Xy7-Zq3.w9"


@pytest.mark.parametrize(
    "text",
    [
        f"bolt://ann:{SECRET}@host:7687",
        f"https://{SECRET}@host/path",
        f"bolt://host?region=a&password={SECRET}&x=1",
        f"{{'api_key': '{SECRET}', 'n': 1}}",
        f"Authorization: Bearer {SECRET}",
        f"OPENAI_API_KEY={SECRET}",
        f"the password is wrong: password: {SECRET}",
        f"Incorrect API key provided: sk-{SECRET.replace('.', '_')}.",
    ],
)
def test_what_looks_like_a_secret_is_removed(text: str) -> None:
    assert SECRET not in without_secrets(text)
    assert SECRET.replace(".", "_") not in without_secrets(text)
    assert without_secrets(without_secrets(text)) == without_secrets(text)


def test_values_of_the_environment_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert SECRET in without_secrets(f"It is {SECRET}.")
    monkeypatch.setenv("SOME_API_KEY", SECRET)
    assert without_secrets(f"It is {SECRET}.") == "It is ***."
    monkeypatch.setenv("SOME_API_KEY", "short")
    assert without_secrets("A short text.") == "A short text."


@pytest.mark.parametrize(
    "text",
    [
        "Set NEO4J_USERNAME and NEO4J_PASSWORD to a user who may read there.",
        "wanted a URI as in 'neo4j://localhost:7687', without user name and password; these are read",
        "the budget allows no more tokens.",
        "films.csv:3: wanted 3 columns, but got 2: [a, b]",
        "MATCH (n {key: $e0}) WHERE n.token = 'x' RETURN n",
        "mail ann@example.org, or see https://example.org/a@b",
    ],
)
def test_other_texts_stay(text: str) -> None:
    assert without_secrets(text) == text


def test_an_error_and_its_causes_are_cleaned_in_place() -> None:
    cause = ValueError(f"password={SECRET}", {"deep": [f"Bearer {SECRET}", 3]})
    error = RuntimeError(f"bolt://a:{SECRET}@b")
    error.__cause__ = cause
    error.body = {"message": f"api_key={SECRET}"}  # type: ignore[attr-defined]
    cause.__context__ = error  # a circle
    hide_secrets(error)
    assert type(error) is RuntimeError
    assert SECRET not in repr(error) + repr(cause) + repr(vars(error))
    assert cause.args[1]["deep"][1] == 3


def test_errors_of_the_package_hold_no_secret() -> None:
    error = DatabaseQueryError(f"password={SECRET}", "RETURN 1", f"token={SECRET}")
    assert SECRET not in str(error) + repr(error) + error.reason + error.message
    assert SECRET not in repr(KGRetrieversError(f"Bearer {SECRET}"))


def test_names_of_secrets_in_addresses() -> None:
    assert names_secret("a=1&Password=x")
    assert names_secret("pass%77ord=x")
    assert names_secret("token")
    assert not names_secret("region=x&policy=y")
