"""What a person wants of a new model, as commands that work when copied."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...bundle import Bundle
from ...evaluation.held_out import find_held_out_pairs
from .program import shell_command, shell_name


def next_steps(folder: Path, bundle: Bundle, text: str = "", *, longer: Sequence[object] = ()) -> Iterator[str]:
    """A line for each thing to do with the model in `folder`.

    `text` is one to translate, else one of the bundle's; `longer` are the arguments of a longer training, if it helps.
    """
    text = text or next((probe for probe in bundle.probes if len(probe) <= 80 and not probe.startswith("-")), "")
    words = (text,) if text and not Path(text).exists() else ("FILE",)
    steps = {"train longer": shell_command("train", *longer)} if longer else {}
    steps |= {
        "translate a text": shell_command("translate", folder, *words),
        "how good it is": shell_command("evaluate", folder, *([] if find_held_out_pairs(folder) else ["FILE"])),
        "in the browser": shell_command("serve", folder),
        "see how it works": shell_command(
            "explain", folder, *(words if text else ("TEXT",)), "-o", folder / "explained.html", "--overwrite"
        ),
        "as one web page": shell_command("export", folder, f"{folder}-page", "--to", "html"),
    }
    if (report := folder / "report.html").is_file():
        steps["read the report"] = f"{shell_name('python', sys.executable)} -m webbrowser {report.resolve().as_uri()}"
    return (f"  {what:<17} {command}" for what, command in steps.items())
