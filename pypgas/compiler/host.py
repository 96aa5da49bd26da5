# SPDX-License-Identifier: Apache-2.0
"""The host's C++ compiler: finding it, knowing it again, and making modules for the CPU with it."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from ..errors import CompileError
from .unit import DEVICE_FOLDER, Unit, quoted, rewritten

__all__ = [
    "HostCompiler",
    "command_line",
    "compile_module",
    "cpu_features",
    "find_compiler",
    "sanitizer_library",
    "target",
]

_log = logging.getLogger("pypgas")

_NAMES = ("c++", "g++", "clang++")
# Variables that change what a compiler reads or does.
_VARIABLES = ("CPATH", "CPLUS_INCLUDE_PATH", "GCC_EXEC_PREFIX", "CCC_OVERRIDE_OPTIONS", "COMPILER_PATH")

NO_COMPILER = (
    "kernels for the CPU are compiled when they are first used, and this machine has no C++ compiler: $CXX is not set, and "
    "there is no c++, g++ or clang++ in $PATH. Install one, set CXX, or run `pip install ziglang`"
)


class HostCompiler(NamedTuple):
    """A C++ compiler.

    Attributes:
        command: How it is called: a program and the words that always come first.
        version: What it says of itself, in one line.
        family: ``"gcc"``, ``"clang"`` or ``"zig"``.
        fast_tls: Whether it can address thread-local variables of loaded modules by descriptors.
    """

    command: tuple[str, ...]
    version: str
    family: str
    fast_tls: bool


def find_compiler(
    environ: Mapping[str, str] | None = None,
    load: Callable[[str], str | None] = lambda key: None,
    save: Callable[[str, str], None] = lambda key, text: None,
) -> HostCompiler:
    """Return the compiler to use: ``$CXX``, ``c++``, ``g++`` or ``clang++``, else the ``ziglang`` package.

    What a compiler is has to be asked once; ``load`` and ``save`` keep the answer for as long as its file is unchanged.

    Raises:
        CompileError: there is none, or the one in ``$CXX`` does not work.
    """
    environ = os.environ if environ is None else environ
    command = _command(environ)
    stamp = "\n".join([*command, *(_stamp(word) for word in command)])
    known = _known.get(stamp)
    if known is None:
        text = load(stamp)
        known = _parsed(text, command) if text is not None else None
        if known is None:
            known = _ask(command, environ)
            save(stamp, json.dumps(known._asdict()))
        _known[stamp] = known
    return known


_known: dict[str, HostCompiler] = {}


def _parsed(text: str, command: tuple[str, ...]) -> HostCompiler | None:
    try:
        facts = json.loads(text)
        return HostCompiler(command, str(facts["version"]), str(facts["family"]), bool(facts["fast_tls"]))
    except (ValueError, TypeError, KeyError):
        return None  # written by something else: ask again


def _command(environ: Mapping[str, str]) -> tuple[str, ...]:
    path = environ.get("PATH", os.defpath)
    chosen = environ.get("CXX", "").strip()
    if chosen:
        import shlex

        try:
            words = shlex.split(chosen)
        except ValueError as error:
            raise CompileError(f"CXX = {chosen!r} is no command: {error}") from None
        program = _which(words[0], path)
        if program is None:
            raise CompileError(
                f"the C++ compiler that CXX names, {words[0]!r}, is not there or can't be run; correct or unset CXX"
            )
        return (program, *words[1:])
    for name in _NAMES:
        program = _which(name, path)
        if program is not None:
            return (program,)
    zig = _zig_program()
    if zig is not None:
        return (zig, "c++")
    raise CompileError(NO_COMPILER)


def _which(name: str, path: str) -> str | None:
    """The program that a shell would run."""
    places = [""] if "/" in name else path.split(os.pathsep)
    for place in places:
        program = os.path.join(place, name)  # noqa: PTH118 - as pathlib it takes a share of what loading a kernel takes
        if os.access(program, os.X_OK) and not os.path.isdir(program):  # noqa: PTH112
            return program
    return None


def _zig_program() -> str | None:
    from importlib.util import find_spec

    found = find_spec("ziglang")
    if found is None or not found.submodule_search_locations:
        return None
    program = Path(next(iter(found.submodule_search_locations))) / "zig"
    return str(program) if os.access(program, os.X_OK) else None


def _stamp(word: str) -> str:
    """What changes when the program behind a word of a command is replaced."""
    path = word if "/" in word else _which(word, os.environ.get("PATH", os.defpath))
    if path is None:
        return ""
    try:
        real = os.path.realpath(path)
        status = Path(real).stat()
    except OSError:
        return ""
    return f"{real} {status.st_size} {status.st_mtime_ns}"


def _ask(command: tuple[str, ...], environ: Mapping[str, str]) -> HostCompiler:
    if Path(command[0]).name == "zig":
        # As a compiler it would build its C++ library before it answers, which takes minutes.
        version = _answer([command[0], "version"], environ).strip()
        return HostCompiler(command, f"zig {version}", "zig", False)
    # In C++ mode the preprocessor lists what the compiler calls itself.
    text = _answer([*command, "-x", "c++", "-std=c++17", "-dM", "-E", os.devnull], environ)
    macros = dict(line.split(" ", 2)[1:] for line in text.splitlines() if line.count(" ") >= 2)
    if "__clang__" in macros:
        family, name = "clang", "clang"
        parts = ("__clang_major__", "__clang_minor__", "__clang_patchlevel__")
    elif "__GNUC__" in macros:
        family, name = "gcc", "GCC"
        parts = ("__GNUC__", "__GNUC_MINOR__", "__GNUC_PATCHLEVEL__")
    else:
        raise CompileError(f"the C++ compiler {' '.join(command)} is neither GCC nor clang", text)
    version = f"{name} {'.'.join(macros.get(part, '?') for part in parts)}"
    return HostCompiler(command, version, family, _has_fast_tls(command, environ))


def _answer(command: list[str], environ: Mapping[str, str]) -> str:
    """What a compiler says when it is asked for something it can always do."""
    import subprocess

    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, errors="replace", env=_environment(environ)
        )
    except OSError as error:
        raise CompileError(f"the C++ compiler {command[0]} can't be run: {error}") from None
    if answer.returncode:
        raise CompileError(
            f"the C++ compiler {command[0]} does not work:\n{answer.stderr.strip()}", answer.stderr
        )
    return answer.stdout


def _has_fast_tls(command: tuple[str, ...], environ: Mapping[str, str]) -> bool:
    import subprocess

    if os.uname().machine != "x86_64":
        return False  # where descriptors exist elsewhere, they are the default
    asked = [*command, "-mtls-dialect=gnu2", "-x", "c++", "-fsyntax-only", os.devnull]
    return subprocess.run(asked, capture_output=True, env=_environment(environ)).returncode == 0


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a compiler: messages in English, and nothing loaded into it that is meant for the program."""
    chosen = {name: value for name, value in environ.items() if name != "LD_PRELOAD"}
    return {**chosen, "LC_ALL": "C.UTF-8"}


def sanitizer_library(compiler: HostCompiler, sanitizer: str) -> str | None:
    """Return the library that a process has to be started with to load modules compiled with a sanitizer.

    Raises:
        CompileError: the compiler has no such sanitizer, or its library is not installed.
    """
    if compiler.family == "zig":
        raise CompileError(f"{compiler.version} has no sanitizers for modules; set CXX to GCC or clang")
    if compiler.family == "gcc":
        if sanitizer == "undefined":
            return None  # its modules name it, and it may be loaded with them
        names = ["libasan.so"]
    else:
        runtime = "asan" if sanitizer == "address" else "ubsan_standalone"
        names = [f"libclang_rt.{runtime}-{os.uname().machine}.so", f"libclang_rt.{runtime}.so"]
    for name in names:
        path = _answer([*compiler.command, f"-print-file-name={name}"], os.environ).strip()
        if "/" in path and Path(path).exists():
            return _behind_linker_script(path)
    raise CompileError(
        f"{compiler.version} comes without {names[0]}; install the library of its {sanitizer} sanitizer"
    )


def _behind_linker_script(path: str) -> str:
    """The library itself: some systems have a text for the linker under its name."""
    import re

    data = Path(path).read_bytes()
    found = None if data[:4] == b"\x7fELF" else re.search(rb"/\S+\.so[.\d]*", data)
    return found[0].decode() if found else str(Path(path).resolve())


# ---------------------------------------------------------------- what decides the result


_features: str | None = None


def cpu_features() -> str:
    """Return what ``-march=native`` depends on: the processor's kind and its instruction sets."""
    global _features
    if _features is None:
        wanted = ("flags", "Features", "CPU implementer", "CPU part", "cpu family", "model\t", "stepping")
        lines = []
        try:
            with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
                for (
                    line
                ) in file:  # of the first processor only: asking for all of them takes long on large hosts
                    if not line.strip():
                        break
                    if line.startswith(wanted):
                        lines.append(line.strip())
        except OSError:
            lines = []
        _features = "\n".join([os.uname().machine, *lines])
    return _features


def target(compiler: HostCompiler, unit: Unit, sanitize: str = "") -> tuple[str, ...]:
    """Return what a module for the CPU depends on besides its unit."""
    stamps = [_stamp(word) for word in compiler.command]
    variables = [f"{name}={os.environ.get(name, '')}" for name in _VARIABLES]
    return (
        "cpu",
        cpu_features(),
        compiler.version,
        *stamps,
        *variables,
        *command_line(compiler, unit, Path("source"), Path("module"), sanitize),
    )


def command_line(
    compiler: HostCompiler, unit: Unit, source: Path, output: Path, sanitize: str = ""
) -> list[str]:
    """Return the command that compiles ``source`` to the module ``output``."""
    flags = [
        "-std=c++17",
        *(("-O0", "-g") if unit.debug else ("-O3",)),
        "-march=native",
        "-fPIC",
        "-shared",
        "-fno-exceptions",
        "-ffp-contract=off",
        "-fno-strict-aliasing",
        "-fvisibility=hidden",
        "-fno-diagnostics-color" if compiler.family == "zig" else "-fdiagnostics-color=never",
    ]
    if compiler.fast_tls:
        flags.append("-mtls-dialect=gnu2")
    if compiler.family == "zig":
        flags.append("-fno-sanitize=all")  # which it would add to what it does not optimise
    if sanitize:
        flags += [f"-fsanitize={sanitize}", "-fno-omit-frame-pointer", "-g"]
        if compiler.family == "clang":
            flags.append("-shared-libsan")
    flags += [f"-D{define}" for define in unit.defines]
    folders = [*unit.search_folders(), DEVICE_FOLDER / "include", DEVICE_FOLDER / "shims" / "host"]
    for folder in folders:
        flags += ["-I", str(folder)]
    flags += ["-include", "pypgas/cpu/kernel.h", *unit.options]
    return [*compiler.command, *flags, "-o", str(output), str(source)]


# ---------------------------------------------------------------- compiling


def compile_module(compiler: HostCompiler, unit: Unit, folder: Path, sanitize: str = "") -> Path:
    """Compile the unit to a module in ``folder``, which is empty and private, and return the module's path.

    Raises:
        CompileError: the source has errors, or the folder can't be written.
    """
    import subprocess

    from .log import compile_error

    source, output = folder / "pypgas_module.cpp", folder / "module.so"
    command = command_line(compiler, unit, source, output, sanitize)
    # The module must not tell where it happened to be compiled.
    command.insert(-3, f"-ffile-prefix-map={folder}/=")
    try:
        if unit.folder is None:
            # Compilers show the lines they complain about from the file they take them to be in.
            (folder / unit.name).write_text(unit.source, encoding="utf-8", errors="surrogateescape")
        source.write_text(_text(unit, folder / "headers"), encoding="utf-8", errors="surrogateescape")
        answer = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            env={**_environment(os.environ), "TMPDIR": str(folder)},
        )
    except OSError as error:
        raise CompileError(f"{unit.name} can't be compiled: {error}") from None
    said = answer.stderr.replace(f"{folder}/", "").strip()
    if answer.returncode:
        raise compile_error(unit, compiler.version, said)
    if said:
        _log.warning("%s compiles, but %s says:\n%s", unit.name, compiler.version, said)
    return output


def _text(unit: Unit, headers: Path) -> str:
    """What is compiled: the unit's source, and the table of its kernels at the end."""
    from .log import KERNELS_FILE

    lines = [f"#line 1 {quoted(unit.name)}", rewritten(unit, headers), f"#line 1 {quoted(KERNELS_FILE)}"]
    # A kernel that does not exist is an error in its own line, by whose number it is known.
    lines += [f"using pgas_kernel_{i} = decltype(&{name});" for i, name in enumerate(unit.kernels)]
    entries = ", ".join(f"PGAS_CPU_KERNEL({name})" for name in unit.kernels)
    return "\n".join([*lines, f"PGAS_CPU_MODULE({entries})", ""])
