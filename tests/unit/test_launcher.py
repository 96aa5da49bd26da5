# SPDX-License-Identifier: Apache-2.0
"""``pypgas run`` as its users see it: real jobs under the MPI of this environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from launcher_jobs import PE, code, job, run

# ---------------------------------------------------------------- programs and their surroundings


def test_each_pe_runs_the_program_once() -> None:
    status, out, err = run("-n", "3", *code("print('PE', pe)"))
    assert (status, err) == (0, "")
    assert sorted(out.splitlines()) == ["PE 0", "PE 1", "PE 2"]


def test_mpi_inside_sees_the_job() -> None:
    status, out, err = run(
        "-n", "2", "-c", "from mpi4py import MPI; c = MPI.COMM_WORLD; c.Barrier(); print(c.rank, c.size)"
    )
    assert status == 0, err
    assert sorted(out.splitlines()) == ["0 2", "1 2"]


def test_a_file_runs_as_python_runs_it(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("value = 7\n")
    program = tmp_path / "program.py"
    program.write_text(
        "import os, pickle, sys\n"
        "import beside\n"
        "class Thing: pass\n"
        "pickle.loads(pickle.dumps(Thing()))\n"
        "assert os.path.samefile(sys.path[0], os.path.dirname(__file__))\n"
        "assert __name__ == '__main__' and sys.modules['__main__'].Thing is Thing\n"
        "names = sorted(n for n in globals() if not n.startswith('__'))\n"
        "print(sys.argv[1:], beside.value, names, os.getcwd())\n"
    )
    for n in ("1", "2"):
        status, out, err = run("-n", n, str(program), "-n", "--timeout", "x y", cwd=tmp_path)
        assert (status, err) == (0, "")
        expected = f"['-n', '--timeout', 'x y'] 7 ['Thing', 'beside', 'os', 'pickle', 'sys'] {tmp_path}"
        assert out.splitlines() == [expected] * int(n)


def test_a_module_runs_as_python_runs_it(tmp_path: Path) -> None:
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "tool.py").write_text("import sys; print(__name__, __package__, sys.argv[1:])")
    status, out, err = run("-n", "2", "-m", "pack.tool", "-m", "a", cwd=tmp_path)
    assert (status, err) == (0, "")
    assert out.splitlines() == ["__main__ pack ['-m', 'a']"] * 2


def test_a_folder_and_an_archive_run(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "__main__.py").write_text("print('from main')")
    with zipfile.ZipFile(tmp_path / "archive.pyz", "w") as archive:
        archive.write(folder / "__main__.py", "__main__.py")
    for program in (folder, tmp_path / "archive.pyz"):
        assert run("-n", "1", str(program)) == (0, "from main\n", "")


def test_code_gets_its_arguments() -> None:
    assert run("-n", "1", "-c", "import sys; print(sys.argv)", "-c", "x") == (0, "['-c', '-c', 'x']\n", "")


def test_nothing_is_imported_before_the_program() -> None:
    status, out, _ = run(
        "-n", "2", "-c", "import sys; print('numpy' in sys.modules, 'pypgas' in sys.modules)"
    )
    assert status == 0
    assert out.splitlines() == ["False False"] * 2


def test_exit_hooks_run_after_success_and_failure() -> None:
    text = "import atexit; atexit.register(print, 'hook', pe)\nif pe: sys.exit(3)"
    status, out, _ = run("-n", "2", *code(text))
    assert status == 3
    assert sorted(out.splitlines()) == ["hook 0", "hook 1"]


def test_the_first_pe_reads_the_input_and_the_others_none() -> None:
    with job("-n", "3", *code("print(pe, sys.stdin.read())"), stdin=subprocess.PIPE) as running:
        out, err = running.process.communicate("some text", timeout=60)
    assert err == ""
    assert sorted(out.splitlines()) == ["0 some text", "1 ", "2 "]


def test_a_lone_pe_needs_no_launcher(tmp_path: Path) -> None:
    status, out, err = run("-n", "1", *code("print(pe)"), environ={"PATH": str(tmp_path)})
    assert (status, out, err) == (0, "0\n", "")


def test_a_job_starts_from_within_a_pe() -> None:
    inner = [sys.executable, "-m", "pypgas", "run", "-n", "2", *code("print('inner', pe)")]
    text = f"import subprocess\nif pe == 0: sys.exit(subprocess.run({inner!r}).returncode)"
    status, out, err = run("-n", "2", *code(text))
    assert (status, err) == (0, "")
    assert sorted(out.splitlines()) == ["inner 0", "inner 1"]


# ---------------------------------------------------------------- output


def test_lines_are_never_mixed() -> None:
    text = """
for i in range(300):
    sys.stdout.write(chr(97 + pe) * 500)
    sys.stdout.write(chr(97 + pe) * 500 + "\\n")
    if i % 50 == 0: sys.stdout.flush()
"""
    status, out, _ = run("-n", "4", *code(text))
    assert status == 0
    assert sorted(out.splitlines()) == sorted(c * 1000 for c in "abcd" for _ in range(300))


def test_the_prefix_names_the_pe_on_every_line() -> None:
    text = "print('a\\nb'); sys.stdout.write('no end'); print('bad', file=sys.stderr)"
    status, out, err = run("--prefix", "-n", "2", *code(text))
    assert status == 0
    for pe in "01":
        assert [line for line in out.splitlines() if line.startswith(f"[{pe}] ")] == [
            f"[{pe}] a",
            f"[{pe}] b",
            f"[{pe}] no end",
        ]
    assert sorted(err.splitlines()) == ["[0] bad", "[1] bad"]


def test_output_arrives_while_the_job_runs() -> None:
    with job("-n", "2", *code("print('up'); time.sleep(30)")) as running:
        assert running.process.stdout is not None
        assert [running.process.stdout.readline() for _ in range(2)] == ["up\n"] * 2
        assert running.process.poll() is None


def test_a_closed_output_ends_the_job() -> None:
    reader, writer = os.pipe()
    with job("-n", "2", *code("while True: print('x' * 1000)"), stdout=writer) as running:
        os.close(writer)
        os.read(reader, 10)
        os.close(reader)
        assert running.process.wait(60) != 0
        assert running.gone()


# ---------------------------------------------------------------- failures


def test_one_traceback_and_its_exit_code() -> None:
    text = """
if pe == 1:
    def inner(): return 1 / 0
    inner()
time.sleep(0.5)
raise KeyError(pe)
"""
    status, out, err = run("-n", "3", *code(text))
    assert (status, out) == (1, "")
    assert err.count("Traceback") == 1
    assert err.startswith("pypgas run: PE 1 of 3 raised ZeroDivisionError: division by zero\nTraceback")
    assert "in inner\n" in err
    assert "child.py" not in err
    assert re.search(r"PE 0 raised KeyError: 0\n.*PE 2 raised KeyError: 2", err)


def test_the_cause_is_told_from_its_consequences(tmp_path: Path) -> None:
    # PE 0 fails because of PE 1, and says so first.
    text = """
from pypgas.errors import PeerFailedError
if pe == 0:
    try: raise PeerFailedError("PE 0: barrier_all: PE 1 has failed")
    except PeerFailedError as error: raise RuntimeError("gave up") from error
time.sleep(0.5)
raise ValueError("the cause")
"""
    status, _, err = run("-n", "2", *code(text))
    assert status == 1
    assert err.splitlines()[0] == "pypgas run: PE 1 of 2 raised ValueError: the cause"
    assert err.splitlines()[-1] == "pypgas run: PE 0 raised RuntimeError: gave up"


def test_a_killed_pe_leaves_the_others_their_seconds() -> None:
    text = "if pe == 1: os.kill(os.getpid(), signal.SIGKILL)\ntime.sleep(1); print('survived', pe)"
    status, out, err = run("-n", "3", *code(text))
    assert status == 128 + 9
    assert sorted(out.splitlines()) == ["survived 0", "survived 2"]
    assert err.splitlines()[0].startswith("pypgas run: PE 1 of 3 was killed by SIGKILL")


def test_a_killed_pe_inside_mpi_leaves_the_others_their_seconds() -> None:
    text = """
from mpi4py import MPI
MPI.COMM_WORLD.Barrier()
if pe == 1: os.kill(os.getpid(), signal.SIGSEGV)
time.sleep(1); print('survived', pe); sys.stdout.flush(); os._exit(0)
"""
    status, out, err = run("-n", "2", *code(text))
    assert status == 128 + 11
    assert out == "survived 0\n"
    assert "PE 1 of 2 was killed by SIGSEGV" in err


def test_survivors_that_do_not_end_are_killed_after_three_seconds() -> None:
    text = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nif pe == 0: sys.exit(7)\ntime.sleep(60)"
    start = time.monotonic()
    status, _, err = run("-n", "2", *code(text))
    assert 2.9 < time.monotonic() - start < 30
    assert status == 7
    assert "PE 0 of 2 left with exit code 7" in err
    assert "PE 1 had not ended and was killed" in err


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ("sys.exit(5)", 5, "left with exit code 5"),
        ("sys.exit('no input')", 1, "no input"),
        ("sys.exit(256)", 1, "left with exit code 1"),
        ("os._exit(9)", 9, "left with exit code 9"),
        ("import no_such_module", 1, "ModuleNotFoundError"),
        ("raise ValueError('two\\nlines')", 1, "two\nlines"),
        ("import ctypes; ctypes.string_at(8)", 128 + 11, "SIGSEGV"),
    ],
)
def test_ways_to_fail(text: str, status: int, words: str) -> None:
    found, _, err = run("-n", "2", *code(f"if pe == 1:\n {text}"))
    assert found == status
    assert words in err
    assert "PE 1 of 2" in err


@pytest.mark.parametrize(("text", "status"), [("sys.exit()", 0), ("sys.exit(0)", 0), ("os._exit(0)", 0)])
def test_ways_to_end_well(text: str, status: int) -> None:
    assert run("-n", "2", *code(f"if pe == 1:\n {text}")) == (status, "", "")


def test_a_lone_pe_fails_as_under_python(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("def f():\n    raise ValueError('bad')\nf()\n")
    status, out, err = run("-n", "1", str(program))
    direct = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
    assert (status, out, err) == (1, "", direct.stderr)


def test_a_syntax_error_is_shown_once(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("x = 1\nif x\n")
    status, _, err = run("-n", "2", str(program))
    assert status == 1
    assert err.count("SyntaxError: expected ':'") <= 3
    assert f'File "{program}", line 2' in err
    assert "child.py" not in err


def test_a_failed_pe_marks_itself_before_it_leaves(tmp_path: Path) -> None:
    # The runtime, if the program has imported it, learns of the failure at once.
    text = f"""
import types
runtime = types.ModuleType("pypgas.core.runtime")
runtime.mark_failed = lambda why: open({str(tmp_path / "mark")!r}, "w").write(repr(why))
sys.modules["pypgas.core.runtime"] = runtime
raise ValueError("why")
"""
    status, _, _ = run("-n", "1", *code(text))
    assert status == 1
    assert (tmp_path / "mark").read_text() == "ValueError('why')"


def test_mpi_abort_keeps_its_code() -> None:
    text = "from mpi4py import MPI\nif pe == 1: MPI.COMM_WORLD.Abort(6)\ntime.sleep(30)"
    status, _, _ = run("-n", "2", *code(text))
    assert status == 6


# ---------------------------------------------------------------- bad requests


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-n", "0", "-c", "pass"], "at least one PE"),
        (["-n", "-2", "-c", "pass"], "at least one PE"),
        (["-n", "two", "-c", "pass"], "invalid int value"),
        (["-n", "2"], "no program given"),
        (["-n", "2", "no/such/program.py"], "there is no program 'no/such/program.py'"),
        (["--timeout", "0", "-n", "2", "-c", "pass"], "time limit"),
        (["--launcher", "no-such-launcher", "-n", "2", "-c", "pass"], "no launcher 'no-such-launcher'"),
        (["--launcher", "/bin/true", "-n", "2", "-c", "pass"], "not a launcher that pypgas knows"),
    ],
)
def test_bad_requests_are_refused(arguments: list[str], words: str) -> None:
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert words in err


def test_a_launcher_that_does_not_start_the_pes_is_an_error(tmp_path: Path) -> None:
    fake = tmp_path / "mpirun"
    fake.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo "mpirun (Open MPI) 5.0.0" && exit\necho no slots; exit 3\n'
    )
    fake.chmod(0o755)
    status, _, err = run("--launcher", str(fake), "-n", "2", "-c", "pass")
    assert status == 3
    assert "no slots" in err
    assert "ended with exit code 3 before all PEs had" in err


def test_a_launcher_that_starts_singletons_is_an_error(tmp_path: Path) -> None:
    fake = tmp_path / "mpirun"
    fake.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo "mpirun (Open MPI) 5.0.0" && exit\n'
        'while [ "$1" != -n ]; do shift; done; shift 2\n"$@" & "$@" & wait\n'
    )
    fake.chmod(0o755)
    status, _, err = run("--launcher", str(fake), "-n", "2", "-c", "pass")
    assert status == 1
    assert "PE 0 of 1 in a job of 2" in err


def test_srun_is_called_its_way(tmp_path: Path) -> None:
    fake = tmp_path / "srun"
    fake.write_text(
        f"#!{sys.executable}\n"
        "import os, subprocess, sys\n"
        "i = sys.argv.index('-n'); n = sys.argv[i + 1]\n"
        "print(sys.argv[1:i], file=open(sys.argv[0] + '.options', 'w'))\n"
        "ps = [subprocess.Popen(sys.argv[i + 2:], env={**os.environ, 'SLURM_PROCID': str(k),\n"
        "      'SLURM_NTASKS': n}) for k in range(int(n))]\n"
        "sys.exit(max(p.wait() for p in ps))\n"
    )
    fake.chmod(0o755)
    status, out, err = run("--launcher", str(fake), "-n", "2", *code("print(pe)"))
    assert (status, err) == (0, "")
    assert sorted(out.splitlines()) == ["0", "1"]
    assert "--kill-on-bad-exit=0" in (tmp_path / "srun.options").read_text()


def test_pe_source_is_the_one_tested() -> None:
    # The helper's text must stay a program of its own: every job above starts with it.
    compile(PE, "PE", "exec")
