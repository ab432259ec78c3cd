"""The command line: one module per command, loaded when it is called. `torchlint PATHS` is `torchlint check PATHS`."""

from __future__ import annotations

import errno
import gc
import importlib
import os
import pkgutil
import sys
from typing import NoReturn

import click

from torchlint import __version__

_GROUP_OPTIONS = frozenset({"--help", "-h", "--version", "-V"})
_CANNOT_GROW = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
FAILED = 2
INTERRUPTED = 130


def command_names(package: str = __name__) -> list[str]:
    """The commands of a package: its modules but those that begin with `_`."""
    path = importlib.import_module(package).__path__
    names = [module.name for module in pkgutil.iter_modules(path) if not module.name.startswith("_")]
    return sorted(name.replace("_", "-") for name in names)


class LazyGroup(click.Group):
    """Every module of a package is a command of the same name, its click command being called `command`."""

    package = __name__

    def list_commands(self, context: click.Context) -> list[str]:
        return command_names(self.package)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in command_names(self.package):
            return None
        module = importlib.import_module(f"{self.package}.{name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in command_names(self.package):
            from torchlint.config import nearest

            hint = nearest(args[0], command_names(self.package))
            raise click.UsageError(f"no command `{args[0]}`{hint}", context)
        return super().resolve_command(context, args)


class _Commands(LazyGroup):
    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in _GROUP_OPTIONS and args[0] not in command_names():
            self._check_is_none_of_its_own(args[0], context)
            args = ["check", *args]
        return super().parse_args(context, args)

    def _check_is_none_of_its_own(self, argument: str, context: click.Context) -> None:
        """Raises NoSuchOption for `--versoin`, which `check` would take for an option of its own."""
        if argument.startswith("--"):
            from difflib import get_close_matches

            near = get_close_matches(argument, _GROUP_OPTIONS, 1, 0.8)
            if near:
                raise click.NoSuchOption(argument, possibilities=near, ctx=context)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="torchlint", message="%(prog)s %(version)s")
def cli() -> None:
    """Find PyTorch code that wastes a GPU or trains wrong, and rewrite it.

    `torchlint PATHS` is `torchlint check PATHS`.
    """


def forget_stdout() -> None:
    """The reader of stdout went away: what is still buffered must not fail at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> NoReturn:
    """Exit code 0: nothing left, 1: findings left, 2: wrong usage or a failure, 130: interrupted."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _called()
    except OSError:  # stderr itself cannot be written
        code = FAILED
    gc.freeze()  # the process ends here: what is garbage now need not be looked for
    sys.exit(code)


def _called() -> int:
    try:
        code: int = cli.main(prog_name="torchlint", standalone_mode=False)
        sys.stdout.flush()
        return code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        forget_stdout()
        return 0
    except Exception as error:
        click.echo(f"torchlint: {_what_happened(error)}", err=True)
        return FAILED


def _what_happened(error: Exception) -> str:
    from torchlint.plugins import PluginError

    if isinstance(error, PluginError):
        return str(error)
    if isinstance(error, OSError) and error.errno in _CANNOT_GROW:
        forget_stdout()
        return f"the output cannot be written: {error.strerror}"
    import traceback

    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(frame.filename)}:{frame.lineno}"
    return f"internal error: {type(error).__name__}: {error} ({where})"
