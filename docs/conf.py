"""How the site is built: `make docs`, which is `sphinx-build docs build/site`."""

project = "allyouneed"
author = "the authors of allyouneed"
extensions = ["myst_parser"]
exclude_patterns = ["make", "pictures"]
smartquotes = False  # a setting is copied with the quotes it is written with
html_theme = "furo"
html_title = "allyouneed"
html_static_path = ["site"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
myst_heading_anchors = 2
suppress_warnings = ["misc.highlighting_failure"]
