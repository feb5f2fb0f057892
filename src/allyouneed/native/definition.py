"""Check that nobody has edited the definition, `nn/`, since the engine was compared with it.

The tests compare the engine with every part of `nn/` and `younger/`; a digest of these files is recorded here. As long
as the digest matches, a process that only translates need not import PyTorch for another comparison. After the tests in
tests/native have passed, `python -m allyouneed.native.definition` records the new digest.
"""

from pathlib import Path

from ..machine.checksums import code_digest

PACKAGE = Path(__file__).parents[1]
NOTED = Path(__file__).with_name("definition.sha256")
PARTS = ("nn/*.py", "younger/*.py")


def definition_digest() -> str:
    """Compute a digest of the code in the files that define the model."""
    return code_digest(path for part in PARTS for path in PACKAGE.glob(part))


def is_as_compared() -> bool:
    """Return True if the definition has not been edited since the comparison."""
    return NOTED.read_text(encoding="utf-8").strip() == definition_digest()


if __name__ == "__main__":
    NOTED.write_text(definition_digest() + "\n", encoding="utf-8")
