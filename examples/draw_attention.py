"""Draw the cross-attention of the last layer: python examples/draw_attention.py runs/dates 1845-01-05 out.png"""

import sys
from pathlib import Path

import torch

from allyouneed import Translator
from allyouneed.apps.explain import draw_attention, recorded_attention

if len(sys.argv) != 4:
    sys.exit(__doc__)
folder, text, picture = sys.argv[1:]
translator = Translator.load(folder, device="cpu")
model, tokenizer = translator.model, translator.source_tokenizer

source, target = tokenizer.encode(text), tokenizer.encode(translator(text))
with torch.inference_mode(), recorded_attention(model) as seen:
    model(torch.tensor([source]), torch.tensor([target[:-1]]))

draw_attention(
    seen[f"decoder.layers.{model.config.decoder_layers - 1}.cross_attention"][0],
    source=tokenizer.pieces(source),
    target=tokenizer.pieces(target[1:]),
    path=Path(picture),
    title=text,
)
