# SPDX-License-Identifier: Apache-2.0
"""Virtual environments outside the checkout, and commands run in them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]


def clean_environment():
    """This process's environment without what would let the checkout be imported."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def call(*command, cwd, check=True, **options):
    """Run a command away from the checkout. Returns the finished process, with text output."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        **options,
    )
    if check:
        assert done.returncode == 0, f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done


class Environment:
    """A fresh virtual environment outside the checkout."""

    def __init__(self, folder, interpreter):
        self.folder = folder
        self.bin = folder / "venv" / "bin"
        # Without pip of its own, which takes longer to unpack than all the rest: ours installs.
        call(interpreter, "-m", "venv", "--without-pip", folder / "venv", cwd=folder)

    def install(self, *requirements):
        """Install with this test run's pip."""
        call(
            *(sys.executable, "-m", "pip", "--python", self.bin / "python"),
            *("install", "--quiet", "--only-binary", ":all:", *requirements),
            cwd=self.folder,
        )

    def python(self, *arguments, check=True):
        """Run this environment's Python."""
        return call(self.bin / "python", *arguments, cwd=self.folder, check=check)

    def pypgas(self, *arguments, check=True):
        """Run this environment's `pypgas` command."""
        return call(self.bin / "pypgas", *arguments, cwd=self.folder, check=check)


def find_interpreter(version):
    """A Python of this version that can make environments; the test is skipped without one."""
    name = f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [found for found in [shutil.which(name)] if found]
    candidates += sorted(map(str, pyenv.glob(f"{version}*/bin/{name}")), reverse=True)
    probe = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    for candidate in candidates:
        done = call(candidate, "-c", probe, cwd="/", check=False)
        if done.stdout.strip() == version:
            return candidate
    pytest.skip(f"no {name} on PATH or among pyenv's versions")
