"""What can be done with a new model, as commands."""

from pathlib import Path

from allyouneed import Bundle
from allyouneed.apps.cli.next_steps import next_steps


def test_a_longer_training_comes_first_where_it_helps(bundle: Bundle, tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text("[data]\n")
    longer = ("my pairs.tsv", "-o", "runs/mine", "--resume", "--minutes", 12)
    first, *rest = next_steps(tmp_path, bundle, longer=longer)
    assert first.startswith("  train longer ")
    assert first.endswith(" train 'my pairs.tsv' -o runs/mine --resume --minutes 12")
    assert rest == list(next_steps(tmp_path, bundle))
