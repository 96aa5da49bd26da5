# SPDX-License-Identifier: Apache-2.0
"""Kernels on every PE: compiled once, launched over grids, reading and writing other PEs' memory."""

from pathlib import Path

import numpy as np
import pytest

import pypgas as pg

SOURCE = """
#include <pypgas.cuh>

__device__ int counter;

__global__ void count(int *out) { out[0] = ++counter; }

__global__ void where(int *out) {
  const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 10000 + thread;
}

__global__ void reversed(const float *from, float *to, int n) {
  extern __shared__ float piece[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) piece[threadIdx.x] = from[i];
  __syncthreads();
  if (i < n) to[i] = piece[blockDim.x - 1 - threadIdx.x];
}

template <class T, int N> __global__ void scale(T *x, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] *= N;
}

namespace ns { namespace { __global__ void hidden(int *x) { x[0] = 7; } } }

extern "C" __global__ void linked(int *x) { x[0] = 8; }

__global__ void ring(long long *box, unsigned long long *signal, pgas::team team) {
  const int right = (team.my_pe() + 1) % team.n_pes();
  const long long mine = team.my_pe() * 100;
  if (threadIdx.x == 0) pgas::put_signal(box, &mine, 1, (uint64_t *)signal, 1, pgas::SignalOp::set, right);
  __syncthreads();
  if (threadIdx.x == 0) pgas::signal_wait_until((uint64_t *)signal, pgas::Compare::eq, 1);
}
"""


@pytest.fixture(scope="module")
def module():
    return pg.Module(SOURCE, kernels=["scale<float, 3>", "scale<int, -2>"])


def test_all_kernels_of_a_module(module):
    x = np.zeros(1, "i4")
    module.kernel("ns::hidden")[1, 1](x)
    pg.synchronize()
    assert x[0] == 7
    module.kernel("linked")[1, 1](x)
    pg.synchronize()
    assert x[0] == 8
    assert repr(module.kernel("linked")) == "<pypgas.Kernel linked(int*)>"
    assert module.kernel(" ::linked ") is module.kernel("linked")


@pytest.mark.parametrize(
    ("grid", "block"),
    [
        (1, 1),
        (3, 64),
        ((2, 3), (8, 4)),
        ((2, 3, 4), (4, 3, 2)),
        ([5], [7]),
        ((np.int64(2),), (np.int8(3), 1, 1)),
    ],
)
def test_grids_and_blocks(module, grid, block):
    shape = [int(np.prod(grid)), int(np.prod(block))]
    out = np.full(shape, -1, "i4")
    module.kernel("where")[grid, block](out)
    pg.synchronize()
    assert np.array_equal(out, np.arange(shape[0])[:, None] * 10000 + np.arange(shape[1]))


@pytest.mark.parametrize("threads", [1, 2, 32, 33, 256, 1024])
def test_dynamic_shared_memory(module, threads):
    source = np.arange(threads * 3, dtype="f4")
    target = pg.zeros(threads * 3, "f4")
    module.kernel("reversed")[3, threads](source, target, source.size, shared=4 * threads)
    pg.synchronize()
    assert np.array_equal(target.local.reshape(3, threads), source.reshape(3, threads)[:, ::-1])


def test_templates(module):
    x = pg.array(np.arange(10, dtype="f4"))
    module.kernel("scale<float,3>")[1, 4](x, 10)
    pg.synchronize()
    assert np.array_equal(x.local, 3 * np.arange(10))
    y = np.arange(10, dtype="i4")
    module.kernel("scale<int,  -2>")[1, 4](y, 10)
    pg.synchronize()
    assert np.array_equal(y, -2 * np.arange(10))


def test_an_instance_asked_for_later(module):
    x = np.arange(10, dtype="f8")
    module.kernel("scale<double, 5>")[1, 4](x, 10)
    pg.synchronize()
    assert np.array_equal(x, 5 * np.arange(10))


def test_a_modules_variables_are_its_own():
    def next_count(module):
        out = np.zeros(1, "i4")
        module.kernel("count")[1, 1](out)
        pg.synchronize()
        return out[0]

    first, second = pg.Module(SOURCE), pg.Module(SOURCE)
    assert [next_count(first), next_count(first), next_count(second), next_count(first)] == [1, 2, 1, 3]


def test_launches_are_in_order(module):
    x = pg.ones(1, "f4")
    kernel = module.kernel("scale<float,3>")
    for _ in range(10):
        kernel[1, 1](x, 1)
    pg.synchronize()
    assert x.local[0] == 3**10


def test_streams(module):
    x = [pg.ones(1, "f4") for _ in range(3)]
    streams = [pg.Stream() for _ in x]
    kernel = module.kernel("scale<float,3>")
    for _ in range(5):
        for array, stream in zip(x, streams, strict=True):
            kernel[1, 1](array, 1, stream=stream)
    for stream in streams:
        stream.synchronize()
    assert [a.local[0] for a in x] == [3**5] * 3


def test_arrays_stay_alive_until_the_kernel_has_ended(module):
    import gc
    import weakref

    x = np.ones(1 << 16, "f4")
    alive = weakref.ref(x)
    module.kernel("scale<float,3>")[1, 1](x, x.size)
    del x
    gc.collect()
    pg.synchronize()
    pg.fence()
    module.kernel("scale<float,3>")[1, 1](np.ones(1, "f4"), 1)
    pg.synchronize()
    gc.collect()
    assert alive() is None


def test_a_ring_of_kernels(module):
    n, me = pg.n_pes(), pg.my_pe()
    box, signal = pg.zeros(1, "i8"), pg.zeros(1, "u8")
    pg.barrier_all()
    module.kernel("ring")[1, 32](box, signal, pg.TEAM_WORLD)
    pg.synchronize()
    assert box.local[0] == (me - 1) % n * 100
    pg.barrier_all()


def test_teams(module):
    n, me = pg.n_pes(), pg.my_pe()
    box, signal = pg.zeros(1, "i8"), pg.zeros(1, "u8")
    with pg.TEAM_WORLD.split_strided(n - 1, -1, n) as backwards:
        pg.kernel(
            "#include <pypgas.cuh>\n"
            "__global__ void k(long long *x, pgas::team t) { x[0] = t.my_pe() * 100 + t.n_pes(); }",
            "k",
        )[1, 1](box, backwards)
        pg.synchronize()
        assert box.local[0] == (n - 1 - me) * 100 + n
    assert signal.local[0] == 0


def test_a_file(tmp_path):
    (tmp_path / "part.h").write_text(
        "__device__ inline int *tile() { extern __shared__ int t[]; return t; }\n"
    )
    path = tmp_path / "kernels.cu"
    path.write_text(
        '#include "part.h"\n__global__ void k(int *x) { tile()[0] = FIRST; x[0] = tile()[0] + SECOND; }\n'
    )
    x = np.zeros(1, "i4")
    for source in (path, str(path)):
        pg.Module(source, defines={"FIRST": 40, "SECOND": True}).kernel("k")[1, 1](x, shared=4)
        pg.synchronize()
        assert x[0] == 41


def test_debug(tmp_path):
    x = np.zeros(1, "i4")
    text = "__global__ void k(int *x) {\n#ifdef __OPTIMIZE__\n x[0] = 1;\n#else\n x[0] = 2;\n#endif\n}\n"
    for debug, expected in ((False, 1), (True, 2), (True, 2)):
        pg.Module(text, debug=debug).kernel("k")[1, 1](x)
        pg.synchronize()
        assert x[0] == expected


def test_kernels_in_conditions_and_macros():
    text = """
    #define MAKE(name, value) __global__ void name(int *x) { x[0] = value; }
    MAKE(one, 1)
    #if WANTED
    __global__ void two(int *x) { x[0] = 2; }
    #endif
    """
    x = np.zeros(1, "i4")
    module = pg.Module(text, defines=["WANTED"])
    for name, expected in (("one", 1), ("two", 2)):
        module.kernel(name)[1, 1](x)
        pg.synchronize()
        assert x[0] == expected
    with pytest.raises(pg.InvalidValueError, match="has no kernel two"):
        pg.Module(text, defines=["WANTED=0"]).kernel("two")


def test_what_only_looks_like_a_kernel_is_forgotten():
    text = """
    #define UNUSED(x)
    UNUSED(
    __global__ void nothing() { }
    )
    #define COMMENTED(...)
    COMMENTED(__global__ void neither() {})
    __global__ void k(int *x) { x[0] = 1; }
    """
    x = np.zeros(1, "i4")
    pg.Module(text).kernel("k")[1, 1](x)
    pg.synchronize()
    assert x[0] == 1


def test_every_pe_loads_what_one_compiled(tmp_path_factory):
    """A source nobody has seen before is compiled by one PE and found by the others."""
    number = pg.broadcast(np.random.default_rng().integers(1 << 60), root=0)
    text = f"__global__ void k(long long *x) {{ x[0] = {number}ll; }}"
    x = np.zeros(1, "i8")
    pg.barrier_all()
    pg.kernel(text, "k")[1, 1](x)
    pg.synchronize()
    assert x[0] == number


def test_the_device_library_is_where_the_compiler_looks():
    from pypgas.compiler.unit import DEVICE_FOLDER

    assert (Path(DEVICE_FOLDER) / "include" / "pypgas.cuh").is_file()
