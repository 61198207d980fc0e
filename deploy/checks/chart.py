"""Renders the chart as Helm would, as far as its templates go: values, if/else/end, define and include, and a handful of
functions with the semantics that Helm gives them. What Helm would print as nothing, or only warn of, is an error here."""

import hashlib
import json
import pathlib
import posixpath
import re

import jsonschema
import yaml


class Refused(Exception):
    """The chart's own word that these values make no deployment (`fail`, and values.schema.json)."""


class _Loader(yaml.SafeLoader):
    """Takes no name twice in a mapping: the API would drop one of them."""

    def construct_mapping(self, node, deep=False):
        names = [self.construct_object(name, deep=True) for name, _ in node.value]
        assert len(names) == len(set(names)), f"a name stands twice among {names}"
        return super().construct_mapping(node, deep)


def _fail(message):
    raise Refused(message)


def _equal(one, other):
    assert type(one) is type(other), f"Helm does not compare {one!r} with {other!r}"
    return one == other


def _first(*values, wanted):
    return next((value for value in values if bool(value) is wanted), values[-1])


def _to_yaml(value):
    # Helm sorts the names. A bare `on` or `off` among the values has become a Boolean, there as here.
    return yaml.safe_dump(value, default_flow_style=False, sort_keys=True, allow_unicode=True, width=10_000).rstrip("\n")


def _find(pattern, text):
    found = re.search(pattern, text)
    return found[0] if found else ""


_FUNCTIONS = {
    "and": lambda *a: _first(*a, wanted=False),
    "base": posixpath.basename,
    "default": lambda default, value: value or default,
    "eq": _equal,
    "fail": _fail,
    "first": lambda a: a[0],
    "gt": lambda a, b: a > b,
    "hasKey": lambda a, b: b in a,
    "hasPrefix": lambda prefix, text: text.startswith(prefix),
    "int": lambda a: int(a or 0),
    "kindIs": lambda kind, value: kind == {type(None): "invalid"}.get(type(value)),
    "nindent": lambda width, text: "\n" + "\n".join(" " * width + line for line in text.split("\n")),
    "not": lambda a: not a,
    "or": lambda *a: _first(*a, wanted=True),
    "quote": json.dumps,
    "regexFind": _find,
    "replace": lambda old, new, text: text.replace(old, new),
    "sha256sum": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    "toYaml": _to_yaml,
}


class _Expression:
    """One pipeline: `eq .Values.a "b"`, `.Values.a | quote`, `(first .Values.a).b`."""

    def __init__(self, text, scope, templates):
        self.rest = re.findall(r'"(?:[^"\\]|\\.)*"|\)(?:\.\w+)*|[(|]|[^\s()|]+', text)
        self.scope, self.templates = scope, templates

    def value(self):
        value = self._pipeline()
        assert not self.rest, f"the template says more than the checks understand: {self.rest}"
        return value

    def _pipeline(self):
        value = self._call()
        while self.rest and self.rest[0] == "|":
            self.rest.pop(0)
            value = self._call(piped=[value])
        return value

    def _call(self, piped=()):
        name = self.rest[0]
        if name == ".Files.Get":
            self.rest.pop(0)
            return self.scope["Files"][self._operand()]
        if not re.fullmatch(r"[a-zA-Z]\w*", name):
            assert not piped, f"{name} is no function"
            return self._operand()
        self.rest.pop(0)
        arguments = []
        while self.rest and self.rest[0] != "|" and self.rest[0][0] != ")":
            arguments.append(self._operand())
        arguments += piped
        if name == "include":
            return self.templates.run(self.templates.named[arguments[0]], arguments[1])
        return _FUNCTIONS[name](*arguments)

    def _operand(self):
        token = self.rest.pop(0)
        if token == "(":
            inner = self._pipeline()
            return self._member(inner, self.rest.pop(0)[1:])
        if token.startswith('"'):
            return json.loads(token)
        if token.startswith("."):
            return self._member(self.scope, token)
        return int(token)

    def _member(self, value, path):
        """The member at `.a.b`; the last name may be missing, as in Helm."""
        for name in path.split(".")[1:] if path != "." else []:
            assert isinstance(value, dict), f"{path}: there is nothing before {name}"
            value = value.get(name)
        return value


class _Templates:
    """All templates of a chart, and the names that they define."""

    def __init__(self, texts):
        self.named = {}
        self.bodies = {}
        for name, text in texts.items():
            self.pieces = self._split(text)
            self.bodies[name], end = self._body()
            assert end is None, f"{name} has one end too many"

    @staticmethod
    def _split(text):
        """Pairs of a literal and the action after it, with the blanks trimmed that the action's dashes take."""
        pieces, trim = [], ""
        for literal, before, action, after in re.findall(r"(.*?)(?:\{\{(-?)\s*(.*?)\s*(-?)\}\}|\Z)", text, re.S):
            literal = literal.lstrip() if trim else literal
            pieces.append((literal.rstrip() if before else literal, action))
            trim = after
        return pieces

    def _body(self):
        """The nodes up to the action that ends them, `else` or `end`, and that action."""
        nodes = []
        while self.pieces:
            literal, action = self.pieces.pop(0)
            nodes.append(literal)
            word, _, rest = action.partition(" ")
            if word in ("else", "end"):
                return nodes, action
            if word == "if":
                nodes.append(self._branches(rest))
            elif word == "define":
                self.named[json.loads(rest)], end = self._body()
                assert end == "end", "a define without its end"
            elif action and not action.startswith("/*"):
                nodes.append((action,))
        return nodes, None

    def _branches(self, condition):
        branches = []
        while True:
            body, end = self._body()
            assert end, f"an if without its end: {condition}"
            branches.append((condition, body))
            if end == "end":
                return branches
            condition = end.partition(" ")[2].partition(" ")[2] or None

    def run(self, nodes, scope):
        out = []
        for node in nodes:
            if isinstance(node, str):
                out.append(node)
            elif isinstance(node, tuple):
                out.append(self._printed(node[0], scope))
            else:
                bodies = (body for condition, body in node
                          if condition is None or _Expression(condition, scope, self).value())
                out.append(self.run(next(bodies, []), scope))
        return "".join(out)

    def _printed(self, action, scope):
        value = _Expression(action, scope, self).value()
        assert isinstance(value, (str, int)), f"{{{{ {action} }}}} is {value!r}"
        return str(value).lower() if isinstance(value, bool) else str(value)


def merged(base, over):
    """The mapping `base`, with the members of `over` in their places, mapping by mapping."""
    result = dict(base)
    for name, value in over.items():
        both = isinstance(value, dict) and isinstance(result.get(name), dict)
        result[name] = merged(result[name], value) if both else value
    return result


def _without_nulls(values, defaults):
    """A null takes out what is among the defaults; any other stays."""
    kept = {name: value for name, value in values.items() if value is not None or name not in defaults}
    for name, value in kept.items():
        if isinstance(value, dict) and isinstance(defaults.get(name), dict):
            kept[name] = _without_nulls(value, defaults[name])
    return kept


def render(folder, *overs, release="orders"):
    """All manifests of the chart in `folder`, as documents. Each of `overs` is a mapping, or the name of a values file."""
    folder = pathlib.Path(folder)
    defaults = yaml.load((folder / "values.yaml").read_text(), _Loader)
    values = defaults
    for over in overs:
        values = merged(values, over if isinstance(over, dict) else yaml.load((folder / over).read_text(), _Loader))
    values = _without_nulls(values, defaults)
    schema = json.loads((folder / "values.schema.json").read_text())
    for error in jsonschema.Draft7Validator(schema).iter_errors(values):
        raise Refused(f"{error.json_path}: {error.message}")
    files = sorted((folder / "templates").iterdir())
    templates = _Templates({file.name: file.read_text() for file in files})
    contents = {f"files/{file.name}": file.read_text() for file in (folder / "files").iterdir()}
    scope = {"Values": values, "Release": {"Name": release}, "Files": contents}
    texts = [templates.run(templates.bodies[file.name], scope) for file in files if not file.name.startswith("_")]
    return [document for text in texts for document in yaml.load_all(text, _Loader) if document]
