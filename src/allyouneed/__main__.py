"""Run the command `allyouneed` as `python -m allyouneed`."""

from .apps.cli import main

main()
