"""Renders the chart as Helm would, as far as its templates go: values, if/else/end, and a handful of functions."""

import json
import pathlib
import re

import yaml


class Refused(Exception):
    """The chart's own word that these values make no deployment (`fail`)."""


def _tokens(text):
    return re.findall(r'"(?:[^"\\]|\\.)*"|[()|]|[^\s()|]+', text)


class _Expression:
    """One pipeline: `eq .Values.a "b"`, `.Values.a | quote`, `and (…) (…)`."""

    def __init__(self, text, scope):
        self.rest, self.scope = _tokens(text), scope

    def value(self):
        value = self._call()
        while self.rest and self.rest[0] == "|":
            self.rest.pop(0)
            value = self._call(piped=[value])
        assert not self.rest, f"the template says more than the checks understand: {self.rest}"
        return value

    def _call(self, piped=()):
        arguments = []
        while self.rest and self.rest[0] not in ")|":
            arguments.append(self._operand())
        if isinstance(arguments[0], str) and arguments[0].startswith("\0"):
            return self._apply(arguments[0][1:], arguments[1:] + list(piped))
        assert len(arguments) == 1 and not piped, arguments
        return arguments[0]

    def _operand(self):
        token = self.rest.pop(0)
        if token == "(":
            inner = self._call()
            assert self.rest.pop(0) == ")"
            return inner
        if token.startswith('"'):
            return json.loads(token)
        if token.startswith("."):
            value = self.scope
            for name in token[1:].split("."):
                assert name in value, f"{token} is not among the values"
                value = value[name]
            return value
        return int(token) if token.lstrip("-").isdigit() else "\0" + token

    def _apply(self, name, arguments):
        if name == "fail":
            raise Refused(arguments[0])
        if name == "toYaml":
            return yaml.safe_dump(arguments[0], default_flow_style=False, sort_keys=False).rstrip("\n")
        if name == "nindent":
            return "\n" + "\n".join(" " * arguments[0] + line for line in arguments[1].split("\n"))
        functions = {
            "eq": lambda a, b: a == b, "gt": lambda a, b: a > b, "int": int, "not": lambda a: not a,
            "and": lambda *a: all(a), "or": lambda *a: any(a), "quote": json.dumps, "toJson": json.dumps,
        }
        return functions[name](*arguments)


def _render(text, scope):
    out, branches = [], []
    trim = False
    for literal, before, action, after in re.findall(r"(.*?)(?:\{\{(-?)\s*(.*?)\s*(-?)\}\}|\Z)", text, re.S):
        literal = literal.lstrip() if trim else literal
        if all(live for live, _ in branches):
            out.append(literal.rstrip() if before else literal)
        trim = bool(after)
        if not action:
            continue
        word, _, rest = action.partition(" ")
        enclosing = all(live for live, _ in branches[:-1]) if branches else True
        if word == "if":
            live = all(live for live, _ in branches) and bool(_Expression(rest, scope).value())
            branches.append((live, live))
        elif word == "else":
            _, taken = branches[-1]
            condition = rest.partition(" ")[2]
            live = enclosing and not taken and (not rest or bool(_Expression(condition, scope).value()))
            branches[-1] = (live, taken or live)
        elif word == "end":
            branches.pop()
        elif all(live for live, _ in branches):
            value = _Expression(action, scope).value()
            out.append(str(value).lower() if isinstance(value, bool) else str(value))
    assert not branches, "an if without its end"
    return "".join(out)


def merged(base, over):
    """The values of `base`, with those of `over` in their places, mapping by mapping."""
    result = dict(base)
    for name, value in over.items():
        both = isinstance(value, dict) and isinstance(result.get(name), dict)
        result[name] = merged(result[name], value) if both else value
    return result


def render(folder, over=None, release="orders"):
    """All manifests of the chart in `folder`, as documents."""
    folder = pathlib.Path(folder)
    values = merged(yaml.safe_load((folder / "values.yaml").read_text()), over or {})
    scope = {"Values": values, "Release": {"Name": release}}
    manifests = []
    for template in sorted((folder / "templates").glob("*.yaml")):
        manifests += [document for document in yaml.safe_load_all(_render(template.read_text(), scope)) if document]
    return manifests
