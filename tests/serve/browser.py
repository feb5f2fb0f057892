"""What the tests of the page need: a small trained model, and a browser that visits its server."""

import json
import random
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, Route, expect
from torch.nn.functional import cross_entropy

from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig, ModelConfig
from allyouneed.nn import Transformer
from allyouneed.text.tokenizer import Tokenizer
from chromium_page import TIMEOUT

Answer = tuple[int, object, dict[str, str]]  # status, JSON and headers

LETTERS = "abcdefghij"


def save_successors(folder: Path) -> list[Path]:
    """Train a model that writes the next letter for each, `a b` → `b c`, for en-it and en-de; it-en goes back."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rng = random.Random(0)
    forward, backward = (Tokenizer.characters(f"{letters} !") for letters in (LETTERS, LETTERS[::-1]))
    config = ModelConfig(
        vocab_size=len(forward), pad_id=forward.pad_id, d_model=32, d_ff=64, heads=4, encoder_layers=1,
        decoder_layers=1, max_length=48, dropout=0.0, norm="pre",
    )  # fmt: skip
    model, successor = Transformer(config).train(), str.maketrans(LETTERS, LETTERS[1:] + LETTERS[0])
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 8e-3, total_steps=260)
    for step in range(260):
        length = rng.randint(1, 4)
        texts = [" ".join(rng.choices(LETTERS, k=length)) + "!" * (step % 3 == 0) for _ in range(32)]
        source = torch.tensor([forward.encode(text) for text in texts])
        target = torch.tensor([forward.encode(text.translate(successor)) for text in texts])
        loss = cross_entropy(model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten())
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        schedule.step()
    folders = []
    # The ids in the other order: the same weights go back by a letter.
    for tokenizer, pair in ((forward, ("en", "it")), (forward, ("en", "de")), (backward, ("it", "en"))):
        folders.append(folder / "-".join(pair))
        decode = DecodeConfig(beam=2, batch_size=8, extra_length=5)
        Bundle(model.eval(), tokenizer, tokenizer, decode, languages=pair).save(folders[-1])
    return folders


class Visitor:
    """Opens pages for one test; `errors` collects what must not happen: script errors, and requests to elsewhere."""

    def __init__(self, browser: Browser, url: str) -> None:
        self._browser, self.url = browser, url
        self._contexts: list[BrowserContext] = []
        self.errors: list[str] = []

    def __call__(
        self, *, width: int = 1280, dark: bool = False, url: str = "", answers: Mapping[str, Answer] | None = None
    ) -> Page:
        """Open a page of `url`, by default of the server of all tests. `answers` replaces the answers to some paths."""
        url = url or self.url
        context = self._browser.new_context(
            viewport={"width": width, "height": 844},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            permissions=["clipboard-read", "clipboard-write"],
        )
        context.set_default_timeout(TIMEOUT)
        self._contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._note_message)
        page.on("request", partial(self._note_request, url))
        for path, (status, body, headers) in (answers or {}).items():
            page.route(
                f"{url}/{path}",
                partial(_fulfill, status=status, body=json.dumps(body), headers=headers),
            )
        page.goto(url)
        page.wait_for_selector("#target-language option", state="attached")
        return page

    def close(self) -> None:
        for context in self._contexts:
            context.close()

    def _note_request(self, url: str, request: Request) -> None:
        if not request.url.startswith((url, "blob:")):
            self.errors.append(request.url)

    def _note_message(self, message: ConsoleMessage) -> None:
        # An answer other than 200 is reported too; what the page makes of it is what the tests look at.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            self.errors.append(message.text)


def _fulfill(route: Route, *, status: int, body: str, headers: dict[str, str]) -> None:
    route.fulfill(status=status, body=body, headers={"Content-Type": "application/json", **headers})


def write(page: Page, text: str) -> None:
    """Put a text into the page and wait until it is translated."""
    page.fill("#source", text)
    expect(page.locator("#target")).to_have_attribute("aria-busy", "false")


def translation(page: Page) -> str:
    """Return the translation on the page."""
    return page.inner_text("#output").strip()


def lit(page: Page) -> tuple[list[str], list[str]]:
    """Return the words that are lit in the text and in the translation."""
    return page.locator("#mirror .lit").all_inner_texts(), page.locator("#output .lit").all_inner_texts()


def choose_languages(page: Page, source: str, target: str) -> None:
    """Choose both languages."""
    page.select_option("#source-language", source)
    page.select_option("#target-language", target)


def one_answer(**fields: object) -> dict[str, Answer]:
    one = {
        "text": "b c", "log_probability": -1.0, "tokens": 3, "flags": [], "alternatives": [], "alignment": None,
        **fields,
    }  # fmt: skip
    return {"v1/translate": (200, {"translations": [one]}, {})}


def add_term(page: Page, term: str, translation: str) -> None:
    """Open the glossary and put a term into it."""
    page.click("#glossary-button")
    page.fill("#term", term)
    page.fill("#term-translation", translation)
    page.keyboard.press("Enter")
