"""Writes a Jinja2 template as a plain Python module, so that a start neither imports Jinja2 nor parses templates.

Measured: that import and the parsing take longer than all else that `render` does. The modules are committed in
`launcher/render/compiled/` and written by `make regen`. Each knows the digests of the templates that it was made from;
where one differs, `launcher.render.templates` takes the template itself.

It knows what the templates use and refuses the rest. Names that a template reads become keyword arguments. Attributes
are attributes and items are items: unlike Jinja2 it doesn't try one for the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from launcher.render.quoting import dollars
from launcher.render.templates import QUOTING_FILTERS, digest_of, environment, template_folder

Names = dict[str, str]  # name in the template → Python expression, for loop variables
_HELPERS = {"batch": "batches", "indent": "indented"}
_COMPARISONS = {"eq": "==", "ne": "!=", "gt": ">", "gteq": ">=", "lt": "<", "lteq": "<=", "in": "in", "notin": "not in"}
_BINARY = {"Add": "+", "Sub": "-", "Mul": "*", "And": "and", "Or": "or"}


def compiled_module(template: str) -> str:
    """Return the module of a template, includes written out. Raises NotImplementedError for what it doesn't know."""
    writer = _Writer()
    writer.template(template)
    used = sorted(each for each in _functions() if re.search(rf"\b{each}\(", "\n".join(writer.lines)))
    sources = "".join(f"    {name!r}: {digest!r},\n" for name, digest in writer.sources.items())
    parameters = "".join(f"    {name}: Any,\n" for name in sorted(writer.free))
    imports = "".join(f"from {_functions()[name]} import {name}\n" for name in used)
    return (
        f'"""{template} as Python, written by launcher/render/compiler.py: change that and run `make regen`."""\n\n'
        f"from __future__ import annotations\n\nfrom typing import Any\n\n{imports}\n"
        f"SOURCES = {{\n{sources}}}\n\n\n"
        f"def text(\n    *,\n{parameters}    **_unused: Any,\n) -> str:\n"
        '    """Return the text of the template."""\n    out: list[str] = []\n'
        + "".join(f"    {line}\n" for line in writer.lines)
        + '    return "".join(out)\n'
    )


def _functions() -> dict[str, str]:
    """Return the functions that a module may call, with the module that each comes from."""
    writers = (*QUOTING_FILTERS.values(), dollars)
    return {each.__name__: "launcher.render.quoting" for each in writers} | dict.fromkeys(
        _HELPERS.values(), "launcher.render.text"
    )


class _Writer:
    """Writes the body of the function, statement by statement, from Jinja2's syntax tree."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.sources: dict[str, str] = {}
        self.free: set[str] = set()
        self._depth = 0
        self._made = 0  # names made so far; each stands for one thing only
        self._out = "out"

    def template(self, name: str, names: Names | None = None) -> None:
        """Write a whole template; an included one sees the names of the place that it is included at."""
        self.sources[name] = digest_of(name)
        tree = environment().parse((template_folder() / name).read_text(encoding="utf-8"))
        self._body(tree.body, names or {})

    def _line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)

    def _name(self, what: str) -> str:
        self._made += 1
        return f"{what}_{self._made}"

    def _body(self, body: list[Any], names: Names) -> None:
        for node in body:
            write: Callable[[Any, Names], None] | None = getattr(self, f"_write_{type(node).__name__.lower()}", None)
            if write is None:
                raise NotImplementedError(f"line {node.lineno}: a template has no {type(node).__name__}")
            write(node, names)

    def _indented(self, body: list[Any], names: Names) -> None:
        self._depth += 1
        self._body(body, names)
        self._depth -= 1

    def _write_output(self, node: Any, names: Names) -> None:
        parts = [self._printed(each, names) for each in node.nodes]
        if len(parts) == 1:
            self._line(f"{self._out}.append({parts[0]})")
            return
        self._line(f"{self._out} += (")
        self.lines += [f"{'    ' * (self._depth + 1)}{part}," for part in parts]
        self._line(")")

    def _printed(self, node: Any, names: Names) -> str:
        """Return what is printed as Python; each value passes a quoting filter."""
        kind = type(node).__name__
        if kind == "TemplateData":
            return repr(node.data)
        if kind != "Filter" or node.name not in QUOTING_FILTERS:
            raise NotImplementedError(f"line {node.lineno}: a template prints a value without a quoting filter")
        return self.expression(node, names)

    def _write_for(self, node: Any, names: Names) -> None:
        if node.else_ or node.recursive or node.test is not None:
            raise NotImplementedError(f"line {node.lineno}: a loop has no else, no condition and no recursion")
        inner = dict(names)
        targets = [node.target] if type(node.target).__name__ == "Name" else node.target.items
        inner.update({each.name: self._name(each.name) for each in targets})
        target = ", ".join(inner[each.name] for each in targets)
        iterated = self.expression(node.iter, names)
        if any(each.name == "loop" for each in node.find_all(type(targets[0]))):
            items, at = self._name("items"), self._name("at")
            self._line(f"{items} = list({iterated})")
            inner |= {"loop.index": at, "loop.last": f"{at} == len({items})"}
            target, iterated = f"{at}, {f'({target})' if len(targets) > 1 else target}", f"enumerate({items}, 1)"
        self._line(f"for {target} in {iterated}:")
        self._indented(node.body, inner)

    def _write_if(self, node: Any, names: Names) -> None:
        self._line(f"if {self.expression(node.test, names)}:")
        self._indented(node.body, names)
        for each in node.elif_:
            self._line(f"elif {self.expression(each.test, names)}:")
            self._indented(each.body, names)
        if node.else_:
            self._line("else:")
            self._indented(node.else_, names)

    def _write_filterblock(self, node: Any, names: Names) -> None:
        before, self._out = self._out, self._name("block")
        self._line(f"{self._out}: list[str] = []")
        self._body(node.body, names)
        text = f'"".join({self._out})'
        self._out = before
        self._line(f"{self._out}.append({self._call(node.filter, text, names)})")

    def _write_include(self, node: Any, names: Names) -> None:
        self.template(node.template.value, names)

    def expression(self, node: Any, names: Names) -> str:
        """Return a Jinja2 expression as Python."""
        kind = type(node).__name__
        if kind in _BINARY:
            return f"({self.expression(node.left, names)} {_BINARY[kind]} {self.expression(node.right, names)})"
        read: Callable[[Any, Names], str] | None = getattr(self, f"_read_{kind.lower()}", None)
        if read is None:
            raise NotImplementedError(f"line {node.lineno}: an expression of a template has no {kind}")
        return read(node, names)

    def _read_name(self, node: Any, names: Names) -> str:
        if node.name in names:
            return names[node.name]
        if node.name in {"out", "text", *_functions()}:
            raise NotImplementedError(f"line {node.lineno}: the name {node.name} is the module's own")
        self.free.add(node.name)
        return str(node.name)

    def _read_const(self, node: Any, names: Names) -> str:
        return repr(node.value)

    def _read_tuple(self, node: Any, names: Names) -> str:
        return f"({', '.join(self.expression(each, names) for each in node.items)},)"

    def _read_getattr(self, node: Any, names: Names) -> str:
        if type(node.node).__name__ == "Name" and f"{node.node.name}.{node.attr}" in names:
            return names[f"{node.node.name}.{node.attr}"]
        return f"{self.expression(node.node, names)}.{node.attr}"

    def _read_getitem(self, node: Any, names: Names) -> str:
        at = "1:" if type(node.arg).__name__ == "Slice" else self.expression(node.arg, names)
        if at == "1:" and (getattr(node.arg.start, "value", None), node.arg.stop, node.arg.step) != (1, None, None):
            raise NotImplementedError(f"line {node.lineno}: the only slice of a template is [1:]")
        return f"{self.expression(node.node, names)}[{at}]"

    def _read_call(self, node: Any, names: Names) -> str:
        arguments = ", ".join(self.expression(each, names) for each in node.args)
        return f"{self.expression(node.node, names)}({arguments})"

    def _read_not(self, node: Any, names: Names) -> str:
        return f"(not {self.expression(node.node, names)})"

    def _read_compare(self, node: Any, names: Names) -> str:
        parts = [self.expression(node.expr, names)]
        parts += [f"{_COMPARISONS[each.op]} {self.expression(each.expr, names)}" for each in node.ops]
        return f"({' '.join(parts)})"

    def _read_test(self, node: Any, names: Names) -> str:
        if node.name != "none":
            raise NotImplementedError(f"line {node.lineno}: the only test of a template is none")
        return f"({self.expression(node.node, names)} is None)"

    def _read_concat(self, node: Any, names: Names) -> str:
        strings = ((getattr(each, "value", None), self.expression(each, names)) for each in node.nodes)
        return f"({' + '.join(text if isinstance(value, str) else f'str({text})' for value, text in strings)})"

    def _read_filter(self, node: Any, names: Names) -> str:
        return self._call(node, self.expression(node.node, names), names)

    def _call(self, node: Any, value: str, names: Names) -> str:
        """Return the call of a filter."""
        arguments = [value, *(self.expression(each, names) for each in node.args)]
        arguments += [f"{each.key}={self.expression(each.value, names)}" for each in node.kwargs]
        if node.name in QUOTING_FILTERS or node.name == "dollars":
            function = QUOTING_FILTERS.get(node.name, dollars).__name__
        elif node.name in {"int", "replace"}:
            function = {"int": "int", "replace": "str.replace"}[node.name]
        elif node.name in _HELPERS:
            function = _HELPERS[node.name]
        else:
            raise NotImplementedError(f"line {node.lineno}: a compiled template has no filter {node.name}")
        return f"{function}({', '.join(arguments)})"
