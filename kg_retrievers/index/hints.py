"""Advise on questions that were not understood.

The advice depends on the language of the question.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping

from kg_retrievers.index.embeddings import folded
from kg_retrievers.index.names import FUNCTION_WORDS, english_share, function_words

#: By `hint_python` and `hint_shell`, the arguments of errors.
Hints = Mapping[str, str]

#: For a question that is not in English.
ANOTHER_LANGUAGE: Hints = {
    "hint_python": "Only English is understood by default: ask in English, give llm=, or give examples= in your "
    "language with embeddings that know it, such as local_embeddings(...) of a multilingual model.",
    "hint_shell": "Only English is understood by default: ask in English, give --llm, or give --examples in your "
    "language with embeddings that know it, as --embeddings local:MODEL with a multilingual model.",
}

#: For a question that names an entity, but whose relation is not clear.
REPHRASE: Hints = {
    "hint_python": "Rephrase it with a relation of the graph, lower min_confidence, or give examples= or llm=.",
    "hint_shell": "Rephrase it with a relation of the graph, lower --min-confidence, or give --examples or --llm.",
}

#: For a question around whose entities more facts are than are fetched of a connected graph. Facts of relations that it
#: did not have when the index was connected are not fetched either. On the shell, each command connects.
RAISE_FACTS: Hints = {
    "hint_python": "Raise max_facts of GraphIndex.connect; if a warning names relations that are new in the database, "
    "connect again.",
    "hint_shell": "Raise --max-facts N.",
}

_NAME_AN_ENTITY = "Ask about an entity of the graph by its name; questions that the graph answers are written by"

#: For a text that names no entity.
NAME_AN_ENTITY: Hints = {
    "hint_python": f"{_NAME_AN_ENTITY} generate_questions(graph).",
    "hint_shell": f"{_NAME_AN_ENTITY}: kg-retrievers questions GRAPH --output FILE",
}

#: For a name that is like none of the graph.
SEE_NAMES: Hints = {
    "hint_python": "`graph.entities` has the keys, and `graph.entities_named(name)` those of a name.",
    "hint_shell": "To see names of the graph: kg-retrievers info GRAPH",
}

#: For a text that names no entity of a graph that stays in its database, without a store of its names.
LOAD_NAMES: Hints = {
    "hint_python": "Without a vector store, only names that are written exactly are found. Load them by "
    "kg_retrievers.index.load_names(executor, embeddings, store), and connect with the store.",
    "hint_shell": "Without --vectors, only names that are written exactly are found. Load them: kg-retrievers index "
    "GRAPH --vectors ADDRESS, and ask with --vectors ADDRESS.",
}

_WORD = re.compile(r"[^\W\d_]+")

#: Frequent function words of other languages.
_WORDS_OF = {
    language: frozenset(function_words(language))
    for language in ("German", "French", "Spanish", "Italian", "Portuguese", "Dutch", "Scandinavian")
}

#: Languages by the beginning of the Unicode names of their letters. The first language that a question has counts.
_SCRIPTS = {
    "HIRAGANA": "Japanese",
    "KATAKANA": "Japanese",
    "HANGUL": "Korean",
    "CJK": "Chinese",
    "CYRILLIC": "in Cyrillic script",
    "ARABIC": "in Arabic script",
    "GREEK": "Greek",
    "DEVANAGARI": "in Devanagari script",
}

#: Words that only questions in English have.
_ASKS_IN_ENGLISH = frozenset(["who", "whom", "whose", "what", "which", "when", "where", "why", "how"])

#: English function words that are words of these languages, too.
_ELSEWHERE = frozenset(function_words("elsewhere"))


def looks_foreign(question: str) -> bool:
    """Tell whether a question shows more signs of another language than of English.

    The signs of English are its function words.

    Signs are words in other scripts and frequent function words of other languages. Words with a capital, except the
    first one, may be names and say nothing. A question with "who", "what" and the like is English.

    Example:
        >>> looks_foreign("Wer leitet Team Ruby?"), looks_foreign("genre Dune"), looks_foreign("Who leads Team Ruby?")
        (True, False, False)
    """
    words = _plain_words(question)
    signs = sum(_is_foreign(word) for word in words)
    english = sum(len(word) > 2 for word in words & FUNCTION_WORDS - _ELSEWHERE)
    return signs > english and not words & _ASKS_IN_ENGLISH


def tell_language(question: str) -> str:
    """Return a sentence on the language of a question.

    It is empty if the language seems to be English.

    Example:
        >>> tell_language("Wer leitet Team Ruby?"), tell_language("谁领导 Team Ruby"), tell_language("Who leads it?")
        ('The question seems to be German.', 'The question seems to be Chinese.', '')
    """
    if not looks_foreign(question):
        return ""
    words = _plain_words(question)
    letters = {unicodedata.name(letter, "").partition(" ")[0].partition("-")[0] for word in words for letter in word}
    script = next((language for name, language in _SCRIPTS.items() if name in letters), None)
    signs = {language: len(words & own) for language, own in _WORDS_OF.items()}
    first, second = sorted(signs, key=lambda language: -signs[language])[:2]
    language = script or (first if signs[first] > signs[second] else "in another language than English")
    return f"The question seems to be {language}."


def hints_for(question: str, in_english: Hints) -> dict[str, str]:
    """Return the next steps after a question that was not understood.

    Args:
        question: The question, best without the names of entities.
        in_english: The next steps for a question in English. It joins the hint on languages if both may help, since a
            question with a sign of another language has words of English, too.

    Example:
        >>> hints_for("genre Dune", {"hint_python": "Rephrase it."})
        {'hint_python': 'Rephrase it.'}
    """
    if not looks_foreign(question):
        return dict(in_english)
    mixed = any(english_share(word) and not _is_foreign(word) for word in _plain_words(question))
    told = {name: f"{tell_language(question)} {hint}".strip() for name, hint in ANOTHER_LANGUAGE.items()}
    hints = {name: f"{in_english.get(name, '') if mixed else ''} {hint}".strip() for name, hint in told.items()}
    return hints | {"hint_agent": f"{tell_language(question)} Ask in English, with the names as they are."}


def unknown_names(question: str, unplaced: Iterable[str]) -> list[str]:
    """Return the names in a question that stand for nothing in the graph.

    They are runs of words with capitals, not the first word, that are among those which nothing in the graph fits.

    Example:
        >>> unknown_names("When did Ann win the Platinum Comb?", ["platinum", "comb"])
        ['Platinum Comb']
    """
    left, names, is_name = set(unplaced), list[list[str]](), False
    found = _WORD.findall(question)
    for word in found[1:] if any(map(str.islower, found)) else ():
        was_name, is_name = is_name, word[0].isupper() and folded(word) in left
        if is_name:
            names = [*names[:-1], [*names[-1], word]] if was_name else [*names, [word]]
    return [" ".join(words) for words in names]


def _plain_words(question: str) -> set[str]:
    """Return the words of a question that are hardly names, folded."""
    words = _WORD.findall(question)
    names = {word for word in words[1:] if word.isascii() and not word.islower()}
    names |= {word for word in words[:1] if len(word) > 1 and word.isascii() and word.isupper()}
    return {folded(word) for word in words if word not in names}


def _is_foreign(word: str) -> bool:
    other_script = any(not unicodedata.name(letter, "LATIN").startswith("LATIN") for letter in word)
    return other_script or any(word in own for own in _WORDS_OF.values())
