"""Loading time and time of a translation of an exported page in Chromium.

    python benchmarks/web_page.py DIR "a text" [--rounds 12]

DIR is made by `allyouneed export BUNDLE DIR --to html`. Every row is a worker of its own that loads the model of the
page and translates the text several times, greedily or with beam 4: the first time, and the median of the others.
"""

import argparse
import re
import shutil
import statistics
from pathlib import Path

from playwright.sync_api import sync_playwright

MEASURE = """async ([library, bundle, weights, text, beam, rounds]) => {
  const code = library + `
    onmessage = ({ data: { bundle, weights, text, beam, rounds } }) => {
      const times = [performance.now()];
      const translator = new Translator(JSON.parse(bundle), weights);
      times.push(performance.now());
      let result;
      for (let i = 0; i < rounds; i++) {
        result = translator.translate(text, { beam });
        times.push(performance.now());
      }
      const { steps } = result.hypotheses[0];
      postMessage({ times: times.slice(1).map((time, i) => time - times[i]), tokens: steps.length });
    };`;
  const worker = new Worker(URL.createObjectURL(new Blob([code])));
  const answer = new Promise((resolve) => { worker.onmessage = ({ data }) => resolve(data); });
  worker.postMessage({ bundle, weights, text, beam, rounds });
  const { times, tokens } = await answer;
  worker.terminate();
  return [tokens, ...times];
}"""


def main() -> None:
    """Print a row for each search."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("text")
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    page = options.folder / "index.html"
    parts = dict(re.findall(r'<script type="[^"]+" id="(\w+)">(.*?)</script>', page.read_text("utf-8"), re.DOTALL))
    print(f"{page}: {page.stat().st_size / 1e6:.2f} MB")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page()
        for beam in (1, 4):
            model = [parts["library"], parts["bundle"], parts["weights"]]
            tokens, load, first, *times = tab.evaluate(MEASURE, [*model, options.text, beam, options.rounds])
            print(
                f"beam {beam}  loaded in {load:4.0f} ms  "
                f"{tokens} tokens: first {first:5.0f} ms, then {statistics.median(times):5.0f} ms"
            )
        browser.close()


if __name__ == "__main__":
    main()
