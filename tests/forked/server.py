"""An interpreter that has loaded torch and becomes, in forks of itself, one program after another.

`tests.forked.process` starts it, with the number of a socket. Each request brings the words of a command, a folder, an
environment, the three standard streams, and a socket over which go the number of the process and how it ended. The
program finds what `python program.py` gives it: its `__main__`, arguments and path, and the `sitecustomize` of its
environment. Torch is among the modules once it is imported, and not before.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import importlib.util
import io
import json
import os
import socket
import sys
import threading
import warnings
from types import CodeType, ModuleType, NoneType
from typing import Any

_HIDDEN = ("functorch", "torch", "torchgen")
_LONGEST = 1 << 20
_AT_START = ("torch", "torch._dynamo")  # the second is what the first optimizer imports


class _Hidden:
    """Finds torch where it is, and loads it in no time."""

    def __init__(self) -> None:
        self.modules = {name: sys.modules[name] for name in list(sys.modules) if name.partition(".")[0] in _HIDDEN}
        for name in self.modules:
            del sys.modules[name]

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        if name != "torch":
            return None
        sys.meta_path.remove(self)  # type: ignore[arg-type]
        spec = importlib.util.find_spec(name)
        assert spec is not None
        spec.loader = _Loaded(self.modules)  # type: ignore[assignment]
        return spec


class _Loaded:
    def __init__(self, modules: dict[str, ModuleType]) -> None:
        self.modules = modules

    def create_module(self, spec: Any) -> ModuleType:
        return self.modules["torch"]

    def exec_module(self, module: ModuleType) -> None:
        sys.modules.update(self.modules)
        if threads := os.environ.get("OMP_NUM_THREADS"):
            module.set_num_threads(int(threads))


def _serve(requests: socket.socket) -> tuple[CodeType, dict[str, Any]]:
    """Returns in the forks that are to be programs, with what these run."""
    for name in _AT_START:
        importlib.import_module(name)
    sys.meta_path.insert(0, _Hidden())  # type: ignore[arg-type]
    del sys.path[0]  # the folder of this file
    gc.collect()
    gc.freeze()
    while True:
        text, descriptors, _, _ = socket.recv_fds(requests, _LONGEST, 4)
        _reap(0 if not text else os.WNOHANG)
        if not text:
            sys.exit()
        *streams, answer = descriptors
        if os.fork() == 0:
            requests.close()
            if _is_program(answer):
                return _become(json.loads(text), streams)
        for descriptor in descriptors:
            os.close(descriptor)


def _reap(options: int) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, options)[0]:
            pass


def _is_program(answer: int) -> bool:
    """True in a further fork; what stays behind says how that ended, and ends."""
    program = os.fork()
    if program == 0:
        os.close(answer)
        return True
    os.write(answer, program.to_bytes(4, "little"))
    _, status = os.waitpid(program, 0)
    os.write(answer, status.to_bytes(4, "little"))
    os._exit(0)


def _become(request: dict[str, Any], streams: list[int]) -> tuple[CodeType, dict[str, Any]]:
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)))
    output, errors = (io.BufferedWriter(io.FileIO(number, "w", closefd=False)) for number in (1, 2))
    sys.stdout = sys.__stdout__ = io.TextIOWrapper(output)
    sys.stderr = sys.__stderr__ = io.TextIOWrapper(errors, errors="backslashreplace", line_buffering=True)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.orig_argv = request["words"]
    sys.argv = sys.orig_argv[1:]
    if sys.argv[0] == "-W":
        warnings.simplefilter(sys.argv[1])  # type: ignore[arg-type]
        del sys.argv[:2]
    importlib.invalidate_caches()
    sys.path[:0] = [os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.modules.pop("sitecustomize", None)
    if importlib.util.find_spec("sitecustomize") is not None:
        importlib.import_module("sitecustomize")
    file = os.path.abspath(sys.argv[0])
    sys.path.insert(0, os.path.dirname(os.path.realpath(file)))
    sys.modules["__main__"] = main = ModuleType("__main__")
    main.__file__ = file
    with open(file, "rb") as text:
        return compile(text.read(), file, "exec", dont_inherit=True), vars(main)


def _run(code: CodeType, names: dict[str, Any]) -> None:
    """To the end of the process: as Python ends it, but for taking apart all that is loaded, which takes long."""
    status = 0
    try:
        exec(code, names)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if not isinstance(end.code, (int, NoneType)):
            print(end.code, file=sys.stderr)
    except Exception:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status & 0xFF)


if __name__ == "__main__":
    itself = sys.modules["__main__"]
    _run(*_serve(socket.socket(fileno=int(sys.argv[1]))))
