"""`python -m allyouneed` is the command `allyouneed`."""

from .cli import main

main()
