"""The command `curve`."""

from pathlib import Path

from allyouneed.data.readers import read_pairs
from runs import TINY
from shell import refusal, run_here


def test_a_curve_ends_with_what_twice_the_pairs_would_give_and_resumes(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in read_pairs("dates:train", limit=90)))
    tables = TINY.tables()
    tables["train"] |= {"steps": 2, "warmup": 1, "validate_every": 2}
    tables["decode"] |= {"beam": 1, "max_length": 4}
    settings = [
        f"{section}.{key}={str(tables[section][key]).lower()}"
        for section, keys in {
            "model": ("d_model", "d_ff", "heads", "encoder_layers", "decoder_layers"),
            "train": ("steps", "batch_tokens", "warmup", "validate_every", "threads", "tensorboard"),
            "decode": ("retry_repetition", "beam", "max_length"),
        }.items()
        for key in keys
    ]
    call = ("curve", pairs, *settings, "--minutes", "0", "--output", tmp_path / "curve")
    first = run_here(*call)
    assert first.returncode == 0, first.stderr.decode()
    assert "--minutes" in first.stdout.decode()  # after two updates no share is better than another
    assert (tmp_path / "curve/curve.svg").exists()
    assert "--resume" in refusal(*call)
    again = run_here(*call, "--resume")
    assert again.stdout.decode().splitlines()[-3:] == first.stdout.decode().splitlines()[-3:]
