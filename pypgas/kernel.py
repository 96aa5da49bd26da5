# SPDX-License-Identifier: Apache-2.0
"""Kernels: CUDA C++ functions, compiled when they are first asked for, launched like functions of Python."""

from __future__ import annotations

import difflib
import json
import operator
import os
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _native
from .config import Settings
from .core.operands import pe_prefix
from .core.runtime import Runtime, current_runtime
from .errors import (
    CompileError,
    ForkedChildError,
    InvalidTypeError,
    InvalidValueError,
    NotInitializedError,
    StaleArrayError,
)

if TYPE_CHECKING:
    from .compiler.arguments import Packer
    from .compiler.cache import Cache
    from .compiler.names import KernelName
    from .compiler.nvrtc import Cubin
    from .compiler.unit import Unit

    Path_ = str | os.PathLike[str]
    Shape = int | tuple[int, ...]

# The compilers are imported when they are needed: programs without kernels start faster without them.

__all__ = ["Kernel", "Launch", "Module", "kernel"]

_MAX_THREADS = 1024
_MAX_GRID = (1 << 31) - 1
_MAX_SHARED = 1 << 20
_SHAPES_KEPT = 64
_DEVICES = ("cpu", "cuda")
_MACRO = re.compile(r"[A-Za-z_]\w*(\([^)=]*\))?(=.*)?", re.DOTALL)
_UNNAMED = "<kernel source>"


class Launch:
    """A kernel with its grid and block: call it with the kernel's arguments. Made by ``kernel[grid, block]``."""

    __slots__ = ("block", "grid", "kernel")

    def __init__(self, kernel: Kernel, grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
        self.kernel = kernel
        self.grid = grid
        self.block = block

    def __call__(
        self, *arguments: Any, stream: Any = None, shared: int = 0, cooperative: bool = False
    ) -> None:
        """Launch the kernel; it runs when the stream comes to it.

        Args:
            *arguments: One for each of the kernel's parameters. Pointers take symmetric arrays, NumPy arrays and
                arrays of other libraries that lie in the device's memory, with the dtype that the pointer points to, or
                ``None``. Arrays stay alive until the kernel has ended.
            stream: The stream to run on; the runtime's default stream if it is ``None``.
            shared: Bytes of dynamic shared memory for each block, ``extern __shared__`` in the kernel.
            cooperative: All blocks run at the same time, so that they may wait for each other.

        Raises:
            InvalidTypeError: a wrong number of arguments, or one of a kind, range or dtype that its parameter does not
                take.
            InvalidValueError: an array that is not contiguous or not aligned, or too much shared memory.
            StaleArrayError: an array that was freed, or a kernel of an earlier runtime.
            KernelError: an earlier kernel on this stream failed.
        """
        kernel = self.kernel
        if type(shared) is not int or not 0 <= shared <= _MAX_SHARED:
            shared = _shared_bytes(kernel.name, shared)
        try:
            packed = kernel._pack(arguments)
            _native.cpu_launch(
                kernel._handle,
                kernel._index,
                kernel.name,
                self.grid,
                self.block,
                shared,
                packed,
                kernel._offsets,
                stream,
                cooperative,
                arguments,
            )
        except ForkedChildError:
            raise
        except NotInitializedError:
            raise StaleArrayError(
                f"kernel {kernel.name}: its module was loaded before finalize(); make the Module anew after init()"
            ) from None

    def __repr__(self) -> str:
        return f"<pypgas.Launch of {self.kernel.name}, grid {self.grid}, block {self.block}>"


class Kernel:
    """A ``__global__`` function, compiled and loaded. Made by `Module.kernel`.

    ``k[grid, block](*arguments)`` launches it; grid and block are ints or tuples of up to three.

    Attributes:
        name: Its name in C++.
        parameters: The types of its parameters, as C++ spells them.
    """

    __slots__ = ("_handle", "_index", "_launches", "_offsets", "_pack", "name", "parameters")

    def __init__(self, name: str, handle: Any, index: int, packer: Packer) -> None:
        self.name = name
        self.parameters = tuple(str(kind) for kind in packer.types)
        self._handle = handle
        self._index = index
        self._pack = packer.pack
        self._offsets = packer.offsets
        self._launches: dict[Any, Launch] = {}

    def __getitem__(self, shape: tuple[Shape, Shape]) -> Launch:
        """Return the kernel with a grid and a block.

        Raises:
            InvalidTypeError: the index is no pair of ints or tuples of ints.
            InvalidValueError: an extent below 1, or a block or grid that is too large.
        """
        try:
            found = self._launches.get(shape)
        except TypeError:  # a list, say, which has no hash
            found = None
        if found is None:
            found = self._shaped(shape)
        return found

    def _shaped(self, shape: Any) -> Launch:
        if not isinstance(shape, tuple) or len(shape) != 2:
            raise InvalidTypeError(
                f"{pe_prefix()}kernel {self.name}: launch it as k[grid, block](arguments), not k[{shape!r}]"
            )
        grid, block = (_extents(self.name, *item) for item in zip(("grid", "block"), shape, strict=True))
        threads = block[0] * block[1] * block[2]
        if threads > _MAX_THREADS:
            raise InvalidValueError(
                f"{pe_prefix()}kernel {self.name}: block = {shape[1]} has {threads} threads; "
                f"a block has at most {_MAX_THREADS}"
            )
        launch = Launch(self, grid, block)
        if len(self._launches) < _SHAPES_KEPT:
            try:
                self._launches[shape] = launch
            except TypeError:
                pass
        return launch

    def __call__(self, *arguments: Any, **options: Any) -> None:
        raise InvalidTypeError(
            f"{pe_prefix()}kernel {self.name}: launch it as k[grid, block](arguments), not k(arguments)"
        )

    def __repr__(self) -> str:
        return f"<pypgas.Kernel {self.name}({', '.join(self.parameters)})>"


class _Copy(NamedTuple):
    """The module as it was compiled and loaded once, with some of its kernels."""

    handle: Any
    kernels: dict[str, int]


class Module:
    """Kernels of one source, compiled together for the runtime's device when the first of them is asked for.

    Compiled code is kept on disk: the next run, and the other PEs of this one, load it from there.

    Args:
        source: CUDA C++ as text, or the path of a file with it.
        kernels: Instances of templates to compile along, such as ``"scale<float, 3>"``. Kernels that are no templates are
            found in the source. Any other can be asked for too, but gets a copy of the module of its own, with its own
            ``__device__`` variables.
        include: Folders of headers. A file's own folder is searched first.
        defines: Macros: a mapping of names to values, or words such as ``"NAME"`` and ``"NAME=VALUE"``.
        options: Further options for the compiler, or a mapping of ``"cpu"`` and ``"cuda"`` to each one's.
        debug: Compile for a debugger, without optimisation.
        name: What the compiler's messages call a source that is given as text.

    Raises:
        InvalidTypeError: an argument of the wrong type.
        InvalidValueError: no such file or folder, or what is no macro or name.
    """

    def __init__(
        self,
        source: Path_,
        *,
        kernels: Iterable[str] = (),
        include: Path_ | Iterable[Path_] = (),
        defines: Mapping[str, object] | Iterable[str] | None = None,
        options: Iterable[str] | Mapping[str, Iterable[str]] = (),
        debug: bool = False,
        name: str | None = None,
    ) -> None:
        self._source, self._folder, self.name = _read(source, name)
        self._requested = tuple(_kernel_name(kernel) for kernel in _words("kernels", kernels))
        self._include = _folders(include)
        self._defines = _macros(defines)
        self._options = _per_device(options)
        self._debug = bool(debug)
        self._lock = threading.Lock()
        self._runtime: Runtime | None = None
        self._found: tuple[KernelName, ...] | None = None
        self._mistaken: set[str] = set()
        self._copies: list[_Copy] = []
        self._kernels: dict[str, Kernel] = {}

    def kernel(self, name: str) -> Kernel:
        """Return a kernel by its C++ name, compiling and loading the module if that was not done yet.

        ``name`` has its namespaces (``"ns::heat"``) and template arguments (``"scale<float, 3>"``).

        Raises:
            InvalidValueError: the source has no such kernel.
            InvalidTypeError: the kernel has a parameter that nothing in Python can be passed as.
            CompileError: the source has errors, or there is no compiler.
            NotInitializedError: no runtime is live.
            StaleArrayError: the module belongs to an earlier runtime.
        """
        wanted = _kernel_name(name)
        with self._lock:
            self._check_runtime()
            known = self._kernels.get(wanted)
            if known is None:
                known = self._kernels[wanted] = self._load(wanted)
            return known

    def cubin(self, architecture: str) -> Cubin:
        """Compile for a GPU, which need not be there, and return the code with the kernels' symbols.

        ``architecture`` is one of NVRTC's, such as ``"sm_90"``. The kernels are those found and those given as
        ``kernels=``. Needs no runtime.

        Raises:
            CompileError: the source has errors, or NVRTC is not installed.
            InvalidValueError: an architecture or option that NVRTC does not have, or a kernel the source does not have.
        """
        from .compiler import build
        from .compiler.names import UnknownKernelError

        cache = _cache(Settings.from_environment())
        while True:
            unit = self._unit("cuda", self._base(cache), cache)
            try:
                return build.cubin(unit, architecture, cache)
            except UnknownKernelError as error:
                self._not_there(error, "")

    # ---- the runtime it belongs to

    def _check_runtime(self) -> None:
        if self._runtime is not None and not self._runtime.live:
            raise StaleArrayError(
                f"{pe_prefix()}Module.kernel: {self.name} was loaded by an earlier runtime; make the Module anew after init()"
            )
        self._runtime = current_runtime("Module.kernel")

    # ---- compiling

    def _load(self, name: str) -> Kernel:
        from .compiler.arguments import Packer
        from .compiler.signature import SignatureError, parameters

        copy = next((copy for copy in self._copies if name in copy.kernels), None) or self._compiled(name)
        index = copy.kernels[name]
        try:
            types = parameters(copy.handle.types[index])
        except SignatureError as error:
            raise InvalidTypeError(
                f"{pe_prefix()}kernel {name}: its parameters can't be read: {error}"
            ) from None
        return Kernel(name, copy.handle, index, Packer(name, types))

    def _compiled(self, name: str) -> _Copy:
        from .compiler.names import UnknownKernelError

        assert self._runtime is not None
        settings = self._runtime.settings
        cache = _cache(settings)
        while True:
            base = self._base(cache)
            names = base if name in base else (*base, name)
            try:
                handle = _loaded(
                    self._unit("cpu", names, cache, settings.sanitize is not None), cache, settings.sanitize
                )
                break
            except UnknownKernelError as error:
                self._not_there(error, name)
            except CompileError as error:
                raise _with_prefix(error) from None
        copy = _Copy(handle, {kernel: index for index, kernel in enumerate(names)})
        self._copies.append(copy)
        return copy

    def _not_there(self, error: CompileError, wanted: str) -> None:
        """Raise for a kernel that was asked for; forget one that only looked like a kernel."""
        missing = str(getattr(error, "kernel", ""))
        names = [kernel.name for kernel in self._found or ()]
        if missing != wanted and missing not in self._requested and missing in names:
            self._mistaken.add(missing)
            return
        shown = ", ".join(names) or "none"
        close = difflib.get_close_matches(missing, names, n=1, cutoff=0.5)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise InvalidValueError(
            f"{pe_prefix()}Module.kernel: {error}. Kernels in its text: {shown}.{hint}"
        ) from None

    def _base(self, cache: Cache) -> tuple[str, ...]:
        """The kernels that every copy of the module has."""
        from .compiler.names import plain

        if self._found is None:
            self._found = _kernels_in(self._source, cache)
        return tuple(
            dict.fromkeys(k for k in (*plain(self._found), *self._requested) if k not in self._mistaken)
        )

    def _unit(self, device: str, kernels: tuple[str, ...], cache: Cache, shown: bool = False) -> Unit:
        """What to compile. ``shown``: a tool will want to show the source's lines."""
        from .compiler.unit import Unit

        if not kernels:
            raise InvalidValueError(
                f"{pe_prefix()}Module: {self.name} defines no __global__ function; instances of templates and kernels "
                "made by macros have to be named in kernels="
            )
        name = self.name
        if (self._debug or shown) and self._folder is None:
            kept = cache.keep_source(self._source)
            name = str(kept) if kept is not None else name
        found = self._found or ()
        return Unit(
            source=self._source,
            name=name,
            folder=self._folder,
            kernels=kernels,
            include=self._include,
            defines=self._defines,
            options=self._options[device],
            debug=self._debug,
            symbols=frozenset(k.name for k in found if not (k.template or k.extern_c or k.conditional)),
        )

    def __repr__(self) -> str:
        return f"<pypgas.Module {self.name}>"


def kernel(
    source: Path_,
    name: str,
    *,
    kernels: Iterable[str] = (),
    include: Path_ | Iterable[Path_] = (),
    defines: Mapping[str, object] | Iterable[str] | None = None,
    options: Iterable[str] | Mapping[str, Iterable[str]] = (),
    debug: bool = False,
) -> Kernel:
    """Compile a source and return one kernel of it: ``Module(source, …).kernel(name)``."""
    module = Module(source, kernels=kernels, include=include, defines=defines, options=options, debug=debug)
    return module.kernel(name)


# ---------------------------------------------------------------- loading

_in_place: set[str] = (
    set()
)  # modules that are loaded from the cache itself: only once, or they would be one and the same


def _loaded(unit: Unit, cache: Cache, sanitize: str | None) -> Any:
    """The native handle of the unit's module, out of the cache or compiled."""
    from .compiler import build

    in_place = unit.debug or sanitize is not None  # for tools that read its debug information
    cached = build.cached_host_module(unit, cache, sanitize or "")
    if cached is not None:
        try:
            return _native_module(cached, in_place)
        except OSError:
            pass  # removed by another process between two looks: compile it again
    with build.host_module(unit, cache, sanitize or "") as path:
        try:
            return _native_module(path, in_place and cache.holds(path))
        except OSError as error:
            raise CompileError(
                f"{unit.name}: the compiled module can't be loaded: {error}", str(error)
            ) from None


def _native_module(path: Path, in_place: bool) -> Any:
    in_place = in_place and str(path) not in _in_place
    handle = _native.cpu_module(str(path), in_place)
    if in_place:
        _in_place.add(str(path))
    return handle


def _cache(settings: Settings) -> Cache:
    from .compiler.cache import open_cache

    return open_cache(settings.cache_dir, settings.cache_size)


def _kernels_in(source: str, cache: Cache) -> tuple[KernelName, ...]:
    from .compiler.names import KernelName

    fact = f"kernels\n{source}"
    try:
        return tuple(KernelName(*item) for item in json.loads(cache.load_fact(fact) or ""))
    except (ValueError, TypeError):
        from .compiler.source import scan

        found = scan(source).kernels
        cache.save_fact(fact, json.dumps(found))
        return found


def _with_prefix(error: CompileError) -> CompileError:
    return CompileError(f"{pe_prefix()}Module.kernel: {error}", error.log)


# ---------------------------------------------------------------- checking what callers pass


def _read(source: Any, name: str | None) -> tuple[str, Path | None, str]:
    """The text, the folder of its file if it has one, and what to call it."""
    if name is not None and (not isinstance(name, str) or not name or re.search(r'[/\\\n"]', name)):
        raise InvalidValueError(f"{pe_prefix()}Module: name = {name!r} is not a file's name")
    if isinstance(source, str) and re.search(r"[\n{;]", source):
        return source, None, name or _UNNAMED
    if not isinstance(source, (str, os.PathLike)):
        raise InvalidTypeError(f"{pe_prefix()}Module: source = {source!r} is neither text nor a path")
    path = Path(source).absolute()
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape"), path.parent, str(path)
    except OSError as error:
        raise InvalidValueError(
            f"{pe_prefix()}Module: source = {str(source)!r} is no CUDA C++ (it has no braces), and as a file it can't be "
            f"read: {error.strerror}"
        ) from None


def _words(what: str, words: Any) -> tuple[str, ...]:
    listed = (words,) if isinstance(words, str) else tuple(words)
    for word in listed:
        if not isinstance(word, str):
            raise InvalidTypeError(f"{pe_prefix()}Module: {what} holds {word!r}, which is no text")
    return listed


def _kernel_name(name: Any) -> str:
    from .compiler.names import is_balanced, normal_name

    if not isinstance(name, str):
        raise InvalidTypeError(f"{pe_prefix()}Module.kernel: name = {name!r} is no text")
    found = normal_name(name)
    if not is_balanced(found):
        raise InvalidValueError(f"{pe_prefix()}Module.kernel: name = {name!r} can't be the name of a kernel")
    return found


def _folders(include: Any) -> tuple[Path, ...]:
    listed: Sequence[Any] = [include] if isinstance(include, (str, os.PathLike)) else list(include)
    folders = []
    for item in listed:
        if not isinstance(item, (str, os.PathLike)):
            raise InvalidTypeError(f"{pe_prefix()}Module: include holds {item!r}, which is no path")
        folder = Path(item).absolute()
        if not folder.is_dir():
            raise InvalidValueError(f"{pe_prefix()}Module: include = {str(item)!r} is no folder")
        folders.append(folder)
    return tuple(folders)


def _macros(defines: Any) -> tuple[str, ...]:
    if defines is None:
        return ()
    if isinstance(defines, Mapping):
        words = []
        for name, value in defines.items():
            if isinstance(value, bool):
                value = int(value)
            words.append(str(name) if value is None else f"{name}={value}")
    else:
        words = list(_words("defines", defines))
    for word in words:
        if not _MACRO.fullmatch(word):
            raise InvalidValueError(f"{pe_prefix()}Module: defines holds {word!r}, which is no macro")
    return tuple(words)


def _per_device(options: Any) -> dict[str, tuple[str, ...]]:
    if isinstance(options, Mapping):
        wrong = [key for key in options if key not in _DEVICES]
        if wrong:
            raise InvalidValueError(
                f"{pe_prefix()}Module: options for {wrong[0]!r}; the devices are cpu and cuda"
            )
        return {device: _words("options", options.get(device, ())) for device in _DEVICES}
    return dict.fromkeys(_DEVICES, _words("options", options))


def _extents(kernel: str, what: str, given: Any) -> tuple[int, int, int]:
    items = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if not 1 <= len(items) <= 3:
        raise InvalidValueError(f"{pe_prefix()}kernel {kernel}: {what} = {given!r} has not 1 to 3 extents")
    try:
        extents = [operator.index(item) for item in items]
    except TypeError:
        raise InvalidTypeError(
            f"{pe_prefix()}kernel {kernel}: {what} = {given!r} is neither an int nor a tuple of ints"
        ) from None
    limit = _MAX_GRID if what == "grid" else _MAX_THREADS
    for extent in extents:
        if not 1 <= extent <= limit:
            raise InvalidValueError(
                f"{pe_prefix()}kernel {kernel}: {what} = {given!r}: {extent} is not in 1 ... {limit}"
            )
    x, y, z = [*extents, 1, 1][:3]
    return x, y, z


def _shared_bytes(kernel: str, shared: Any) -> int:
    try:
        nbytes = operator.index(shared)
    except TypeError:
        raise InvalidTypeError(
            f"{pe_prefix()}kernel {kernel}: shared = {shared!r} is no number of bytes"
        ) from None
    if not 0 <= nbytes <= _MAX_SHARED:
        raise InvalidValueError(
            f"{pe_prefix()}kernel {kernel}: shared = {nbytes} bytes; a block has at most {_MAX_SHARED} (1 MiB) on the CPU"
        )
    return nbytes
