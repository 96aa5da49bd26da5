# SPDX-License-Identifier: Apache-2.0
"""Names of kernels: those a source defines, and those a caller may ask for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from ..errors import CompileError

__all__ = ["KernelName", "UnknownKernelError", "is_balanced", "normal_name", "plain"]


class KernelName(NamedTuple):
    """A ``__global__`` function that is defined in the source.

    Attributes:
        name: Its name, with its namespaces.
        extern_c: It has C linkage, so that its symbol does not tell its parameters.
        conditional: It stands between ``#if`` and ``#endif``, and may not exist.
        template: It is a template: only its instances are kernels.
    """

    name: str
    extern_c: bool
    conditional: bool
    template: bool


class UnknownKernelError(CompileError):
    """A source was to be compiled with a kernel that it does not have.

    Attributes:
        kernel: The name that was asked for.
    """

    def __init__(self, kernel: str, message: str, log: str) -> None:
        super().__init__(message, log)
        self.kernel = kernel


def plain(kernels: Iterable[KernelName]) -> tuple[str, ...]:
    """Return the names of those that exist in any case, are no templates and have no overloads."""
    listed = list(kernels)
    names = [kernel.name for kernel in listed]
    return tuple(
        kernel.name
        for kernel in listed
        if not kernel.template and not kernel.conditional and names.count(kernel.name) == 1
    )


def normal_name(expression: str) -> str:
    """Return a kernel's name in one spelling: ``::scale< float , 3 >`` is ``scale<float,3>``."""
    squeezed = re.sub(r"\s*([<>,*&:()\[\]])\s*", r"\1", " ".join(expression.split()))
    return squeezed.removeprefix("::")


def is_balanced(expression: str) -> bool:
    """Whether text can stand as the name of a kernel at all: one expression, with its brackets in pairs."""
    if not expression or re.search(r'[;{}#"\\\n]|//|/\*', expression):
        return False
    depth = 0
    for sign in expression:
        depth += (sign in "([") - (sign in ")]")
        if depth < 0:
            return False
    return depth == 0
