# SPDX-License-Identifier: Apache-2.0
"""From a unit to compiled code: out of the cache if it is there, else by a compiler and into the cache."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import CompileError
from . import host
from .cache import Cache, Failure
from .names import UnknownKernelError
from .unit import Unit, device_digest, digest

if TYPE_CHECKING:
    from .nvrtc import Cubin

__all__ = ["Built", "cached_host_module", "cubin", "host_module"]

_log = logging.getLogger("pypgas")

_SYMBOLS = "symbols"
_SIGNATURES = "signatures"


class Built(NamedTuple):
    """Compiled files, to be loaded before they may vanish.

    Attributes:
        files: Where they are, by name.
        facts: What is known of them.
    """

    files: dict[str, Path]
    facts: dict[str, Any]


# Writes files into the empty folder it is given, and returns them with what is known of them.
_Compile = Callable[[Path], Built]


def _key(unit: Unit, target: tuple[str, ...], cache: Cache) -> str | None:
    if cache.refused:
        return None
    return digest(unit, target, device_digest(cache.load_fact, cache.save_fact))


def _from_cache(cache: Cache, key: str | None, names: tuple[str, ...]) -> Built | None:
    entry = cache.lookup(key) if key is not None else None
    if entry is None:
        return None
    return Built({name: entry.folder / name for name in names}, entry.facts)


@contextlib.contextmanager
def _made(cache: Cache, key: str | None, names: tuple[str, ...], compile_it: _Compile) -> Iterator[Built]:
    """Compile, in one process at a time, and give the files for as long as the block lasts."""
    if key is None:
        with _scratch() as folder:
            yield compile_it(folder)
        return
    with contextlib.ExitStack() as stack:
        with cache.building(key) as failure:
            built = _from_cache(cache, key, names)
            if built is None:
                if failure is not None:
                    raise _told(failure)
                folder = stack.enter_context(_scratch())
                try:
                    built = compile_it(folder)
                except CompileError as error:
                    cache.failed(key, _tell(error))
                    raise
                entry = cache.store(key, built.files, built.facts)
                if entry is not None:
                    built = Built({name: entry.folder / name for name in names}, entry.facts)
        yield built


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    """A private folder that goes with the block."""
    import shutil
    import tempfile

    try:
        folder = tempfile.mkdtemp(prefix="pypgas-")
    except OSError as error:
        raise CompileError(f"there is no room to compile kernels in: {error}") from None
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _tell(error: CompileError) -> dict[str, str]:
    facts = {"message": str(error), "log": error.log}
    return {**facts, "kernel": error.kernel} if isinstance(error, UnknownKernelError) else facts


def _told(failure: Failure) -> CompileError:
    facts: Mapping[str, Any] = failure.facts
    message, log = str(facts.get("message", "")), str(facts.get("log", ""))
    if "kernel" in facts:
        return UnknownKernelError(str(facts["kernel"]), message, log)
    return CompileError(message, log)


# ---------------------------------------------------------------- modules for the CPU

_MODULE = ("module.so",)


def _host_key(unit: Unit, cache: Cache, sanitize: str) -> tuple[host.HostCompiler, str | None]:
    compiler = host.find_compiler(load=cache.load_fact, save=cache.save_fact)
    return compiler, _key(unit, host.target(compiler, unit, sanitize), cache)


def cached_host_module(unit: Unit, cache: Cache, sanitize: str = "") -> Path | None:
    """Return the file of a module that was compiled before, or ``None``.

    Raises:
        CompileError: there is no compiler, so that nothing can be known of what it would make.
    """
    _, key = _host_key(unit, cache, sanitize)
    built = _from_cache(cache, key, _MODULE)
    return built.files["module.so"] if built else None


@contextlib.contextmanager
def host_module(unit: Unit, cache: Cache, sanitize: str = "") -> Iterator[Path]:
    """Give the file of the compiled module, which is there for as long as the block lasts.

    Raises:
        CompileError: the source has errors, or there is no compiler.
    """
    compiler, key = _host_key(unit, cache, sanitize)

    def compile_it(folder: Path) -> Built:
        _log.info("compiling %s with %s", unit.name, compiler.version)
        return Built({"module.so": host.compile_module(compiler, unit, folder, sanitize)}, {})

    with _made(cache, key, _MODULE, compile_it) as built:
        yield built.files["module.so"]


# ---------------------------------------------------------------- code for GPUs

_CUBIN = ("module.cubin",)


def cubin(unit: Unit, architecture: str, cache: Cache) -> Cubin:
    """Return the unit's code for a GPU of ``architecture`` (``"sm_90"``).

    Raises:
        CompileError: the source has errors, or NVRTC is not installed.
        InvalidValueError: an architecture or option that NVRTC does not have.
    """
    from . import nvrtc

    key = _key(unit, nvrtc.target(architecture), cache)
    found = _from_cache(cache, key, _CUBIN)
    if found is not None:
        with contextlib.suppress(OSError, KeyError):  # removed by another process between two looks
            return _as_cubin(found)

    def compile_it(folder: Path) -> Built:
        _log.info("compiling %s with %s for %s", unit.name, nvrtc.version(), architecture)
        made = nvrtc.compile_cubin(unit, architecture)
        path = folder / "module.cubin"
        path.write_bytes(made.code)
        return Built({"module.cubin": path}, {_SYMBOLS: made.symbols, _SIGNATURES: made.signatures})

    with _made(cache, key, _CUBIN, compile_it) as built:
        return _as_cubin(built)


def _as_cubin(built: Built) -> Cubin:
    from .nvrtc import Cubin

    return Cubin(built.files["module.cubin"].read_bytes(), built.facts[_SYMBOLS], built.facts[_SIGNATURES])
