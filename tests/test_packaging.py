"""What is installed, and what is imported when: one name in site-packages, no torch, LibCST only where it is needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from torchlint.rule import all_rules

ROOT = Path(__file__).resolve().parents[1]
LEAK = "import torch\nx = 1  # torchlint: ignore[NOPE]\n"


def build(kind: str, source: Path, target: Path) -> Path:
    """The file that hatchling builds: an sdist, a wheel, or the wheel of an editable install."""
    script = f"from hatchling.build import build_{kind}; print(build_{kind}({str(target)!r}))"
    done = subprocess.run([sys.executable, "-c", script], cwd=source, capture_output=True, text=True, check=True)
    return target / done.stdout.split()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_one_package_with_the_three_folders_inside(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names} == {"torchlint", "torchlint-0.1.0.dist-info"}
    for folder in ("rules", "fixers", "runtime_check", "cli", "output", "semantics", "analyses", "edits", "fixing"):
        assert f"torchlint/{folder}/__init__.py" in names
    assert "torchlint/py.typed" in names
    modules = [module.__module__.replace(".", "/") + ".py" for module in all_rules().values()]
    assert set(modules) <= set(names)


def test_every_python_file_of_the_four_folders_is_in_the_wheel(wheel: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "torchlint", "rules", "fixers", "runtime_check"], cwd=ROOT, capture_output=True, text=True
    ).stdout.split()
    if not listed:
        pytest.skip("not a git checkout")
    installed = {name if name.startswith("torchlint/") else f"torchlint/{name}" for name in listed}
    assert installed <= set(zipfile.ZipFile(wheel).namelist())


def test_an_sdist_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(build("sdist", ROOT, tmp_path)) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # not in all 3.10 and 3.11
        archive.extractall(tmp_path)
    (unpacked,) = (path for path in tmp_path.iterdir() if path.is_dir())
    again = build("wheel", unpacked, tmp_path)
    assert sorted(zipfile.ZipFile(again).namelist()) == sorted(zipfile.ZipFile(wheel).namelist())


def test_an_editable_install_points_at_the_checkout(tmp_path: Path) -> None:
    archive = zipfile.ZipFile(build("editable", ROOT, tmp_path))
    (link,) = (name for name in archive.namelist() if name.endswith(".pth"))
    assert archive.read(link).decode().split() == [str(ROOT)]


def run(*arguments: str, path: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(path)}
    command = [sys.executable, "-m", "torchlint", *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120)


def test_the_installed_package_does_what_the_checkout_does(wheel: Path, tmp_path: Path) -> None:
    site, work = tmp_path / "site", tmp_path / "work"
    zipfile.ZipFile(wheel).extractall(site)
    work.mkdir()
    for number in range(3):
        (work / f"m{number}.py").write_text(LEAK + "# filler\n" * 30_000)
    for arguments in (["rule", "--all"], [".", "--jobs", "2", "--no-cache"]):
        installed, checkout = (run(*arguments, path=path, cwd=work) for path in (site, ROOT))
        assert installed.stdout == checkout.stdout != ""
        assert installed.returncode == checkout.returncode
    where = subprocess.run(
        [sys.executable, "-c", "import torchlint.rules; print(torchlint.rules.__file__)"],
        cwd=work,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
    )
    assert where.stdout.strip() == str(site / "torchlint" / "rules" / "__init__.py")


@pytest.mark.parametrize("name", ["rules", "fixers", "runtime_check"])
def test_the_three_folders_cannot_be_imported_by_their_bare_names(name: str) -> None:
    done = subprocess.run([sys.executable, "-c", f"import {name}"], cwd=ROOT, capture_output=True, text=True)
    assert f"import torchlint.{name}, not {name}" in done.stderr


def modules_after(*arguments: str, cwd: Path) -> set[str]:
    """Names of all modules that a call has imported by its end."""
    script = (
        "import atexit, json, sys\n"
        "atexit.register(lambda: open('modules.json', 'w').write(json.dumps(list(sys.modules))))\n"
        "from torchlint.cli import main\n"
        "main()\n"
    )
    subprocess.run([sys.executable, "-c", script, *arguments], cwd=cwd, capture_output=True, timeout=120)
    return set(json.loads((cwd / "modules.json").read_text()))


@pytest.mark.parametrize(
    "arguments",
    ["--version", "--help", "bench --help", "bench memory --help", "rule --all", "rule MEM01", "config", "clean"],
)
def test_libcst_is_not_imported(arguments: str, tmp_path: Path) -> None:
    loaded = modules_after(*arguments.split(), cwd=tmp_path)
    assert not {name for name in loaded if name.partition(".")[0] in ("libcst", "torch", "numpy")}


def test_version_imports_next_to_nothing(tmp_path: Path) -> None:
    own = {name for name in modules_after("--version", cwd=tmp_path) if name.startswith("torchlint")}
    assert own == {"torchlint", "torchlint.cli"}


def test_checking_imports_neither_torch_nor_the_slow_parts_of_libcst(tmp_path: Path) -> None:
    example = (ROOT / "examples" / "image_classifier.py").read_text()
    (tmp_path / "train.py").write_text(example)
    loaded = modules_after("check", "train.py", "--fix", "--unsafe-fixes", "--no-cache", cwd=tmp_path)
    assert (tmp_path / "train.py").read_text() != example
    assert "libcst" in loaded
    slow = ("torch", "numpy", "libcst.matchers", "libcst.codemod", "libcst.tool", "rich")
    assert not {name for name in loaded for prefix in slow if name == prefix or name.startswith(prefix + ".")}


def test_checking_files_without_torch_does_not_import_libcst(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("import os\n")
    assert "libcst" not in modules_after("check", ".", cwd=tmp_path)
