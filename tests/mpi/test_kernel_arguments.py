# SPDX-License-Identifier: Apache-2.0
"""Arguments as kernels see them, and wrong ones: refused before anything is launched."""

import ml_dtypes
import numpy as np
import pytest

import pypgas as pg

HEADER = "#include <pypgas.cuh>\n"

# C++ type, dtype of the array it is written to, values
SCALARS = [
    ("bool", "?", [True, False, np.bool_(True)]),
    ("signed char", "i1", [-128, 127, np.int8(5)]),
    ("unsigned char", "u1", [0, 255]),
    ("short", "i2", [-32768, 32767]),
    ("unsigned short", "u2", [0, 65535]),
    ("int", "i4", [-(2**31), 2**31 - 1, True]),
    ("unsigned int", "u4", [0, 2**32 - 1]),
    ("long", "i8", [-(2**63), 2**63 - 1]),
    ("unsigned long", "u8", [0, 2**64 - 1]),
    ("long long", "i8", [-(2**63), 2**63 - 1]),
    ("unsigned long long", "u8", [0, 2**64 - 1]),
    ("size_t", "u8", [2**40]),
    ("int64_t", "i8", [-(2**40)]),
    ("uint16_t", "u2", [3]),
    ("float", "f4", [1.5, -np.inf, 3, np.float64(0.1), np.float16(2)]),
    ("double", "f8", [0.1, 1e300, np.float32(0.1)]),
    ("pgas::half", "f2", [1.5, 65504.0]),
    ("pgas::bfloat16", ml_dtypes.bfloat16, [1.5, -3e38]),
    ("pgas::complex64", "c8", [1 + 2j, 3]),
    ("pgas::complex128", "c16", [1e300 - 2j, 3.5]),
]


def instances(what):
    return pg.Module(HEADER + what, kernels=[f"k<{name}>" for name, _, _ in SCALARS], name="scalars")


@pytest.fixture(scope="module")
def by_value():
    return instances(
        "template <class T> __global__ void k(char before, T value, char after, T *out) {"
        " out[0] = value; out[1] = (before == 11 && after == 22) ? value : T(); }\n"
    )


@pytest.mark.parametrize(("name", "dtype", "values"), SCALARS, ids=[s[0] for s in SCALARS])
def test_values_arrive(by_value, name, dtype, values):
    out = np.zeros(2, dtype)
    for value in values:
        out[:] = 0
        by_value.kernel(f"k<{name}>")[1, 1](11, value, 22, out)
        pg.synchronize()
        assert np.array_equal(out, np.array([value, value]).astype(out.dtype))


def test_vectors_arrive():
    kernel = pg.kernel(
        "__global__ void k(char a, float4 f, char b, double2 d, short3 s, uint1 u, double *out) {\n"
        "  double all[] = {f.x, f.y, f.z, f.w, d.x, d.y, (double)s.x, (double)s.y, (double)s.z, (double)u.x};\n"
        "  for (int i = 0; i < 10; i++) out[i] = all[i]; }",
        "k",
    )
    out = np.zeros(10)
    kernel[1, 1](1, (1, 2, 3, 4), 2, 5 + 6j, np.array([7, 8, 9]), [10], out)
    pg.synchronize()
    assert np.array_equal(out, np.arange(1, 11))


def test_many_arguments():
    names = [f"a{i}" for i in range(60)]
    kernel = pg.kernel(
        f"__global__ void k({', '.join('int ' + n for n in names)}, long long *sum) {{ *sum = {' + '.join(names)}; }}",
        "k",
    )
    out = np.zeros(1, "i8")
    kernel[1, 1](*range(60), out)
    pg.synchronize()
    assert out[0] == sum(range(60))


# ---------------------------------------------------------------- arrays

COPY = (
    HEADER
    + "__global__ void copy(const float *from, float *to, int n) { for (int i = 0; i < n; i++) to[i] = from[i]; }\n"
)


@pytest.fixture(scope="module")
def copy():
    return pg.Module(COPY, name="copy").kernel("copy")


class Foreign:
    """An array of another library, over the same memory."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def memories():
    """The same eight numbers in every kind of array that a pointer takes."""
    values = np.arange(8, dtype="f4")
    symmetric = pg.array(values)
    return {
        "numpy": values.copy(),
        "symmetric": symmetric,
        "view": pg.array(np.stack([values, values]))[1],
        "local": symmetric.local,
        "foreign": Foreign(values.copy()),
        "two dimensions": values.reshape(2, 4).copy(),
    }


@pytest.mark.parametrize("source", ["numpy", "symmetric", "view", "local", "foreign", "two dimensions"])
@pytest.mark.parametrize("target", ["numpy", "symmetric", "view", "local", "foreign", "two dimensions"])
def test_arrays_of_every_kind(copy, source, target):
    given, taken = memories()[source], memories()[target]
    seen = np.asarray(taken.array if target == "foreign" else taken)
    seen[...] = 0
    copy[1, 1](given, taken, 8)
    pg.synchronize()
    assert np.array_equal(seen.ravel(), np.arange(8))


def test_none_is_the_null_pointer():
    kernel = pg.kernel("__global__ void k(const float *p, int *out) { *out = p == nullptr; }", "k")
    out = np.zeros(1, "i4")
    kernel[1, 1](None, out)
    pg.synchronize()
    assert out[0] == 1


def test_structures_by_pointer():
    kernel = pg.kernel(
        "struct Particle { float x; int n; };\n__global__ void k(Particle *p) { p[1].x = 2; p[1].n = 3; }",
        "k",
    )
    particles = np.zeros(2, [("x", "f4"), ("n", "i4")])
    kernel[1, 1](particles)
    pg.synchronize()
    assert particles[1].tolist() == (2.0, 3)
    with pytest.raises(pg.InvalidTypeError, match="structured"):
        kernel[1, 1](np.zeros(2, "f4"))


def refused(call, kind, text):
    with pytest.raises(kind, match=text) as caught:
        call()
    assert str(caught.value).startswith(f"PE {pg.my_pe()}: ")
    return caught.value


def test_wrong_arguments(copy):
    x, y = pg.zeros(8, "f4"), np.zeros(8, "f4")
    fixed = np.zeros(8, "f4")
    fixed.flags.writeable = False
    launch = copy[1, 1]
    refused(
        lambda: launch(),
        pg.InvalidTypeError,
        r"0 arguments given, 3 expected: \(const float\*, float\*, int\)",
    )
    refused(lambda: launch(x, y), pg.InvalidTypeError, "2 arguments given, 3 expected")
    refused(lambda: launch(x, y, 8, 9), pg.InvalidTypeError, "4 arguments given, 3 expected")
    refused(lambda: launch(x, y, 1.0), pg.InvalidTypeError, r"argument 3 \(int\): expected an integer")
    refused(lambda: launch(x, y, None), pg.InvalidTypeError, r"argument 3 \(int\): expected an integer")
    refused(lambda: launch(x, y, y), pg.InvalidTypeError, r"argument 3 \(int\): expected an integer")
    refused(lambda: launch(x, y, 2**31), pg.InvalidTypeError, r"argument 3 \(int\): 2147483648 is not in")
    refused(lambda: launch(1, y, 8), pg.InvalidTypeError, r"argument 1 \(const float\*\): expected an array")
    refused(lambda: launch([1.0], y, 8), pg.InvalidTypeError, "argument 1 .*: expected an array")
    refused(lambda: launch(np.float32(1), y, 8), pg.InvalidTypeError, "argument 1 .*: expected an array")
    refused(
        lambda: launch(pg.zeros(8, "f8"), y, 8),
        pg.InvalidTypeError,
        "expected an array of float32, not of float64",
    )
    refused(
        lambda: launch(x, np.zeros(8, "i4"), 8),
        pg.InvalidTypeError,
        "expected an array of float32, not of int32",
    )
    refused(lambda: launch(x, np.zeros(8, ">f4"), 8), pg.InvalidTypeError, "expected an array of float32")
    refused(lambda: launch(x, fixed, 8), pg.InvalidTypeError, "argument 2 .*read-only")
    refused(lambda: launch(x[::2], y, 4), pg.InvalidValueError, "argument 1 .*strides")
    refused(lambda: launch(np.zeros((4, 4), "f4").T, y, 4), pg.InvalidValueError, "argument 1 .*strides")
    refused(lambda: launch(x.at(pg.my_pe()), y, 4), pg.InvalidTypeError, "remote handle")
    launch(fixed, y, 8)
    pg.synchronize()
    pg.barrier_all()


def test_freed_arrays(copy):
    x = pg.zeros(8, "f4")
    local = x.local
    x.free()
    for stale in (x, local, local[1:]):
        with pytest.raises(pg.StaleArrayError):
            copy[1, 1](stale, np.zeros(8, "f4"), 4)


def test_teams_and_contexts():
    kernel = pg.kernel(
        HEADER
        + "__global__ void k(pgas::team t, pgas::context c, int *x) { if (x) pgas::p(x, 5, t.my_pe(), c); pgas::quiet(c); }",
        "k",
    )
    x = pg.zeros(1, "i4")
    with pg.Context() as context:
        kernel[1, 1](pg.TEAM_WORLD, context, x)
        pg.synchronize()
        assert x.local[0] == 5
        refused(lambda: kernel[1, 1](context, context, x), pg.InvalidTypeError, "expected a Team")
        refused(
            lambda: kernel[1, 1](pg.TEAM_WORLD, pg.TEAM_WORLD, x), pg.InvalidTypeError, "expected a Context"
        )
        refused(lambda: kernel[1, 1](None, context, x), pg.InvalidTypeError, "expected a Team")
    with pytest.raises(pg.PgasError):
        kernel[1, 1](pg.TEAM_WORLD, context, x)
    pg.barrier_all()


@pytest.mark.parametrize(
    ("parameter", "text"),
    [
        ("S s", r"kernel k: argument 1 \(S\): values of this type"),
        ("void (*f)()", "pointer to a function"),
        ("long double x", "values of this type"),
    ],
)
def test_parameters_python_can_not_pass(parameter, text):
    module = pg.Module(f"struct S {{ int x[3]; }};\n__global__ void k({parameter}) {{}}")
    refused(lambda: module.kernel("k"), pg.InvalidTypeError, text)


def test_references_do_not_compile():
    with pytest.raises(pg.CompileError, match="reference"):
        pg.kernel("__global__ void k(const float &x) {}", "k")
