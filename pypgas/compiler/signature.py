# SPDX-License-Identifier: Apache-2.0
"""Parameter types of kernels, read from names that C++ compilers mangle.

Both compilers follow the Itanium C++ ABI: the host compiler's ``typeid`` names and NVRTC's lowered names encode types in
one way. `parameters` reads a function type from either; `CppType` describes each parameter as far as arguments need it.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

__all__ = ["CppType", "SignatureError", "parameters"]


class SignatureError(ValueError):
    """A mangled name that is no function type or uses a part of the encoding that kernels' parameters don't have."""


class CppType(NamedTuple):
    """A C++ type.

    Attributes:
        kind: ``"builtin"``, ``"class"`` (or an enumeration), ``"pointer"``, ``"reference"``, ``"array"``, ``"function"``.
        name: As C++ spells it, without the qualifiers of the type itself: ``"unsigned int"``, ``"pgas::team"``,
            ``"const float*"``.
        const: Whether it is const.
        target: What a pointer or reference points to, or the elements of an array.
        items: Parameters of a function.
    """

    kind: str
    name: str
    const: bool = False
    target: CppType | None = None
    items: tuple[CppType, ...] = ()

    def __str__(self) -> str:
        if not self.const:
            return self.name
        return f"{self.name} const" if self.kind == "pointer" else f"const {self.name}"


_BUILTIN = {
    "v": "void",
    "w": "wchar_t",
    "b": "bool",
    "c": "char",
    "a": "signed char",
    "h": "unsigned char",
    "s": "short",
    "t": "unsigned short",
    "i": "int",
    "j": "unsigned int",
    "l": "long",
    "m": "unsigned long",
    "x": "long long",
    "y": "unsigned long long",
    "n": "__int128",
    "o": "unsigned __int128",
    "f": "float",
    "d": "double",
    "e": "long double",
    "g": "__float128",
    "z": "...",
}
_BUILTIN_D = {
    "Dh": "_Float16",
    "Ds": "char16_t",
    "Di": "char32_t",
    "Du": "char8_t",
    "Dn": "decltype(nullptr)",
    "Da": "auto",
}
_STANDARD = {
    "St": "std",
    "Sa": "std::allocator",
    "Sb": "std::basic_string",
    "Ss": "std::string",
    "Si": "std::istream",
    "So": "std::ostream",
    "Sd": "std::iostream",
}


def parameters(mangled: str) -> tuple[CppType, ...]:
    """Return the parameter types of a kernel.

    ``mangled`` is the ``typeid`` name of a pointer to the kernel (``PFvPfiE``), the symbol of a function that is no
    template (``_Z4heatPfi``), or that of a variable template whose argument is the pointer's type
    (``_ZN4pgas9signatureIPFvPfiEEE``).

    Raises:
        SignatureError: it is none of these.
    """
    parser = _Parser(mangled)
    if not mangled.startswith("_Z"):
        return _function(parser.type(), mangled)
    parser.position = 2
    name, arguments = parser.encoded_name()
    if parser.at_end() and len(arguments) == 1 and isinstance(arguments[0], CppType):
        return _function(arguments[0], mangled)
    if arguments or parser.at_end():
        raise SignatureError(f"{mangled!r} ({name}) does not tell the parameters of one function")
    return _list(parser.types_to_end())


def _function(found: CppType, mangled: str) -> tuple[CppType, ...]:
    target = found.target if found.kind in ("pointer", "reference") else found
    if target is None or target.kind != "function":
        raise SignatureError(f"{mangled!r} is no function type")
    return target.items


def _list(types: list[CppType]) -> tuple[CppType, ...]:
    """Parameter types without the ``void`` that stands for none, and without qualifiers of the values themselves."""
    if [t.name for t in types] == ["void"]:
        return ()
    return tuple(t._replace(const=False) for t in types)


_Argument: TypeAlias = CppType | str


class _Parser:
    """A recursive-descent reader of the ABI's grammar for names and types."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.seen: list[CppType | str] = []  # what S_, S0_, … stand for: types, and prefixes of names

    # ---- characters

    def at_end(self) -> bool:
        # A dot begins what compilers append to clones of a function.
        return self.position >= len(self.text) or self.text[self.position] == "."

    def peek(self, length: int = 1) -> str:
        return self.text[self.position : self.position + length]

    def take(self, expected: str) -> bool:
        if self.text.startswith(expected, self.position):
            self.position += len(expected)
            return True
        return False

    def require(self, expected: str) -> None:
        if not self.take(expected):
            raise self.unreadable()

    def unreadable(self) -> SignatureError:
        return SignatureError(f"{self.text!r}: can't read a type at character {self.position}")

    def number(self) -> int:
        start = self.position
        while self.peek().isdecimal():
            self.position += 1
        if start == self.position:
            raise self.unreadable()
        return int(self.text[start : self.position])

    # ---- types

    def types_to_end(self) -> list[CppType]:
        types = []
        while not self.at_end():
            types.append(self.type())
        return types

    def type(self) -> CppType:
        """One type; everything but builtin types becomes a candidate for substitution."""
        code = self.peek()
        if code in _BUILTIN:
            self.position += 1
            return CppType("builtin", _BUILTIN[code])
        if code == "D" and self.peek(2) not in ("Do", "Dv", "DO", "Dw", "Dx"):
            return self.builtin_d()
        if code == "S" and self.peek(2) != "St":
            found = self.substitution()
            if self.peek() == "I":
                name, _ = self.template(str(found))
                return self.remember(CppType("class", name))
            return found if isinstance(found, CppType) else CppType("class", found)
        return self.compound(code)

    def compound(self, code: str) -> CppType:
        if code in ("r", "V", "K"):
            return self.qualified()
        if code in ("P", "R", "O"):
            self.position += 1
            target = self.type()
            sign = {"P": "*", "R": "&", "O": "&&"}[code]
            name = f"{target.name} ({sign})" if target.kind in ("function", "array") else f"{target}{sign}"
            return self.remember(CppType("pointer" if code == "P" else "reference", name, target=target))
        if code == "F" or self.peek(2) in ("Do", "Dx"):
            return self.remember(self.function())
        if code == "A":
            return self.remember(self.array())
        if code in ("C", "G"):
            self.position += 1
            part = self.type()
            name = f"{part.name} {'_Complex' if code == 'C' else '_Imaginary'}"
            return self.remember(CppType("builtin", name))
        if code == "u":
            self.position += 1
            return self.remember(CppType("builtin", self.source_name()))
        if code == "U":
            self.position += 1
            self.source_name()
            if self.peek() == "I":
                self.template_arguments()
            return self.type()
        if self.take("Dv"):
            count = self.number()
            self.require("_")
            part = self.type()
            return self.remember(CppType("builtin", f"{part.name} __vector({count})"))
        if code == "M":
            self.position += 1
            owner, member = self.type(), self.type()
            return self.remember(CppType("class", f"{member.name} {owner.name}::*"))
        for elaborated in ("Ts", "Tu", "Te"):
            if self.take(elaborated):
                break
        name, _ = self.name()
        return self.remember(CppType("class", name))

    def remember(self, found: CppType) -> CppType:
        # A name was recorded while it was read; as a type it is the same candidate, not a second one.
        if found.kind == "class" and self.seen and self.seen[-1] == found.name:
            self.seen[-1] = found
        else:
            self.seen.append(found)
        return found

    def builtin_d(self) -> CppType:
        if self.take("DF"):
            bits = self.number()
            bfloat = self.take("b")
            if not bfloat and not self.take("x"):
                self.require("_")
            return CppType("builtin", "__bf16" if bfloat else f"_Float{bits}")
        for code, name in _BUILTIN_D.items():
            if self.take(code):
                return CppType("builtin", name)
        raise self.unreadable()

    def qualified(self) -> CppType:
        const = False
        while self.peek() in ("r", "V", "K"):
            const = const or self.peek() == "K"
            self.position += 1
        target = self.type()
        # All qualifiers of a type are one candidate for substitution.
        return self.remember(target._replace(const=const or target.const))

    def function(self) -> CppType:
        if self.take("Do"):  # noexcept
            pass
        self.take("Dx")
        self.require("F")
        self.take("Y")  # extern "C"
        self.type()  # what it returns
        types = []
        while not self.take("E"):
            if self.at_end():
                raise self.unreadable()
            types.append(self.type())
        items = _list(types)
        return CppType("function", f"void ({', '.join(map(str, items))})", items=items)

    def array(self) -> CppType:
        self.require("A")
        length = "" if self.peek() == "_" else str(self.number())
        self.require("_")
        part = self.type()
        return CppType("array", f"{part.name}[{length}]", target=part)

    # ---- names

    def encoded_name(self) -> tuple[str, list[_Argument]]:
        """The name of a function or variable, and its template arguments."""
        return self.name(of_type=False)

    def name(self, of_type: bool = True) -> tuple[str, list[_Argument]]:
        code = self.peek()
        if code == "N":
            return self.nested()
        if code == "Z":
            return self.local(), []
        if self.take("St"):
            name = "std::" + self.unqualified()
        elif code == "S":
            name = str(self.substitution())
        else:
            name = self.unqualified()
        if self.peek() != "I":
            return name, []
        if code != "S" or name.startswith("std::"):
            self.seen.append(name)
        name, arguments = self.template(name)
        if of_type:
            self.seen.append(name)
        return name, arguments

    def nested(self) -> tuple[str, list[_Argument]]:
        """A name in namespaces or classes: each prefix of it is a candidate for substitution."""
        self.require("N")
        while self.peek() in ("r", "V", "K", "R", "O"):
            self.position += 1
        name = ""
        arguments: list[_Argument] = []
        while not self.take("E"):
            if self.at_end():
                raise self.unreadable()
            if self.peek() == "I":
                name, arguments = self.template(name)
            elif self.peek() == "S" and self.peek(2) != "St":
                name = str(self.substitution())
                continue
            elif self.take("St"):
                name = "std"
                continue
            else:
                part = self.unqualified()
                name = f"{name}::{part}" if name else part
                arguments = []
            self.seen.append(name)
        # A whole name that is a type is recorded by its reader; as an entity's name it is no candidate.
        if self.seen and self.seen[-1] == name:
            self.seen.pop()
        return name, arguments

    def local(self) -> str:
        """A type that is declared inside a function."""
        self.require("Z")
        name, _ = self.encoded_name()
        while not self.take("E"):
            if self.at_end():
                raise self.unreadable()
            self.type()
        if self.take("s"):
            return name
        part, _ = self.name()
        if self.take("_"):
            self.take("_")
            self.number()
        return f"{name}::{part}"

    def unqualified(self) -> str:
        if self.take("L"):  # internal linkage
            return self.unqualified()
        if self.take("Ut"):
            return self.unnamed("unnamed type")
        if self.take("Ul"):
            while not self.take("E"):
                self.type()
            return self.unnamed("lambda")
        name = self.source_name()
        while self.take("B"):  # ABI tags
            name += f"[{self.source_name()}]"
        return name

    def unnamed(self, what: str) -> str:
        if self.peek() != "_":
            self.number()
        self.require("_")
        return f"<{what}>"

    def source_name(self) -> str:
        length = self.number()
        name = self.peek(length)
        if len(name) < length:
            raise self.unreadable()
        self.position += length
        return "(anonymous namespace)" if name.startswith("_GLOBAL__N_") else name

    def substitution(self) -> CppType | str:
        if self.peek(2) in _STANDARD:
            name = _STANDARD[self.peek(2)]
            self.position += 2
            return name
        self.require("S")
        digits = ""
        while self.peek() != "_":
            if not (self.peek().isdecimal() or self.peek().isupper()):
                raise self.unreadable()
            digits += self.peek()
            self.position += 1
        self.require("_")
        index = int(digits, 36) + 1 if digits else 0
        if index >= len(self.seen):
            raise self.unreadable()
        return self.seen[index]

    def template(self, name: str) -> tuple[str, list[_Argument]]:
        arguments = self.template_arguments()
        return f"{name}<{', '.join(map(str, arguments))}>", arguments

    def template_arguments(self) -> list[_Argument]:
        self.require("I")
        arguments: list[_Argument] = []
        while not self.take("E"):
            if self.at_end():
                raise self.unreadable()
            if self.take("J"):
                while not self.take("E"):
                    arguments.append(self.template_argument())
            else:
                arguments.append(self.template_argument())
        return arguments

    def template_argument(self) -> _Argument:
        if self.take("L"):
            return self.literal()
        if self.peek() == "X":
            raise self.unreadable()
        return self.type()

    def literal(self) -> str:
        if self.take("_Z"):
            name, _ = self.encoded_name()
            while not self.take("E"):
                self.type()
            return f"&{name}"
        kind = self.type()
        start = self.position
        while self.peek() not in ("E", ""):
            self.position += 1
        value = self.text[start : self.position].replace("n", "-", 1)
        self.require("E")
        if kind.name == "bool":
            return "true" if value == "1" else "false"
        return value if kind.kind == "builtin" else f"({kind.name}){value}"
