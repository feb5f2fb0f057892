"""Conversions of bundles to and from other programs' formats, one per file. Refuses what a format cannot express."""
