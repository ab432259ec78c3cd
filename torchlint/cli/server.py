"""`torchlint server`: findings and fixes in an editor."""

from __future__ import annotations

import click

from torchlint.extras import how_to_install


@click.command("server", short_help="Serve an editor over stdin and stdout.")
@click.option("--stdio", is_flag=True, help="Which is what happens anyway; some editors say it.")
def command(stdio: bool) -> None:
    """Speak the Language Server Protocol over stdin and stdout; needs torchlint[server]. Editors start this."""
    try:
        from torchlint.editor.server import serve
    except ModuleNotFoundError as error:
        if error.name not in ("pygls", "lsprotocol"):
            raise
        raise click.UsageError(f"the server needs pygls: {how_to_install('server')}") from error
    serve()
