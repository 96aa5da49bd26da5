# SPDX-License-Identifier: Apache-2.0
"""Finding kernels in a source, and rewriting it for a host compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from pypgas.compiler.names import is_balanced, normal_name, plain
from pypgas.compiler.source import host_source, scan
from pypgas.compiler.unit import Unit, digest, headers, rewritten


def names(text: str) -> list[str]:
    return [kernel.name for kernel in scan(text).kernels]


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void k() {}",
        "void __global__ k(int x) { if (x) { x++; } }",
        "static __global__ void __launch_bounds__(256, 2) k(float *a, int n = (1 + 2)) {}",
        '__global__ __attribute__((noinline)) void k(const char *s = "{;") {}',
        "[[maybe_unused]] __global__ void [[gnu::cold]] k() noexcept {}",
        "__global__ void\nk(\n  int a,\n  int b)\n{\n}",
        "__global__ void k(struct { int x; } *p);\n__global__ void k(int) {}",
        "struct S { int x = 3; };\n__global__ void k(S *s) { auto f = [](int x) { return x; }; }",
        "int numbers[] = {1, 2, 3};\n__global__ void k() {}",
        "__global__ __cluster_dims__(2, 1, 1) void k() {}",
        "__global__ void k(int (*table)[3]) {}",
    ],
)
def test_a_kernel_is_found(text: str) -> None:
    found = scan(text).kernels
    assert [kernel.name for kernel in found] == ["k"]
    assert not found[0].template
    assert not found[0].extern_c
    assert plain(found) == ("k",)


@pytest.mark.parametrize(
    "text",
    [
        "// __global__ void k() {}",
        "// a comment that goes on \\\n__global__ void k() {}",
        "/* __global__ void k() {} */",
        'const char *s = "__global__ void k() {";',
        'const char *s = R"x(__global__ void k() { )" )x";',
        "__global__ void k(int);",
        "#define K __global__ void k() {}",
        "#define K \\\n __global__ void k() {}",
        "void f() { int __global__x = 1; }",
        "template <> __global__ void k<int>(int *x) {}",
        "",
        "__global__",
        "}}}} __global__ {",
    ],
)
def test_what_is_no_definition_of_a_kernel(text: str) -> None:
    assert plain(scan(text).kernels) == ()


def test_namespaces_and_linkage() -> None:
    text = """
    namespace a { namespace b::c { __global__ void k1() {} } __global__ void k2() {} }
    namespace { __global__ void k3() {} }
    inline namespace v1 { __global__ void k4() {} }
    extern "C" { __global__ void k5() {} }
    extern "C" __global__ void k6() {}
    extern "C++" { __global__ void k7() {} }
    __global__ void a::k8() {}
    namespace alias = a;
    __global__ void k9() {}
    """
    found = scan(text).kernels
    assert [k.name for k in found] == [
        "a::b::c::k1",
        "a::k2",
        "k3",
        "v1::k4",
        "k5",
        "k6",
        "k7",
        "a::k8",
        "k9",
    ]
    assert [k.name for k in found if k.extern_c] == ["k5", "k6"]


def test_templates_and_overloads_are_no_plain_kernels() -> None:
    text = """
    template <class T, int N = (3 > 2)> __global__ void t(T *x) {}
    __global__ void f(int) {}
    __global__ void f(float) {}
    __global__ void g() {}
    """
    assert [(k.name, k.template) for k in scan(text).kernels] == [
        ("t", True),
        ("f", False),
        ("f", False),
        ("g", False),
    ]
    assert plain(scan(text).kernels) == ("g",)


def test_conditions() -> None:
    text = """
#ifndef GUARD
#define GUARD
__global__ void always() {}
#if 0
__global__ void one() {
#else
__global__ void other() {
#endif
}
#ifdef X
__global__ void third() {}
#endif
__global__ void last() {}
#endif
"""
    assert [(k.name, k.conditional) for k in scan(text).kernels] == [
        ("always", False),
        ("one", True),
        ("other", True),
        ("third", True),
        ("last", False),
    ]


def test_the_brace_that_is_not_closed() -> None:
    assert scan("__global__ void k() {\n}\n").open_line == 0
    assert scan("\nint x;\n__global__ void k() {\n if (x) {\n }\n").open_line == 3


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("extern __shared__ float s[];", "float* s = (float*)pgas::cpu::dynamic_shared();"),
        ("__shared__ extern float s[];", "float* s = (float*)pgas::cpu::dynamic_shared();"),
        (
            "extern __shared__ __align__(16) unsigned char raw[];",
            "unsigned char* raw = (unsigned char*)pgas::cpu::dynamic_shared();",
        ),
        ("extern __shared__ alignas(alignof(T)) T s[];", "T* s = (T*)pgas::cpu::dynamic_shared();"),
        (
            "extern volatile __shared__ int s[];",
            "volatile int* s = (volatile int*)pgas::cpu::dynamic_shared();",
        ),
        (
            "extern __shared__ float *p[], *q[];",
            "float ** p = (float **)pgas::cpu::dynamic_shared(); float ** q = (float **)pgas::cpu::dynamic_shared();",
        ),
        (
            "extern __shared__ std::pair<int, float> s[];",
            "std :: pair < int , float >* s = (std :: pair < int , float >*)pgas::cpu::dynamic_shared();",
        ),
        (
            "extern __shared__ double m[][4];",
            "double (*m)[ 4 ] = (double (*)[ 4 ])pgas::cpu::dynamic_shared();",
        ),
    ],
)
def test_dynamic_shared_memory(declared: str, expected: str) -> None:
    assert host_source(f"__global__ void k() {{ {declared} }}") == f"__global__ void k() {{ {expected} }}"


def test_lines_keep_their_numbers() -> None:
    text = "__global__ void k() {\n extern __shared__\n  float\n  s[\n ]; // four lines\n s[0] = 1;\n}\n"
    assert host_source(text).count("\n") == text.count("\n")
    assert host_source(text).index("s[0] = 1") > host_source(text).index("four lines")
    macro = "#define SHARED(T) \\\n extern __shared__ T \\\n s[]\n__global__ void k() { SHARED(int); }\n"
    assert (
        host_source(macro)
        == "#define SHARED(T) \\\n T* s = (T*)pgas::cpu::dynamic_shared()\\\n\n__global__ void k() { SHARED(int); }\n"
    )


def test_shared_memory_declared_outside_functions_is_an_object() -> None:
    text = host_source("extern __shared__ float s[];\n__global__ void k() { s[0] = 1; }")
    assert "operator element*() const" in text
    assert text.count("\n") == 1


def test_what_needs_no_rewriting_stays() -> None:
    text = "__global__ void k() { __shared__ float s[32]; extern int x; } // extern __shared__ float t[];"
    assert host_source(text) == text


def test_names() -> None:
    assert normal_name(" ::ns :: scale< float ,3 > ") == "ns::scale<float,3>"
    assert normal_name("f<unsigned   int>") == "f<unsigned int>"
    assert is_balanced("f<(1 + 2), float[3]>")
    for wrong in ("", "f(", "f)", "f;g", "f{", "f\ng", "f // x", 'f"', "f)("):
        assert not is_balanced(wrong)


# ---------------------------------------------------------------- headers


def unit(tmp_path: Path, text: str, **options: object) -> Unit:
    return Unit(source=text, name="k.cu", folder=tmp_path, kernels=("k",), **options)  # type: ignore[arg-type]


def test_headers_are_found_where_the_compiler_finds_them(tmp_path: Path) -> None:
    more = tmp_path / "more"
    (more / "sub").mkdir(parents=True)
    (tmp_path / "a.h").write_text('#include "sub/b.h"\n#include <cmath>\n')
    (more / "sub" / "b.h").write_text('#include "c.h"\n#include <a.h>\n')  # c.h lies beside it
    (more / "sub" / "c.h").write_text("")
    (more / "a.h").write_text("")
    found = headers(unit(tmp_path, '#include "a.h"\n', include=(more,)))
    assert [h.path for h in found] == [tmp_path / "a.h", more / "sub" / "b.h", more / "sub" / "c.h"]


def test_the_key_depends_on_everything(tmp_path: Path) -> None:
    header = tmp_path / "a.h"
    header.write_text("1")
    first = unit(tmp_path, '#include "a.h"\n')
    keys = {digest(first, ("x",)), digest(first, ("y",))}
    assert digest(first, ("x",)) in keys
    for change in (
        {"source": '#include "a.h"\n\n'},
        {"name": "l.cu"},
        {"kernels": ("k", "l")},
        {"kernels": ("kl",)},
        {"defines": ("A",)},
        {"options": ("A",)},
        {"include": (tmp_path,)},
        {"debug": True},
    ):
        keys.add(digest(first._replace(**change), ("x",)))
    header.write_text("22")
    keys.add(digest(first, ("x",)))
    assert len(keys) == 11
    assert None not in keys


def test_a_header_named_by_a_macro_gives_no_key(tmp_path: Path) -> None:
    assert digest(unit(tmp_path, "#define H <cmath>\n#include H\n"), ("x",)) is None


def test_headers_with_dynamic_shared_memory_are_rewritten(tmp_path: Path) -> None:
    (tmp_path / "outer.h").write_text('#include "inner.h"\n')
    (tmp_path / "inner.h").write_text(
        "#pragma once\ninline int *f() { extern __shared__ int s[]; return s; }\n"
    )
    copies = tmp_path / "copies"
    text = rewritten(unit(tmp_path, '\n#include "outer.h"\n#include <cmath>\n'), copies)
    assert text == f'\n#include "{copies}/0/outer.h"\n#include <cmath>\n'
    assert f'#include "{copies}/1/inner.h"' in (copies / "0" / "outer.h").read_text()
    inner = (copies / "1" / "inner.h").read_text()
    assert inner.startswith(f'#line 1 "{tmp_path}/inner.h"\n')
    assert "dynamic_shared" in inner
