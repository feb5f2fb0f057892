"""A bundle in other programs' formats, one file each; a model that a format cannot express is refused with a reason."""
