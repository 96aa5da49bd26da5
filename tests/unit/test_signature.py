# SPDX-License-Identifier: Apache-2.0
"""Types from mangled names, and arguments packed for them."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pypgas as pg
from pypgas.compiler.arguments import Packer
from pypgas.compiler.signature import SignatureError, parameters

# Names as GCC 12, Clang and NVRTC 13 write them.
KNOWN = {
    "PFvvE": [],
    "_Z1kv": [],
    "_Z4heatPKfPfi": ["const float*", "float*", "int"],
    "PDoFviE": ["int"],
    "PFvPKfPfiE": ["const float*", "float*", "int"],
    "_ZN2ns35_GLOBAL__N__00000000_7_heat_cu_heat2stEPKfPf": ["const float*", "float*"],
    "_ZN4pgas6detail11kernel_typeIPFvPfPKfNS_4teamEEEE": ["float*", "const float*", "pgas::team"],
    "_ZN10pgas_probe9signatureIPFvPKfPfiPyEEE": ["const float*", "float*", "int", "unsigned long long*"],
    "PFvN4pgas4teamENS_7contextEPS0_RKS0_E": [
        "pgas::team",
        "pgas::context",
        "pgas::team*",
        "const pgas::team&",
    ],
    "PFvSt7complexIfEPS_IdEPKS0_S0_E": [
        "std::complex<float>",
        "std::complex<double>*",
        "const std::complex<float>*",
        "std::complex<float>",
    ],
    "PFvbcahstijlmxyfdE": [
        "bool",
        "char",
        "signed char",
        "unsigned char",
        "short",
        "unsigned short",
        "int",
        "unsigned int",
        "long",
        "unsigned long",
        "long long",
        "unsigned long long",
        "float",
        "double",
    ],
    "PFvPmmlPvPKvPViPVKiPiPPfPKPKfS8_E": [
        "unsigned long*",
        "unsigned long",
        "long",
        "void*",
        "const void*",
        "int*",
        "const int*",
        "int*",
        "float**",
        "const float* const*",
        "float*",
    ],
    "PFvPA3_fRA4_fPFvifEPA3_KfS0_E": [
        "float[3] (*)",
        "float[4] (&)",
        "void (int, float) (*)",
        "float[3] (*)",
        "float[3] (*)",
    ],
    "PFvN4pgas2in3boxIfEENS2_5innerEPNS1_IPKfEEPS2_NS1_INS1_IiEEEENSA_5innerENS9_5innerEE": [
        "pgas::in::box<float>",
        "pgas::in::box<float>::inner",
        "pgas::in::box<const float*>*",
        "pgas::in::box<float>*",
        "pgas::in::box<pgas::in::box<int>>",
        "pgas::in::box<pgas::in::box<int>>::inner",
        "pgas::in::box<int>::inner",
    ],
    "PFvN4pgas4packILin3ELb1EJiPfNS_4teamEEEENS_6taggedILNS_2OpE1EEES5_6float4PKS7_S7_E": [
        "pgas::pack<-3, true, int, float*, pgas::team>",
        "pgas::tagged<(pgas::Op)1>",
        "pgas::Op",
        "float4",
        "const float4*",
        "float4",
    ],
    "PFvN12_GLOBAL__N_16hiddenEPNS_4deep2h2EPS0_Z4mainE3locPS5_S2_E": [
        "(anonymous namespace)::hidden",
        "(anonymous namespace)::deep::h2*",
        "(anonymous namespace)::hidden*",
        "main::loc",
        "main::loc*",
        "(anonymous namespace)::deep::h2",
    ],
    "PFvDv4_fPS_DF16_nPDF16_CfM1SiMS3_FvvEDsE": [
        "float __vector(4)",
        "float __vector(4)*",
        "_Float16",
        "__int128",
        "_Float16*",
        "float _Complex",
        "int S::*",
        "void () S::*",
        "char16_t",
    ],
    "PFv6__half13__nv_bfloat16DF16bu6__bf16E": ["__half", "__nv_bfloat16", "__bf16", "__bf16"],
}


@pytest.mark.parametrize("mangled", KNOWN)
def test_parameters(mangled: str) -> None:
    assert [str(kind) for kind in parameters(mangled)] == KNOWN[mangled]


@pytest.mark.parametrize(
    "mangled",
    [
        "",
        "i",
        "_Z",
        "_Z4hea",
        "PFvS5_E",
        "PFvPE",
        "_Z5scaleIfLi3EEvPT_PKS0_",
        "PFvN1a",
        "heat",
        "PFvi",
        "PFvDE",
        "_ZN1a",
    ],
)
def test_what_is_no_signature(mangled: str) -> None:
    with pytest.raises(SignatureError):
        parameters(mangled)


PROGRAM = r"""
#include <cstdio>
#include <complex>
#include <map>
#include <string>
#include <typeinfo>
#include <vector>
namespace a { template <class... T> struct box { struct inner {}; }; template <int N, bool B> struct num {};
enum class E { x, y }; template <E e> struct tag {}; namespace { struct hidden {}; } namespace b { struct deep {}; } }
struct S { int m; };
#define P(...) puts(typeid(void (*)(__VA_ARGS__)).name());
int main() {
  struct local {};
  P(a::box<>, a::box<int>, a::box<int, float*>*, const a::box<int, float*>*, a::box<a::box<int>>::inner)
  P(a::num<-7, true>, a::num<0, false>*, a::tag<a::E::y>, a::E, a::E*, const volatile a::E*)
  P(a::hidden, a::b::deep, a::b::deep*, a::hidden*, local, local**, S, int S::*)
  P(std::vector<int>, std::map<std::string, std::vector<int>>*, const std::string&, std::pair<int, std::vector<int>>)
  P(std::complex<double>, std::complex<double>*, const std::complex<float>*, std::allocator<char>)
  P(const int* const*, int (*)[3], int (*)[3][4], void (*)(int*, int*), int&&)
}
"""


@pytest.mark.skipif(
    shutil.which("c++") is None or shutil.which("c++filt") is None, reason="needs c++ and c++filt"
)
def test_types_read_as_the_binutils_read_them(tmp_path: Path) -> None:
    (tmp_path / "p.cpp").write_text(PROGRAM)
    subprocess.run(["c++", "-std=c++17", "-o", "p", "p.cpp"], cwd=tmp_path, check=True)
    for name in subprocess.run(
        ["./p"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout.split():
        shown = subprocess.run(["c++filt", "-t", name], check=True, capture_output=True, text=True).stdout
        ours = ", ".join(str(kind) for kind in parameters(name))

        def letters(text: str) -> str:
            # The order of `const`, blanks and brackets is a matter of taste.
            return "".join(sorted(c for c in text if c.isalnum() or c in "<>:,*&"))

        assert letters(ours) == letters(shown.strip().removeprefix("void (*)(").replace("volatile", ""))


# ---------------------------------------------------------------- values


def pack(mangled: str, *arguments: Any) -> bytes:
    return Packer("k", parameters(mangled)).pack(arguments)


def address(array: np.ndarray[Any, Any]) -> int:
    found: int = array.__array_interface__["data"][0]
    return found


def test_layout_is_that_of_c() -> None:
    packer = Packer("k", parameters("PFvcdsicE"))
    assert packer.offsets == (0, 8, 16, 20, 24)
    assert packer.nbytes == 25
    assert packer.pack((1, 2.0, 3, 4, 5)) == struct.pack("=b7xdh2xib", 1, 2.0, 3, 4, 5)
    # complex numbers of ours are aligned as a whole, the C++ library's as their parts
    assert Packer("k", parameters("PFvcN4pgas10complex_ofIdEEE")).offsets == (0, 16)
    assert Packer("k", parameters("PFvcSt7complexIdEE")).offsets == (0, 8)
    assert Packer("k", parameters("PFvc6float4c6float3c4int2E")).offsets == (0, 16, 32, 36, 48, 56)
    assert Packer("k", parameters("PFvvE")).pack(()) == b""


@pytest.mark.parametrize(
    ("code", "low", "high"),
    [
        (code, low, high)
        for codes, bits in (("ca", 8), ("s", 16), ("i", 32), ("lx", 64))
        for code in codes
        for low, high in [(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)]
    ]
    + [
        (code, 0, (1 << bits) - 1)
        for codes, bits in (("h", 8), ("t", 16), ("j", 32), ("my", 64))
        for code in codes
    ],
)
def test_integers_have_limits(code: str, low: int, high: int) -> None:
    size = len(pack(f"PFv{code}E", 0))
    for number in (low, high):
        assert int.from_bytes(pack(f"PFv{code}E", number), "little", signed=low < 0) == number
    for number in (low - 1, high + 1, 10**30):
        with pytest.raises(pg.InvalidTypeError, match="is not in"):
            pack(f"PFv{code}E", number)
    assert size in (1, 2, 4, 8)


@pytest.mark.parametrize("number", [np.int8(3), np.uint64(3), np.array(3), np.array(3, "u1"), 3])
def test_integers_of_any_kind(number: Any) -> None:
    assert pack("PFviE", number) == struct.pack("=i", 3)


@pytest.mark.parametrize("flag", [True, np.bool_(True), np.array(True)])
def test_flags(flag: Any) -> None:
    assert pack("PFvbE", flag) == b"\1"
    assert pack("PFviE", flag) == b"\1\0\0\0"


@pytest.mark.parametrize(
    "number", [1.5, np.float32(1.5), np.float16(1.5), ml_dtypes.bfloat16(1.5), np.array(1.5)]
)
def test_floats(number: Any) -> None:
    assert pack("PFvfE", number) == struct.pack("=f", 1.5)
    assert pack("PFvdE", number) == struct.pack("=d", 1.5)
    for half in ("6__half", "DF16_", "Dh", "N4pgas4halfE"):
        assert pack(f"PFv{half}E", number) == np.float16(1.5).tobytes()
    for brain in ("13__nv_bfloat16", "DF16b", "u6__bf16", "N4pgas8bfloat16E"):
        assert pack(f"PFv{brain}E", number) == ml_dtypes.bfloat16(1.5).tobytes()
    for single in ("St7complexIfE", "N4pgas10complex_ofIfEE", "N4cuda3std3__47complexIfEE", "Cf"):
        assert pack(f"PFv{single}E", number) == np.complex64(1.5).tobytes()


def test_special_floats() -> None:
    assert pack("PFvfE", float("inf")) == struct.pack("=f", float("inf"))
    assert np.isnan(np.frombuffer(pack("PFv6__halfE", float("nan")), "f2")[0])
    for code, large in (
        ("f", 1e39),
        ("f", -1e300),
        ("6__half", 1e5),
        ("13__nv_bfloat16", 1e39),
        ("d", 10**400),
    ):
        with pytest.raises(pg.InvalidTypeError, match="too large"):
            pack(f"PFv{code}E", large)


def test_complex_numbers_and_vectors() -> None:
    assert pack("PFvSt7complexIdEE", 1 + 2j) == np.complex128(1 + 2j).tobytes()
    assert pack("PFv6float2E", 1 + 2j) == np.complex64(1 + 2j).tobytes()
    assert pack("PFv6float2E", [1, 2]) == np.float32([1, 2]).tobytes()
    assert pack("PFv5uint3E", np.array([1, 2, 3])) == np.uint32([1, 2, 3]).tobytes()
    for wrong in ([1, 2, 3], 3, [1, "x"], [1, -1]):
        with pytest.raises(pg.InvalidTypeError):
            pack("PFv5uint2E", wrong)


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("i", 1.5),
        ("i", "1"),
        ("i", None),
        ("i", np.zeros(1, "i4")),
        ("i", np.float64(1)),
        ("i", 1j),
        ("f", "1"),
        ("f", None),
        ("f", 1j),
        ("f", np.complex64(1)),
        ("f", np.zeros(1, "f4")),
        ("f", [1.0]),
        ("b", 1),
        ("b", "True"),
        ("b", None),
        ("St7complexIfE", "1"),
        ("6__half", "1"),
        ("Pf", 0),
        ("Pf", 1.5),
        ("Pf", np.float32(1)),
        ("Pf", [1.0, 2.0]),
        ("Pf", "x"),
        ("Pf", np.zeros(3)),
        ("Pf", np.zeros(3, "i4")),
        ("Pf", np.zeros(3, ">f4")),
        ("Pi", np.zeros(3, "u4")),
        ("PKd", np.zeros(3, "f4")),
        ("Pc", np.zeros(3, "i2")),
        ("P6float4", np.zeros((3, 3), "f4")),
        ("P6float4", np.zeros(4, "f8")),
        ("P6float2", np.zeros(4, "c16")),
        ("P8Particle", np.zeros(3, "f4")),
        ("PPf", np.zeros(3, "f4")),
        ("N4pgas4teamE", 0),
        ("N4pgas4teamE", None),
        ("N4pgas7contextE", 0),
    ],
)
def test_wrong_kinds(code: str, value: Any) -> None:
    with pytest.raises(pg.InvalidTypeError, match=r"kernel k: argument 1 \(.*\): expected ") as caught:
        pack(f"PFv{code}E", value)
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize("code", ["8Particle", "RKf", "PFvvE", "e", "n", "M1Si"])
def test_parameters_that_nothing_can_be_passed_to(code: str) -> None:
    with pytest.raises(pg.InvalidTypeError, match="kernel k: argument 1"):
        Packer("k", parameters(f"PFv{code}E"))


def test_the_number_of_arguments() -> None:
    for arguments in ((), (1,), (1, 2, 3)):
        with pytest.raises(pg.InvalidTypeError, match=r"2 expected: \(int, float\)"):
            pack("PFvifE", *arguments)


# ---------------------------------------------------------------- pointers

POINTEES = {
    "b": "?", "a": "i1", "h": "u1", "s": "i2", "t": "u2", "i": "i4", "j": "u4", "l": "i8", "m": "u8", "x": "i8", "y": "u8",
    "f": "f4", "d": "f8", "6__half": "f2", "N4pgas4halfE": "f2", "DF16_": "f2", "St7complexIfE": "c8",
    "St7complexIdE": "c16", "N4pgas10complex_ofIfEE": "c8", "N4pgas5bool8E": "?",
}  # fmt: skip


@pytest.mark.parametrize("code", POINTEES)
def test_arrays_of_the_pointee(code: str) -> None:
    array = np.zeros((2, 3), POINTEES[code])
    assert pack(f"PFvP{code}E", array) == struct.pack("=Q", address(array))
    array.flags.writeable = False
    assert pack(f"PFvPK{code}E", array) == struct.pack("=Q", address(array))
    with pytest.raises(pg.InvalidTypeError, match="read-only"):
        pack(f"PFvP{code}E", array)
    assert pack(f"PFvP{code}E", None) == bytes(8)


def test_arrays_of_bfloat16() -> None:
    array = np.zeros(3, ml_dtypes.bfloat16)
    for code in ("13__nv_bfloat16", "DF16b", "u6__bf16", "N4pgas8bfloat16E"):
        assert pack(f"PFvP{code}E", array) == struct.pack("=Q", address(array))


def test_pointers_that_take_several_dtypes() -> None:
    for dtype in ("i1", "u1"):
        assert pack("PFvPcE", np.zeros(3, dtype)) != bytes(8)
    for dtype in ("i1", "f8", "c16", [("x", "f4"), ("y", "i2")]):
        assert pack("PFvPvE", np.zeros(3, dtype)) != bytes(8)
    assert pack("PFvP8ParticleE", np.zeros(3, [("x", "f4"), ("y", "i2")])) != bytes(8)
    assert pack("PFvP6float4E", np.zeros((3, 4), "f4")) != bytes(8)
    assert pack("PFvP6float2E", np.zeros(3, "c8")) != bytes(8)
    assert pack("PFvPA3_fE", np.zeros((2, 3), "f4")) != bytes(8)
    assert pack("PFvPPfE", np.zeros(2, "u8")) != bytes(8)


@pytest.mark.parametrize(
    "view",
    [lambda a: a[::2], lambda a: a[:, 1:], lambda a: a.T, lambda a: a[:, 0]],
    ids=["rows", "columns", "transposed", "column"],
)
def test_strided_arrays_raise(view: Callable[[Any], Any]) -> None:
    with pytest.raises(pg.InvalidValueError, match="strides"):
        pack("PFvPKfE", view(np.zeros((4, 4), "f4")))


def test_unaligned_arrays_raise() -> None:
    raw = np.zeros(64, "u1")
    shift = 1 + -address(raw) % 16
    with pytest.raises(pg.InvalidValueError, match="multiple of 4"):
        pack("PFvPKfE", raw[shift : shift + 16].view("f4"))
    eight = 8 + -address(raw) % 16
    with pytest.raises(pg.InvalidValueError, match="multiple of 16"):
        pack("PFvP6float4E", raw[eight : eight + 16].view("f4"))


def test_empty_arrays_are_arrays() -> None:
    assert len(pack("PFvPfE", np.zeros((0, 3), "f4"))) == 8


class Exporter:
    """An array of another library."""

    def __init__(self, array: np.ndarray[Any, Any], versioned: bool) -> None:
        self.array = array
        self.versioned = versioned

    def __dlpack__(self, **options: Any) -> Any:
        if options and not self.versioned:
            raise TypeError("the first version of DLPack has no options")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = self.array.__dlpack_device__()
        return int(kind), int(number)


@pytest.mark.parametrize("versioned", [True, False])
def test_arrays_of_other_libraries(versioned: bool) -> None:
    array = np.zeros(3, "f4")
    assert pack("PFvPfE", Exporter(array, versioned)) == struct.pack("=Q", address(array))
    with pytest.raises(pg.InvalidTypeError, match="expected an array of float64"):
        pack("PFvPdE", Exporter(array, versioned))


def test_read_only_arrays_of_other_libraries() -> None:
    array = np.zeros(3, "f4")
    array.flags.writeable = False
    assert pack("PFvPKfE", Exporter(array, True)) == struct.pack("=Q", address(array))
    with pytest.raises(pg.InvalidTypeError, match="read-only"):
        pack("PFvPfE", Exporter(array, True))


def test_memory_elsewhere_is_refused() -> None:
    class OnDevice:
        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("it is on a device")

        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

    with pytest.raises(pg.InvalidTypeError, match="no memory of the host"):
        pack("PFvPfE", OnDevice())
