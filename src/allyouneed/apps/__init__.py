"""The applications. They use the core through `Bundle` and `Translator`; the core never imports an application."""
