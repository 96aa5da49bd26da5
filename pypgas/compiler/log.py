# SPDX-License-Identifier: Apache-2.0
"""What compilers say, made into errors about the user's own lines."""

from __future__ import annotations

import re

from ..errors import CompileError
from .names import UnknownKernelError
from .source import scan
from .unit import DEVICE_FOLDER, Unit

__all__ = ["KERNELS_FILE", "compile_error"]

KERNELS_FILE = "<pypgas kernels>"
"""What compilers call the lines that are added to a source."""

_MOST_LINES = 60

_HOST = re.compile(r"^(?P<file>[^\n]*?):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: ", re.MULTILINE)
_NVRTC = re.compile(r"^(?P<file>[^\n]*?)\((?P<line>\d+)\): (?:catastrophic )?error", re.MULTILINE)
_NVRTC_NAME = re.compile(r'Input name expression was: "\s*(?P<name>.*?)"$', re.MULTILINE)
_SCOPE = re.compile(r"\S.*: (?:In |At )")  # GCC: "file: In function ...:"
_AT_END = "At end of source: error"
_ADDED = (KERNELS_FILE, "__nv_name_map", str(DEVICE_FOLDER / "include/pypgas/cpu/kernel.h"))
# How the compilers say that a name means nothing, or no one function.
_NO_SUCH = re.compile(
    r"not declared|undeclared|not a member|no member named|not been declared|is undefined|has no member|"
    r"no matching|overloaded|cannot resolve|could not be resolved|does not name|unknown type|invalid use|"
    r"wrong number of template arguments|too (?:few|many) template arguments|not a template|no template named|"
    r"cannot determine which instance|unresolved|reference to"
)


def compile_error(unit: Unit, compiler: str, log: str) -> CompileError:
    """Return the error to raise for a compiler's log."""
    first = _HOST.search(log) or _NVRTC.search(log)
    if log.lstrip().startswith(_AT_END) or (first is not None and first["file"].startswith(_ADDED)):
        # The source itself seems to be fine, until it ends.
        line = scan(unit.source).open_line
        if line:
            reason = f"{unit.name}:{line}: error: the brace that is opened here is never closed"
            return CompileError(f"{unit.name} does not compile ({compiler}):\n{reason}", log)
    unknown = _unknown_kernel(unit, log, first) if first is not None else None
    if unknown is not None and first is not None:
        reason = log[first.end() :].split("\n", 1)[0].strip(" :")
        return UnknownKernelError(unknown, f"{unit.name} has no kernel {unknown} ({compiler}: {reason})", log)
    return CompileError(f"{unit.name} does not compile ({compiler}):\n{_shortened(_users_part(log))}", log)


def _unknown_kernel(unit: Unit, log: str, first: re.Match[str]) -> str | None:
    """The kernel that the first error says does not exist, if that is what it says."""
    rest = log[first.end() :].split("\n", 1)[0]
    if first["file"] == KERNELS_FILE:
        index = int(first["line"]) - 1
        if index < len(unit.kernels) and _NO_SUCH.search(rest):
            return unit.kernels[index]
    elif "__nv_name_map" in first["file"]:
        named = _NVRTC_NAME.search(log)
        name = "".join(named["name"].split()) if named else ""
        matching = [kernel for kernel in unit.kernels if "".join(kernel.split()) in name]
        return max(matching, key=len, default=None)
    return None


def _users_part(log: str) -> str:
    """A log without what it says of the lines that were added, unless it says nothing else."""
    kept: list[str] = []
    keep = True
    for line in log.splitlines():
        if line.startswith(_ADDED):
            keep = False
        elif _HOST.match(line) or _NVRTC.match(line) or _SCOPE.match(line):
            keep = True
        if keep and line.rstrip(":,") != "In file included from <command-line>":
            kept.append(line)
    text = "\n".join(kept).strip()
    return text if _HOST.search(text) or _NVRTC.search(text) else log


def _shortened(log: str) -> str:
    lines = log.strip().splitlines() or ["(the compiler gave no reason)"]
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES:] = [f"... {len(lines) - _MOST_LINES} more lines, in the exception's `log`"]
    return "\n".join(lines)
