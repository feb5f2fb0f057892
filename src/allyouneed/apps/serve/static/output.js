// The translation on the page: words to point at, walk through and press; flags and confidence in words.

import { $, make } from "./dom.js";
import { words } from "./words.js";

const FLAGS = {
  copied: ["Nothing to translate: copied as it is.", "info"],
  split: ["Too long for one go: translated in parts.", "info"],
  repeats: ["The model began to repeat itself and was run again with repetition banned. Check the translation."],
  wrong_spans: ["A link, tag, number or placeholder differs from the text. Compare them."],
  unfinished: ["The translation breaks off: the model reached its greatest length. Try shorter sentences."],
  long: ["Longer than the texts the model learned from. Shorter sentences may come out better."],
  unknown: ["Has letters or words that the model has never seen. Check the translation."],
};

function wordNode(word, sentence, index, chosen) {
  return make("span", {
    class: chosen === index ? "word changed" : "word", role: "button", tabindex: "-1", "aria-haspopup": "dialog",
    "data-sentence": sentence, "data-word": index,
  }, word.text);
}

function lineNode(line, numbers) {
  const paragraph = make("p", { dir: "auto" });
  line.forEach((sentence) => {
    const text = sentence.translation?.text ?? "";
    if (text) paragraph.append(sentence.gap);
    let end = 0;
    words(text).forEach((word, index) => {
      paragraph.append(text.slice(end, word.start), wordNode(word, numbers.get(sentence), index, sentence.chosen));
      end = word.end;
    });
    paragraph.append(text.slice(end));
  });
  return paragraph;
}

// Draw the lines that have changed. The other lines, and the focus in them, stay.
export function showLines(lines, sentences, target) {
  const output = $("output"), numbers = new Map(sentences.map((sentence, number) => [sentence, number]));
  lines.forEach((line, number) => {
    const mark = JSON.stringify(line.map((one) => [numbers.get(one), one.gap, one.translation?.text, one.chosen]));
    const there = output.children[number];
    if (there?.dataset.mark === mark) return;
    const node = lineNode(line, numbers);
    node.dataset.mark = mark;
    if (there) there.replaceWith(node);
    else output.append(node);
  });
  while (output.children.length > lines.length) output.lastChild.remove();
  for (const line of output.children) line.lang = target;
  const all = allWords();
  if (all.length && !all.some((word) => word.tabIndex === 0)) all[0].tabIndex = 0;
  showFlags(sentences);
  showConfidence(sentences);
}

export const allWords = () => [...$("output").querySelectorAll(".word")];

function showFlags(sentences) {
  const flags = [...new Set(sentences.flatMap((one) => one.translation?.flags ?? []))].filter((flag) => FLAGS[flag]);
  $("flags").hidden = !flags.length;
  $("flags").replaceChildren(...flags.map((flag) => make("li", { class: FLAGS[flag][1] ?? "" }, FLAGS[flag][0])));
}

// Return the probability of a token: the geometric mean over all sentences.
function showConfidence(sentences) {
  const scored = sentences.filter((one) => one.translation?.tokens);
  const tokens = scored.reduce((sum, one) => sum + one.translation.tokens, 0);
  $("confidence").hidden = !tokens;
  if (!tokens) return;
  const share = Math.exp(scored.reduce((sum, one) => sum + one.translation.log_probability, 0) / tokens);
  const level = share > 0.8 ? "High" : share > 0.5 ? "Medium" : "Low";
  $("confidence-meter").value = share;
  $("confidence-text").textContent = `${level} confidence, ${Math.round(100 * share)} %`;
  $("confidence").title = "The mean probability that the model gives its own tokens. It does not say that the translation is right.";
}

// Let arrow keys move among the words, which are one tab stop. Enter and a press call `onPress(node)`.
export function setUpOutput(onPress) {
  const output = $("output");
  const focus = (word) => {
    if (!word) return;
    for (const other of output.querySelectorAll(".word[tabindex='0']")) other.tabIndex = -1;
    word.tabIndex = 0;
    word.focus();
  };
  output.addEventListener("click", (event) => {
    const word = event.target.closest(".word");
    if (!word || String(getSelection()).trim()) return; // text is being selected
    focus(word);
    onPress(word);
  });
  output.addEventListener("keydown", (event) => {
    const word = event.target.closest(".word");
    if (!word || event.ctrlKey || event.metaKey || event.altKey) return;
    const all = allWords(), index = all.indexOf(word);
    const rightToLeft = getComputedStyle(word.parentElement).direction === "rtl";
    const step = { ArrowRight: rightToLeft ? -1 : 1, ArrowLeft: rightToLeft ? 1 : -1, ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) focus(all[index + step]);
    else if (event.key === "Home") focus(all[0]);
    else if (event.key === "End") focus(all.at(-1));
    else if (event.key === "Enter" || event.key === " ") onPress(word);
    else return;
    event.preventDefault();
  });
  return () => focus(output.querySelector(".word[tabindex='0']") ?? allWords()[0]);
}
