"""A bundle in other people's formats, one file each; what a format cannot express is refused with a reason."""
