r"""The tokens of a Cypher query: names, strings, numbers, parameters, signs, blanks and comments.

The rules are common to all engines (openCypher 9, Neo4j's Cypher 5 and 25, LadybugDB). Text that engines may cut into
tokens differently is refused, since words could hide there:

- `\u`, which Neo4j replaces everywhere before it looks for tokens, so that `\u0027` ends a string,
- comments that end at different positions, since LadybugDB reads on over the end of `/* **/` if another `*/` follows,
  and comments that end at anything but a line feed,
- letters right after a number, and characters that Cypher has no use for, such as zero-width ones and dashes that are
  not `-`,
- `$$`, NUL and half surrogates, which end a query or cannot be sent in some of the clients.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from typing import Literal, NamedTuple, cast

from kg_retrievers.errors import CypherSafetyError

#: The kinds of tokens of Cypher, and the kinds of SPARQL alone.
Kind = Literal[
    "name", "quoted", "string", "integer", "number", "parameter", "sign", "blank", "comment", "end",
    "word", "variable", "iri", "prefixed", "language",
]  # fmt: skip

_LETTER = r"(?:[A-Za-z_]|[^\x00-\x7f\s])"  # narrowed by str.isidentifier
_NAME = rf"{_LETTER}(?:{_LETTER}|[0-9])*+"
_QUOTED = r"`(?:[^`]|``)++`"
_DIGITS = r"[0-9]++(?:_[0-9]++)*+"
_TOKEN = re.compile(
    rf"""(?P<blank>\s++)
    | (?P<comment>/\*(?:[^*]|\*\*(?!/)|\*[^*/])*+\*/
        | /\*(?!\*+/)(?:[^*]|\*(?!/))*+\*/(?!.*?\*/) | //[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]*+(?=\r?\n|\Z))
    | (?P<string>'(?:[^'\\]|\\.)*+' | "(?:[^"\\]|\\.)*+")
    | (?P<quoted>{_QUOTED})
    | (?P<parameter>\$(?:{_NAME}|{_QUOTED}|[0-9]++))
    | (?P<integer>{_DIGITS}(?!\.[0-9]|{_LETTER}))
    | (?P<number>(?:0x[0-9a-fA-F]++(?:_[0-9a-fA-F]++)*+ | 0o[0-7]++(?:_[0-7]++)*+
        | (?:{_DIGITS}(?:\.{_DIGITS})?+|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?+)(?!{_LETTER}))
    | (?P<name>{_NAME})
    | (?P<sign><>|<=|>=|=~|\.\.|\|\||/(?![/*])|[-+*%^=<>()\[\]{{}},;.:|&!])""",
    re.VERBOSE | re.DOTALL,
)
_NOWHERE = re.compile(r"\\[uU]|\$\$|[\x00\ud800-\udfff]")

#: Why something is no token, by the language and its text.
_REASONS: Mapping[str, Mapping[str, str]] = json.loads((files(__package__) / "odd_tokens.json").read_text("utf-8"))


class Token(NamedTuple):
    """A piece of a query, from the character `position` (from 0) on. `kind` "end" stands behind the last one."""

    kind: Kind
    text: str
    position: int

    @property
    def end(self) -> int:
        """The position behind its last character."""
        return self.position + len(self.text)

    @property
    def name(self) -> str:
        """The name of a name or parameter, without back-ticks and `$`."""
        text = self.text.removeprefix("$")
        return text[1:-1].replace("``", "`") if text.startswith("`") else text

    @property
    def is_name(self) -> bool:
        """Whether it is a name in ASCII, in back-ticks, or an identifier of Python."""
        return self.name.isascii() or self.text.startswith("$`") or self.name.isidentifier()

    @property
    def word(self) -> str:
        """A sign, or a name without back-ticks, or a word in capitals.

        It is "" for all other kinds.

        Letters that any engine could take for ASCII letters are replaced by these: full-width ones, the long s.
        """
        if self.kind in ("name", "word"):
            return self.text.upper() if self.text.isascii() else unicodedata.normalize("NFKC", self.text).upper()
        return self.text if self.kind == "sign" else ""


def line_and_column(query: str, position: int) -> tuple[int, int]:
    """Return line and column, both from 1, of a position in a query."""
    return query.count("\n", 0, position) + 1, position - query.rfind("\n", 0, position)


def refusal(query: str, token: Token, reason: str) -> CypherSafetyError:
    """Return the error that says where `token` stands, and goes on with `reason`."""
    return CypherSafetyError(refused(query, token.text, token.position, reason), token.text, token.position)


def refused(query: str, text: str, position: int, reason: str) -> str:
    """Return the message on a text at a position of a query.

    For an empty text, the message is on the end of the query.
    """
    line, column = line_and_column(query, position)
    got = f"{text[:80]!r}" if text else "the end of the query"
    return f"check_read_only: got {got} at line {line}, column {column}{reason}."


def tokenize(query: str) -> list[Token]:
    """Cut a query into its tokens, blanks and comments included, in linear time.

    Args:
        query: The text of a query.

    Returns:
        The tokens in order. Their texts put together are the query.

    Raises:
        CypherSafetyError: If a part of the text is no token, or may be another one for another engine.

    Example:
        >>> [token.text for token in tokenize("RETURN n.`my name` // all") if token.kind != "blank"]
        ['RETURN', 'n', '.', '`my name`', '// all']
    """
    return [*cut(query, "Cypher", _TOKEN, _NOWHERE, refusal)]


def cut(
    query: str,
    language: str,
    pattern: re.Pattern[str],
    nowhere: re.Pattern[str],
    refuse: Callable[[str, Token, str], Exception],
) -> Iterator[Token]:
    """Yield the tokens of a query.

    Args:
        query: The text of a query.
        language: The language of the query.
        pattern: Finds a token. The groups are called like the kinds of tokens.
        nowhere: Finds text that may stand nowhere.
        refuse: Makes the error of a token, whose reason goes on the sentence.
    """
    reasons, position = _REASONS[language], 0
    if found := nowhere.search(query):
        reason = reasons.get(found[0].lower(), "a character that cannot be sent. Leave it out")
        raise refuse(query, Token("sign", found[0], found.start()), f", {reason}")
    while position < len(query):
        match = pattern.match(query, position)
        token = Token(cast(Kind, match.lastgroup), match[0], position) if match else None
        is_odd = token is not None and token.kind in ("name", "parameter") and not token.is_name
        if token is None or is_odd:
            token = token or Token("sign", query[position], position)
            reason = reasons.get(token.text, f"nothing that {language} can read. Leave it out")
            raise refuse(query, token, f", {reason}")
        yield token
        position = token.end


def without_comments(query: str) -> str:
    """Return a query with spaces in place of comments and unusual blanks.

    All positions stay.
    """
    pairs = ((one.text, one.kind in ("blank", "comment")) for one in tokenize(query))
    return "".join(re.sub(r"[^\n]", " ", text) if is_left_out else text for text, is_left_out in pairs)
