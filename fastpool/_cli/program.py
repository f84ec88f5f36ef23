"""Parts that all commands share: their list, exit statuses, and errors in one line."""

import importlib
import re
import sys
from contextlib import contextmanager

import click

from .. import __version__

# Modules of the commands, in the order of the help.
COMMANDS = ("info", "check", "explain", "pool", "pyramid", "run", "bench", "demo", "mosaic")

FAILED, WRONG = 1, 2
# The exit status of an interrupted program in shells.
INTERRUPTED = 130


class WrongInput(click.ClickException):
    """An error in the arguments or the input; its text is the whole message."""

    exit_code = WRONG


class _WithExamples:
    """A command whose help ends with examples."""

    def __init__(self, *arguments, examples=(), **settings):
        super().__init__(*arguments, **settings)
        self.examples = examples

    def format_epilog(self, ctx, formatter):
        with formatter.section("Examples"):
            for line in self.examples:
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")


class Command(_WithExamples, click.Command):
    """A command with examples."""


class Group(_WithExamples, click.Group):
    """A group of commands with examples."""


class Commands(Group):
    """The group of all commands, each imported on use."""

    def list_commands(self, ctx):
        return COMMANDS

    def get_command(self, ctx, name):
        if name not in COMMANDS:
            return None
        return importlib.import_module(f".{name}", __package__).command

    def main(self, *arguments, **settings):
        """Exit with the status that the command returns, or with that of its error."""
        settings["standalone_mode"] = False
        try:
            status = super().main(*arguments, **settings)
        except click.Abort:
            status = _say("interrupted", INTERRUPTED)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            status = WRONG
        except click.UsageError as error:
            hint = f" ({error.ctx.command_path} --help)" if error.ctx else ""
            status = _say(error.format_message() + hint, WRONG)
        except click.ClickException as error:
            status = _say(error.format_message(), error.exit_code)
        except MemoryError as error:
            status = _say(f"not enough memory: {error}", FAILED)
        except OSError as error:
            known = error.filename is not None and error.strerror
            status = _say(f"{error.filename}: {error.strerror}" if known else error, FAILED)
        sys.exit(status)


def _say(message, status):
    click.echo(f"fastpool: {message}", err=True)
    return status


@contextmanager
def wrong_input():
    """Turn the library's errors about arguments into `WrongInput`, with the names of options."""
    try:
        yield
    except ImportError as missing:  # the text says what to install
        raise WrongInput(str(missing)) from None
    except (TypeError, ValueError) as error:
        context, text = click.get_current_context(), str(error)
        name = re.match(r"\w*", text)[0]
        for parameter in context.command.params:
            if parameter.name == name:
                option = isinstance(parameter, click.Option)
                shown = parameter.opts[0] if option else parameter.human_readable_name
                text = shown + text[len(name) :]
        raise WrongInput(text) from None


@contextmanager
def needing(what, install, *packages):
    """Say what to install if an import inside fails for lack of one of these packages."""
    try:
        yield
    except ModuleNotFoundError as missing:
        package = missing.name.partition(".")[0]
        if package not in packages:
            raise
        raise WrongInput(f'{what} needs {package}: pip install "{install}"') from None


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    examples=[
        "fastpool info",
        "fastpool pool photo.png small.png --kernel-shape 2 --strides window",
        "fastpool explain --shape 7,7 --layout HW --kernel-shape 3 --strides 2 --ceil-mode",
        "fastpool pool --help",
        'eval "$(_FASTPOOL_COMPLETE=bash_source fastpool)"    # completion; zsh and fish too',
    ],
)
@click.version_option(__version__, message="fastpool %(version)s")
def program():
    """Pool and unpool on CPUs, with the same bits everywhere.

    Results go to standard output; notes, errors and progress to standard error.

    \b
    Exit status:
      0    done
      1    failed: a result differs, a file cannot be read or written
      2    wrong input: an option, an attribute, the data
      130  interrupted
    """
