# SPDX-License-Identifier: Apache-2.0
"""Builds ``pypgas._native``; everything else about the package is in pyproject.toml."""

import os
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parent

# One binary serves Python 3.11 and everything newer, except the free-threaded builds, which have no
# stable interface yet and get a binary of their own.
LIMITED_API = not sysconfig.get_config_var("Py_GIL_DISABLED")


def files(folder: str, *endings: str) -> list[str]:
    """Files under `folder`, relative to the project, in an order that does not depend on the disk."""
    return sorted(str(p.relative_to(ROOT)) for e in endings for p in (ROOT / folder).rglob("*" + e))


def native() -> Extension:
    """The extension, from whatever sources native/ holds."""
    macros: list[tuple[str, str | None]] = [("NPY_NO_DEPRECATED_API", "NPY_1_23_API_VERSION")]
    if LIMITED_API:
        macros.append(("Py_LIMITED_API", "0x030B0000"))
    return Extension(
        "pypgas._native",
        sources=files("native", ".cpp"),
        depends=files("native", ".h", ".hpp") + files("device", ".h", ".hpp", ".cuh", ".cpp"),
        include_dirs=["native", "device/include", "device", np.get_include()],
        define_macros=macros,
        extra_compile_args=[
            "-std=c++17",
            "-O3",
            "-g0",  # Python's own flags may ask for debug information, ten times the code
            "-fno-strict-aliasing",
            "-fwrapv",
            "-fvisibility=hidden",
            "-Wall",
            "-Wextra",
            "-Wno-unknown-pragmas",
        ],
        extra_link_args=["-pthread"],
        language="c++",
        py_limited_api=LIMITED_API,
    )


class BuildExt(build_ext):
    """Compiles the sources of an extension side by side, which setuptools does for extensions only."""

    for_checkout = False  # whether the result goes into the checkout, as for an editable install

    def run(self) -> None:
        """Build the extensions."""
        self.for_checkout = LIMITED_API and bool(self.editable_mode or self.inplace)
        super().run()

    def build_extension(self, ext: Extension) -> None:
        """Build one extension, or take what the checkout has if it is up to date."""
        target = Path(self.get_ext_fullpath(ext.name))
        present = ROOT / "pypgas" / target.name
        # setuptools compares with a fresh folder, and so would build for each environment anew.
        if self.for_checkout and is_newer(present, [*ext.sources, *ext.depends, __file__]):
            target.parent.mkdir(parents=True, exist_ok=True)
            self.copy_file(present, target)
            return
        compile_one = self.compiler.compile

        def compile_all(sources: list[str], **options: Any) -> list[str]:
            with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
                objects = pool.map(lambda source: compile_one([source], **options), sources)
                return [name for names in objects for name in names]

        self.compiler.compile = compile_all
        try:
            super().build_extension(ext)
        finally:
            self.compiler.compile = compile_one


def is_newer(made: Path, sources: list[str]) -> bool:
    """Whether a file is there and younger than all of its sources."""
    return made.exists() and all(made.stat().st_mtime > Path(s).stat().st_mtime for s in sources)


os.chdir(ROOT)
setup(
    ext_modules=[native()],
    cmdclass={"build_ext": BuildExt},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if LIMITED_API else {},
)
