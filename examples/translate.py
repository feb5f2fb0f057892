"""Translate with a trained model: python examples/translate.py runs/dates 1845-01-05"""

import sys

from allyouneed import Translator

if len(sys.argv) < 3:
    sys.exit(__doc__)
folder, *texts = sys.argv[1:]
translator = Translator.load(folder)
for text, translation in zip(texts, translator.translate(texts), strict=True):
    print(f"{text}  →  {translation}")
