"""What happens around the user's process. No program here imports torch."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from torchlint.runtime_check.boot.torchlint_probe.settings import Settings
from torchlint.runtime_check.launch import CommandError, End, Outcome, command, environment
from torchlint.runtime_check.overlay import SMALL, plan


def launch(root: Path, *words: str, timeout: float = 20.0) -> Outcome:
    """Run Python with `words` in a copy of `root`; the copy stands beside `root`."""
    work = root.parent / "work"
    for name in ("results", "logs"):
        (work / name).mkdir(parents=True, exist_ok=True)
    plan(root.resolve(), [], words).build(work / "copy", {})
    settings = Settings(
        tree=str((work / "copy").resolve()), original=str(root.resolve()), results=str(work / "results"), mode="time"
    )
    return command([sys.executable, *words], Path(), timeout).run(settings, work / "logs")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def is_alive(process: int) -> bool:
    """A kill takes a moment to arrive."""
    state = ""
    for _ in range(100):
        try:
            state = Path(f"/proc/{process}/stat").read_text().split()[2]
        except OSError:
            return False
        if state == "Z":
            return False
        time.sleep(0.02)
    return True


def test_a_failing_program_comes_back_with_its_last_words(root: Path) -> None:
    (root / "train.py").write_text("print('loading')\nraise ValueError('no such dataset')\n")
    outcome = launch(root, "train.py")
    assert (outcome.end, outcome.code) == (End.FAILED, 1)
    assert "loading" in outcome.log
    assert "ValueError: no such dataset" in outcome.log


def test_a_program_without_torch_is_unmeasured(root: Path) -> None:
    (root / "train.py").write_text("print('nothing')\n")
    assert launch(root, "train.py").end is End.UNMEASURED


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
def test_a_hanging_program_is_killed_with_its_children(root: Path) -> None:
    (root / "train.py").write_text(
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '60'])\n"
        "open('children', 'w').write(f'{child.pid} {os.getpid()}')\n"
        "time.sleep(60)\n"
    )
    started = time.monotonic()
    assert launch(root, "train.py", timeout=1.5).end is End.TIMED_OUT
    assert time.monotonic() - started < 20
    children = (root.parent / "work/copy/children").read_text().split()
    assert not any(is_alive(int(child)) for child in children)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
def test_what_a_finished_program_leaves_behind_is_ended(root: Path) -> None:
    (root / "train.py").write_text(
        "import subprocess\nopen('child', 'w').write(str(subprocess.Popen(['sleep', '60']).pid))\n"
    )
    launch(root, "train.py")
    assert not is_alive(int((root.parent / "work/copy/child").read_text()))


def test_the_original_is_never_written(root: Path) -> None:
    big = b"x" * (SMALL + 1)
    for name in ("data.bin", "deep/cache.bin", "touched.bin", "moved.bin"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(big)
    (root / "train.py").write_text(
        "import os, pathlib, shutil\n"
        "open('data.bin', 'w').write('new')\n"
        "open('deep/cache.bin', 'ab').write(b'more')\n"
        "os.truncate('touched.bin', 1)\n"
        "os.replace('moved.bin', 'elsewhere.bin')\n"
        "pathlib.Path('deep/made').mkdir()\n"
        "shutil.rmtree('deep')\n"
        "assert open('data.bin').read() == 'new' and os.path.getsize('touched.bin') == 1\n"
        "assert len(open('elsewhere.bin', 'rb').read()) > 1000\n"
    )
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    outcome = launch(root, "train.py")
    assert outcome.end is End.UNMEASURED, outcome.log
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_a_linked_folder_becomes_private_where_it_is_written(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchlint.runtime_check.overlay.LARGE", 2)
    (root / "images/nested").mkdir(parents=True)
    for number in range(4):
        (root / f"images/nested/{number}.png").write_text(str(number))
    (root / "train.py").write_text(
        "import os\n"
        "assert os.path.islink('images')\n"
        "open('images/nested/labels.cache', 'w').write('x')\n"
        "assert sorted(os.listdir('images/nested')) == ['0.png', '1.png', '2.png', '3.png', 'labels.cache']\n"
        "assert open('images/nested/3.png').read() == '3'\n"
    )
    outcome = launch(root, "train.py")
    assert outcome.end is End.UNMEASURED, outcome.log
    assert not (root / "images/nested/labels.cache").exists()


def test_writing_the_original_by_its_own_path_is_refused(root: Path) -> None:
    (root / "train.py").write_text(f"open({str(root / 'out.txt')!r}, 'w')\n")
    outcome = launch(root, "train.py")
    assert outcome.end is End.FAILED
    assert "keeps the original tree unwritten" in outcome.log
    assert not (root / "out.txt").exists()


def test_paths_into_the_original_lead_to_the_copy(root: Path) -> None:
    (root / "train.py").write_text("import sys; print(__file__, *sys.argv[1:])\n")
    outcome = launch(root, str(root / "train.py"), f"--data={root}/data", "/elsewhere")
    copy = root.parent / "work/copy"
    assert outcome.log.split() == [f"{copy}/train.py", f"--data={copy}/data", "/elsewhere"]


def test_an_editable_install_of_the_original_leads_to_the_copy(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "src/package").mkdir(parents=True)
    (root / "src/package/__init__.py").write_text("")
    (root / "train.py").write_text("import package; print(package.__file__)\n")
    monkeypatch.setenv("PYTHONPATH", str(root / "src"))
    assert launch(root, "train.py").log.strip() == str(root.parent / "work/copy/src/package/__init__.py")


def test_a_hidden_sitecustomize_still_runs(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/sitecustomize.py").write_text("import builtins; builtins.marked = True\n")
    (root / "train.py").write_text("print(marked)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    assert launch(root, "train.py").log.strip() == "True"


def test_the_environment_keeps_what_the_user_set() -> None:
    settings = Settings(tree="/copy", original="/project", results="/results", mode="time")
    given = environment(settings, {"HOME": "/home/me", "PYTHONPATH": os.pathsep.join(["/lib", "/project/src"])})
    assert given["HOME"] == "/home/me"
    assert given["PYTHONPATH"].split(os.pathsep)[1:] == ["/lib", "/copy/src"]


@pytest.mark.parametrize(
    ("words", "python", "message"),
    [
        ([], None, "no command"),
        (["no-such-program"], None, "no-such-program is not a program"),
        (["torchrun", "train.py"], "/usr/bin/python3", "starts with torchrun"),
    ],
)
def test_commands_that_cannot_start(words: list[str], python: str | None, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        command(words, Path(), 1.0, python)


def test_another_interpreter() -> None:
    assert command(["python", "train.py"], Path(), 1.0, sys.executable).words == (sys.executable, "train.py")
