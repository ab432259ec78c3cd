"""Starts Python programs as forks of one interpreter that has loaded torch, which takes seconds of each start.

What a program does, how it ends and what it leaves is that of a process of its own: a session and a group, streams, a
folder, an environment. What differs is that its interpreter was not started anew; tests of just that start one.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

SERVER = Path(__file__).with_name("server.py")
IS_POSSIBLE = sys.platform == "linux" and not Path("/dev/nvidiactl").exists()  # CUDA does not outlive a fork
_PATIENCE = 120.0  # seconds


class ForkedProcess:
    """As much of `subprocess.Popen` as is asked for."""

    def __init__(self, words: Sequence[str], answer: socket.socket) -> None:
        self.args = words
        self.returncode: int | None = None
        self._answer = answer
        self.pid = int.from_bytes(answer.recv(4), "little")

    def poll(self) -> int | None:
        if self.returncode is None and self._has_ended(0):
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not self._has_ended(timeout):
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = os.waitstatus_to_exitcode(int.from_bytes(self._answer.recv(4), "little"))
            self._answer.close()
        return self.returncode

    def _has_ended(self, timeout: float | None) -> bool:
        return bool(select.select([self._answer], [], [], timeout)[0])


class Forks:
    """The interpreter that becomes the programs."""

    def __init__(self) -> None:
        if not IS_POSSIBLE:
            return
        self._requests, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            self._interpreter = subprocess.Popen(
                [sys.executable, str(SERVER), str(its.fileno())],
                env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": ""},  # the hashes are those under the probe
                pass_fds=[its.fileno()],
                start_new_session=True,
            )

    def close(self) -> None:
        if IS_POSSIBLE:
            self._requests.close()
            self._interpreter.wait()

    def run(self, words: Sequence[str], env: Mapping[str, str]) -> str:
        """What a program prints, which must end well."""
        with TemporaryFile("w+") as output, TemporaryFile("w+") as errors:
            process = self.start(words, cwd=Path.cwd(), env=env, stdout=output, stderr=errors)
            try:
                code = process.wait(_PATIENCE)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
            for stream in (output, errors):
                stream.seek(0)
            assert code == 0, errors.read()
            return output.read()

    def start(
        self,
        words: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdout: IO[Any],
        stderr: IO[Any],
        stdin: int = subprocess.DEVNULL,
        start_new_session: bool = True,
    ) -> ForkedProcess | subprocess.Popen[bytes]:
        """`subprocess.Popen`, where the command is not `python program.py` or `python -W action program.py`."""
        assert start_new_session
        assert stdin == subprocess.DEVNULL
        program = words[3:] if words[1:2] == ["-W"] else words[1:]
        if not IS_POSSIBLE or words[0] != sys.executable or not program[0].endswith((".py", ".ipynb")):
            return subprocess.Popen(
                words, cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True
            )
        with ExitStack() as stack:
            answer, its = socket.socketpair()
            stack.enter_context(its)
            nothing = stack.enter_context(open(os.devnull, "rb"))
            request = json.dumps({"words": words, "folder": str(cwd), "environment": dict(env)}).encode()
            streams = [stream.fileno() for stream in (nothing, stdout, stderr, its)]
            socket.send_fds(self._requests, [request], streams)
        return ForkedProcess(words, answer)
