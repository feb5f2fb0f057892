"""Errors cross from one process to another whole."""

import pickle

import pytest

from allyouneed import errors

MADE = [
    errors.InputError("too long", line=3),
    errors.MissingExtra("reading x.parquet", "data"),
    errors.Stopped("stopped after update 7", signal=15),
    *(
        kind("what, and why")
        for kind in vars(errors).values()
        if isinstance(kind, type) and kind not in (errors.InputError, errors.MissingExtra, errors.Stopped)
        if issubclass(kind, errors.AllYouNeedError)
    ),
]


@pytest.mark.parametrize("error", MADE, ids=lambda error: type(error).__name__)
def test_every_error_survives_pickling(error: errors.AllYouNeedError) -> None:
    error.add_note("in file news.en")
    back = pickle.loads(pickle.dumps(error))
    assert (type(back), str(back), back.args, vars(back)) == (type(error), str(error), error.args, vars(error))
    assert getattr(back, "msg", None) == getattr(error, "msg", None)
