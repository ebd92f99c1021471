"""What the shell says of a mistake."""

from __future__ import annotations

from collections.abc import Callable

#: The fixture `run`: arguments to exit code, stdout and stderr.
Run = Callable[..., tuple[int, str, str]]


def mistake(done: tuple[int, str, str]) -> str:
    """Check that a command told a mistake on one line and nothing else; return the line."""
    code, out, err = done
    assert (code, out) == (2, ""), err
    assert len(err.splitlines()) == 1, err
    assert err.startswith("kg-retrievers: error: ")
    assert "Value error" not in err, "this is pydantic's"
    return err
