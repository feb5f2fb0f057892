"""Translations over HTTP. `serve.app.create_app` makes the application, and `allyouneed serve` runs it."""
