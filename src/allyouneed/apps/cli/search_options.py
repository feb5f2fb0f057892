"""The settings of a search: `decode.KEY=VALUE` among the arguments of a command, and options for daily use."""

from collections.abc import Callable
from typing import Any

from ...config import DecodeConfig
from .config_options import with_config_options

SearchSettings = dict[str, Any]  # fields of `DecodeConfig` by name


def with_search(*options: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a command that gets the settings that the call names as its parameter `decode`.

    The bundle has the others. `options` are the settings that are options, too.
    """
    return with_config_options(DecodeConfig, "decode", only=options, panels={"Search": options}, section="decode")
