"""From the JSON of Wikidata to statements as its RDF has them: an entity on each line, as dumps and `EntityData` do."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from reprlib import repr as short
from typing import Any

from kg_retrievers.graph.iris import WELL_KNOWN
from kg_retrievers.graph.readers.rdf.statements import WIKIDATA_ENTITIES, WIKIDATA_PROPERTIES
from kg_retrievers.graph.readers.text_files import TextFile

_START = re.compile(
    r'\s*\{\s*"entities":\s*\{\s*"[QP]\d+":\s*\{|'
    r'\[?\s*\{(?=[^{}]*"type":\s*"(?:item|property)")(?=[^{}]*"id":\s*"[QP]\d+")'
    r'[^{}]*"(?:labels|descriptions|aliases|claims)":\s*[\[{]'
)

#: The datatypes of days, months and years by Wikidata's precision, and how many characters of a time tell them.
_PRECISIONS = {11: ("date", 10), 10: ("gYearMonth", 7), 9: ("gYear", 4)}


def is_wikidata(start: str) -> bool:
    """Return whether a text begins as the JSON of Wikidata.

    Example:
        >>> is_wikidata('[{"type":"item","id":"Q31","labels":{'), is_wikidata('{"entities":{"Q42":{'), is_wikidata("[")
        (True, True, False)
    """
    return _START.match(start) is not None


class WikidataJson:
    """Yields the statements of a file.

    Args:
        file: The file.
        module: The module with the terms.
        left_out: Counts what has no statement.

    Attributes:
        prefixes: The prefixes that the file declares: none.
    """

    format = "Wikidata JSON"
    prefixes: Mapping[str, str] = {}

    def __init__(self, file: TextFile, module: Any, left_out: Counter[str]) -> None:
        """Read nothing yet."""
        self._file, self._module, self._left_out = file, module, left_out

    @property
    def skipped(self) -> int:
        """How many lines were skipped."""
        return self._file.skipped

    def read(self, begin: Callable[[dict[str, str]], None], take: Callable[[Iterable[Any]], None]) -> None:
        """Read it, as `RdfFile.read` does."""
        begin({})
        take(self)

    def __iter__(self) -> Iterator[Any]:
        """Yield the statements of each entity.

        Raises:
            GraphLoadError: If a line holds none.
        """
        for line in self._file.lines():
            text = line.strip().rstrip(",")
            if text in ("", "[", "]"):
                continue
            try:
                value = json.loads(text)
                several = value.get("entities") if isinstance(value, dict) else value
                entities = several.values() if isinstance(several, dict) else several or [value]
                said = [statement for entity in entities for statement in self._of_entity(entity)]
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                self._file.reject(f"is no entity of Wikidata ({error!r:.80}): {short(text)}.", self._file.line)
            else:
                yield from said

    def _of_entity(self, entity: Any) -> Iterator[Any]:
        quad, literal = self._module.Quad, self._module.Literal
        item = self._iri(WIKIDATA_ENTITIES + entity["id"])
        if entity.get("type") == "property":
            yield quad(item, self._iri(WELL_KNOWN["rdf"] + "type"), self._iri(WELL_KNOWN["wikibase"] + "Property"))
        for part, prefix, name in (("labels", "rdfs", "label"), ("descriptions", "schema", "description")):
            for text in _items(entity, part):
                predicate = self._iri(WELL_KNOWN[prefix] + name)
                yield quad(item, predicate, literal(text["value"], language=text["language"]))
        for texts in _items(entity, "aliases"):
            for text in texts:
                predicate = self._iri(WELL_KNOWN["skos"] + "altLabel")
                yield quad(item, predicate, literal(text["value"], language=text["language"]))
        self._left_out["links to pages about entities"] += len(_items(entity, "sitelinks"))
        for claims in _items(entity, "claims"):
            for claim in claims:
                yield from self._of_claim(item, claim)

    def _of_claim(self, item: Any, claim: Any) -> Iterator[Any]:
        """Yield a fact, or a node that stands for it if there is more to say."""
        quad, snak = self._module.Quad, claim["mainsnak"]
        property, value = snak["property"], self._value(snak)
        self._left_out["references of Wikidata"] += len(claim.get("references", ()))
        rank, qualifiers = claim.get("rank", "normal"), [one for some in _items(claim, "qualifiers") for one in some]
        if value is None:
            self._left_out["statements of Wikidata without a value"] += 1
        elif rank == "normal" and not qualifiers:
            yield quad(item, self._iri(f"{WIKIDATA_PROPERTIES}direct/{property}"), value)
        else:
            node = self._module.BlankNode()
            yield quad(item, self._iri(WIKIDATA_PROPERTIES + property), node)
            yield quad(node, self._iri(f"{WIKIDATA_PROPERTIES}statement/{property}"), value)
            wikibase = WELL_KNOWN["wikibase"]
            yield quad(node, self._iri(f"{wikibase}rank"), self._iri(f"{wikibase}{rank.capitalize()}Rank"))
            for snak in qualifiers:
                if (value := self._value(snak)) is not None:
                    yield quad(node, self._iri(f"{WIKIDATA_PROPERTIES}qualifier/{snak['property']}"), value)

    def _value(self, snak: Any) -> Any:
        """Return the value of a property; None if there is none, a blank node if it is not known."""
        if snak["snaktype"] != "value":
            return self._module.BlankNode() if snak["snaktype"] == "somevalue" else None
        kind, value = snak["datavalue"]["type"], snak["datavalue"]["value"]
        literal = self._module.Literal
        match kind:
            case "wikibase-entityid":
                return self._iri(WIKIDATA_ENTITIES + value["id"])
            case "monolingualtext":
                return literal(value["text"], language=value["language"])
            case "quantity":
                self._left_out["units of quantities"] += value["unit"] != "1"
                return literal(value["amount"].lstrip("+"), datatype=self._iri(WELL_KNOWN["xsd"] + "decimal"))
            case "globecoordinate":
                point = f"Point({value['longitude']} {value['latitude']})"
                return literal(point, datatype=self._iri(WELL_KNOWN["geosparql"] + "wktLiteral"))
            case "time":
                return self._time(value["time"], value["precision"])
        return literal(value)

    def _time(self, time: str, precision: int) -> Any:
        """Return a day, month or year; of what is less precise, a text."""
        text = time.lstrip("+")
        kind, length = _PRECISIONS.get(min(precision, 11), ("", 0))
        if not kind or text.startswith("-"):
            return self._module.Literal(f"about {text.partition('-00')[0].partition('T')[0]}")
        return self._module.Literal(text[:length], datatype=self._iri(WELL_KNOWN["xsd"] + kind))

    def _iri(self, iri: str) -> Any:
        return self._module.NamedNode(iri)


def _items(thing: Any, part: str) -> Any:
    """Return the values of an object of JSON; an empty one is a list in PHP's JSON."""
    values = thing.get(part) or {}
    return values.values() if isinstance(values, dict) else values
