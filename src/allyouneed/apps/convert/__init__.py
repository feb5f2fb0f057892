"""Conversions of bundles to and from other programs' formats, one file each. Refuses what a format cannot express."""
