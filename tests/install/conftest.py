# SPDX-License-Identifier: Apache-2.0
"""One wheel, built from this checkout as a user would, and environments to install it into."""

import shutil
import sys

import pytest
from environments import CHECKOUT, Environment, call


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """The wheel, built in a copy of the files that git knows or would add."""
    if not (CHECKOUT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("needs a git checkout: the wheel is built from the files under version control")
    source = tmp_path_factory.mktemp("source")
    listed = call("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=CHECKOUT)
    for name in filter(None, listed.stdout.split("\0")):
        original, copy = CHECKOUT / name, source / name
        if original.exists() or original.is_symlink():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(original, copy, follow_symlinks=False)
    folder = tmp_path_factory.mktemp("wheel")
    call(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, source, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture
def environment(tmp_path):
    """Make a fresh environment for an interpreter (this one's by default)."""

    def make(interpreter=sys.executable):
        return Environment(tmp_path, interpreter)

    return make
