// Words that belong together light up on both sides: where the pointer is, and where the caret or the focus is.

import { $, make } from "./dom.js";
import { currentLines } from "./translation.js";
import { links, words } from "./words.js";

const MANY = 20_000; // characters; a longer text has its words unmarked, so that typing stays quick

// The same text stands under the text area, each word in a span: an area itself cannot mark a word.
export function showMirror(text) {
  const mirror = $("mirror");
  mirror.replaceChildren();
  if (text.length > MANY) {
    mirror.append(text);
    return;
  }
  text.split("\n").forEach((line, number) => {
    let end = 0;
    if (number) mirror.append("\n");
    words(line).forEach((word, index) => {
      mirror.append(line.slice(end, word.start), make("span", { "data-line": number, "data-word": index }, word.text));
      end = word.end;
    });
    mirror.append(line.slice(end));
  });
}

const node = (root, line, word) => root.querySelector(`[data-line="${line}"][data-word="${word}"]`);

function clear() {
  for (const lit of document.querySelectorAll(".mirror .lit, .output .lit")) lit.classList.remove("lit");
}

// Lights the word `index` of a line of "source" or "target", and those linked with it.
function light(side, number, index) {
  clear();
  const line = currentLines()[number];
  if (!line || $("source").value.split("\n")[number] !== line.source) return;
  const linked = links(line.source, line.translation).filter(([i, j]) => (side === "source" ? i : j) === index);
  if (!linked.length) return;
  for (const [i, j] of linked) {
    node($("mirror"), number, i)?.classList.add("lit");
    node($("output"), number, j)?.classList.add("lit");
  }
}

const lightNode = (side, word) => light(side, Number(word.dataset.line), Number(word.dataset.word));

function lightCaret() {
  const area = $("source");
  if (document.activeElement !== area) return;
  const before = area.value.slice(0, area.selectionStart).split("\n");
  const number = before.length - 1, column = before[number].length;
  const index = words(area.value.split("\n")[number] ?? "").findIndex((word) => word.start <= column && column <= word.end);
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
