"""Translations over HTTP: `serve.app.create_app` makes the application, `allyouneed serve` runs it."""
