"""The class of every command: its page of help in groups, and settings among its arguments."""

import inspect
import re
from typing import Any

from typer.core import TyperCommand


class Command(TyperCommand):
    """A command whose options are listed in groups, and which may take `decode.KEY=VALUE` among its arguments.

    Typer's other layout draws a box around each group, which takes half of a screen.
    """

    def takes_settings(self) -> bool:
        """Whether settings of the search can be among the arguments."""
        return any(parameter.name == "settings" for parameter in self.params)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Hand settings to their hidden option; what follows `--` is a text or a file."""
        if self.takes_settings():
            end = args.index("--") if "--" in args else len(args)
            args = [f"--set={word}" if re.match(r"decode\..*=", word) else word for word in args[:end]] + args[end:]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words of the line "Usage"."""
        return super().collect_usage_pieces(ctx) + ["[decode.KEY=VALUE]..."] * self.takes_settings()

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the groups of options."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if row := parameter.get_help_record(ctx):
                kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
                groups.setdefault(getattr(parameter, "rich_help_panel", None) or kind, []).append(row)
        for title, rows in groups.items():
            with formatter.section(title):
                formatter.write_dl(rows)


def help_text(docstring: str) -> str:
    """A docstring with each paragraph on one line, and its examples as they are, without empty lines between them."""
    text, _, examples = inspect.cleandoc(docstring).partition("\nFor example:")
    text, examples = re.sub(r"(?<=\S)\n(?=\S)", " ", text), re.sub(r"\n\n+", "\n", examples)
    return f"{text}\n\b\nFor example:{examples}" if examples else text
