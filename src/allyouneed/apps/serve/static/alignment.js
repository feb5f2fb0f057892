// Highlight words that belong together on both sides: at the pointer, and at the caret or the focus.

import { $, make } from "./dom.js";
import { currentSentences, sentencesIn } from "./translation.js";
import { links, words } from "./words.js";

const MANY = 20_000; // characters; a longer text has its words unmarked, so that typing stays quick

// A copy of the text lies below the text area, with a span for each translated word, because a text area cannot mark
// words.
export function showMirror(text) {
  const mirror = $("mirror");
  mirror.replaceChildren();
  if (text.length > MANY) {
    mirror.append(text);
    return;
  }
  let end = 0;
  sentencesIn(text).forEach((sentence, number) => words(sentence.source).forEach((word, index) => {
    const start = sentence.start + word.start;
    mirror.append(text.slice(end, start), make("span", { "data-sentence": number, "data-word": index }, word.text));
    end = start + word.text.length;
  }));
  mirror.append(text.slice(end));
}

const node = (root, sentence, word) => root.querySelector(`[data-sentence="${sentence}"][data-word="${word}"]`);

function clear() {
  for (const lit of document.querySelectorAll(".mirror .lit, .output .lit")) lit.classList.remove("lit");
}

// Highlight the word `index` of a sentence of "source" or "target", and the words linked with it.
function light(side, number, index) {
  clear();
  const sentence = currentSentences()[number];
  if (!sentence || !sentencesIn($("source").value).includes(sentence)) return; // it was changed since
  const linked = links(sentence.source, sentence.translation).filter(([i, j]) => (side === "source" ? i : j) === index);
  if (!linked.length) return;
  for (const [i, j] of linked) {
    node($("mirror"), number, i)?.classList.add("lit");
    node($("output"), number, j)?.classList.add("lit");
  }
}

const lightNode = (side, word) => light(side, Number(word.dataset.sentence), Number(word.dataset.word));

function lightCaret() {
  const area = $("source");
  if (document.activeElement !== area) return;
  const caret = area.selectionStart, all = sentencesIn(area.value);
  const number = all.findIndex(({ start, source }) => start <= caret && caret <= start + source.length);
  const column = caret - all[number]?.start;
  const index = words(all[number]?.source ?? "").findIndex((word) => word.start <= column && column <= word.end);
  if (index >= 0) light("source", number, index);
  else clear();
}

export function setUpAlignment() {
  const output = $("output"), area = $("source");
  const wordUnder = (event) => event.target.closest?.(".word");
  output.addEventListener("pointerover", (event) => wordUnder(event) && lightNode("target", wordUnder(event)));
  output.addEventListener("pointerleave", clear);
  output.addEventListener("focusin", (event) => wordUnder(event) && lightNode("target", wordUnder(event)));
  output.addEventListener("focusout", clear);
  area.addEventListener("pointermove", (event) => {
    const word = document.elementsFromPoint(event.clientX, event.clientY).find((one) => one.matches(".mirror span"));
    if (word) lightNode("source", word);
    else clear();
  });
  area.addEventListener("pointerleave", lightCaret);
  area.addEventListener("blur", clear);
  document.addEventListener("selectionchange", lightCaret);
}
