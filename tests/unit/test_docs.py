# SPDX-License-Identifier: Apache-2.0
"""The documents are true: their programs run, their links lead somewhere, and nothing is missing from them."""

import ast
import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pypgas as pg
from pypgas.config import Settings

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "examples" / "README.md", *DOCS.glob("*.md")]
)

FENCE = re.compile(r"^( *)```(\w*)\s*$")
COUNTS = re.compile(r"<!-- pes: ([\d, ]+) -->")


def title(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[tuple[int, str, str]]:
    """The fenced blocks of a page: number of the first line, language, text."""
    found, start, language, indent = [], None, "", ""
    lines = page.read_text().splitlines()
    for number, line in enumerate(lines, 1):
        match = FENCE.match(line)
        if match and start is None:
            start, indent, language = number + 1, match[1], match[2]
        elif match and not match[2]:
            text = "\n".join(part.removeprefix(indent) for part in lines[start - 1 : number - 1])
            found.append((start, language, text + "\n"))
            start = None
    assert start is None, f"{title(page)}:{start}: a block has no end"
    return found


def python_blocks(page: Path) -> list[tuple[int, str]]:
    return [(line, text) for line, language, text in blocks(page) if language == "python"]


def is_test_module(text: str) -> bool:
    return any(
        isinstance(node, ast.FunctionDef) and node.name.startswith("test_") for node in ast.parse(text).body
    )


def session(page: Path) -> str:
    """The page's Python blocks, in order, each at the line where it stands in the page."""
    lines: list[str] = []
    for start, text in python_blocks(page):
        if is_test_module(text):
            continue
        lines += [""] * (start - 1 - len(lines)) + text.splitlines()
    return "\n".join(lines) + "\n"


def programs() -> list[tuple[Path, int]]:
    """Pages with programs, and the numbers of PEs they are run on: 1 and 2, or what a comment in them says."""
    found = []
    for page in PAGES:
        if session(page).strip():
            match = COUNTS.search(page.read_text())
            found += [(page, int(n)) for n in (match[1].split(",") if match else (1, 2))]
    return found


def run(arguments: list[str], folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize(("page", "n"), [pytest.param(p, n, id=f"{title(p)}-{n}") for p, n in programs()])
def test_programs_of_a_page_run(page, n, tmp_path):
    """A page's blocks run one after the other in one program, as a reader would type them."""
    program = tmp_path / page.name.replace(".md", ".py")
    program.write_text(session(page))
    run(["pypgas", "run", "-n", str(n), "--timeout", "100", str(program)], tmp_path)


@pytest.mark.parametrize("page", [pytest.param(p, id=title(p)) for p in PAGES])
def test_test_modules_of_a_page_pass(page, tmp_path):
    for number, (_, text) in enumerate(python_blocks(page)):
        if is_test_module(text):
            (tmp_path / f"test_page_{number}.py").write_text(text)
            run(["pytest", "-q", "-p", "no:cacheprovider", "--pes", "1,2", str(tmp_path)], tmp_path)


def anchors(page: Path) -> set[str]:
    """Names under which GitHub makes a page's headings reachable."""
    code = False
    found = set()
    for line in page.read_text().splitlines():
        if line.lstrip().startswith("```"):
            code = not code
        elif not code and (match := re.match(r"#+ (.*)", line)):
            text = re.sub(r"[^\w\- ]", "", match[1].lower())
            found.add(text.strip().replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", [pytest.param(p, id=title(p)) for p in PAGES])
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{title(page)}: {target}"
        if anchor:
            assert anchor in anchors(file), f"{title(page)}: {target}"


def test_every_page_is_linked_from_the_readme():
    text = (ROOT / "README.md").read_text()
    for page in DOCS.glob("*.md"):
        assert f"docs/{page.name}" in text, page.name


def litmus_tests() -> dict[str, set[str]]:
    """The rules, by number, that each litmus test of the host's operations says it is about."""
    found = {}
    for file in (ROOT / "tests" / "litmus").glob("test_*.py"):
        if file.name == "test_kernels.py":  # these repeat rules from inside kernels
            continue
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found[node.name] = set(re.findall(r"Rule (\d+)", ast.get_docstring(node) or ""))
    return found


def test_every_rule_has_a_litmus_test():
    text = (DOCS / "memory-model.md").read_text()
    rules = re.findall(r"^\*\*Rule (\d+)\.\*\*(.*?)(?=^\*\*Rule|^#|\Z)", text, re.MULTILINE | re.DOTALL)
    assert [int(number) for number, _ in rules] == list(range(1, len(rules) + 1))
    named = {
        number: set(re.findall(r"`(test_\w+)`", body)) & set(re.findall(r"test_\w+", body))
        for number, body in rules
    }
    tests = litmus_tests()
    for number, names in named.items():
        names -= {"test_all", "test_any", "test_some"}
        assert names, f"rule {number} names no test"
        for name in names:
            assert number in tests[name], f"{name} does not say that it is about rule {number}"
    for name, numbers in tests.items():
        assert numbers, f"{name} does not say which rule it is about"
        for number in numbers:
            assert name in named[number], f"rule {number} does not name {name}"


def test_every_public_name_is_documented():
    text = (DOCS / "api.md").read_text()
    missing = [name for name in pg.__all__ if not re.search(rf"`[^`]*\b{re.escape(name)}\b[^`]*`", text)]
    text += (DOCS / "errors.md").read_text()
    assert not [name for name in missing if not re.search(rf"\b{re.escape(name)}\b", text)]


def test_every_error_is_documented():
    headings = re.findall(r"^### (\w+)", (DOCS / "errors.md").read_text(), re.MULTILINE)
    assert sorted(headings) == sorted(pg.errors.__all__)


def test_every_setting_is_documented():
    text = (DOCS / "settings.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| `PYPGAS_\w+` \| ([^|]+) \|", text, re.MULTILINE))
    fields = {field.name: field for field in dataclasses.fields(Settings)}
    assert set(rows) == set(fields)
    for name, shown in rows.items():
        assert f"`PYPGAS_{name.upper()}`" in text
        default = fields[name].default
        if default is not None:
            expected = fields[name].metadata["show"](default)
            stated = shown.strip().strip("`").replace(" s", "")
            assert stated == expected or float(stated) == float(expected), name


def test_the_commands_of_the_readme_exist():
    text = (ROOT / "README.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"^make (\w+)", text, re.MULTILINE)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for program in set(re.findall(r"examples/\w+\.py", text)):
        assert (ROOT / program).exists(), program
