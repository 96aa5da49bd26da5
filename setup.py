# SPDX-License-Identifier: Apache-2.0
"""Builds ``pypgas._native``; everything else about the package is in pyproject.toml."""

import os
import sysconfig
from pathlib import Path

import numpy as np
from setuptools import Extension, setup

ROOT = Path(__file__).parent

# One binary serves Python 3.11 and everything newer, except the free-threaded builds, which have no
# stable interface yet and get a binary of their own.
LIMITED_API = not sysconfig.get_config_var("Py_GIL_DISABLED")


def files(folder: str, *endings: str) -> list[str]:
    """Files under `folder`, relative to the project, in an order that does not depend on the disk."""
    return sorted(str(p.relative_to(ROOT)) for e in endings for p in (ROOT / folder).rglob("*" + e))


def native() -> list[Extension]:
    """The extension, from whatever sources native/ holds."""
    sources = files("native", ".cpp")
    if not sources:
        return []
    macros: list[tuple[str, str | None]] = [("NPY_NO_DEPRECATED_API", "NPY_1_23_API_VERSION")]
    if LIMITED_API:
        macros.append(("Py_LIMITED_API", "0x030B0000"))
    return [
        Extension(
            "pypgas._native",
            sources=sources,
            depends=files("native", ".h", ".hpp") + files("device", ".h", ".hpp", ".cuh", ".cpp"),
            include_dirs=["native", "device/include", "device", np.get_include()],
            define_macros=macros,
            extra_compile_args=[
                "-std=c++17",
                "-O3",
                "-fno-strict-aliasing",
                "-fvisibility=hidden",
                "-Wall",
                "-Wextra",
            ],
            extra_link_args=["-pthread"],
            language="c++",
            py_limited_api=LIMITED_API,
        )
    ]


os.chdir(ROOT)
setup(
    ext_modules=native(),
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if LIMITED_API else {},
)
