# SPDX-License-Identifier: Apache-2.0
"""A case for every device function of NVSHMEM: kernels that call them all, and what must be in memory afterwards.

All kernels have the same parameters. `target` and `source` are symmetric and consist of slots, one for each call; `pe`
is the next PE, `team` a team of all PEs in reversed order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from nvshmem_names import BITWISE_AMO, BITWISE_REDUCE, REDUCE, SCOPES, SIZES, TYPES, WAIT, WORD

__all__ = ["SLOT", "Batch", "Call", "Kernel", "batches"]

SLOT = 512
N = 13  # elements of a copy
STRIDES = (2, 3, 7)  # of the target, of the source, elements
MANY = 5  # elements of each PE in a collective
UNTOUCHED = 0xA5

PREAMBLE = """
#include <nvshmem.h>
#include <nvshmemx.h>
#define T(type, i) ((type *)(target + 512 * (i)))
#define F(type, i) ((const type *)(source + 512 * (i)))
"""
PARAMETERS = "char *target, const char *source, uint64_t *signals, int pe, nvshmem_team_t team"

Bytes = npt.NDArray[np.uint8]


class Job(NamedTuple):
    """How one PE sees a run: its number, how many there are, and the `source` slots of every PE."""

    me: int
    n: int
    sources: list[Bytes]

    @property
    def left(self) -> int:
        return (self.me - 1) % self.n

    @property
    def right(self) -> int:
        return (self.me + 1) % self.n


class Call(NamedTuple):
    """One function: C++ that calls it with slot number {i}, and what the slot of the target must then be.

    ``expect`` changes a slot from its first to its last content; ``prepare`` fills a slot of the source, and one of the
    target, before.
    """

    name: str
    code: str
    expect: Callable[[Bytes, Job, int], None]
    prepare: Callable[[Bytes, Bytes, np.random.Generator], None] | None = None
    signal: tuple[str, int] | None = None


class Kernel(NamedTuple):
    name: str
    scope: str
    calls: list[Call]

    def code(self) -> str:
        lines = [f"  {call.code.replace('{i}', str(i))}" for i, call in enumerate(self.calls)]
        return "\n".join([f'extern "C" __global__ void {self.name}({PARAMETERS}) {{', *lines, "}"])


class Batch(NamedTuple):
    """Kernels that are compiled together."""

    name: str
    kernels: list[Kernel]

    def source(self) -> str:
        return PREAMBLE + "\n".join(kernel.code() for kernel in self.kernels)

    def functions(self) -> set[str]:
        return {call.name for kernel in self.kernels for call in kernel.calls}


def _dtype(name: str) -> np.dtype[np.generic]:
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


# ---------------------------------------------------------------- copies


def _elements() -> Iterator[tuple[str, str, int]]:
    """Pairs of what stands in for `{}` in a function's name, with the type and size of its elements."""
    for name, (cpp, dtype) in TYPES.items():
        yield f"{name}_{{}}", cpp, _dtype(dtype).itemsize
    for size in SIZES:
        yield f"{{}}{size}", "char", size // 8


def _verb(pattern: str, verb: str) -> str:
    """`float_put_nbi` of a type, `put32_nbi` of a size."""
    head, _, tail = verb.partition("_")
    return (
        pattern.format(verb)
        if pattern.endswith("_{}")
        else pattern.format(head) + (f"_{tail}" if tail else "")
    )


def _contiguous(verb: str, nbytes: int) -> Callable[[Bytes, Job, int], None]:
    def expect(slot: Bytes, job: Job, i: int) -> None:
        origin = job.left if verb.startswith("put") else job.right
        slot[:nbytes] = job.sources[origin][i, :nbytes]

    return expect


def _strided(verb: str, size: int) -> Callable[[Bytes, Job, int], None]:
    def expect(slot: Bytes, job: Job, i: int) -> None:
        origin = job.left if verb == "iput" else job.right
        to, step, n = STRIDES
        elements = slot.reshape(-1, size), job.sources[origin][i].reshape(-1, size)
        elements[0][: n * to : to] = elements[1][: n * step : step]

    return expect


def _copies(scope: str) -> list[Call]:
    prefix, suffix = SCOPES[scope]
    calls = []
    for pattern, cpp, size in _elements():
        for verb in ("put", "get", "put_nbi", "get_nbi"):
            name = f"{prefix}_{_verb(pattern, verb)}{suffix}"
            calls.append(
                Call(name, f"{name}(T({cpp}, {{i}}), F({cpp}, {{i}}), {N}, pe);", _contiguous(verb, N * size))
            )
        for verb in ("iput", "iget"):
            name = f"{prefix}_{_verb(pattern, verb)}{suffix}"
            to, step, n = STRIDES
            arguments = f"T({cpp}, {{i}}), F({cpp}, {{i}}), {to}, {step}, {n}, pe"
            calls.append(Call(name, f"{name}({arguments});", _strided(verb, size)))
    for verb in ("put", "get"):
        for tail in ("", "_nbi"):
            name = f"{prefix}_{verb}mem{tail}{suffix}"
            calls.append(
                Call(name, f"{name}(T(char, {{i}}), F(char, {{i}}), 101, pe);", _contiguous(verb, 101))
            )
    return calls


def _single_elements() -> list[Call]:
    calls = []
    for name, (cpp, dtype) in TYPES.items():
        size = _dtype(dtype).itemsize

        def expect(slot: Bytes, job: Job, i: int, size: int = size, put: bool = True) -> None:
            origin = job.left if put else job.right
            slot[2 * size : 3 * size] = job.sources[origin][i, size : 2 * size]

        def expect_g(slot: Bytes, job: Job, i: int, expect: Callable[..., None] = expect) -> None:
            expect(slot, job, i, put=False)

        calls.append(
            Call(
                f"nvshmem_{name}_p", f"nvshmem_{name}_p(T({cpp}, {{i}}) + 2, F({cpp}, {{i}})[1], pe);", expect
            )
        )
        code = f"T({cpp}, {{i}})[2] = nvshmem_{name}_g(F({cpp}, {{i}}) + 1, pe);"
        calls.append(Call(f"nvshmem_{name}_g", code, expect_g))
    return calls


def _signalled(scope: str) -> list[Call]:
    prefix, suffix = SCOPES[scope]
    calls: list[Call] = []
    kinds = [*_elements(), ("{}mem", "char", 1)]
    for pattern, cpp, size in kinds:
        for verb in ("put_signal", "put_signal_nbi"):
            name = f"{prefix}_{_verb(pattern, verb)}{suffix}"
            op = ("SET", "ADD")[len(calls) // 2 % 2]
            value = 3 + len(calls)
            arguments = (
                f"T({cpp}, {{i}}), F({cpp}, {{i}}), {N}, signals + {{i}}, {value}, NVSHMEM_SIGNAL_{op}, pe"
            )
            calls.append(Call(name, f"{name}({arguments});", _contiguous("put", N * size), None, (op, value)))
    return calls


# ---------------------------------------------------------------- atomics


def _atomics() -> list[Call]:
    calls = []
    operations: dict[str, tuple[list[str], Callable[[int, int], int]]] = {
        "set": ([*WORD, "half", "float", "double"], lambda old, value: value),
        "swap": ([*WORD, "half", "float", "double"], lambda old, value: value),
        "add": (WORD, lambda old, value: old + value),
        "fetch_add": (WORD, lambda old, value: old + value),
        "x add": (["half", "float", "double"], lambda old, value: old + value),
        "x fetch_add": (["half", "float", "double"], lambda old, value: old + value),
        "inc": (WORD, lambda old, value: old + 1),
        "fetch_inc": (WORD, lambda old, value: old + 1),
        "fetch": ([*WORD, "half", "float", "double"], lambda old, value: old),
        "compare_swap": (WORD, lambda old, value: value),
        **{
            f"{fetch}{op}": (BITWISE_AMO, combine)
            for op, combine in (
                ("and", lambda old, value: old & value),
                ("or", lambda old, value: old | value),
                ("xor", lambda old, value: old ^ value),
            )
            for fetch in ("", "fetch_")
        },
    }
    for key, (types, result) in operations.items():
        *extended, verb = key.split()
        for name in types:
            cpp, dtype = _dtype_of(name)

            def prepare(
                source: Bytes, target: Bytes, random: np.random.Generator, dtype: np.dtype[np.generic] = dtype
            ) -> None:
                values = random.integers(1, 60, 2)
                source.view(dtype)[0] = values[0]
                target.view(dtype)[0] = target.view(dtype)[2] = values[1]

            def expect(
                slot: Bytes,
                job: Job,
                i: int,
                dtype: np.dtype[np.generic] = dtype,
                verb: str = verb,
                result: Callable[[int, int], int] = result,
            ) -> None:
                # Every PE's random numbers are those of PE 0, so that what a fetch sees is what stood here too.
                old = int(slot.view(dtype)[0])
                slot.view(dtype)[0] = result(old, int(job.sources[job.left][i].view(dtype)[0]))
                if verb.startswith(("fetch", "swap", "compare")):
                    slot.view(dtype)[1] = old
                if verb == "compare_swap":
                    slot.view(dtype)[3] = slot.view(dtype)[0]

            function = f"nvshmem{'x' if extended else ''}_{name}_atomic_{verb}"
            operand = f"F({cpp}, {{i}})[0]"
            if verb == "compare_swap":
                # The second finds another value than it asks for (the slot's old value is never 0) and changes nothing.
                code = (
                    f"T({cpp}, {{i}})[1] = {function}(T({cpp}, {{i}}), T({cpp}, {{i}})[2], {operand}, pe); "
                    f"T({cpp}, {{i}})[3] = {function}(T({cpp}, {{i}}), 0, 5, pe);"
                )
            else:
                plain = verb in ("inc", "fetch_inc", "fetch")
                code = f"{function}(T({cpp}, {{i}}), {'' if plain else operand + ', '}pe);"
                if verb.startswith(("fetch", "swap")):
                    code = f"T({cpp}, {{i}})[1] = {code}"
            calls.append(Call(function, code, expect, prepare))
    return calls


def _dtype_of(name: str) -> tuple[str, np.dtype[np.generic]]:
    cpp, dtype = TYPES[name]
    return cpp, _dtype(dtype)


# ---------------------------------------------------------------- collectives


def _collectives(scope: str) -> list[Call]:
    prefix, suffix = SCOPES[scope]
    calls = []
    for name, cpp, size in [
        *((f"{name}_", cpp, _dtype(d).itemsize) for name, (cpp, d) in TYPES.items()),
        ("", "char", 3),
    ]:
        nbytes = MANY * size
        number = MANY if name else nbytes

        def team_order(job: Job) -> list[int]:
            return list(range(job.n))[::-1]

        def broadcast(slot: Bytes, job: Job, i: int, nbytes: int = nbytes) -> None:
            slot[:nbytes] = job.sources[team_order(job)[1]][i, :nbytes]

        def fcollect(slot: Bytes, job: Job, i: int, nbytes: int = nbytes) -> None:
            for block, pe in enumerate(team_order(job)):
                slot[block * nbytes : (block + 1) * nbytes] = job.sources[pe][i, :nbytes]

        def alltoall(slot: Bytes, job: Job, i: int, nbytes: int = nbytes) -> None:
            mine = job.n - 1 - job.me
            for block, pe in enumerate(team_order(job)):
                part = job.sources[pe][i, mine * nbytes : (mine + 1) * nbytes]
                slot[block * nbytes : (block + 1) * nbytes] = part

        for verb, expect in (("broadcast", broadcast), ("fcollect", fcollect), ("alltoall", alltoall)):
            function = f"{prefix}_{name}{verb}{'' if name else 'mem'}{suffix}"
            root = ", 1" if verb == "broadcast" else ""
            code = f"{function}(team, T({cpp}, {{i}}), F({cpp}, {{i}}), {number}{root});"
            calls.append(Call(function, code, expect))
    return calls


_UFUNCS = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "max": np.maximum,
    "min": np.minimum,
    "sum": np.add,
    "prod": np.multiply,
}


def _small_numbers(dtype: np.dtype[np.generic]) -> Callable[[Bytes, Bytes, np.random.Generator], None]:
    def prepare(source: Bytes, target: Bytes, random: np.random.Generator) -> None:
        view = source.view(dtype)
        view[:] = random.integers(1, 4, view.size).astype(dtype)

    return prepare


def _reductions(scope: str, kind: str) -> list[Call]:
    prefix, suffix = SCOPES[scope]
    calls = []
    for op, ufunc in _UFUNCS.items():
        for name in BITWISE_REDUCE if op in ("and", "or", "xor") else REDUCE:
            cpp, dtype = _dtype_of(name)

            def expect(
                slot: Bytes, job: Job, i: int, ufunc: np.ufunc = ufunc, dtype: np.dtype[np.generic] = dtype
            ) -> None:
                first = MANY * (job.n - 1 - job.me) if kind == "reducescatter" else 0
                parts = [source[i].view(dtype)[first : first + MANY] for source in job.sources]
                slot.view(dtype)[:MANY] = ufunc.reduce(parts)

            function = f"{prefix}_{name}_{op}_{kind}{suffix}"
            code = f"{function}(team, T({cpp}, {{i}}), F({cpp}, {{i}}), {MANY});"
            calls.append(Call(function, code, expect, _small_numbers(dtype)))
    return calls


def _maxloc() -> list[Call]:
    def expect(slot: Bytes, job: Job, i: int) -> None:
        pairs = np.array([source[i].view("f8")[: 2 * MANY].reshape(-1, 2) for source in job.sources])
        for k in range(MANY):
            best = max(pairs[:, k], key=lambda pair: (pair[0], -pair[1]))
            slot.view("f8")[2 * k : 2 * k + 2] = best

    name = "nvshmemx_double2_maxloc_reduce_block"
    code = f"{name}(team, T(double2, {{i}}), F(double2, {{i}}), {MANY});"
    return [Call(name, code, expect, _small_numbers(np.dtype("f8")))]


# ---------------------------------------------------------------- waits


def _waits() -> list[Call]:
    """For each type, all waits at once: the previous PE sends what they wait for first of all.

    Elements of a slot: 0 to 3 where one comes, 4 to 7 where all come, 8 to 11 the tests' own, 16 and on the results.
    """
    mask, own = np.array([0, 0, 1, 0]), np.array([3, 1, 2, 2])
    calls = []
    for name in WAIT:
        cpp, dtype = _dtype_of(name)

        def prepare(
            source: Bytes, target: Bytes, random: np.random.Generator, dtype: np.dtype[np.generic] = dtype
        ) -> None:
            target.view(dtype)[:] = 0
            target.view(dtype)[8:12] = own

        def expect(slot: Bytes, job: Job, i: int, dtype: np.dtype[np.generic] = dtype) -> None:
            x = slot.view(dtype)
            x[:8] = [0, 7, 0, 0, 5, 6, 7, 8]
            one = int(np.flatnonzero((x[:4] == 7) & (mask == 0))[0])
            comparisons = (np.equal, np.not_equal, np.greater, np.less_equal, np.less, np.greater_equal)
            tests = [int(compare(own[0], 3)) + 2 * int(compare(own[1], 3)) for compare in comparisons]
            twos = np.flatnonzero(own == 2)
            some = np.flatnonzero(own > [2, 1, 1, 1])
            results = [one, one, 1, one, 1, one, 99, 0, *tests]
            results += [np.all(own >= 1), np.all(own > 1), np.flatnonzero(own < 3)[0], 99]
            results += [len(twos), 10 * twos[0] + twos[1], 1, np.flatnonzero(own != [3, 1, 2, 9])[0]]
            results += [len(some), 100 * some[0] + 10 * some[1] + some[2]]
            x[16 : 16 + len(results)] = results

        f = f"nvshmem_{name}_"
        send = [f"{f}p(x + 1, 7, pe);", *(f"{f}p(x + {4 + j}, {5 + j}, pe);" for j in range(4))]
        wait = [
            f"{f}wait_until_all(x + 4, 4, nullptr, NVSHMEM_CMP_GE, 5);",
            f"{f}wait_until_all_vector(x + 4, 4, nullptr, NVSHMEM_CMP_EQ, coming);",
            f"{f}wait_until(x + 7, NVSHMEM_CMP_GT, 7);",
        ]
        results = [
            f"{f}wait_until_any(x, 4, mask, NVSHMEM_CMP_EQ, 7)",
            f"{f}wait_until_any_vector(x, 4, mask, NVSHMEM_CMP_EQ, one)",
            f"{f}wait_until_some(x, 4, found, mask, NVSHMEM_CMP_NE, 0)",
            "found[0]",
            f"{f}wait_until_some_vector(x, 4, found, mask, NVSHMEM_CMP_GT, below)",
            "found[0]",
            f"{f}wait_until_any(x, 0, nullptr, NVSHMEM_CMP_EQ, 7) == ~size_t(0) ? 99 : 0",
            f"{f}wait_until_some(x, 0, found, nullptr, NVSHMEM_CMP_EQ, 7)",
            *(f"{f}test(y, {cmp}, 3) + 2 * {f}test(y + 1, {cmp}, 3)" for cmp in range(6)),
            f"{f}test_all(y, 4, nullptr, NVSHMEM_CMP_GE, 1)",
            f"{f}test_all(y, 4, nullptr, NVSHMEM_CMP_GT, 1)",
            f"{f}test_any(y, 4, nullptr, NVSHMEM_CMP_LT, 3)",
            f"{f}test_any(y, 4, nullptr, NVSHMEM_CMP_LT, 1) == ~size_t(0) ? 99 : 0",
            f"{f}test_some(y, 4, found, nullptr, NVSHMEM_CMP_EQ, 2)",
            "10 * found[0] + found[1]",
            f"{f}test_all_vector(y, 4, nullptr, NVSHMEM_CMP_LE, all)",
            f"{f}test_any_vector(y, 4, nullptr, NVSHMEM_CMP_NE, other)",
            f"{f}test_some_vector(y, 4, found, nullptr, NVSHMEM_CMP_GT, least)",
            "100 * found[0] + 10 * found[1] + found[2]",
        ]
        arrays = (
            "coming[] = {5, 6, 7, 8}, one[] = {9, 7, 0, 9}, below[] = {0, 6, 0, 0}, all[] = {3, 1, 2, 2}, "
        )
        arrays += "other[] = {3, 1, 2, 9}, least[] = {2, 1, 1, 1}"
        lines = [
            f"{cpp} *x = T({cpp}, {{i}}), *y = x + 8, {arrays};",
            "const int mask[] = {0, 0, 1, 0}; size_t found[4];",
            *send,
            *wait,
            *(f"x[{16 + k}] = static_cast<{cpp}>({result});" for k, result in enumerate(results)),
        ]
        names = [f + verb for verb in ("wait_until", "test")]
        names += [
            f"{f}{v}_{w}{s}"
            for v in ("wait_until", "test")
            for w in ("all", "any", "some")
            for s in ("", "_vector")
        ]
        calls.append(Call(names[0], "{ " + "\n    ".join(lines) + " }", expect, prepare))
        calls += [Call(other, "", lambda slot, job, i: None) for other in names[1:]]
    return calls


# ---------------------------------------------------------------- synchronisation and queries


def _synchronised(scope: str) -> list[Call]:
    """What was put before a barrier is there after it: each call has a slot of its own, so rounds can't mix."""
    prefix, suffix = SCOPES[scope]
    calls = []

    def expect(slot: Bytes, job: Job, i: int) -> None:
        slot.view("i8")[:2] = 1000 * job.left + i

    forms = {"barrier": "(team)", "team_sync": "(team)", "barrier_all": "()", "sync_all": "()"}
    for verb, arguments in [*forms.items(), ("flush", "()")]:
        name = f"{'nvshmemx' if verb == 'flush' else prefix}_{verb}{suffix}"
        code = "if (threadIdx.x == 0) { nvshmem_long_p(T(long, {i}), 1000 * nvshmem_my_pe() + {i}, pe); nvshmem_quiet(); } "
        code += f"{name}{arguments}; "
        if verb == "flush":
            code += f"{prefix}_barrier_all{suffix}(); "
        code += "if (threadIdx.x == 0) T(long, {i})[1] = T(long, {i})[0];"
        calls.append(Call(name, code, expect))
    return calls


def _queries() -> list[Call]:
    def values(*numbers: Callable[[Job], int]) -> Callable[[Bytes, Job, int], None]:
        def expect(slot: Bytes, job: Job, i: int) -> None:
            slot.view("i8")[: len(numbers)] = [number(job) for number in numbers]

        return expect

    def call(name: str, codes: list[str], *numbers: Callable[[Job], int]) -> Call:
        code = "\n  ".join(f"T(long, {{i}})[{k}] = long({text});" for k, text in enumerate(codes))
        return Call(f"nvshmem_{name}", code, values(*numbers))

    def named(slot: Bytes, job: Job, i: int) -> None:
        slot[:7] = np.frombuffer(b"pypgas\0", np.uint8)

    def numbers(*wanted: int) -> Callable[[Bytes, Job, int], None]:
        def expect(slot: Bytes, job: Job, i: int) -> None:
            slot.view("i4")[: len(wanted)] = wanted

        return expect

    def nothing(slot: Bytes, job: Job, i: int) -> None:
        pass

    def ordered(slot: Bytes, job: Job, i: int) -> None:
        slot.view("i8")[0] = job.left

    return [
        call("my_pe", ["nvshmem_my_pe()"], lambda job: job.me),
        call("n_pes", ["nvshmem_n_pes()"], lambda job: job.n),
        call(
            "team_my_pe",
            [
                f"nvshmem_team_my_pe({t})"
                for t in ("team", "NVSHMEM_TEAM_WORLD", "NVSHMEMX_TEAM_NODE", "-1", "60")
            ],
            lambda job: job.n - 1 - job.me,
            lambda job: job.me,
            lambda job: job.me,
            lambda job: -1,
            lambda job: -1,
        ),
        call(
            "team_n_pes",
            [
                f"nvshmem_team_n_pes({t})"
                for t in ("team", "NVSHMEM_TEAM_SHARED", "NVSHMEM_TEAM_INVALID", "1 << 30")
            ],
            lambda job: job.n,
            lambda job: job.n,
            lambda job: -1,
            lambda job: -1,
        ),
        call(
            "team_translate_pe",
            [
                "nvshmem_team_translate_pe(team, 0, NVSHMEM_TEAM_WORLD)",
                "nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, pe, team)",
                "nvshmem_team_translate_pe(team, nvshmem_n_pes(), NVSHMEM_TEAM_WORLD)",
                "nvshmem_team_translate_pe(NVSHMEM_TEAM_INVALID, 0, team)",
            ],
            lambda job: job.n - 1,
            lambda job: job.n - 1 - job.right,
            lambda job: -1,
            lambda job: -1,
        ),
        call(
            "ptr",
            [
                "((const unsigned char *)nvshmem_ptr(source + 512 * {i}, pe))[5]",
                "nvshmem_ptr(&target, pe) == nullptr",
                "nvshmem_ptr(target, nvshmem_n_pes()) == nullptr",
            ],
            lambda job: int(job.sources[job.right][5, 5]),
            lambda job: 1,
            lambda job: 1,
        ),
        Call("nvshmem_info_get_name", "nvshmem_info_get_name(T(char, {i}));", named),
        Call(
            "nvshmem_info_get_version",
            "nvshmem_info_get_version(T(int, {i}), T(int, {i}) + 1);",
            numbers(1, 3),
        ),
        Call(
            "nvshmemx_vendor_get_version_info",
            "nvshmemx_vendor_get_version_info(T(int, {i}), T(int, {i}) + 1, T(int, {i}) + 2);",
            numbers(3, 8, 0),
        ),
        Call("nvshmem_fence", "nvshmem_long_p(T(long, {i}), nvshmem_my_pe(), pe); nvshmem_fence();", ordered),
        Call("nvshmem_quiet", "nvshmem_long_p(T(long, {i}), nvshmem_my_pe(), pe); nvshmem_quiet();", ordered),
        Call(
            "nvshmemx_signal_op",
            "nvshmemx_signal_op(signals + {i}, 41, NVSHMEM_SIGNAL_SET, pe);",
            nothing,
            None,
            ("SET", 41),
        ),
        Call(
            "nvshmemx_signal_op",
            "nvshmemx_signal_op(signals + {i}, 42, NVSHMEM_SIGNAL_ADD, pe);",
            nothing,
            None,
            ("ADD", 42),
        ),
        Call(
            "nvshmem_signal_wait_until",
            "nvshmemx_signal_op(signals + {i}, 43, NVSHMEM_SIGNAL_SET, pe); "
            "T(long, {i})[0] = nvshmem_signal_wait_until(signals + {i}, NVSHMEM_CMP_EQ, 43);",
            values(lambda job: 43),
            None,
            ("SET", 43),
        ),
        Call(
            "nvshmem_signal_fetch",
            "T(long, {i})[0] = nvshmem_signal_fetch(signals + {i});",
            values(lambda job: 1000),
        ),
    ]


def batches() -> list[Batch]:
    """Return the kernels of all functions, in groups of similar compile times."""
    groups = [
        Batch("copies", [Kernel(f"copies_{scope}", scope, _copies(scope)) for scope in SCOPES]),
        Batch("signals", [Kernel(f"signals_{scope}", scope, _signalled(scope)) for scope in SCOPES]),
        Batch(
            "single",
            [
                Kernel("elements", "thread", _single_elements()),
                Kernel("atomics", "thread", _atomics()),
                Kernel("waits", "thread", _waits()),
                Kernel("queries", "thread", _queries()),
                *(Kernel(f"synchronised_{scope}", scope, _synchronised(scope)) for scope in SCOPES),
                Kernel("maxloc", "block", _maxloc()),
            ],
        ),
        Batch(
            "collectives", [Kernel(f"collectives_{scope}", scope, _collectives(scope)) for scope in SCOPES]
        ),
    ]
    for kind in ("reduce", "reducescatter"):
        groups += [
            Batch(f"{kind}_{scope}", [Kernel(f"{kind}_{scope}", scope, _reductions(scope, kind))])
            for scope in SCOPES
        ]
    return groups
