# SPDX-License-Identifier: Apache-2.0
"""The device functions of NVSHMEM 3.8, as facts: which names there are, and with which element types.

`python nvshmem_names.py HEADERS` prints the names found in a folder of NVSHMEM's headers.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["LEFT_OUT", "TYPES", "names_in_headers", "nvshmem_names"]

# name in functions → (type in C++, NumPy's dtype)
TYPES = {
    "bfloat16": ("__nv_bfloat16", "bfloat16"),
    "half": ("__half", "float16"),
    "float": ("float", "float32"),
    "double": ("double", "float64"),
    "char": ("char", "int8"),
    "short": ("short", "int16"),
    "schar": ("signed char", "int8"),
    "int": ("int", "int32"),
    "long": ("long", "int64"),
    "longlong": ("long long", "int64"),
    "uchar": ("unsigned char", "uint8"),
    "ushort": ("unsigned short", "uint16"),
    "uint": ("unsigned int", "uint32"),
    "ulong": ("unsigned long", "uint64"),
    "ulonglong": ("unsigned long long", "uint64"),
    "int8": ("int8_t", "int8"),
    "int16": ("int16_t", "int16"),
    "int32": ("int32_t", "int32"),
    "int64": ("int64_t", "int64"),
    "uint8": ("uint8_t", "uint8"),
    "uint16": ("uint16_t", "uint16"),
    "uint32": ("uint32_t", "uint32"),
    "uint64": ("uint64_t", "uint64"),
    "size": ("size_t", "uint64"),
    "ptrdiff": ("ptrdiff_t", "int64"),
}
WAIT = [
    "short",
    "int",
    "long",
    "longlong",
    "ushort",
    "uint",
    "ulong",
    "ulonglong",
    "int32",
    "int64",
    "uint32",
    "uint64",
    "size",
    "ptrdiff",
]
WORD = [name for name in WAIT if not name.endswith("short")]
BITWISE_AMO = ["uint", "ulong", "ulonglong", "int32", "int64", "uint32", "uint64"]
BITWISE_REDUCE = [
    "uchar",
    "ushort",
    "uint",
    "ulong",
    "ulonglong",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "size",
]
REDUCE = [name for name in TYPES if name != "ptrdiff"]
# On the device NVSHMEM has no adds and increments for three of the word types; here they exist.
ADDED = [name for name in WORD if name not in ("longlong", "int64", "ptrdiff")]
SIZES = (8, 16, 32, 64, 128)
SCOPES = {"thread": ("nvshmem", ""), "warp": ("nvshmemx", "_warp"), "block": ("nvshmemx", "_block")}

_SCOPED_RMA = ["put", "get", "put_nbi", "get_nbi", "iput", "iget", "put_signal", "put_signal_nbi"]
_MEM = ["putmem", "getmem", "putmem_nbi", "getmem_nbi", "putmem_signal", "putmem_signal_nbi"]
_VECTORS = [
    f"{verb}_{which}{vector}"
    for verb in ("wait_until", "test")
    for which in ("all", "any", "some")
    for vector in ("", "_vector")
]
_QUERIES = [
    "my_pe",
    "n_pes",
    "info_get_version",
    "info_get_name",
    "ptr",
    "team_my_pe",
    "team_n_pes",
    "team_translate_pe",
]

LEFT_OUT = (
    "mc_ptr ask_smem give_smem release_smem region_start_block region_stop_block region_is_active "
    "signal_counted_reset barrier_warpgroup status_string"
)


def _queue_pairs() -> set[str]:
    names = {f"nvshmemx_qp_{name}" for name in ("signal_op",)}
    for suffix in ("", "_warp", "_block"):
        names |= {f"nvshmemx_qp_{name}{suffix}" for name in ("fence", "quiet")}
        for name in TYPES:
            names |= {
                f"nvshmemx_qp_{name}_{verb}{suffix}" for verb in _SCOPED_RMA if not verb.startswith("i")
            }
    return names | {f"nvshmemx_qp_{name}_{verb}" for name in TYPES for verb in "pg"}


def left_out_names() -> set[str]:
    """Return those of NVSHMEM's device functions that pypgas refuses."""
    return _queue_pairs() | {f"nvshmemx_{name}" for name in LEFT_OUT.split()}


def nvshmem_names() -> set[str]:
    """Return the names of all of NVSHMEM's device functions that are no templates."""
    names = left_out_names()
    for prefix, suffix in SCOPES.values():
        names |= {f"{prefix}_{name}_{verb}{suffix}" for name in TYPES for verb in _SCOPED_RMA}
        names |= {
            f"{prefix}_{verb.replace('put', f'put{n}').replace('get', f'get{n}')}{suffix}"
            for verb in _SCOPED_RMA
            for n in SIZES
        }
        names |= {f"{prefix}_{verb}{suffix}" for verb in _MEM}
        names |= {f"{prefix}_{verb}{suffix}" for verb in ("barrier", "barrier_all", "sync_all", "team_sync")}
        names.add(f"nvshmemx_flush{suffix}")
        for verb in ("broadcast", "fcollect", "alltoall"):
            names |= {f"{prefix}_{name}_{verb}{suffix}" for name in TYPES} | {f"{prefix}_{verb}mem{suffix}"}
        for kind in ("reduce", "reducescatter"):
            for op in ("and", "or", "xor"):
                names |= {f"{prefix}_{name}_{op}_{kind}{suffix}" for name in BITWISE_REDUCE}
            for op in ("max", "min", "sum", "prod"):
                names |= {f"{prefix}_{name}_{op}_{kind}{suffix}" for name in REDUCE}
    names |= {f"nvshmem_{name}_{verb}" for name in TYPES for verb in "pg"}
    names |= {f"nvshmem_{name}_{verb}" for name in WAIT for verb in ["wait_until", "test", *_VECTORS]}
    for verb in ("fetch", "set", "swap"):
        names |= {f"nvshmem_{name}_atomic_{verb}" for name in [*WORD, "float", "double"]}
    names |= {f"nvshmem_{name}_atomic_compare_swap" for name in WORD}
    for verb in ("add", "fetch_add", "inc", "fetch_inc"):
        names |= {f"nvshmem_{name}_atomic_{verb}" for name in ADDED}
    for verb in ("add", "fetch_add"):
        names |= {f"nvshmemx_{name}_atomic_{verb}" for name in ("half", "float", "double")}
    for op in ("and", "or", "xor"):
        names |= {f"nvshmem_{name}_atomic_{verb}{op}" for name in BITWISE_AMO for verb in ("", "fetch_")}
    names |= {
        f"nvshmem_{name}" for name in [*_QUERIES, "fence", "quiet", "signal_fetch", "signal_wait_until"]
    }
    return names | {
        "nvshmemx_double2_maxloc_reduce_block",
        "nvshmemx_signal_op",
        "nvshmemx_vendor_get_version_info",
    }


_FUNCTION = re.compile(r"([\w\s*]*?)\b(nvshmemx?_\w+)\s*\(([^(){};]*)\)\s*\{")
_MISSING = re.compile(r"fatal error: (\S+): No such file")


def names_in_headers(include: Path) -> set[str]:
    """Return the device functions that are defined in the headers of NVSHMEM in a folder.

    The host's preprocessor expands them, with empty files in place of all headers that are not NVSHMEM's.
    """
    compiler = shutil.which(os.environ.get("CXX", "c++")) or "c++"
    with tempfile.TemporaryDirectory() as folder:
        stubs = Path(folder)
        source = stubs / "all.cc"
        source.write_text("#include <nvshmem.h>\n#include <nvshmemx.h>\n")
        for name in ("stdint.h", "limits.h", "stddef.h", "cuda_runtime.h", "cuda_fp16.h", "cuda_bf16.h"):
            (stubs / name).touch()
        command = [compiler, "-E", "-P", "-nostdinc", "-nostdinc++", f"-I{stubs}", f"-I{include}"]
        command += ["-D__CUDA_ARCH__=900", "-D__CUDACC__", "-D__CUDACC_RTC__", str(source)]
        for _ in range(100):
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            missing = _MISSING.search(done.stderr)
            if not missing:
                break
            path = stubs / missing[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    names = set()
    for before, name, _ in _FUNCTION.findall(done.stdout):
        words = before.split()
        if words and words[-1] not in ("else", "do", "return"):
            names.add(name)
    return names


if __name__ == "__main__":
    for found in sorted(names_in_headers(Path(sys.argv[1]))):
        sys.stdout.write(found + "\n")
