"""The apps: what people use. An app uses the core through `Bundle` and `Translator`; the core never imports an app."""
