# SPDX-License-Identifier: Apache-2.0
"""Reading CUDA C++ as text: which kernels it defines, and what a host compiler could not read.

This is no C++ parser. It knows comments, literals, directives, braces and namespaces, which is enough to find
``__global__`` functions and the declarations of dynamic shared memory. What it misses (a kernel made by a macro) can
still be asked for by name: the compiler then decides whether it exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .names import KernelName

__all__ = ["Scan", "host_source", "scan"]

_TOKEN = re.compile(
    r"""
    (?P<space>(?:\s|\\\r?\n)+)
  | (?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z))
  | (?P<string>(?:u8|u|U|L)?R"(?P<fence>[^()\\\s]{0,16})\(.*?(?:\)(?P=fence)"|\Z)|(?:u8|u|U|L)?"(?:\\.|[^"\\\n])*"?)
  | (?P<char>(?:u8|u|U|L)?'(?:\\.|[^'\\\n])*'?)
  | (?P<number>\.?[0-9](?:[eEpP][+-]|'[0-9A-Za-z]|[\w.])*)
  | (?P<name>[^\W\d]\w*)
  | (?P<punctuation>::|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE = re.compile(r"\#(?:\\\r?\n|/\*.*?\*/|(?!//)[^\n])*", re.DOTALL)
_DIRECTIVE_WORDS = re.compile(r"#\s*(\w+)\s*(\w*)")

# Words before a function's name that take an argument list of their own.
_ATTRIBUTES = frozenset(
    (
        "__launch_bounds__",
        "__cluster_dims__",
        "__maxnreg__",
        "__block_size__",
        "__attribute__",
        "__align__",
        "__declspec",
        "alignas",
        "decltype",
        "noexcept",
    )
)


class Token(NamedTuple):
    """A word or sign of the source; ``kind`` is a group of the token pattern or ``"directive"``."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Position after the token."""
        return self.start + len(self.text)


class Edit(NamedTuple):
    """Text to put in place of a part of the source."""

    start: int
    end: int
    text: str


class Scan(NamedTuple):
    """What a source consists of.

    Attributes:
        kernels: The kernels it defines, in order.
        edits: What must be rewritten for a host compiler.
        open_line: Line of a brace that is never closed, or 0.
    """

    kernels: tuple[KernelName, ...]
    edits: tuple[Edit, ...]
    open_line: int


def scan(text: str) -> Scan:
    """Return the kernels of a source and the edits that a host compiler needs."""
    return _Scanner(text).run()


def host_source(text: str, found: Scan | None = None) -> str:
    """Return the source with its dynamic shared memory spelled so that a host compiler can read it.

    Lines keep their numbers.
    """
    if "__shared__" not in text:
        return text
    pieces, position = [], 0
    for edit in (found or scan(text)).edits:
        pieces += [text[position : edit.start], edit.text]
        position = edit.end
    return "".join([*pieces, text[position:]])


def _tokens(text: str) -> Iterator[Token]:
    """The tokens of a text, without space and comments; a directive is one token."""
    position, line_start = 0, True
    while position < len(text):
        if line_start and text[position] == "#":
            found = _DIRECTIVE.match(text, position)
            assert found is not None
            yield Token("directive", found.group(), position)
            position = found.end()
            continue
        found = _TOKEN.match(text, position)
        assert found is not None  # the last alternative matches anything
        kind = found.lastgroup if found.lastgroup != "fence" else "string"
        assert kind is not None
        if kind in ("space", "comment"):
            line_start = line_start or "\n" in found.group()
        else:
            line_start = False
            yield Token(kind, found.group(), position)
        position = found.end()


class _Scope(NamedTuple):
    kind: str  # "namespace", "linkage" or "other"
    name: str
    extern_c: bool
    start: int


class _Condition(NamedTuple):
    guard: bool
    scopes: tuple[_Scope, ...]
    pending: tuple[Token, ...]


class _Scanner:
    """One pass over a source."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.scopes: list[_Scope] = []
        self.pending: list[Token] = []  # the statement so far
        self.depth = 0  # of parentheses and brackets in it
        self.conditions: list[_Condition] = []
        self.kernels: list[KernelName] = []
        self.edits: list[Edit] = []
        self.guard = ""  # name of the last #ifndef, until the next directive

    def run(self) -> Scan:
        for token in _tokens(self.text):
            if token.kind == "directive":
                self.directive(token)
            else:
                self.token(token)
        unclosed = self.scopes[0].start if self.scopes else -1
        line = self.text.count("\n", 0, unclosed) + 1 if unclosed >= 0 else 0
        return Scan(tuple(self.kernels), tuple(self.edits), line)

    def token(self, token: Token) -> None:
        text = token.text
        if text in ("(", "["):
            self.depth += 1
        elif text in (")", "]"):
            self.depth = max(0, self.depth - 1)
        elif self.depth == 0 and token.kind == "punctuation" and text in ";{}":
            self.statement_ends(token)
            return
        self.pending.append(token)

    def statement_ends(self, token: Token) -> None:
        statement, self.pending = self.pending, []
        if token.text == ";":
            self.edits += _shared_edits(self.text, statement, token.end, self.in_function(), directive=False)
        elif token.text == "{":
            self.scopes.append(self.opened(statement, token.start))
        elif self.scopes:
            self.scopes.pop()

    def in_function(self) -> bool:
        return any(scope.kind == "other" for scope in self.scopes)

    def opened(self, statement: list[Token], start: int) -> _Scope:
        words = [token.text for token in statement]
        if self.in_function():
            return _Scope("other", "", False, start)
        if "namespace" in words[:2]:  # inline namespace
            names = [t.text for t in statement[words.index("namespace") + 1 :] if t.kind == "name"]
            return _Scope("namespace", "::".join(n for n in names if n != "inline"), False, start)
        linkage = len(statement) > 1 and words[0] == "extern" and statement[1].kind == "string"
        if linkage and len(statement) == 2:
            return _Scope("linkage", "", words[1] == '"C"', start)
        if "__global__" in words:
            self.kernel(statement, linkage and words[1] == '"C"')
        return _Scope("other", "", False, start)

    def kernel(self, statement: list[Token], extern_c: bool) -> None:
        name = _function_name(statement)
        if not name:
            return
        spaces = [scope.name for scope in self.scopes if scope.name]
        extern_c = extern_c or any(scope.extern_c for scope in self.scopes)
        conditional = any(not condition.guard for condition in self.conditions)
        template = any(token.text == "template" for token in statement)
        self.kernels.append(KernelName("::".join([*spaces, name]), extern_c, conditional, template))

    def directive(self, token: Token) -> None:
        found = _DIRECTIVE_WORDS.match(token.text)
        word, first = found.groups() if found else ("", "")
        if word in ("if", "ifdef", "ifndef"):
            self.conditions.append(_Condition(False, tuple(self.scopes), tuple(self.pending)))
        elif word in ("elif", "else", "elifdef", "elifndef") and self.conditions:
            # Every branch begins where the first did, as for the compiler.
            self.scopes = list(self.conditions[-1].scopes)
            self.pending = list(self.conditions[-1].pending)
        elif word == "endif" and self.conditions:
            self.conditions.pop()
        elif word == "define":
            if self.guard and first == self.guard and self.conditions:
                self.conditions[-1] = self.conditions[-1]._replace(guard=True)
            if "__shared__" in token.text:
                self.edits += _macro_edits(self.text, token)
        self.guard = first if word == "ifndef" else ""


def _function_name(statement: list[Token]) -> str:
    """The name, with its qualifiers, of the function that a definition begins; "" if it is none or an instance."""
    i = 0
    while i < len(statement):
        token = statement[i]
        following = statement[i + 1].text if i + 1 < len(statement) else ""
        if token.text == "[" or (token.text in _ATTRIBUTES and following == "("):
            i = _after_brackets(statement, i if token.text == "[" else i + 1)
            continue
        if token.text == "<" and i and statement[i - 1].text == "template":
            i = _after_brackets(statement, i)
            continue
        if token.kind == "name" and following == "(":
            parts = [token.text]
            while i >= 2 and statement[i - 1].text == "::" and statement[i - 2].kind == "name":
                i -= 2
                parts.insert(0, statement[i].text)
            return "::".join(parts)
        if token.kind == "name" and following == "<" and _is_specialisation(statement, i + 1):
            return ""
        i += 1
    return ""


def _is_specialisation(statement: list[Token], opening: int) -> bool:
    end = _after_brackets(statement, opening)
    return end < len(statement) and statement[end].text == "("


_CLOSING = {"(": ")", "[": "]", "<": ">"}


def _after_brackets(statement: Sequence[Token], opening: int) -> int:
    """The index after the bracket that closes the one at ``opening``."""
    left, right = statement[opening].text, _CLOSING[statement[opening].text]
    depth = 0
    for i in range(opening, len(statement)):
        text = statement[i].text
        depth += (text == left) - (text == right)
        if depth == 0:
            return i + 1
    return len(statement)


# ---------------------------------------------------------------- dynamic shared memory


def _macro_edits(text: str, directive: Token) -> list[Edit]:
    """The edits inside a ``#define``, whose text is taken to be used inside functions."""
    edits: list[Edit] = []
    statement: list[Token] = []
    body = directive.text.index("define") + len("define")
    for found in _TOKEN.finditer(directive.text, body):
        kind = found.lastgroup
        if kind in ("space", "comment", None):
            continue
        token = Token(kind, found.group(), directive.start + found.start())
        if token.text in ("extern", "__shared__") and not any(
            t.text in ("extern", "__shared__") for t in statement
        ):
            statement = []  # what stands before it is the macro's name and parameters
        if token.text in (";", "{", "}"):
            edits += _shared_edits(text, statement, token.end, in_function=True, directive=True)
            statement = []
        else:
            statement.append(token)
    if statement:
        edits += _shared_edits(text, statement, statement[-1].end, in_function=True, directive=True)
    return edits


def _shared_edits(
    text: str, statement: list[Token], end: int, in_function: bool, directive: bool
) -> list[Edit]:
    """The edit for ``extern __shared__ T name[];``, or none if the statement is something else."""
    words = [token.text for token in statement]
    if "__shared__" not in words or "extern" not in words:
        return []
    declared = _declarators(statement)
    if not declared:
        return []
    form = _pointer if in_function else _accessor
    start = statement[0].start
    terminator = ";" if text[end - 1] == ";" else ""
    code = "; ".join(form(*item) for item in declared) + terminator
    breaks = text.count("\n", start, end)
    return [Edit(start, end, code + ("\\\n" if directive else "\n") * breaks)]


def _declarators(statement: list[Token]) -> list[tuple[str, str, str]]:
    """Type, name and further dimensions of each array that a declaration of shared memory declares."""
    kept: list[Token] = []
    i = 0
    while i < len(statement):
        token = statement[i]
        following = statement[i + 1].text if i + 1 < len(statement) else ""
        if token.text in _ATTRIBUTES and token.text != "decltype" and following == "(":
            i = _after_brackets(statement, i + 1)
        elif token.text == "[" and following == "[":
            i = _after_brackets(statement, i)
        else:
            if token.text not in ("extern", "__shared__", "static"):
                kept.append(token)
            i += 1
    try:
        bracket = next(i for i, token in enumerate(kept) if token.text == "[")
    except StopIteration:
        return []
    if bracket < 2 or kept[bracket - 1].kind != "name":
        return []
    start = bracket - 1
    while start > 1 and kept[start - 1].text in ("*", "const", "volatile", "__restrict__"):
        start -= 1
    base = " ".join(token.text for token in kept[:start])
    result = []
    i = start
    while i < len(kept):
        first = next((j for j in range(i, len(kept)) if kept[j].text == "["), len(kept))
        if first == i:
            break
        kind = " ".join([base, *(token.text for token in kept[i : first - 1])])
        dimensions = ""
        i = first
        while i < len(kept) and kept[i].text == "[":
            after = _after_brackets(kept, i)
            if i != first:
                dimensions += " ".join(token.text for token in kept[i:after])
            i = after
        result.append((kind, kept[first - 1].text, dimensions))
        i += 1  # the comma before the next array
    return result


def _pointer(kind: str, name: str, dimensions: str) -> str:
    if dimensions:
        return f"{kind} (*{name}){dimensions} = ({kind} (*){dimensions})pgas::cpu::dynamic_shared()"
    return f"{kind}* {name} = ({kind}*)pgas::cpu::dynamic_shared()"


def _accessor(kind: str, name: str, dimensions: str) -> str:
    # Outside functions the address is not known yet: an object that becomes the block's pointer where it is used.
    return (
        f"static struct {{ typedef {kind} element{dimensions}; "
        f"operator element*() const {{ return (element*)pgas::cpu::dynamic_shared(); }} }} {name}"
    )
