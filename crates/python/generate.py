"""Writes python/busbound/results.py from the JSON schemas in docs/, so that attributes have the names of the JSON.

python crates/python/generate.py            writes it
python crates/python/generate.py --check    fails if it is out of date
"""

from __future__ import annotations

import json
import keyword
import sys
import textwrap
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCHEMAS = HERE.parent.parent / "docs"
RESULTS = HERE / "python" / "busbound" / "results.py"

# Whole answers, in the order of their schemas.
ANSWERS = ["diagnosis", "survey", "comparison", "whatif", "rank", "fleet", "history"]

PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}

HEAD = '''"""Result types: every member of the JSON is an attribute of the same name.

Written by generate.py from the JSON schemas in docs/.
"""

from __future__ import annotations

from ._record import Answer, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal
'''


class Types:
    """The definitions of all schemas, each once."""

    def __init__(self):
        self.definitions = {}
        self.answers = []
        #: New names, by schema, for names that two schemas use for different things.
        self.renamed = {}

    def add(self, schema, name):
        for key, definition in schema.get("$defs", {}).items():
            known = self.definitions.get(key)
            if known is not None and known[1] != definition:
                self.renamed[name, key] = key = name.capitalize() + key
            self.definitions[key] = (name, definition)
        title = schema["title"]
        self.definitions[title] = (name, {key: schema[key] for key in schema if key not in ("$defs", "$schema", "title")})
        self.answers.append(title)

    def target(self, reference, schema):
        key = reference.rsplit("/", 1)[1]
        return self.renamed.get((schema, key), key)

    def annotation(self, member, schema):
        if member is True:
            return "Any"
        if "$ref" in member:
            target = self.target(member["$ref"], schema)
            _, definition = self.definitions[target]
            return target if definition.get("type") == "object" else self.annotation(definition, schema)
        if "enum" in member:
            return "Literal[" + ", ".join(map(repr, member["enum"])) + "]"
        if "const" in member:
            return f"Literal[{member['const']!r}]"
        for several in ("anyOf", "oneOf"):
            if several in member:
                parts = [self.annotation(part, schema) for part in member[several]]
                words = [part for part in parts if part.startswith("Literal[")]
                if len(words) == len(parts):
                    return "Literal[" + ", ".join(word[8:-1] for word in words) + "]"
                return " | ".join(dict.fromkeys(parts))
        kind = member.get("type")
        if isinstance(kind, list):
            return " | ".join(self.annotation({**member, "type": one}, schema) for one in kind)
        if kind == "array":
            return f"list[{self.annotation(member.get('items', True), schema)}]"
        if kind == "object":
            # Maps with numeric keys use a pattern.
            values = next(iter(member.get("patternProperties", {}).values()), member.get("additionalProperties", True))
            return f"dict[str, {self.annotation(values, schema)}]"
        return PLAIN.get(kind, "Any")

    def record_in(self, member, schema):
        """The record type of a member or of its list items."""
        if "$ref" in member:
            target = self.target(member["$ref"], schema)
            return target if self.definitions[target][1].get("type") == "object" else None
        if "items" in member and isinstance(member["items"], dict):
            return self.record_in(member["items"], schema)
        found = {self.record_in(part, schema) for part in member.get("anyOf", [])} - {None}
        assert len(found) < 2, member
        return found.pop() if found else None

    def in_order(self):
        """Every record, after the records it contains."""
        done, order = set(), []

        def visit(name):
            if name in done:
                return
            done.add(name)
            schema, definition = self.definitions[name]
            for member in definition.get("properties", {}).values():
                inner = self.record_in(member, schema)
                if inner is not None:
                    visit(inner)
            order.append(name)

        for name, (_, definition) in sorted(self.definitions.items()):
            if definition.get("type") == "object":
                visit(name)
        return order

    def written(self, name):
        schema, definition = self.definitions[name]
        base = "Answer" if name in self.answers else "Record"
        lines = ["", "", f"class {name}({base}):"]
        about = definition.get("description")
        if about:
            lines += documented(about)
        members = definition.get("properties", {})
        required = definition.get("required", [])
        body = []
        # In the order of the JSON, as far as the schema shows it.
        for key in [*required, *(key for key in members if key not in required)]:
            annotation = self.annotation(members[key], schema)
            if key not in required and "None" not in annotation:
                annotation += " | None"
            # Python keywords get an underscore.
            name = f"{key}_" if keyword.iskeyword(key) else key
            body.append(f"    {name}: {annotation}")
            if "description" in members[key]:
                body += documented(members[key]["description"])
        records = {key: self.record_in(member, schema) for key, member in members.items()}
        records = ", ".join(f'"{key}": {kind}' for key, kind in records.items() if kind)
        if records:
            body += ["", f"    _records = {{{records}}}"]
        return lines + ([""] if about and body else []) + (body or ["    pass"])


def documented(text):
    text = " ".join(text.split()).replace("\\", "\\\\").replace('"""', "'''")
    if text.endswith('"'):
        text += " "
    return textwrap.wrap(f'"""{text}"""', 116, initial_indent="    ", subsequent_indent="    ", break_long_words=False)


def generated():
    types = Types()
    for name in ANSWERS:
        types.add(json.loads((SCHEMAS / f"{name}.schema.json").read_text()), name)
    lines = [HEAD.rstrip("\n")]
    for name in types.in_order():
        lines += types.written(name)
    return "\n".join(lines) + "\n"


def main():
    text = generated()
    if "--check" in sys.argv:
        if RESULTS.read_text() != text:
            sys.exit("python/busbound/results.py is out of date: run python crates/python/generate.py")
    else:
        RESULTS.write_text(text)


if __name__ == "__main__":
    main()
