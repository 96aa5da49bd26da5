# SPDX-License-Identifier: Apache-2.0
"""Checking kernels' arguments against the parameters' C++ types, and packing them as C++ reads them."""

from __future__ import annotations

import math
import operator
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _native, dtypes
from ..errors import InvalidTypeError, InvalidValueError, StaleArrayError
from .signature import CppType

__all__ = ["Packer"]

_Converter = Callable[[Any], Any]


class _Packed(NamedTuple):
    """How a parameter is stored: a code of `struct`, its alignment, and what turns an argument into the value."""

    code: str
    align: int
    convert: _Converter


class _Pointee(NamedTuple):
    """What an array must hold to be passed as a pointer; no dtypes: anything."""

    dtypes: tuple[np.dtype[Any], ...]
    lanes: int  # elements of a vector type
    align: int


def _dtypes(*names: str) -> tuple[np.dtype[Any], ...]:
    return tuple(np.dtype(name) for name in names)


# C++ name → dtypes an array of it may have (the first is its own) and the code of `struct` for a value of it.
_SCALARS: dict[str, tuple[tuple[np.dtype[Any], ...], str]] = {
    "bool": (_dtypes("bool"), "?"),
    "char": (_dtypes("int8", "uint8"), "b"),
    "signed char": (_dtypes("int8"), "b"),
    "unsigned char": (_dtypes("uint8"), "B"),
    "short": (_dtypes("int16"), "h"),
    "unsigned short": (_dtypes("uint16"), "H"),
    "int": (_dtypes("int32"), "i"),
    "unsigned int": (_dtypes("uint32"), "I"),
    "long": (_dtypes("int64"), "q"),
    "unsigned long": (_dtypes("uint64"), "Q"),
    "long long": (_dtypes("int64"), "q"),
    "unsigned long long": (_dtypes("uint64"), "Q"),
    "char8_t": (_dtypes("uint8"), "B"),
    "char16_t": (_dtypes("uint16"), "H"),
    "char32_t": (_dtypes("uint32"), "I"),
    "wchar_t": (_dtypes("int32"), "i"),
    "float": (_dtypes("float32"), "f"),
    "double": (_dtypes("float64"), "d"),
}
_INTEGERS = {code for _, code in _SCALARS.values()} - {"?", "f", "d"}

# Patterns are compiled by the first kernel that has such a parameter.
_HALF = r"__half|_Float16|__fp16|pgas::half"
_BFLOAT = r"__nv_bfloat16|__bf16|pgas::bfloat16"
_COMPLEX = (
    r"(?:std::|cuda::std::(?:\w+::)?|thrust::|pgas::)complex(?:_of)?<(float|double)>|(float|double) _Complex"
)
_BOOL8 = "pgas::bool8"
_VECTOR = r"(u?char|u?short|u?int|u?long|u?longlong|float|double)([1-4])(?:_(16|32)a)?"
_VECTOR_BASE = {"longlong": "long long"}


class Packer:
    """Turns the arguments of one kernel into the bytes that its parameters occupy.

    Attributes:
        types: The parameters' types.
        offsets: Where each parameter starts in the bytes.
        nbytes: How many bytes there are.

    Raises:
        InvalidTypeError: a parameter has a type that no argument can have.
    """

    def __init__(self, kernel: str, types: Sequence[CppType]) -> None:
        self.kernel = kernel
        self.types = tuple(types)
        offsets, layout, position = [], "=", 0
        self._converters: list[_Converter] = []
        for number, kind in enumerate(self.types, 1):
            packed = _packed(_Label(kernel, number, kind))
            size = struct.calcsize("=" + packed.code)
            padding = -position % packed.align
            offsets.append(position + padding)
            layout += f"{padding}x{packed.code}" if padding else packed.code
            position = offsets[-1] + size
            self._converters.append(packed.convert)
        self.offsets = tuple(offsets)
        self.nbytes = position
        self._pack = struct.Struct(layout).pack

    def pack(self, arguments: tuple[Any, ...]) -> bytes:
        """Return the arguments as C++ reads them. Addresses in it do not keep their arrays alive.

        Raises:
            InvalidTypeError: a wrong number of arguments, or one of the wrong kind, range or dtype.
            InvalidValueError: an array whose layout a pointer can't describe.
            StaleArrayError: an array that was freed.
        """
        if len(arguments) != len(self._converters):
            wanted = ", ".join(map(str, self.types)) or "none"
            raise InvalidTypeError(
                f"{_here()}kernel {self.kernel}: {len(arguments)} arguments given, {len(self.types)} expected: ({wanted})"
            )
        return self._pack(*[c(a) for c, a in zip(self._converters, arguments, strict=True)])


def _here() -> str:
    return f"PE {_native.my_pe()}: " if _native.is_active() else ""


class _Label(NamedTuple):
    """Which parameter a message is about."""

    kernel: str
    number: int
    type: CppType

    def wrong(self, why: str) -> InvalidTypeError:
        return InvalidTypeError(f"{self}: {why}")

    def bad_layout(self, why: str) -> InvalidValueError:
        return InvalidValueError(f"{self}: {why}")

    def __str__(self) -> str:
        return f"{_here()}kernel {self.kernel}: argument {self.number} ({self.type})"


def _described(value: Any) -> str:
    if isinstance(value, _native.ArrayBase):
        value = value.local
        return f"a SymmetricArray of {value.dtype}"
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    if isinstance(value, (bool, int, float, complex, np.generic)) or value is None:
        return f"{value!r}"
    return f"a {type(value).__name__}"


def _packed(label: _Label) -> _Packed:
    kind = label.type
    if kind.kind == "pointer":
        return _Packed("Q", 8, _pointer_converter(label))
    name = kind.name
    if name in _SCALARS:
        code = _SCALARS[name][1]
        size = struct.calcsize("=" + code)
        if code == "?":
            return _Packed(code, size, _bool_converter(label))
        return _Packed(code, size, _number_converter(label, code))
    if name == "pgas::team":
        return _Packed("Q", 8, _object_converter(label, _native.TeamBase, "team_address", "a Team"))
    if name == "pgas::context":
        return _Packed("Q", 8, _object_converter(label, _native.ContextBase, "context_address", "a Context"))
    if name == _BOOL8:
        return _Packed("?", 1, _bool_converter(label))
    if re.fullmatch(_HALF, name):
        return _Packed("2s", 2, _small_float_converter(label, np.dtype("float16")))
    if re.fullmatch(_BFLOAT, name):
        return _Packed("2s", 2, _small_float_converter(label, dtypes.bfloat16))
    if found := re.fullmatch(_COMPLEX, name):
        single = "float" in found.groups()
        # A C++ library's complex is aligned as its parts; ours and CUDA's as a whole.
        part = 4 if single else 8
        align = part if name.startswith("std::") or "_Complex" in name else 2 * part
        return _Packed(f"{2 * part}s", align, _complex_converter(label, "=2f" if single else "=2d"))
    if found := re.fullmatch(_VECTOR, name):
        base, lanes = _vector(found)
        code = _SCALARS[base][1]
        size = int(found[2]) * struct.calcsize("=" + code)
        return _Packed(f"{size}s", lanes.align, _vector_converter(label, code, int(found[2])))
    if kind.kind == "reference":
        raise label.wrong(
            "a kernel can't take a reference to memory of the caller; take a pointer or a value"
        )
    raise label.wrong(
        "values of this type can't be passed from Python; pass a pointer to an array that holds them, or their parts"
    )


# ---------------------------------------------------------------- values


def _scalar(value: Any) -> Any:
    """The number in an array without dimensions; anything else unchanged."""
    return value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value


def _bool_converter(label: _Label) -> _Converter:
    def convert(value: Any) -> bool:
        value = _scalar(value)
        if isinstance(value, (bool, np.bool_)):
            return bool(value)
        raise label.wrong(f"expected a bool, not {_described(value)}")

    return convert


def _number_converter(label: _Label, code: str) -> _Converter:
    if code in _INTEGERS:
        bits = 8 * struct.calcsize("=" + code)
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if code.islower() else (0, (1 << bits) - 1)
        convert = _integer_converter(label, low, high)
        return _team_number_converter(convert) if code == "i" else convert
    return _float_converter(label, struct.Struct("=" + code))


def _integer_converter(label: _Label, low: int, high: int) -> _Converter:
    def convert(value: Any) -> int:
        if type(value) is int and low <= value <= high:
            return value
        if isinstance(value, (np.ndarray, np.bool_)):
            value = _scalar(value)
            value = bool(value) if isinstance(value, np.bool_) else value
        try:
            number = operator.index(value)
        except TypeError:
            raise label.wrong(f"expected an integer, not {_described(value)}") from None
        if not low <= number <= high:
            raise label.wrong(f"{number} is not in {low} ... {high}")
        return number

    return convert


def _team_number_converter(convert: _Converter) -> _Converter:
    """An ``int`` can be NVSHMEM's ``nvshmem_team_t``: a team is passed as its number."""

    def convert_team(value: Any) -> int:
        if isinstance(value, _native.TeamBase):
            _native.team_address(value)  # raises if the team is no more
            return value._id
        number: int = convert(value)
        return number

    return convert_team


def _real(label: _Label, value: Any) -> float:
    value = _scalar(value)
    if isinstance(value, (float, int)):
        pass
    elif isinstance(value, np.generic):
        if value.dtype.kind not in "fiub" and value.dtype.name != "bfloat16":
            raise label.wrong(f"expected a real number, not {_described(value)}")
    elif isinstance(value, (np.ndarray, _native.ArrayBase, str)) or not (
        hasattr(value, "__index__") or hasattr(value, "__float__")
    ):
        raise label.wrong(f"expected a real number, not {_described(value)}")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise label.wrong(f"expected a real number, not {_described(value)}") from None
    except OverflowError:
        raise label.wrong(f"{value} is too large") from None


def _float_converter(label: _Label, form: struct.Struct) -> _Converter:
    def convert(value: Any) -> float:
        number = value if type(value) is float else _real(label, value)
        try:
            form.pack(number)
        except OverflowError:
            raise label.wrong(f"{number!r} is too large") from None
        return number

    if form.format == "=d":  # which Python's own floats are
        return lambda value: value if type(value) is float else convert(value)
    return convert


def _small_float_converter(label: _Label, dtype: np.dtype[Any]) -> _Converter:
    def convert(value: Any) -> bytes:
        number = _real(label, value)
        with np.errstate(over="ignore"):
            stored = np.asarray(number).astype(dtype)
        if math.isfinite(number) and not math.isfinite(float(stored)):
            raise label.wrong(f"{number!r} is too large")
        return stored.tobytes()

    return convert


def _complex_converter(label: _Label, layout: str) -> _Converter:
    form = struct.Struct(layout)

    def convert(value: Any) -> bytes:
        value = _scalar(value)
        if not isinstance(value, (complex, np.complexfloating)):
            value = complex(_real(label, value))
        try:
            return form.pack(float(value.real), float(value.imag))
        except OverflowError:
            raise label.wrong(f"{value!r} is too large") from None

    return convert


def _vector_converter(label: _Label, code: str, lanes: int) -> _Converter:
    convert_lane = _number_converter(label, code)
    form = struct.Struct(f"={lanes}{code}")

    def convert(value: Any) -> bytes:
        if lanes == 2 and code in "fd" and isinstance(value, (complex, np.complexfloating)):
            parts: list[Any] = [float(value.real), float(value.imag)]
        else:
            try:
                parts = list(value)
            except TypeError:
                raise label.wrong(f"expected {lanes} numbers, not {_described(value)}") from None
        if len(parts) != lanes:
            raise label.wrong(f"expected {lanes} numbers, not {len(parts)}")
        return form.pack(*[convert_lane(part) for part in parts])

    return convert


def _object_converter(label: _Label, kind: type, address: str, what: str) -> _Converter:
    def convert(value: Any) -> int:
        if value is None and kind is _native.ContextBase:
            return 0  # the default context
        if not isinstance(value, kind):
            raise label.wrong(f"expected {what}, not {_described(value)}")
        found: int = getattr(_native, address)(value)
        return found

    return convert


# ---------------------------------------------------------------- pointers


def _vector(found: re.Match[str]) -> tuple[str, _Pointee]:
    """The name of a vector type's parts in C++, and what an array of it holds."""
    word, lanes = found[1], int(found[2])
    unsigned = word.startswith("u")
    base = _VECTOR_BASE.get(word.removeprefix("u"), word.removeprefix("u"))
    if unsigned:
        base = f"unsigned {base}"
    elif base == "char":
        base = "signed char"
    dtype = _SCALARS[base][0][0]
    whole = lanes * dtype.itemsize if lanes != 3 else dtype.itemsize
    return base, _Pointee((dtype,), lanes, min(whole, int(found[3] or 16)))


def _pointee(kind: CppType) -> _Pointee | None:
    """What an array that is passed as a pointer to ``kind`` must hold; ``None`` for structures of the program."""
    if kind.kind == "array" and kind.target is not None:
        return _pointee(kind.target)
    if kind.name == "void":
        return _Pointee((), 1, 1)
    if kind.name in _SCALARS:
        held = _SCALARS[kind.name][0]
    elif kind.kind == "pointer":
        held = _dtypes("uint64")
    elif re.fullmatch(_HALF, kind.name):
        held = _dtypes("float16")
    elif re.fullmatch(_BFLOAT, kind.name):
        held = (dtypes.bfloat16,)
    elif kind.name == _BOOL8:
        held = _dtypes("bool")
    elif kind.name == "std::byte":
        held = _dtypes("uint8", "int8")
    elif kind.name in ("__half2", "__nv_bfloat162"):
        return _Pointee((np.dtype("float16") if kind.name == "__half2" else dtypes.bfloat16,), 2, 4)
    elif found := re.fullmatch(_COMPLEX, kind.name):
        held = _dtypes("complex64" if "float" in found.groups() else "complex128")
        own = kind.name.startswith("std::") or "_Complex" in kind.name
        return _Pointee(held, 1, held[0].alignment if own else held[0].itemsize)
    elif found := re.fullmatch(_VECTOR, kind.name):
        return _vector(found)[1]
    else:
        return None
    return _Pointee(held, 1, held[0].alignment)


def _is_const(kind: CppType) -> bool:
    while kind.kind == "array" and kind.target is not None:
        kind = kind.target
    return kind.const


def _pointer_converter(label: _Label) -> _Converter:
    target = label.type.target
    assert target is not None
    if target.kind == "function":
        raise label.wrong("a pointer to a function can't be passed from Python")
    pointee = _pointee(target)
    held = pointee.dtypes if pointee else ()
    plain = held[0] if pointee and pointee.lanes == 1 and len(held) == 1 else None
    align = pointee.align if pointee else 1
    writes = not _is_const(target)

    def convert(value: Any) -> int:
        if type(value) is np.ndarray:
            array = value
            if array.base is not None:
                _check_live(label, array)
        elif isinstance(value, _native.ArrayBase):
            array = value.local
        elif value is None:
            return 0
        else:
            array = _as_array(label, value)
        if plain is None or array.dtype != plain:  # (NumPy takes None for float64)
            _check_dtype(label, array, pointee)
        flags = array.flags
        if not flags.c_contiguous:
            raise label.bad_layout(
                f"the array of shape {array.shape} has strides {array.strides}; a pointer describes contiguous memory "
                "only. Pass the whole array and index it in the kernel, or a copy"
            )
        if writes and not flags.writeable:
            raise label.wrong(
                "the array is read-only; declare the parameter as a pointer to const, or pass a copy"
            )
        address = _native.address(array)
        if address % align or not flags.aligned:
            raise label.bad_layout(f"the array starts at an address that is not a multiple of {align}")
        return address

    return convert


def _check_dtype(label: _Label, array: npt.NDArray[Any], pointee: _Pointee | None) -> None:
    """Raise unless the array holds what the pointer points to."""
    dtype = array.dtype
    if pointee is None:
        if dtype.fields is None:
            raise label.wrong(
                f"expected an array of a structured dtype for {label.type.target}, not of {dtype}"
            )
        return
    if not pointee.dtypes:
        return
    if pointee.lanes == 1:
        if dtype in pointee.dtypes:
            return
        wanted = " or ".join(d.name for d in pointee.dtypes)
        raise label.wrong(f"expected an array of {wanted}, not of {dtype}")
    part, lanes = pointee.dtypes[0], pointee.lanes
    if dtype == part and array.ndim and array.shape[-1] == lanes:
        return
    if lanes == 2 and part.kind == "f" and dtype.kind == "c" and dtype.itemsize == 2 * part.itemsize:
        return
    raise label.wrong(
        f"expected an array of {part.name} whose last dimension is {lanes}, not of {dtype} and shape {array.shape}"
    )


def _check_live(label: _Label, array: npt.NDArray[Any]) -> None:
    """Raise if an ordinary array is a view of symmetric memory that was freed."""
    block = _native.block_at(array) if _native.is_active() else None
    if block is not None and not block.live:
        raise StaleArrayError(f"{label}: the symmetric array that this is a view of was freed")


def _says_read_only(value: Any) -> bool:
    """Whether an exporter knows the version of DLPack that can say so; NumPy reads arrays of others as read-only."""
    try:
        capsule = value.__dlpack__(max_version=(1, 0))
    except TypeError:
        return False
    return "versioned" in repr(capsule)


class _SameMemory:
    """A writable view of an array that NumPy calls read-only because its source could not say."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface


def _as_array(label: _Label, value: Any) -> npt.NDArray[Any]:
    """The memory of an array of any library, without copying it. The caller keeps ``value`` alive."""
    if isinstance(value, _native.HandleBase):
        raise label.wrong(
            "a remote handle has no address here; pass the symmetric array and the PE's number, and let the kernel "
            "communicate, or take pgas::ptr"
        )
    if isinstance(value, np.generic):
        raise label.wrong(f"expected an array or None, not the number {value!r}")
    try:
        if isinstance(value, np.ndarray) or hasattr(value, "__array_interface__"):
            return np.asarray(value)
        if hasattr(value, "__dlpack__"):
            array = np.from_dlpack(value)
            if not array.flags.writeable and not _says_read_only(value):
                return np.asarray(_SameMemory(array))
            return array
    except (TypeError, ValueError, BufferError, RuntimeError, AttributeError) as error:
        raise InvalidTypeError(f"{label}: {_described(value)} is no memory of the host: {error}") from error
    raise label.wrong(f"expected an array or None, not {_described(value)}")
