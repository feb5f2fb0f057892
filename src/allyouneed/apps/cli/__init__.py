"""The commands. A call imports only the module of its own command, and PyTorch only if the command computes with it."""

import atexit
import errno
import gc
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

import typer

from ...errors import AllYouNeedError, Interrupted, is_out_of_memory
from ...machine.interpreter import uncollected
from .command import Command, CommandGroup, CommonOptions, Debug, Version, help_text, with_debug
from .program import mended_command, shell_command
from .standard import drop_output, open_closed_streams, set_encodings

# Each command's module and function, in the order of the help page.
COMMANDS = {
    "demo": ("demo", "demo"), "train": ("train", "train"), "prepare": ("prepare", "prepare_command"),
    "adapt": ("adapt", "adapt"), "translate": ("translate", "translate"), "serve": ("serve", "serve"),
    "curve": ("curve", "curve"), "evaluate": ("evaluate", "evaluate_command"), "score": ("score", "score"),
    "info": ("info", "info"),
    "explain": ("explain", "explain_command"), "check": ("check", "check"), "config": ("config", "config"),
    "paper": ("paper", "paper"), "export": ("export", "export"), "import": ("export", "import_command"),
    "average": ("export", "average"), "report": ("report", "report"), "try": ("demo", "try_command"),
}  # fmt: skip
GROUPS = {"keys": ("serve", "keys"), "suggestions": ("serve", "suggestions")}


def make_app(words: Sequence[str] = ()) -> typer.Typer:
    """Make the program: with all commands, or only with the command that `words`, the words of a call, name."""
    app = typer.Typer(
        name="allyouneed",
        cls=CommandGroup,
        help="The Transformer of 'Attention Is All You Need': train a model on your own text pairs, and use it.",
        epilog=f"Start with: {shell_command('demo')}",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(_everywhere)
    called = next((word for word in words if not word.startswith("-")), "")
    known = COMMANDS | GROUPS
    for name in [called] if called in known else known:
        module, attribute = known[name]
        command = getattr(import_module(f".{module}", __name__), attribute)
        if name in GROUPS:
            app.add_typer(command)
        else:
            short_help = help_text(command.__doc__ or "").partition("\n")[0]
            app.command(name, cls=Command, short_help=short_help)(with_debug(command))
    return app


def _everywhere(debug: Debug = False, version: Version = False) -> None: ...


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return make_app()


_show_anywhere = warnings.showwarning
_MISUSE: Any = typer.BadParameter.__base__  # click's UsageError, which typer does not export


def main() -> None:
    """Run the command line, and exit with a code that says how it ended.

    0 success; 1 an error in the program, a failed check of `check`, or a missed limit of `evaluate` or `score`; 2
    invalid input, or a run that cannot continue; 3 success, but texts were refused (--skip-refused); 130 stopped by
    Ctrl-C; 143 stopped by SIGTERM; 141 the reader of the output closed it.
    """
    _let_waiting_threads_sleep()
    atexit.register(gc.freeze)  # otherwise collecting PyTorch's objects at exit takes 0.4 s
    CommonOptions.debug = False
    open_closed_streams()
    set_encodings()
    warnings.showwarning = _show_warning
    try:
        with uncollected():
            app = make_app(sys.argv[1:])
        code = app(standalone_mode=False)  # raises errors instead of printing them
        sys.stdout.flush()  # a full disk or a closed pipe shows here, while the exit code can still report it
    except _MISUSE as error:
        _leave_misused(error)
    except AllYouNeedError as error:
        code = 128 + error.signal if isinstance(error, Interrupted) else 2
        _leave(code, f"{error}: {mended_command(error.options)}" if error.options else str(error))
    except BrokenPipeError:
        _leave_unread()
    except SystemExit as left:
        if isinstance(left.__context__, BrokenPipeError):  # Rich and Typer turn a broken pipe into SystemExit
            _leave_unread()
        raise
    except OSError as error:
        if error.errno == errno.ENOSPC:
            _leave(2, "the disk is full: the output could not be written; free some space")
        if error.errno == errno.EBADF:
            _leave(2, "standard input or output is closed, but this command needs it")
        _leave(2, f"{error.filename or 'the system'}: {error.strerror or error}")
    except Exception as error:
        if is_out_of_memory(error):
            _leave(2, "out of memory; use smaller batches (train.batch_tokens, --batch-size) or a smaller model")
        _leave(1, f"{type(error).__name__}: {error} (an error in the program; --debug shows where)")
    sys.exit(code)


def _let_waiting_threads_sleep() -> None:
    # By default, a waiting OpenMP thread keeps its core busy. If other programs use that core too, all threads wait for
    # each other. So let a thread spin briefly and then sleep. OpenMP reads this variable once.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "2000")


def _leave_misused(error: Any) -> None:
    """Exit because the call cannot be parsed, and suggest the setting or the models that the user may have meant."""
    if type(error).__name__ == "NoArgsIsHelpError":
        try:
            print(error.format_message(), flush=True)
        except BrokenPipeError:
            _leave_unread()
        sys.exit(2)
    message = " ".join(error.format_message().split()).replace("Value error, ", "")
    words = _command_words(error.ctx)
    missing = getattr(getattr(error, "param", None), "metavar", None)
    models = f"; {_models_here(words)}" if missing == "BUNDLE" and len(words) == 1 else ""
    meant = _setting_meant(error)
    page = shell_command(*words, "--help")
    _leave(2, f"{message.rstrip('.')}{meant}{models} ({page} shows its arguments and options)")


def _show_warning(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    """Show a warning in one line, without its place in the code, and only once."""
    if issubclass(category, UserWarning):
        _show_once(f"allyouneed: {message}")
    else:
        _show_anywhere(message, category, *where, **more)


@cache
def _show_once(line: str) -> None:
    """Print a line to standard error unless it was printed before. Python forgets this after `catch_warnings`."""
    print(line, file=sys.stderr)


def _command_words(context: Any) -> list[str]:
    """Return the words of a command after the name of the program, as in "keys add"."""
    return [*_command_words(context.parent), context.info_name] if context and context.parent else []


def _setting_meant(error: Any) -> str:
    """Suggest the setting that an unknown option probably means, if the command takes settings as arguments."""
    from ...config import DecodeConfig, full_names
    from ...config.suggest import suggestion

    command = getattr(error.ctx, "command", None)
    searching = isinstance(command, Command) and command.takes_settings()
    if not hasattr(error, "option_name") or not (searching or getattr(command, "name", "") in ("train", "prepare")):
        return ""
    known = {name: f"decode.{name}" for name in DecodeConfig.__dataclass_fields__} if searching else full_names()
    meant = suggestion(error.option_name.lstrip("-").removeprefix("no-"), (), known)
    return f"; did you mean {meant}=VALUE, without dashes?" if meant else ""


def _models_here(words: list[str]) -> str:
    """Suggest models for a command that was called without one."""
    from ...bundle import list_bundles

    folders = list_bundles()[:10]
    if not folders:
        return (
            f"there is no model in runs/ yet; train one: {shell_command('train', 'PAIRS')}, or {shell_command('demo')}"
        )
    return f"the models here: {', '.join(map(str, folders))}; such as {shell_command(*words, folders[0])}"


def _leave_unread() -> None:
    """Exit as if stopped by SIGPIPE, because the reader of the output has closed it."""
    drop_output()
    sys.exit(141)


def _leave(code: int, message: str) -> None:
    if CommonOptions.debug:
        raise
    line = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in message.rstrip("\n"))
    drop_output()
    with suppress(OSError):  # standard error may be closed
        print(f"allyouneed: {line}", file=sys.stderr)
    sys.exit(code)
