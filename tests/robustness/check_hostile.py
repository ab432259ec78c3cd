#!/usr/bin/env python3
"""Run torchlint on damaged files, and in folders that change, fill up or cannot be read, and say which promise broke.

usage: python -m tests.robustness.check_hostile [--files 500] [--seed 0] [--keep FOLDER]

What is promised: no traceback, exit codes as documented, no file lost, half written or changed without being asked,
and fixed files that still compile. Needs a POSIX system; what only root can set up is left out for others.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.robustness.hostile import Hostile, examples, hostile_files, plant_oddities
from torchlint.fixing.passes import does_compile
from torchlint.source import Source, UnreadableSourceError

ROOT = Path(__file__).parents[2]
FIX = ("--fix", "--unsafe-fixes")
FAILURES = {"LINT02", "LINT04", "LINT06"}
_WITHOUT_RIGHTS = ("setpriv", "--inh-caps=-all", "--bounding-set=-dac_override,-dac_read_search")
_LEAST_LIMIT = 40  # bytes that a file may grow to, where a disk is full


Check = Callable[[Path, Sequence[Hostile]], Iterator[str]]


@dataclass
class Call:
    """One run of `torchlint check` in a folder, and what it must not do whatever the input."""

    folder: Path
    arguments: Sequence[str]
    prepare: Callable[[], None] | None = None
    before_main: str = ""
    stdout: int = subprocess.PIPE
    stderr: int = subprocess.PIPE
    prefix: Sequence[str] = ()
    process: subprocess.Popen[bytes] = field(init=False)
    output: bytes = b""
    errors: str = ""

    def start(self) -> Call:
        code = f"{self.before_main}\nfrom torchlint.cli import main; main()"
        command = [*self.prefix, sys.executable, "-c", code, "check", "--isolated", "--color", "never", *self.arguments]
        self.process = subprocess.Popen(
            command,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1" if self.prepare else ""},
            stdout=self.stdout,
            stderr=self.stderr,
            preexec_fn=self.prepare,
        )
        return self

    def finish(self) -> Call:
        output, errors = self.process.communicate(timeout=900)
        self.output, self.errors = output or b"", (errors or b"").decode("utf-8", "replace")
        return self

    def run(self) -> Call:
        return self.start().finish()

    @property
    def code(self) -> int:
        return self.process.returncode

    def complaints(self, *codes: int) -> Iterator[str]:
        """What is wrong with the way in which it ended."""
        said = f"`{' '.join(self.arguments)}`"
        if self.code not in codes:
            yield f"{said} exits {self.code}, not {' or '.join(map(str, codes))}: {self.errors[-300:]}"
        if any(sign in self.errors for sign in ("Traceback", "Exception ignored", "internal error")):
            yield f"{said} says: {self.errors[-500:]}"


def contents(folder: Path) -> dict[str, bytes]:
    """Of regular files, by their path below the folder."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def lost_or_half_written(folder: Path, *states: Mapping[str, bytes]) -> Iterator[str]:
    """Files that have none of the contents that they had in one of the states, or that were in none."""
    now = contents(folder)
    for name in sorted(states[0].keys() | now.keys()):
        if name not in now:
            yield f"{name} is gone"
        elif name not in states[0]:
            yield f"{name} was left behind"
        elif all(now[name] != state[name] for state in states):
            yield f"{name} is neither as it was nor as it should be"


def plant(folder: Path, files: Sequence[Hostile]) -> Path:
    folder.mkdir()
    for file in files:
        (folder / file.name).write_bytes(file.data)
    return folder


def fixable(folder: Path, number: int) -> Path:
    """A folder with some files that have fixes."""
    return plant(folder, [Hostile(f"{i:02}.py", data) for i, data in enumerate(examples()[:number])])


def check_formats(base: Path, files: Sequence[Hostile]) -> Iterator[str]:
    """Every file is reported on by itself, the formats hold what they should, and nothing is written."""
    folder = plant(base / "formats", files)
    before = contents(folder)
    outputs = (f"--output-format={output}" for output in ("json=../out.json", "sarif=../out.sarif", "full"))
    yield from Call(folder, ("--no-cache", *outputs, ".")).run().complaints(1)
    yield from lost_or_half_written(folder, before)
    found = json.loads((base / "out.json").read_text())
    for entry in found:
        if entry["code"] in FAILURES:
            yield f"{entry['path']}: {entry['code']} {entry['message'][:200]}"
    results = json.loads((base / "out.sarif").read_text())["runs"][0]["results"]
    counted = [result for result in results if not result.get("suppressions")]
    if len(counted) != len(found):
        yield f"sarif has {len(counted)} results, json {len(found)}"


def check_fixes(base: Path, files: Sequence[Hostile]) -> Iterator[str]:
    """Fixed files compile if they did before, and a second run finds nothing to fix."""
    folder = plant(base / "fixes", files)
    before = contents(folder)
    yield from Call(folder, (*FIX, "--no-cache", "--quiet", ".")).run().complaints(1)
    after = contents(folder)
    yield from lost_or_half_written(folder, before, after)
    for name, data in after.items():
        if data != before[name] and _compiles(before[name], name) and not _compiles(data, name):
            yield f"{name} does not compile once it is fixed"
    yield from Call(folder, (*FIX, "--no-cache", "--quiet", ".")).run().complaints(1)
    yield from (f"{name} changes again" for name, data in contents(folder).items() if data != after[name])


def _compiles(data: bytes, name: str) -> bool:
    try:
        return does_compile(Source.from_bytes(data, Path(name)))
    except UnreadableSourceError:
        return False


def check_single(base: Path, files: Sequence[Hostile]) -> Iterator[str]:
    """What a call on one file says does not hang on the files around it."""
    folder = plant(base / "single", files)
    for file in files[:: max(1, len(files) // 12)]:
        yield from Call(folder, ("--no-cache", "--output-format", "json", file.name)).run().complaints(0, 1)


def check_oddities(base: Path, files: Sequence[Hostile]) -> Iterator[str]:
    folder = base / "odd"
    folder.mkdir()
    os.chdir(base)
    plant_oddities(folder)
    before = contents(folder)
    yield from Call(folder, ("--no-cache", ".")).run().complaints(1)
    for output_format in ("json", "sarif", "github", "junit"):
        yield from Call(folder, ("--no-cache", "--output-format", output_format, ".")).run().complaints(1)
    for name in ("circle.py", "dangling.py", "device.py", "pipe.py", "socket.py"):
        yield from Call(folder, ("--no-cache", name)).run().complaints(2)
    yield from Call(folder, (*FIX, "--no-cache", "read_only.py")).run().complaints(2)
    yield from lost_or_half_written(folder, before)


def check_unreadable(base: Path, files: Sequence[Hostile]) -> Iterator[str]:
    """For root every file is readable until it gives up the right to."""
    folder = fixable(base / "unreadable", 3)
    before = contents(folder)
    (folder / "shut").mkdir()
    (folder / "01.py").chmod(0)
    (folder / "shut").chmod(0)
    prefix = _WITHOUT_RIGHTS if os.geteuid() == 0 else ()
    found = Call(folder, ("--no-cache", "--output-format", "json", "."), prefix=prefix).run()
    yield from found.complaints(2)
    unread = {entry["path"] for entry in json.loads(found.output) if entry["code"] == "LINT02"}
    if unread != {"01.py", "shut"}:
        yield f"what cannot be read is said to be {unread}"
    yield from Call(folder, (*FIX, "--no-cache", "01.py"), prefix=prefix).run().complaints(2)
    (folder / "shut").chmod(0o755)
    (folder / "01.py").chmod(0o644)
    yield from lost_or_half_written(folder, before)


def check_vanishing(base: Path, files: Sequence[Hostile]) -> Iterator[str]:
    """Files go, and come back as something else, while they are linted and fixed."""
    random = Random(len(files))
    for arguments in ((), FIX):
        folder = fixable(base / f"vanishing{len(arguments)}", 40)
        names, call = sorted(contents(folder)), Call(folder, (*arguments, "--no-cache", "--quiet", ".")).start()
        waiting = threading.Thread(target=call.finish)
        waiting.start()
        while waiting.is_alive():
            path = folder / random.choice(names)
            if path.is_file():
                path.unlink()
            elif not path.exists():
                random.choice((path.mkdir, path.touch))()
            time.sleep(0.01)
        waiting.join()
        yield from call.complaints(0, 1, 2)
        yield from (f"{path.name} was left behind" for path in folder.iterdir() if path.suffix == ".tmp")


def _limit(size: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def check_full_disk(base: Path, files: Sequence[Hostile]) -> Iterator[str]:
    """A file that may not grow fails in the middle of a write, as it does where a disk is full. Python itself must not
    write modules then: it would take half of one for a whole one."""
    folder = fixable(base / "full", 2)
    before = contents(folder)
    small = _limit(_LEAST_LIMIT)
    yield from Call(folder, (*FIX, "--no-cache", "."), small).run().complaints(2)
    yield from Call(folder, ("--add-ignore=why", "--no-cache", "."), small).run().complaints(2)
    yield from lost_or_half_written(folder, before)
    report = folder / "report.json"
    report.write_text("the report of yesterday")
    json_report = ("--output-format", "json", "--output-file", report.name)
    yield from Call(folder, (*json_report, "--no-cache", "."), small).run().complaints(2)
    yield from lost_or_half_written(folder, {**before, "report.json": b"the report of yesterday"})
    report.unlink()
    with open("/dev/full", "wb") as full:
        yield from Call(folder, ("--no-cache", "."), stdout=full.fileno()).run().complaints(2)
        yield from Call(folder, ("--no-cache", "--diff", "."), stdout=full.fileno()).run().complaints(2)
        yield from Call(folder, ("--no-cache", "."), stderr=full.fileno()).run().complaints(2)
    yield from Call(folder, (".",), _limit(3)).run().complaints(1)
    yield from (f"{path.name} was left behind" for path in folder.rglob("*.tmp"))


def check_small_disk(base: Path, files: Sequence[Hostile]) -> Iterator[str]:
    """A real file system of a few pages, full to the last."""
    disk = base / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "torchlint", disk]).returncode:
        print("  (not tried: a small disk of its own needs root)")
        return
    try:
        folder = fixable(disk / "code", 6)
        before = contents(folder)
        with suppress(OSError), open(disk / "ballast", "wb", buffering=0) as ballast:
            while ballast.write(b"\0" * 4096):
                pass
        yield from Call(folder, (*FIX, ".")).run().complaints(2)
        yield from Call(folder, ("--output-format", "json", "--output-file", "report", ".")).run().complaints(2)
        after = {name: data for name, data in contents(folder).items() if not name.startswith(".torchlint_cache")}
        if after != before:
            yield f"on a full disk, {sorted(after.items() ^ before.items())} differ"
    finally:
        subprocess.run(["umount", disk], check=True)


_INTERRUPT = """
import itertools, os, sys
_calls, _at = itertools.count(), int(sys.argv.pop())
def _interrupted(function):
    def call(*arguments, **options):
        if any(".py." in str(a) for a in arguments) or function is os.fsync:
            number = next(_calls)
            if number == _at:
                raise KeyboardInterrupt
            result = function(*arguments, **options)
            if number + 0.5 == _at:
                raise KeyboardInterrupt
            return result
        return function(*arguments, **options)
    return call
for _name in ("open", "fsync", "chmod", "replace"):
    setattr(os, _name, _interrupted(getattr(os, _name)))
"""


def check_interrupts(base: Path, files: Sequence[Hostile]) -> Iterator[str]:
    """Ctrl-C before each step of writing one file, and at any time in a long run."""
    before = contents(fixable(base / "before", 3))
    fixed = fixable(base / "fixed", 3)
    Call(fixed, (*FIX, "--no-cache", ".")).run()
    after = contents(fixed)
    for at in range(20):
        folder = fixable(base / f"interrupted{at}", 3)
        call = Call(folder, (*FIX, "--no-cache", ".", str(at)), before_main=_INTERRUPT).run()
        yield from call.complaints(0, 1, 130)
        yield from lost_or_half_written(folder, before, after)
        if call.code != 130:
            break
    else:
        yield "writing three files takes more than 20 steps"


def check_sudden_interrupts(base: Path, files: Sequence[Hostile]) -> Iterator[str]:
    seeds = [Hostile(f"{i:03}.py", data) for i, data in enumerate(examples() * 2)]
    fixed = plant(base / "all_fixed", seeds)
    begin = time.monotonic()
    Call(fixed, (*FIX, "--no-cache", ".")).run()
    took, after, random = time.monotonic() - begin, contents(fixed), Random(len(files))
    before = {file.name: file.data for file in seeds}
    for attempt in range(6):
        folder = plant(base / f"sudden{attempt}", seeds)
        call = Call(folder, (*FIX, "--no-cache", ".")).start()
        time.sleep(took * random.uniform(0.4, 1.0))
        call.process.send_signal(signal.SIGINT)
        yield from call.finish().complaints(1, 130)
        yield from lost_or_half_written(folder, before, after)


CHECKS = (
    *(check_formats, check_fixes, check_single, check_oddities, check_unreadable, check_vanishing),
    *(check_full_disk, check_small_disk, check_interrupts, check_sudden_interrupts),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="an empty folder for the files, which stay there")
    parser.add_argument("--only", help="a part of the names of the checks to run")
    given = parser.parse_args()
    files = list(hostile_files(given.files, given.seed))
    base = (given.keep or Path(tempfile.mkdtemp())).absolute()
    base.mkdir(exist_ok=True)
    base.chmod(0o755)
    broken = 0
    try:
        for check in CHECKS:
            if given.only and given.only not in check.__name__:
                continue
            begin = time.monotonic()
            complaints = list(check(base, files))
            broken += len(complaints)
            name = check.__name__.removeprefix("check_").replace("_", " ")
            print(f"{name:20} {len(complaints):>4} broken promises, {time.monotonic() - begin:.0f} s", flush=True)
            for complaint in complaints:
                print(f"    {complaint}")
    finally:
        if given.keep is None:
            shutil.rmtree(base)
    print(f"{len(files)} files, seed {given.seed}: {broken} broken promises")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
