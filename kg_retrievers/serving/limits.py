"""How much may be asked of a service at once."""

from __future__ import annotations

from collections.abc import Sequence

from kg_retrievers.errors import InvalidArgumentError

#: The most characters of a question, or of the name of an entity, and the most seed entities.
MOST_CHARACTERS, MOST_SEEDS = 10_000, 100

#: The most pieces of evidence that can be asked for, and the most facts around an entity.
MOST_EVIDENCE, MOST_FACTS = 100, 1_000

#: The most example questions.
MOST_EXAMPLES = 20


def check_text(name: str, text: str) -> None:
    """Check a text that a caller gives.

    Raises:
        InvalidArgumentError: If it is empty or too long.
    """
    if not text.strip():
        raise InvalidArgumentError(f"the {name} is empty. Give a text.")
    if len(text) > MOST_CHARACTERS:
        raise InvalidArgumentError(
            f"the {name} has {len(text):,} characters; wanted are at most {MOST_CHARACTERS:,}. Say it in fewer words."
        )


def check_range(name: str, number: int, most: int) -> None:
    """Check a number that a caller gives.

    Raises:
        InvalidArgumentError: If it is not 1 to `most`.
    """
    if not 1 <= number <= most:
        raise InvalidArgumentError(f"{name} must be 1 to {most:,}, but got {number!r:.50}.")


def check_seeds(seeds: Sequence[str]) -> None:
    """Check the entities that a question is said to be about.

    Raises:
        InvalidArgumentError: If there are too many, or one is empty or too long.
    """
    if len(seeds) > MOST_SEEDS:
        raise InvalidArgumentError(f"seed_entities holds {len(seeds):,} names; wanted are at most {MOST_SEEDS}.")
    for seed in seeds:
        check_text("seed entity", seed)
