# SPDX-License-Identifier: Apache-2.0
"""Kernels that use every function of the device API, and what their PTX has to contain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

__all__ = ["SCOPES", "Rule", "all_types", "every_function", "functions_of", "kernels", "rules", "violations"]

SCOPES = ("thread", "warp", "block")
_INTEGERS = tuple(f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64))
_FLOATS = ("float", "double")
_HALVES = ("pgas::half", "pgas::bfloat16")
_COMPLEX = ("pgas::complex64", "pgas::complex128")
_BOOLEANS = ("bool", "pgas::bool8")
_TYPES = (*_INTEGERS, *_FLOATS, *_HALVES, *_COMPLEX, *_BOOLEANS)

_HEADER = """
#include <pypgas.cuh>
using namespace pgas;
#define KERNEL(name, ...) extern "C" __global__ void name(__VA_ARGS__)
"""

# Each line: a kernel's name, and its body in terms of scope S; the parameters are always the same.
_SCOPED = {
    "put": "put<S>(x, y, n, pe, c);",
    "put_nbi": "put_nbi<S>(x, y, n, pe);",
    "get": "get<S>(x, y, n, pe, c);",
    "get_nbi": "get_nbi<S>(x, y, n, pe);",
    "iput": "iput<S>(x, y, 2, 3, n, pe);",
    "iget": "iget<S>(x, y, 2, 3, n, pe);",
    "put_signal": "put_signal<S>(x, y, n, sig, 7, SignalOp::set, pe);",
    "put_signal_add": "put_signal<S>(x, y, n, sig, 7, SignalOp::add, pe);",
    "put_signal_nbi": "put_signal_nbi<S>(x, y, n, sig, 7, SignalOp::set, pe);",
    "barrier": "barrier<S>(t);",
    "barrier_all": "barrier_all<S>();",
    "sync": "sync<S>(t);",
    "sync_all": "sync_all<S>();",
    "broadcast": "broadcast<S>(t, x, y, n, 0);",
    "fcollect": "fcollect<S>(t, x, y, n);",
    "collect": "collect<S>(t, x, 100, y, n);",
    "alltoall": "alltoall<S>(t, x, y, n);",
    "reduce": "reduce<S, Reduction::sum>(t, x, y, n);",
    "reduce_scatter": "reduce_scatter<S, Reduction::max>(t, x, y, n);",
    "inclusive_scan": "inclusive_scan<S, Reduction::prod>(t, x, y, n);",
    "exclusive_scan": "exclusive_scan<S, Reduction::min>(t, x, y, n);",
}
_UNSCOPED = {
    "p": "p(x, 1.5f, pe, c);",
    "g": "x[0] = g(y, pe, c);",
    "signal_set": "signal_set(sig, 7, pe);",
    "signal_add": "signal_add(sig, 7, pe);",
    "signal_op": "signal_op(sig, 7, pe ? SignalOp::set : SignalOp::add, pe, c);",
    "signal_fetch": "sig[1] = signal_fetch(sig);",
    "signal_wait_until": "sig[1] = signal_wait_until(sig, Compare::ge, 7);",
    "fence": "pgas::fence(); x[0] = 1;",
    "quiet": "quiet(c); x[0] = 1;",
    "queries": "sig[0] = my_pe() + n_pes() + t.my_pe() + t.n_pes() + t.translate(pe, world()); sig[1] = u64(ptr(x, pe));",
    "wait_until": "wait_until(iv, Compare::lt, 3);",
    "test": "iv[9] = test(iv, Compare::le, 3);",
    "wait_until_all": "wait_until_all(iv, n, status, Compare::ne, 3);",
    "wait_until_any": "sig[0] = wait_until_any(iv, n, status, Compare::gt, 3);",
    "wait_until_some": "sig[0] = wait_until_some(iv, n, indices, status, Compare::eq, 3);",
    "test_all": "iv[9] = test_all(iv, n, status, Compare::ne, 3);",
    "test_any": "sig[0] = test_any(iv, n, status, Compare::gt, 3);",
    "test_some": "sig[0] = test_some(iv, n, indices, status, Compare::eq, 3);",
    "wait_until_all_vector": "wait_until_all_vector(iv, n, status, Compare::ne, iv + 99);",
    "wait_until_any_vector": "sig[0] = wait_until_any_vector(iv, n, status, Compare::gt, iv + 99);",
    "wait_until_some_vector": "sig[0] = wait_until_some_vector(iv, n, indices, status, Compare::eq, iv + 99);",
    "test_all_vector": "iv[9] = test_all_vector(iv, n, status, Compare::ne, iv + 99);",
    "test_any_vector": "sig[0] = test_any_vector(iv, n, status, Compare::gt, iv + 99);",
    "test_some_vector": "sig[0] = test_some_vector(iv, n, indices, status, Compare::eq, iv + 99);",
    "atomic_fetch": "sig[0] = atomic_fetch(sig + 1, pe, c);",
    "atomic_set": "atomic_set(sig, u64(7), pe, c);",
    "atomic_swap": "sig[0] = atomic_swap(sig + 1, u64(7), pe, c);",
    "atomic_compare_swap": "sig[0] = atomic_compare_swap(sig + 1, u64(6), u64(7), pe, c);",
    "atomic_add": "atomic_add(sig, u64(7), pe, c);",
    "atomic_fetch_add": "sig[0] = atomic_fetch_add(sig + 1, u64(7), pe, c);",
    "atomic_inc": "atomic_inc(sig, pe, c);",
    "atomic_fetch_inc": "sig[0] = atomic_fetch_inc(sig + 1, pe, c);",
    "atomic_and": "atomic_and(sig, u64(7), pe, c);",
    "atomic_or": "atomic_or(sig, u64(7), pe, c);",
    "atomic_xor": "atomic_xor(sig, u64(7), pe, c);",
    "atomic_fetch_and": "sig[0] = atomic_fetch_and(sig + 1, u64(7), pe, c);",
    "atomic_fetch_or": "sig[0] = atomic_fetch_or(sig + 1, u64(7), pe, c);",
    "atomic_fetch_xor": "sig[0] = atomic_fetch_xor(sig + 1, u64(7), pe, c);",
}
_PARAMETERS = (
    "float *x, const float *y, size_t n, int pe, context c, team t, "
    "u64 *sig, int *iv, const int *status, size_t *indices"
)
_AMOS = {
    "fetch": "atomic_fetch(x, pe)",
    "set": "(atomic_set(x, x[1], pe), x[1])",
    "swap": "atomic_swap(x, x[1], pe)",
    "compare_swap": "atomic_compare_swap(x, x[1], x[2], pe)",
    "add": "atomic_fetch_add(x, x[1], pe)",
    "and_": "atomic_fetch_and(x, x[1], pe)",
    "or_": "atomic_fetch_or(x, x[1], pe)",
    "xor_": "atomic_fetch_xor(x, x[1], pe)",
}
_REDUCTIONS = ("sum", "prod", "min", "max", "and_", "or_", "xor_")


def kernels(scopes: Sequence[str] = SCOPES) -> list[str]:
    """Return the names of kernels that call every function of the API, at the scopes given.

    They are named ``put_block``, ``p`` and so on.
    """
    return [*(f"{name}_{scope}" for name in _SCOPED for scope in scopes), *_UNSCOPED]


def every_function(names: Sequence[str]) -> str:
    """Return the source of kernels by their names."""
    lines = [_HEADER]
    for name in names:
        base, _, scope = name.rpartition("_")
        if name in _UNSCOPED:
            lines.append(f"KERNEL({name}_, {_PARAMETERS}) {{ {_UNSCOPED[name]} }}")
        else:
            lines.append(f"KERNEL({name}_, {_PARAMETERS}) {{ typedef {scope} S; {_SCOPED[base]} }}")
    return "\n".join(lines)


def all_types() -> str:
    """Return kernels that use every element type, and every operation that treats types differently."""
    lines = [_HEADER]
    for number, kind in enumerate(_TYPES):
        lines.append(
            f"KERNEL(rma_{number}_, {kind} *x, {kind} *y, int n, int pe) {{ put<block>(x, y, n, pe); get<warp>(y, x, n, pe);"
            f" iput<block>(x, y, 2, 1, n, pe); p(x, y[0], pe); y[1] = g(x, pe); fcollect<block>(world(), x, y, n); }}"
        )
        if kind in _INTEGERS or kind in _FLOATS:
            lines.append(
                f"KERNEL(wait_{number}_, {kind} *x) {{ wait_until(x, Compare::ge, {kind}(3));"
                f" x[1] = {kind}(test(x, Compare::ne, {kind}(0))); }}"
            )
        for op, call in _AMOS.items():
            if _atomic(kind, op):
                lines.append(f"KERNEL(amo_{op}_{number}_, {kind} *x, int pe) {{ x[3] = {call}; }}")
        for op in _REDUCTIONS:
            if _reduces(kind, op):
                lines.append(
                    f"KERNEL(reduce_{op}_{number}_, {kind} *x, {kind} *y, int n)"
                    f" {{ reduce<block, Reduction::{op}>(world(), x, y, n); }}"
                )
    return "\n".join(lines)


def _atomic(kind: str, op: str) -> bool:
    if kind == "pgas::complex128":
        return False
    if op in ("fetch", "set", "swap"):
        return True
    if op == "compare_swap":
        return kind in _INTEGERS or kind in _BOOLEANS
    return kind in _INTEGERS or (op == "add") != (kind in _BOOLEANS)


def _reduces(kind: str, op: str) -> bool:
    bits = op in ("and_", "or_", "xor_")
    if kind in _BOOLEANS:
        return bits
    if op != "sum" and kind not in ("int32_t", "uint8_t", "double", "pgas::half", "pgas::complex64"):
        return False  # nothing new
    if kind in _COMPLEX:
        return op in ("sum", "prod")
    return not bits or kind in _INTEGERS


class Rule:
    """What must stand in a kernel's PTX.

    Args:
        order: Patterns that must be found one after the other, on lines of their own. ``{data}`` stands for what moves
            an operation's data.
        never: Patterns that must not be found.
    """

    def __init__(self, *order: str, never: Sequence[str] = ()) -> None:
        self.order = order
        self.never = never


_DATA = r"copy_shared|st\.relaxed\.sys\.u32 "
_FENCE = r"fence\.(sc|acq_rel)\.sys;"
_RELEASE = r"st\.release\.sys\.u64 "
_ADD = r"atom\.acq_rel\.sys\.add\.u64 "
_ACQUIRE = r"ld\.acquire\.sys\.u(32|64) "
_RELAXED = (r"ld\.relaxed\.sys",)


def rules() -> dict[str, Rule]:
    """Return the rules by kernel."""
    found: dict[str, Rule] = {}
    for scope in SCOPES:
        for name, update in (
            ("put_signal", _RELEASE),
            ("put_signal_nbi", _RELEASE),
            ("put_signal_add", _ADD),
        ):
            found[f"{name}_{scope}"] = Rule(_DATA, _FENCE, update)
    found["signal_set"] = Rule(_RELEASE, never=[r"st\.relaxed"])
    found["signal_add"] = Rule(_ADD)
    found["signal_fetch"] = Rule(_ACQUIRE, never=_RELAXED)
    # One look, and others in a loop.
    for name in ("signal_wait_until", "wait_until", "wait_until_all", "wait_until_all_vector"):
        found[name] = Rule(_ACQUIRE, r"\$L__BB\w+:", _ACQUIRE, never=_RELAXED)
    for name in ("any", "some", "any_vector", "some_vector"):
        found[f"wait_until_{name}"] = Rule(r"\$L__BB\w+:", _ACQUIRE, never=_RELAXED)
    for name in (
        "test",
        "test_all",
        "test_any",
        "test_some",
        "test_all_vector",
        "test_any_vector",
        "test_some_vector",
    ):
        found[name] = Rule(_ACQUIRE, never=_RELAXED)
    found["p"] = Rule(r"st\.relaxed\.sys\.u32 ")
    found["g"] = Rule(r"ld\.relaxed\.sys\.u32 ")
    found["fence"] = found["quiet"] = Rule(r"fence\.sc\.sys;", r"st\.")
    found["atomic_fetch"] = Rule(_ACQUIRE)
    found["atomic_set"] = Rule(_RELEASE)
    for name, spelled in (
        ("swap", "exch.b64"),
        ("compare_swap", "cas.b64"),
        ("fetch_add", "add.u64"),
        ("add", "add.u64"),
        ("inc", "add.u64"),
        ("fetch_inc", "add.u64"),
        ("and", "and.b64"),
        ("or", "or.b64"),
        ("xor", "xor.b64"),
        ("fetch_and", "and.b64"),
        ("fetch_or", "or.b64"),
        ("fetch_xor", "xor.b64"),
    ):
        found[f"atomic_{name}"] = Rule(r"atom\.acq_rel\.sys\." + re.escape(spelled))
    # Arriving is a release, the last to arrive releases the others, and who waits acquires.
    gate = Rule(_ADD, _FENCE, r"st\.relaxed\.sys\.u64 ", _ACQUIRE, never=_RELAXED)
    found["pgas::raw::enter"] = gate
    return found


def functions_of(ptx: str) -> dict[str, str]:
    """Return the text of each function in PTX: kernels by name without the final underscore, others mangled."""
    found: dict[str, str] = {}
    for match in re.finditer(r"^\{$.*?^\}$", ptx, re.MULTILINE | re.DOTALL):
        names = _NAME.findall(ptx, ptx.rfind(";\n", 0, match.start()) + 1, match.start())
        found[names[-1].removesuffix("_")] = match.group()
    return found


_NAME = re.compile(r"\.(?:entry|func)\s+(?:\([^)]*\)\s*)?([\w$]+)")
_FORBIDDEN = (
    (re.compile(r"\b(?:atom|red|ld|st)\.(?!weak)[\w.]*\.(?:gpu|cta|cluster)\b"), "narrower than the system"),
    (
        re.compile(r"\b(?:atom|red)\.(?!acq_rel\.sys\.)"),
        "an atomic that is not acquire and release at system scope",
    ),
    (re.compile(r"\bfence\.(?!(?:sc|acq_rel)\.sys;)"), "a fence that is narrower than the system"),
    (re.compile(r"\bmembar\."), "an old fence"),
    (re.compile(r"\bld\.global\.nc\b"), "a load that may see old data"),
)


def violations(ptx: str, chosen: Sequence[str]) -> list[str]:
    """Return what is wrong in the PTX of these kernels: a line for each broken rule."""
    return list(_violations(ptx, chosen))


def _violations(ptx: str, chosen: Sequence[str]) -> Iterator[str]:
    for pattern, why in _FORBIDDEN:
        wrong = pattern.search(ptx)
        if wrong is not None:
            line = ptx[ptx.rfind("\n", 0, wrong.start()) + 1 : ptx.find("\n", wrong.end())].strip()
            yield f"{why}: {line}"
    functions = functions_of(ptx)
    gate = [name for name in functions if name.startswith("_ZN4pgas3raw5enter")]
    for name, rule in rules().items():
        if name not in chosen:
            continue
        bodies = (
            [functions[found] for found in gate] if name == "pgas::raw::enter" else [functions.get(name, "")]
        )
        if not bodies or not all(bodies):
            yield f"{name}: is not there"
        for body in bodies:
            yield from _broken(name, rule, body)


def _broken(name: str, rule: Rule, body: str) -> Iterator[str]:
    position = 0
    for pattern in rule.order:
        match = re.compile(pattern).search(body, position)
        if match is None:
            yield f"{name}: no {pattern!r} where it belongs"
            return
        position = match.end()
    for pattern in rule.never:
        if re.search(pattern, body):
            yield f"{name}: has {pattern!r}"
