"""One model of several: the mean of their weights."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from allyouneed import Bundle, ConfigError, OutputError, Translator, average_bundles
from allyouneed.data.pairs import Side
from allyouneed.run.run_bundle import usual_length, usual_repetition
from allyouneed.text.tokenizer import Tokenizer
from bundles import make_bundle
from shell import refusal, run_here


def test_the_longest_repetition_leaves_out_a_thousandth_of_the_targets() -> None:
    once, thrice = [[1, 2, 3]] * 999, [[4, 5, 5, 5, 6]]
    assert usual_repetition(Side.from_sentences(once + thrice * 2)) == 3
    assert usual_repetition(Side.from_sentences(once + thrice)) == 0  # it may be a fault


@pytest.mark.parametrize(("longest", "usual"), [(4, 4), (15, 15), (16, 10)])
def test_the_longest_source_counts_unless_it_is_far_longer_than_the_others(longest: int, usual: int) -> None:
    lengths = [min(longest, 10)] * 999 + [longest]
    assert usual_length(Side.from_sentences([[1] * length for length in lengths])) == usual


def saved_bundles(folder: Path, count: int, **sizes: Any) -> list[Path]:
    """Save bundles of other weights and the same sizes."""
    folders = [folder / f"model-{number}" for number in range(count)]
    for number, path in enumerate(folders):
        torch.manual_seed(number)
        card = f"---\nlanguage:\n- en\n---\n\n# model-{number}\n\nTrained on {number + 1} pairs.\n"
        replace(make_bundle(**sizes), card=card, probes=("abc",)).save(path)
    return folders


@pytest.mark.parametrize("tied", ["all", "none"])
def test_every_weight_is_the_mean_in_double_precision_and_tied_weights_stay_tied(tied: str, tmp_path: Path) -> None:
    folders = saved_bundles(tmp_path, 3, tied_embeddings=tied)
    average_bundles(folders, tmp_path / "mean")
    models = [Bundle.load(folder).model for folder in folders]
    mean = Bundle.load(tmp_path / "mean").model
    for name, parameter in mean.named_parameters():
        values = [model.get_parameter(name).double() for model in models]
        assert torch.equal(parameter, (sum(values[1:], values[0]) / 3).float())
    assert (mean.projection.table is mean.source_embedding.table) == (tied == "all")


def test_the_mean_of_a_model_with_itself_is_the_model(tmp_path: Path) -> None:
    (folder,) = saved_bundles(tmp_path, 1)
    average_bundles([folder, folder], tmp_path / "mean")
    assert Translator.load(tmp_path / "mean").translate(["abc", "ja"]) == Translator.load(folder).translate(
        ["abc", "ja"]
    )
    assert (tmp_path / "mean/weights.safetensors").read_bytes() == (folder / "weights.safetensors").read_bytes()


def test_its_card_says_what_was_averaged_and_it_keeps_the_rest_of_the_first(tmp_path: Path) -> None:
    folders = saved_bundles(tmp_path, 2)
    average = average_bundles(folders, tmp_path / "mean")
    assert average.card.startswith("---\nlanguage:\n- en\n---\n\n# mean\n\n")
    assert f": {folders[0]}, {folders[1]}." in average.card
    assert average.card.endswith("# model-0\n\nTrained on 1 pairs.\n\n# model-1\n\nTrained on 2 pairs.\n")
    loaded = Bundle.load(tmp_path / "mean")
    assert (loaded.card, loaded.probes) == (average.card, ("abc",))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"d_ff": 20}, "model-0 .*model.d_ff=24, .*20"),
        ({"norm": "pre"}, "model.norm='post', .*'pre'"),
    ],
)
def test_models_without_a_mean_are_refused(changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    (folder,) = saved_bundles(tmp_path, 1)
    make_bundle(**changed).save(tmp_path / "other")
    with pytest.raises(ConfigError, match=message):
        average_bundles([folder, tmp_path / "other"], tmp_path / "mean")
    letters = Tokenizer.characters("abcdefghix")
    replace(make_bundle(), source_tokenizer=letters, target_tokenizer=letters).save(tmp_path / "letters")
    with pytest.raises(ConfigError, match="id 9 .*'j' .*'x'"):
        average_bundles([folder, tmp_path / "letters"], tmp_path / "mean")
    with pytest.raises(ConfigError, match="model-0"):
        average_bundles([folder], tmp_path / "mean")
    with pytest.raises(ConfigError, match="model-0"):
        average_bundles(str(folder), tmp_path / "mean")
    with pytest.raises(OutputError, match="letters"):
        average_bundles([folder, folder], tmp_path / "letters")
    assert not [path for path in tmp_path.iterdir() if "mean" in path.name]


def test_another_dropout_is_no_other_model(tmp_path: Path) -> None:
    (folder,) = saved_bundles(tmp_path, 1)
    make_bundle(dropout=0.5, attention_dropout=0.1).save(tmp_path / "other")
    average_bundles([folder, tmp_path / "other"], tmp_path / "mean")


def test_the_command_averages_and_refuses_in_a_line(tmp_path: Path) -> None:
    folders = saved_bundles(tmp_path, 2)
    result = run_here("average", *folders, "--output", tmp_path / "mean")
    assert result.returncode == 0
    assert re.search(f"{tmp_path / 'mean'}: .* 2 models", result.stdout.decode())
    assert "already exists" in refusal("average", *folders, "-o", tmp_path / "mean")
    assert "nothing is" in refusal("average", folders[0], tmp_path / "nothing", "-o", tmp_path / "other")
