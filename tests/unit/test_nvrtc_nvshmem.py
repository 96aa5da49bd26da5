# SPDX-License-Identifier: Apache-2.0
"""NVSHMEM's names under NVRTC: every function compiles, what is left out says so, and including them is cheap."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="needs the extra cuda13")

from test_nvrtc_library import compile_ptx

MPI = Path(__file__).resolve().parents[1] / "mpi"
SMALL = "__global__ void k(float *x, const float *y, uint64_t *sig, int n, int pe) {{ {} }}"


@pytest.fixture(scope="module")
def batches():
    sys.path.insert(0, str(MPI))
    try:
        import nvshmem_cases
    finally:
        sys.path.remove(str(MPI))
    return nvshmem_cases.batches()


def unreached(source: str) -> str:
    """The same kernels with bodies that never run.

    The compiler's front end still has to instantiate all they call; the back end, which would take minutes for two
    thousand inlined functions, finds nothing to do.
    """
    source = re.sub(r"(__global__ void \w+\([^)]*\)) \{", r"\1 { if (false) {", source)
    return re.sub(r"^\}$", "}}", source, flags=re.MULTILINE)


@pytest.mark.parametrize("architecture", [75, 120])
def test_every_function_compiles(batches, architecture: int) -> None:
    for batch in batches:
        # The front end sees the same types in the same way for every architecture: the many reductions once are enough.
        if architecture == 75 or not batch.name.startswith("reduce"):
            compiled = compile_ptx(unreached(batch.source()), architecture)
            assert compiled.ok, f"{batch.name}: {compiled.log}"


def test_the_back_end_accepts_what_the_names_stand_for() -> None:
    body = (
        "nvshmemx_float_put_signal_block(x, y, n, sig, 1, NVSHMEM_SIGNAL_ADD, pe);"
        "nvshmem_signal_wait_until(sig, NVSHMEM_CMP_GE, 1);"
        "nvshmemx_float_sum_reduce_block(NVSHMEM_TEAM_WORLD, x, y, n);"
        "x[0] = nvshmemx_float_atomic_fetch_add(x, 1, pe) + nvshmem_float_g(y, pe); nvshmemx_barrier_all_block();"
    )
    for architecture in (75, 120):
        compiled = compile_ptx("#include <nvshmem.h>\n" + SMALL.format(body), architecture)
        assert compiled.ok, compiled.log
        assert compiled.log == "", "the headers give warnings"
        for instruction in ("ld.acquire.sys", "atom.acq_rel.sys", "fence"):
            assert instruction in compiled.text


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("nvshmemx_qp_float_put(x, y, n, pe, 1);", "use the name without qp"),
        ("x = (float *)nvshmemx_mc_ptr(0, x);", "pypgas has no nvshmemx_mc_ptr: there is no multicast"),
        ("nvshmemx_give_smem(x, 5);", "pypgas has no nvshmemx_give_smem"),
        (
            "n = nvshmem_team_n_pes(NVSHMEMX_TEAM_SAME_MYPE_NODE);",
            "pypgas makes no NVSHMEMX_TEAM_SAME_MYPE_NODE",
        ),
        ("nvshmemx_barrier_warpgroup(0);", "use nvshmemx_barrier_block"),
        ("nvshmemx::Tensor<float, int> tile;", "pypgas has no tiles"),
        ("x = (float *)nvshmem_malloc(5);", "allocates with pypgas.zeros"),
    ],
)
def test_what_is_left_out_says_so(code: str, message: str) -> None:
    compiled = compile_ptx("#include <nvshmem.h>\n#include <nvshmemx.h>\n" + SMALL.format(code), 75)
    assert not compiled.ok
    assert message in compiled.log


def test_including_the_names_is_cheap() -> None:
    """A few times the library's own cost at most, in processor time on a busy machine."""

    def best(header: str, body: str) -> float:
        source = f"#include <{header}>\n" + SMALL.format(body)
        return min(compile_ptx(source, 90).seconds for _ in range(3))

    alone = best("pypgas.cuh", "pgas::put<pgas::block>(x, y, n, pe);")
    assert best("nvshmem.h", "nvshmemx_float_put_block(x, y, n, pe);") < 4 * alone


def test_the_names_are_those_of_the_installed_headers(batches) -> None:
    found = importlib.util.find_spec("nvidia")
    folders = [Path(place) for place in (found.submodule_search_locations or [])] if found else []
    headers = [
        folder / "nvshmem" / "include"
        for folder in folders
        if (folder / "nvshmem/include/nvshmem.h").exists()
    ]
    if not headers:
        pytest.skip("NVSHMEM's headers (nvidia-nvshmem-cu13) are not installed")
    names = sys.modules["nvshmem_names"]
    assert names.names_in_headers(headers[0]) - names.nvshmem_names() == set()


def test_every_name_has_a_case_or_is_left_out(batches) -> None:
    names = sys.modules["nvshmem_names"]
    cases = set().union(*(batch.functions() for batch in batches))
    assert names.nvshmem_names() - cases == names.left_out_names()
    assert not cases & names.left_out_names()
