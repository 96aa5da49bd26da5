# SPDX-License-Identifier: Apache-2.0
"""Several PEs on one GPU, in one process, without the host runtime: what h200_device_library.py stands on.

A PE is a region of GPU memory, a copy of the kernels' module bound to that PE's state, and a stream.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

os.environ.setdefault("CUDA_MODULE_LOADING", "EAGER")

from cuda.bindings import driver, nvrtc

__all__ = ["PE", "Gpu", "I32", "Job", "Record", "check_free_memory", "compile_cubin"]

ROOT = Path(__file__).resolve().parents[1]
Array = npt.NDArray[Any]

MAX_TEAMS = 8
STAGING = 256 << 10
LIMIT_NS = 4_000_000_000


def check(result: tuple[Any, ...]) -> Any:
    """Return what a CUDA function gives besides its status.

    Raises:
        RuntimeError: the status is an error.
    """
    status, *rest = result
    if int(status):
        raise RuntimeError(str(status))
    return rest[0] if len(rest) == 1 else rest


def check_free_memory() -> int:
    """Return how many bytes of GPU memory are free."""
    return int(check(driver.cuMemGetInfo())[0])


class I32(int):
    """A kernel argument of four bytes; plain numbers have eight."""


def compile_cubin(source: str, capability: tuple[int, int], include: Path, ptx: bool = False) -> bytes:
    """Compile CUDA C++ for a GPU of the given compute capability.

    Raises:
        RuntimeError: with the compiler's messages.
    """
    program = check(nvrtc.nvrtcCreateProgram(source.encode(), b"kernels.cu", 0, [], []))
    kind = "compute" if ptx else "sm"
    options = [f"--gpu-architecture={kind}_{capability[0]}{capability[1]}", "--std=c++17"]
    options += [f"-I{include}", f"-I{ROOT / 'device' / 'shims'}"]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    if int(status):
        log = bytearray(check(nvrtc.nvrtcGetProgramLogSize(program)))
        check(nvrtc.nvrtcGetProgramLog(program, log))
        raise RuntimeError(log.rstrip(b"\0").decode())
    size, get = (
        (nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX) if ptx else (nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
    )
    code = bytearray(check(size(program)))
    check(get(program, code))
    check(nvrtc.nvrtcDestroyProgram(program))
    return bytes(code)


class Gpu:
    """The first GPU: memory, modules and launches."""

    def __init__(self) -> None:
        check(driver.cuInit(0))
        self.device = check(driver.cuDeviceGet(0))
        self.context = check(driver.cuDevicePrimaryCtxRetain(self.device))
        check(driver.cuCtxSetCurrent(self.context))
        attribute = driver.CUdevice_attribute
        self.capability = (
            self.ask(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            self.ask(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        )
        self.processors = self.ask(attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        name = check(driver.cuDeviceGetName(128, self.device))
        self.name = name.split(b"\0")[0].decode()

    def ask(self, attribute: Any) -> int:
        return int(check(driver.cuDeviceGetAttribute(attribute, self.device)))

    def allocate(self, nbytes: int) -> int:
        """Return the address of zeroed memory."""
        address = int(check(driver.cuMemAlloc(nbytes)))
        self.set_bytes(address, 0, nbytes)
        return address

    def free(self, address: int) -> None:
        check(driver.cuMemFree(address))

    def shared_with_host(self, nbytes: int) -> tuple[int, Array]:
        """Return an address for kernels, and the same memory as bytes for the host."""
        address = int(
            check(
                driver.cuMemHostAlloc(
                    nbytes, driver.CU_MEMHOSTALLOC_PORTABLE | driver.CU_MEMHOSTALLOC_DEVICEMAP
                )
            )
        )
        view = np.frombuffer(memoryview((ctypes.c_ubyte * nbytes).from_address(address)), np.uint8)
        view[:] = 0
        return int(check(driver.cuMemHostGetDevicePointer(address, 0))), view

    def set_bytes(self, address: int, value: int, nbytes: int) -> None:
        check(driver.cuMemsetD8(address, value, nbytes))
        self.synchronize()

    def write(self, address: int, values: Array) -> None:
        values = np.ascontiguousarray(values)
        if values.nbytes:
            check(driver.cuMemcpyHtoD(address, values.ctypes.data, values.nbytes))

    def read(self, address: int, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        values = np.empty(shape, dtype)
        if values.nbytes:
            check(driver.cuMemcpyDtoH(values.ctypes.data, address, values.nbytes))
        return values

    def copy(self, to: int, source: int, nbytes: int, stream: Any) -> None:
        check(driver.cuMemcpyDtoDAsync(to, source, nbytes, stream))

    def synchronize(self) -> None:
        check(driver.cuCtxSynchronize())

    def module(self, code: bytes) -> Any:
        image = np.frombuffer(code, np.uint8)
        return check(driver.cuModuleLoadData(image.ctypes.data))

    def launch(
        self,
        function: Any,
        grid: int,
        block: int,
        arguments: Sequence[int],
        stream: Any,
        cooperative: bool = False,
    ) -> None:
        held = [
            np.array([a], np.int32 if isinstance(a, I32) else np.int64 if a < 0 else np.uint64)
            for a in arguments
        ]
        table = np.array([value.ctypes.data for value in held], np.uint64)
        if cooperative:
            check(
                driver.cuLaunchCooperativeKernel(
                    function, grid, 1, 1, block, 1, 1, 0, stream, table.ctypes.data
                )
            )
        else:
            check(driver.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, stream, table.ctypes.data, 0))


class Record:
    """What one thread left in a report."""

    def __init__(self, text: Array, offsets: Sequence[int]) -> None:
        def word(at: int, dtype: npt.DTypeLike) -> int:
            return int(text[at : at + np.dtype(dtype).itemsize].view(dtype)[0])

        self.complete = word(0, np.uint32)
        self.reason = word(offsets[0], np.uint32)
        self.block = word(offsets[1], np.uint64)
        self.thread = word(offsets[2], np.uint32)
        self.address = word(offsets[3], np.uint64)
        self.expected = word(offsets[4], np.uint64)
        self.seen = word(offsets[5], np.uint64)
        self.waited_ns = word(offsets[6], np.uint64)
        self.operation = bytes(text[offsets[7] : offsets[7] + 64]).split(b"\0")[0].decode()

    def __repr__(self) -> str:
        facts = ", ".join(f"{key}={value!r}" for key, value in vars(self).items())
        return f"Record({facts})"


class PE:
    """One PE: its memory, its kernels and its stream."""

    def __init__(self, job: Job, number: int) -> None:
        self.job = job
        self.number = number
        self.heap = job.gpu.allocate(job.heap_bytes)
        self.area = job.gpu.allocate(job.area_bytes)
        self.state = job.gpu.allocate(job.state_bytes)
        self.team = job.gpu.allocate(job.team_bytes)
        self.stream = check(driver.cuStreamCreate(int(driver.CUstream_flags.CU_STREAM_NON_BLOCKING)))
        self.module = job.gpu.module(job.code)
        self.functions: dict[str, Any] = {}

    def bind(self) -> None:
        """Set the pointer that the library's code reads."""
        address, nbytes = check(driver.cuModuleGetGlobal(self.module, b"pgas_bound_state"))
        assert nbytes == 8
        self.job.gpu.write(int(address), np.array([self.state], np.uint64))

    def function(self, name: str) -> Any:
        """Return a kernel of this PE's module."""
        if name not in self.functions:
            self.functions[name] = check(driver.cuModuleGetFunction(self.module, name.encode()))
        return self.functions[name]

    def launch(self, name: str, grid: int, block: int, *arguments: int, cooperative: bool = False) -> None:
        self.job.gpu.launch(self.function(name), grid, block, arguments, self.stream, cooperative)

    def synchronize(self) -> None:
        check(driver.cuStreamSynchronize(self.stream))


class Job:
    """Some PEs that know each other.

    Args:
        gpu: Where they are.
        code: The kernels' cubin.
        n: How many.
        heap_bytes: Of each PE's symmetric heap.
        limit_ns: After which waits end.
    """

    def __init__(
        self, gpu: Gpu, code: bytes, n: int, heap_bytes: int = 64 << 20, limit_ns: int = LIMIT_NS
    ) -> None:
        self.gpu, self.code, self.n, self.heap_bytes = gpu, code, n, heap_bytes
        helper = gpu.module(code)
        out = gpu.allocate(16 * 8)
        gpu.launch(check(driver.cuModuleGetFunction(helper, b"sizes")), 1, 1, [out, MAX_TEAMS, STAGING], 0)
        gpu.synchronize()
        sizes = [int(value) for value in gpu.read(out, 16, np.uint64)]
        self.state_bytes, self.team_bytes, self.area_bytes, self.report_bytes = sizes[:4]
        self._records, self._record_bytes, self._offsets = sizes[4], sizes[5], sizes[6:14]
        gpu.free(out)
        self.pes = [PE(self, number) for number in range(n)]
        self.abort_address, self.abort = gpu.shared_with_host(64)
        self.report_address, self.report = gpu.shared_with_host(self.report_bytes)
        self.heaps, self.areas, self.members = (gpu.allocate(8 * n) for _ in range(3))
        gpu.write(self.heaps, np.array([pe.heap for pe in self.pes], np.uint64))
        gpu.write(self.areas, np.array([pe.area for pe in self.pes], np.uint64))
        gpu.write(self.members, np.arange(n, dtype=np.int64))
        for pe in self.pes:
            pe.launch(
                "fill", 1, 1, pe.state, pe.team, self.heaps, self.areas, self.members, pe.number, n, heap_bytes, MAX_TEAMS,
                STAGING, self.abort_address, self.report_address, limit_ns,
            )  # fmt: skip
            pe.synchronize()
            pe.bind()
        gpu.synchronize()
        self._top = 0

    def symmetric(self, nbytes: int, align: int = 256) -> int:
        """Return the offset of a new block of the heap."""
        start = -(-self._top // align) * align
        self._top = start + nbytes
        assert self._top <= self.heap_bytes, "the heap is too small for this check"
        return start

    def clear(self) -> None:
        """Give back all blocks, and zero them."""
        for pe in self.pes:
            self.gpu.set_bytes(pe.heap, 0, max(self._top, 1))
        self._top = 0

    def everywhere(self, name: str, block: int, *arguments: Any, grid: int = 1) -> None:
        """Run a kernel on every PE at the same time; an argument may be a function of the PE."""
        for pe in self.pes:
            pe.function(name)  # so that nothing is looked up while kernels wait for each other
        for pe in self.pes:
            pe.launch(name, grid, block, *(a(pe) if callable(a) else a for a in arguments))
        for pe in self.pes:
            pe.synchronize()
        if self.records():
            raise RuntimeError(f"{name}: {self.records()[0]}")

    def count(self) -> int:
        return int(self.report[:4].view(np.uint32)[0])

    def records(self) -> list[Record]:
        """What waits that had to end have left."""
        n = min(self.count(), (self.report_bytes - self._records) // self._record_bytes)
        starts = [self._records + i * self._record_bytes for i in range(n)]
        return [Record(self.report[start : start + self._record_bytes], self._offsets) for start in starts]

    def close(self) -> None:
        """Free the PEs' memory."""
        for pe in self.pes:
            for address in (pe.heap, pe.area, pe.state, pe.team):
                self.gpu.free(address)
            check(driver.cuModuleUnload(pe.module))
