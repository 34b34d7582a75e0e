"""halfseen completion: the script for completion in a shell."""

import click
from click.shell_completion import get_completion_class

from halfseen.cli.app import Command, main

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_HALFSEEN_COMPLETE"


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print what SHELL needs to complete commands, options, data sets and studies when you press the tab key.

    \b
    echo 'eval "$(halfseen completion bash)"' >> ~/.bashrc
    echo 'eval "$(halfseen completion zsh)"' >> ~/.zshrc
    halfseen completion fish > ~/.config/fish/completions/halfseen.fish
    """
    completer = get_completion_class(shell)
    if completer is None:  # a click of another make
        raise click.UsageError(f"This click knows nothing of {shell}.")
    click.echo(completer(main, {}, "halfseen", VARIABLE).source())
