"""The apps: what people use. An app meets the core in `Bundle` and `Translator`; the core never imports one."""
