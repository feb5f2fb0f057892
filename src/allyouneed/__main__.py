"""`python -m allyouneed` is the command `allyouneed`."""

from .apps.cli import main

main()
