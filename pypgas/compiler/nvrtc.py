# SPDX-License-Identifier: Apache-2.0
"""Compiling kernels for NVIDIA GPUs with NVRTC, which needs neither a GPU nor a CUDA toolkit."""

from __future__ import annotations

import functools
import io
import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import CompileError, InvalidValueError
from .log import KERNELS_FILE, compile_error
from .unit import DEVICE_FOLDER, Unit, quoted

__all__ = ["Cubin", "architectures", "compile_cubin", "include_folders", "target", "version"]

_log = logging.getLogger("pypgas")

NO_NVRTC = "kernels for GPUs are compiled by NVRTC, which is not installed ({error}); run `pip install 'pypgas[cuda13]'`"

# A variable whose symbol tells the type of a kernel that has no symbol of its own, or one without types.
_PROBE = "namespace pgas { namespace detail { template <class T> __device__ const char kernel_type = 0; } }"

_FLAGS = {
    "lineinfo": "lineinfo",
    "generate-line-info": "lineinfo",
    "device-debug": "debug",
    "G": "debug",
    "use_fast_math": "use_fast_math",
    "extra-device-vectorization": "extra_device_vectorization",
    "restrict": "restrict",
    "disable-warnings": "disable_warnings",
    "w": "disable_warnings",
    "device-int128": "device_int128",
    "minimal": "minimal",
}
_SWITCHES = {
    "ftz": "ftz",
    "prec-sqrt": "prec_sqrt",
    "prec-div": "prec_div",
    "fmad": "fma",
    "dopt": "device_code_optimize",
}
_VALUES = {
    "maxrregcount": ("max_register_count", int),
    "std": ("std", str),
    "ptxas-options": ("ptxas_options", str),
    "diag-suppress": ("diag_suppress", int),
    "diag-error": ("diag_error", int),
    "diag-warn": ("diag_warn", int),
    "split-compile": ("split_compile", int),
    "optimization-info": ("optimization_info", str),
}
_LISTS = {"ptxas_options", "diag_suppress", "diag_error", "diag_warn"}


class Cubin(NamedTuple):
    """Code for one GPU architecture.

    Attributes:
        code: The cubin.
        symbols: The symbol of each kernel, by the name it was asked for.
        signatures: A mangled name that tells each kernel's parameters.
    """

    code: bytes
    symbols: dict[str, str]
    signatures: dict[str, str]


def _bindings() -> Any:
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise CompileError(NO_NVRTC.format(error=error)) from None
    return nvrtc


def _ask(function: str) -> Sequence[Any]:
    nvrtc = _bindings()
    try:
        answer: Sequence[Any] = getattr(nvrtc, function)()
    except RuntimeError as error:  # the library itself is missing, or of a driver that is too old
        raise CompileError(NO_NVRTC.format(error=error)) from None
    if int(answer[0]):
        raise CompileError(f"{function} failed: {answer[0]}")
    return answer[1:]


@functools.cache
def version() -> str:
    """Return the version of NVRTC, such as ``"NVRTC 13.5"``.

    Raises:
        CompileError: it is not installed.
    """
    major, minor = _ask("nvrtcVersion")
    return f"NVRTC {major}.{minor}"


@functools.cache
def architectures() -> tuple[str, ...]:
    """Return what code can be made for: ``"sm_75"``, ``"sm_80"`` and so on."""
    numbers = _ask("nvrtcGetSupportedArchs")[-1]
    return tuple(f"sm_{number}" for number in numbers)


def _library() -> str:
    """What changes when NVRTC is replaced."""
    from cuda.pathfinder import load_nvidia_dynamic_lib

    try:
        path = Path(load_nvidia_dynamic_lib("nvrtc").abs_path or "")
        status = path.stat()
    except (OSError, RuntimeError) as error:
        raise CompileError(NO_NVRTC.format(error=error)) from None
    return f"{path} {status.st_size} {status.st_mtime_ns}"


def target(architecture: str) -> tuple[str, ...]:
    """Return what code for a GPU depends on besides its unit."""
    return (architecture, version(), _library(), *map(str, include_folders()))


def include_folders() -> tuple[Path, ...]:
    """Folders of headers that every kernel for a GPU can include: this library's, and CUDA's where they are installed."""
    shims = DEVICE_FOLDER / "shims"
    folders = [DEVICE_FOLDER / "include", shims / "nvrtc", shims]
    return tuple(folder for folder in [*folders, *_cuda_headers()] if folder.is_dir())


@functools.cache
def _cuda_headers() -> list[Path]:
    """Where the header wheels (or a toolkit) keep ``cuda_fp16.h`` and its like."""
    from cuda.pathfinder import find_nvidia_header_directory

    try:
        found = find_nvidia_header_directory("cudart")
    except RuntimeError:
        return []
    return [Path(found)] if found else []


def compile_cubin(unit: Unit, architecture: str) -> Cubin:
    """Compile the unit for one architecture.

    Raises:
        CompileError: the source has errors, or NVRTC is not installed.
        InvalidValueError: an architecture or option that NVRTC does not have.
    """
    known = architectures()
    if architecture.rstrip("af") not in known:
        raise InvalidValueError(
            f"{unit.name}: architecture {architecture!r} is none of {', '.join(known)}, which {version()} compiles for"
        )
    try:
        from cuda.core import Program, ProgramOptions
    except ImportError as error:
        raise CompileError(NO_NVRTC.format(error=error)) from None
    probes = {name: f"&pgas::detail::kernel_type<decltype(&{name})>" for name in _to_probe(unit)}
    said = io.StringIO()
    try:
        options = ProgramOptions(arch=architecture, **_options(unit))
        program = Program(_text(unit, bool(probes)), "c++", options)
        try:
            compiled = program.compile("cubin", name_expressions=[*unit.kernels, *probes.values()], logs=said)
        finally:
            program.close()
    except Exception as error:
        if type(error).__name__ != "NVRTCError":
            raise
        raise compile_error(unit, version(), _without_preface(str(error))) from None
    if said.getvalue().strip():
        _log.warning("%s compiles, but %s says:\n%s", unit.name, version(), said.getvalue().strip())
    names = {name: _decoded(symbol) for name, symbol in compiled.symbol_mapping.items()}
    symbols = {name: names[name] for name in unit.kernels}
    signatures = {name: names[probes[name]] if name in probes else symbols[name] for name in unit.kernels}
    return Cubin(bytes(compiled.code), symbols, signatures)


def _to_probe(unit: Unit) -> list[str]:
    """The kernels whose own symbol does not tell their parameters."""
    return [name for name in unit.kernels if name not in unit.symbols]


def _decoded(symbol: str | bytes) -> str:
    return symbol.decode() if isinstance(symbol, bytes) else symbol


def _without_preface(text: str) -> str:
    return re.sub(r"\A\d+: NVRTC_ERROR_\w+(, compilation log:)?\s*", "", text).strip("\0 \n")


def _text(unit: Unit, probe: bool) -> str:
    lines = [f"#line 1 {quoted(unit.name)}", unit.source, f"#line 1 {quoted(KERNELS_FILE)}"]
    return "\n".join([*lines, _PROBE if probe else "", ""])


def _options(unit: Unit) -> dict[str, Any]:
    """The unit's settings as cuda.core spells them."""
    folders = [*unit.search_folders(), *include_folders()]
    options: dict[str, Any] = {
        "name": Path(unit.name).name,
        "std": "c++17",
        "include_path": [str(folder) for folder in folders],
        "define_macro": [_macro(define) for define in unit.defines],
    }
    if unit.debug:
        options.update(debug=True, lineinfo=True)
    words = list(unit.options)
    while words:
        word = words.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        if word[:2] in ("-D", "-I") and not word.startswith("--"):
            value = word[2:] or (words.pop(0) if words else "")
            key = "define_macro" if word[1] == "D" else "include_path"
            options[key].append(_macro(value) if word[1] == "D" else value)
        elif word.startswith("-") and not equals and name in _FLAGS:
            options[_FLAGS[name]] = True
        elif (
            word.startswith("-") and equals and name in _SWITCHES and value in ("true", "false", "on", "off")
        ):
            options[_SWITCHES[name]] = value in ("true", "on")
        elif word.startswith("-") and equals and name in _VALUES and value:
            _add_value(unit, options, word, *_VALUES[name], value)
        else:
            raise _unknown_option(unit, word)
    return {key: value for key, value in options.items() if value != []}  # which cuda.core does not take


def _add_value(unit: Unit, options: dict[str, Any], word: str, key: str, kind: type, value: str) -> None:
    try:
        converted = kind(value)
    except ValueError:
        raise _unknown_option(unit, word) from None
    if key in _LISTS:
        options.setdefault(key, []).append(converted)
    else:
        options[key] = converted


def _unknown_option(unit: Unit, word: str) -> InvalidValueError:
    known = [f"--{name}" for name in _FLAGS if len(name) > 1]
    known += [f"--{name}=..." for name in [*_SWITCHES, *_VALUES]]
    return InvalidValueError(
        f"{unit.name}: option {word!r} is not one of NVRTC's that can be given here: -Dname, -Ifolder, {', '.join(known)}"
    )


def _macro(define: str) -> str | tuple[str, str]:
    name, equals, value = define.partition("=")
    return (name, value) if equals else name
