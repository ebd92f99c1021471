"""Write what the docs, the README and the front door's stub take from the registry of methods and from figures.

`make generate` runs it. A generated part stands between two marks, in Markdown `<!-- generated: NAME -->` and
`<!-- end generated -->`, elsewhere the same behind a `#`. `--check` writes nothing and names the files that are out of
date.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

sys.path.insert(0, str(Path(__file__).parents[1]))  # where `benchmarks` is
from benchmarks.figures import ROOT, load, markdown, share, shown
from benchmarks.rivals import page as rivals
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.methods.registry import GRAPH_PROMPT, Entry, Method, entries, find_method

DOCS = ROOT / "docs"
STUB = ROOT / "kg_retrievers" / "__init__.pyi"

#: A generated part: its first mark, its name, its lines, its last mark.
PART = re.compile(
    r"^(?P<begin>[ \t]*(?:<!--|\#) generated: (?P<name>[^\n]*?)(?: -->)?\n)"
    r"(?P<lines>.*?)"
    r"^(?P<end>[ \t]*(?:<!--|\#) end generated)",
    re.MULTILINE | re.DOTALL,
)

#: Fields of LangChain's retrievers, which say nothing about a method.
FOREIGN = {"name", "tags", "metadata"}


def main(arguments: list[str]) -> int:
    """Write all files that are out of date, or with `--check` name them."""
    stale = [path for path, text in generated() if path.read_text(encoding="utf-8") != text]
    if "--check" in arguments:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date. Run: make generate", file=sys.stderr)
        return int(bool(stale))
    for path, text in generated():
        if path in stale:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return 0


def generated() -> Iterator[tuple[Path, str]]:
    """Yield each file with generated parts, and the text that it should have."""
    pages = sorted(DOCS.rglob("*.md"))
    for path in (ROOT / "README.md", *pages, ROOT / "zensical.toml", STUB):
        text = path.read_text(encoding="utf-8")
        yield path, PART.sub(partial(_part, path), text)


def _part(path: Path, found: re.Match[str]) -> str:
    kind, _, subject = found["name"].partition(" of ")
    if kind not in PARTS:
        raise SystemExit(f"{path}: nothing is generated for {kind!r}, only for {', '.join(PARTS)}.")
    lines = PARTS[kind](path, subject)
    return f"{found['begin']}{lines}\n{found['end']}"


def page(method: Entry) -> Path:
    """Return the page of a method, which a person writes."""
    path = DOCS / "methods" / f"{method.name}.md"
    if not path.is_file():
        raise SystemExit(f"{path.relative_to(ROOT)} is missing: each method has a page. Copy the page of another one.")
    return path


def title(method: Entry) -> str:
    """Return the title of the method's page."""
    return page(method).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def method_table(path: Path, _: str) -> str:
    """Return the table of all methods, with links that work from a page."""
    rows = ["", "| method | class | on the shell | finds | needs | paper |", "|---|---|---|---|---|---|"]
    for method in entries():
        link = page(method).relative_to(path.parent)
        cells = [f"[{title(method)}]({link})", f"`{class_name(method)}`", shell_names(method), method.finds]
        rows.append(f"| {' | '.join([*cells, needs(method), paper(method)])} |")
    return "\n".join([*rows, ""])


def short_table(path: Path, _: str) -> str:
    """Return the table of all methods in three columns."""
    rows = ["", "| method | finds | needs |", "|---|---|---|"]
    for method in entries():
        link = page(method).relative_to(path.parent)
        parts = [part for part in needs(method).split("; ") if not part.startswith("takes ")]
        needed = ", ".join(parts).removeprefix("nothing, ")
        rows.append(f"| [{title(method)}]({link})<br>`{class_name(method)}` | {method.finds} | {needed} |")
    return "\n".join([*rows, ""])


def facts(_: Path, name: str) -> str:
    """Return what the registry says of one method."""
    method = _entry(name)
    rows = {
        "class": f"`{class_name(method)}`",
        "on the shell": shell_names(method),
        "finds": method.finds,
        "needs": needs(method),
    }
    if isinstance(method, Method):
        proposes = method.load_retriever().proposes_answers
        rows["operations"] = "yes" if method.load_retriever().operations else "no"
        rows["proposes answers"] = "yes" if proposes else "no: put a chain with a language model behind it"
    rows["paper"] = paper(method)
    if method.model and method.trainer:
        rows["model"] = f"`{_name(method.model)}`, trained by `{_name(method.trainer)}`"
    return "\n".join(["", "| | |", "|---|---|", *(f"| {key} | {value} |" for key, value in rows.items()), ""])


def class_name(method: Entry) -> str:
    """Return the name of the retriever, or of the model that answers."""
    return method.class_name if isinstance(method, Method) else _name(method.model or "")


def shell_names(method: Entry) -> str:
    """Return the names that the shell takes."""
    if method is GRAPH_PROMPT:
        return "`--model`"
    return ", ".join(f"`{name}`" for name in method.names)


def needs(method: Entry) -> str:
    """Say what a method is built from."""
    words = {"llm": "a language model", "model": "a model trained on questions and answers"}
    if isinstance(method, Method):
        words["examples"] = "examples with " + " or ".join(f"`{label}`" for label in method.labels)
        needed = " or ".join(words[source] for source in method.needs) or "nothing"
        is_optional = method.labels and not method.needs
        optional = [f"takes {words['examples']}, a language model, or both"] if is_optional else []
    else:
        needed, optional = words["model"], []
    extra = [f"extra `{method.extra}`"] if method.extra else []
    return "; ".join([needed, *optional, *extra])


def paper(method: Entry) -> str:
    """Return the paper, linked where it is on arXiv."""
    number = re.search(r"arXiv:(\d+\.\d+)", method.paper)
    return f"[{method.paper}](https://arxiv.org/abs/{number[1]})" if number else method.paper


def field_table(_: Path, name: str) -> str:
    """Return the fields that a method adds to those of every retriever, or with "every retriever" the latter."""
    retriever = BaseKGRetriever if name == "every retriever" else _retriever(name)
    known = {} if retriever is BaseKGRetriever else BaseKGRetriever.model_fields
    comments = field_comments(retriever)
    rows = ["", "| field | default | values | what |", "|---|---|---|---|"]
    for field, info in retriever.model_fields.items():
        if field in FOREIGN or _same(info, known.get(field)):
            continue
        what = comments[field].replace("|", "\\|")
        rows.append(f"| `{field}` | {_default(info)} | {_values(info)} | {what} |")
    return "\n".join([*rows, ""])


def field_comments(retriever: type) -> dict[str, str]:
    """Return the comments, marked by `#:`, of the fields of a class and those that it inherits."""
    comments: dict[str, str] = {}
    for kind in reversed(retriever.__mro__):
        if not kind.__module__.startswith("kg_retrievers."):
            continue
        lines = dedent(inspect.getsource(kind)).splitlines()
        definition = ast.parse("\n".join(lines)).body[0]
        assert isinstance(definition, ast.ClassDef)
        for statement in definition.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                comment = _comment_before(lines, statement.lineno - 1)
                comments[statement.target.id] = comment or comments.get(statement.target.id, "")
    return comments


def _comment_before(lines: list[str], number: int) -> str:
    first = number
    while first and lines[first - 1].strip().startswith("#:"):
        first -= 1
    return " ".join(line.strip().removeprefix("#:").strip() for line in lines[first:number])


def _same(info: FieldInfo, other: FieldInfo | None) -> bool:
    return other is not None and (_default(info), _values(info)) == (_default(other), _values(other))


def _default(info: FieldInfo) -> str:
    value = info.get_default(call_default_factory=False)
    if value is PydanticUndefined:
        return ""
    if inspect.isfunction(value):
        return f"`{value.__name__}`"
    if isinstance(value, str | int | float | tuple | None):
        return f"`{_literal(value)}`"
    return "the method's own"


def _values(info: FieldInfo) -> str:
    kinds = get_args(info.annotation) or (info.annotation,)
    if get_origin(info.annotation) is Literal:
        return ", ".join(f"`{_literal(value)}`" for value in get_args(info.annotation))
    bounds = [bound for bound in map(_bound, info.metadata) if bound]
    texts = [" and ".join(bounds)] if bounds else ["true or false"] if bool in kinds else []
    return " or ".join([*texts, "`None`"] if texts and type(None) in kinds else texts)


def _bound(bound: Any) -> str:
    words = {"ge": "{} or more", "gt": "above {}", "le": "at most {}", "lt": "below {}", "min_length": "{} or more"}
    for name, text in words.items():
        if (value := getattr(bound, name, None)) is not None:
            return text.format(f"{value:,}")
    return ""


def _literal(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    is_large = isinstance(value, int) and not isinstance(value, bool) and value >= 10_000
    return f"{value:_}" if is_large else repr(value)


def navigation(path: Path, _: str) -> str:
    """Return the entries of the methods' pages in the navigation."""
    lines = (f'        {{ "{title(method)}" = "{page(method).relative_to(DOCS)}" }},' for method in entries())
    return "\n".join(lines)


def stub_entries(_path: Path, _subject: str) -> str:
    """Return the imports of the methods' classes, models and trainers, as type checkers and lazy_loader read them."""
    retrievers = [method.retriever for method in entries() if isinstance(method, Method)]
    trained = [part for method in entries() for part in (method.model, method.trainer) if part]
    lines = []
    for part in sorted({*retrievers, *trained}):
        module, _colon, name = part.partition(":")
        lines.append(f"from {module.removeprefix('kg_retrievers')} import {name} as {name}")
    return "\n".join([*lines, ""])


#: Classes whose methods stand in several files. Retrievers share theirs, which `documents.md` lists once.
INHERITING = ("KnowledgeGraph", "LadybugExecutor", "Neo4jExecutor")

_INHERITED = ["    options:", "      inherited_members: true"]


def reference(_path: Path, _subject: str) -> str:
    """Return what mkdocstrings makes the reference of, by the room of the package that it lives in."""
    rooms: dict[str, list[str]] = {}
    for statement in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.ImportFrom):
            room = (statement.module or "").partition(".")[0]
            rooms.setdefault(room, []).extend(alias.name for alias in statement.names)
    lines = [""]
    for room, names in sorted(rooms.items()):
        lines += [f"## {room}", ""]
        for name in names:
            lines += [f"::: kg_retrievers.{name}", *(_INHERITED if name in INHERITING else [])]
        lines.append("")
    return "\n".join(lines)


def figures(_: Path, names: str) -> str:
    """Return files of figures, joined to one table."""
    return f"\n{shown(names.split())}\n"


def evidence(make: Callable[[str], str], _: Path, subject: str) -> str:
    """Return a part of the comparison with other packages."""
    return f"\n{make(subject)}\n"


def headlines(_path: Path, _subject: str) -> str:
    """Return the few figures of the README."""
    own = {row[0]: row[1] for row in load("own-graphs-kept")["table"]}
    kept = {row["method"]: row for row in rivals.rows_of("rivals-kept", rivals.HAND_MADE)}
    hops = rivals.rows_of("rivals", "PathQuestion, 3 hops")
    ours = next(row for row in hops if row["method"] == "KGRetriever")
    best = max(rivals.main_recall(row) for row in hops if not row["ours"])
    recall, cosine = (share(rivals.main_recall(kept[name])) for name in ("KGRetriever", "Cosine"))
    right, wrong, refused = (own[name].split(" [")[0] for name in ("right", "wrong", "unanswerable, refused"))
    lost = own["unanswerable, refused"].rpartition("n ")[2].rstrip(")")
    graphs, package = "six hand-made graphs kept aside", "the best other package or baseline"
    rows = [
        ["questions", "n", "figure"],
        [
            f"{graphs}, `KGRetriever`",
            f"{kept['KGRetriever']['n']}",
            f"{recall} of the answers are in its first 150 tokens (cosine over all facts: {cosine})",
        ],
        [
            "PathQuestion, 3 hops, `KGRetriever`",
            f"{ours['n']}",
            f"{share(rivals.main_recall(ours))} at 150 tokens ({package}: {share(best)})",
        ],
        [f"{graphs}, `SimGRAGRetriever`", own["questions"], f"{right} answered right, {wrong} wrong, the rest refused"],
        ["the same graphs, questions without an answer", lost, f"{refused} refused"],
    ]
    return f"\n{markdown(rows)}\n"


def _entry(name: str) -> Entry:
    return GRAPH_PROMPT if name == GRAPH_PROMPT.name else find_method(name)


def _retriever(name: str) -> type[BaseKGRetriever]:
    return find_method(name).load_retriever()


def _name(dotted: str) -> str:
    return dotted.partition(":")[2]


#: What is generated, by the name in the mark; after " of " the name says of what.
PARTS: dict[str, Callable[[Path, str], str]] = {
    "table": method_table,
    "short table": short_table,
    "facts": facts,
    "fields": field_table,
    "navigation": navigation,
    "stub": stub_entries,
    "reference": reference,
    "figures": figures,
    "headlines": headlines,
    "evidence": partial(evidence, rivals.set_tables),
    "evidence kept aside": partial(evidence, rivals.kept_table),
    "evidence summary": partial(evidence, rivals.summary),
    "evidence settings": partial(evidence, rivals.settings),
    "evidence runs": partial(evidence, rivals.runs),
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
