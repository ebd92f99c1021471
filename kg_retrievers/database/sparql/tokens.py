r"""Cut a SPARQL query into tokens.

Tokens are words, variables, IRIs, prefixed names, strings, numbers and signs.

The rules come from SPARQL 1.1. Text that engines may cut into tokens differently is refused, since words could hide
there. Some engines replace `\u` before they look for tokens, so that `\u0022` ends a string. `<` and `<=` may stand
before a possible IRI, such as in `<='a>`. Later versions read `<<` and `{|` as statements about statements.
"""

from __future__ import annotations

import re

from kg_retrievers.database.tokens import Token, cut, refused
from kg_retrievers.errors import SparqlSafetyError

_LETTER = r"(?:[A-Za-z_]|[^\x00-\x7f\s])"
_NAME = rf"{_LETTER}(?:{_LETTER}|[0-9])*+"
_PART = rf"(?:{_LETTER}|[0-9-])"
_LOCAL = rf"(?:{_LETTER}|[0-9:-]|%[0-9A-Fa-f]{{2}}|\\[_~.!$&'()*+,;=/?\#@%-])"
_ESCAPE = r"""\\[tbnrf\\"']"""
_TOKEN = re.compile(
    rf"""(?P<blank>[ \t\r\n]++ | \#[^\r\n]*+)
    | (?P<iri><[A-Za-z][A-Za-z0-9+.-]*+:[^<>"{{}}|^`\\\x00-\x20]*+>)
    | (?P<string>'''(?:'{{0,2}}(?:[^'\\]|{_ESCAPE}))*+''' | \"""(?:"{{0,2}}(?:[^"\\]|{_ESCAPE}))*+\"""
        | '(?!'')(?:[^'\\\r\n]|{_ESCAPE})*+' | "(?!"")(?:[^"\\\r\n]|{_ESCAPE})*+")
    | (?P<variable>\?{_NAME})
    | (?P<parameter>\${_NAME})
    | (?P<language>@[A-Za-z]++(?:-[A-Za-z0-9]++)*+)
    | (?P<prefixed>(?:(?:{_LETTER}{_PART}*+(?:\.++{_PART}++)*+)?+:(?:{_LOCAL}++(?:\.++{_LOCAL}++)*+)?+))
    | (?P<number>(?:[0-9]++(?:\.[0-9]++)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+(?!{_LETTER}))
    | (?P<word>{_NAME})
    | (?P<sign>&&|\|\||!=|>=|\^\^|<=?(?=[ \t\r\n])|[-+*/^=>(){{}}\[\],;.|!?])""",
    re.VERBOSE,
)
_NOWHERE = re.compile(r"\\[uU]|\{\||[\x00\ud800-\udfff]")


def refusal(query: str, token: Token, reason: str) -> SparqlSafetyError:
    """Return the error that says where `token` stands, and goes on with `reason`."""
    return SparqlSafetyError(refused(query, token.text, token.position, reason), token.text, token.position)


def tokenize(query: str) -> list[Token]:
    """Cut a query into its tokens without blanks and comments, in linear time.

    Args:
        query: The text of a query.

    Returns:
        The tokens in order, and one of the kind "end".

    Raises:
        SparqlSafetyError: If a part of the text is no token, or may be another one for another engine.

    Example:
        >>> [token.text for token in tokenize("SELECT ?x { ?x a <urn:a> } # all")][:-1]
        ['SELECT', '?x', '{', '?x', 'a', '<urn:a>', '}']
    """
    tokens = cut(query, "SPARQL", _TOKEN, _NOWHERE, refusal)
    return [*(token for token in tokens if token.kind != "blank"), Token("end", "", len(query))]
