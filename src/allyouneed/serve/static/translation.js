// The translation of each sentence: asked for as one types, a sentence only once.

import { detect, translate } from "./api.js";
import { termsFor } from "./glossary.js";
import * as languages from "./languages.js";
import { gapBefore, groupByLine, splitSentences } from "./sentences.js";

const DELAY = 250, MAX_DELAY = 2000; // ms of rest before a request
const AT_ONCE = 32; // sentences in a request, so that the first of a long text come soon
const MOST_WORDS = 6; // that are offered for a word
const KEPT = 2000; // translations in the cache, which is gone with the page

const cache = new Map();
let sentences = []; // of sentences.js, with { translation, chosen }: chosen is the word that the visitor chose, or -1
let lineCount = 1;
let pair = null; // the languages in use, the detected one included
let detected = null; // { text, pair }
let delay = DELAY; // doubled whenever the server asks to slow down
let timer = 0;
let running = null;

export const currentSentences = () => sentences;
export const currentLines = () => groupByLine(sentences, lineCount);
export const currentPair = () => pair;
export const translatedText = () => currentLines().map(translatedLine).join("\n");
export const translatedLine = (line) => line.map((one, index) =>
  one.translation?.text ? gapBefore(one, !index, pair.target) + one.translation.text : "").join("");

function remember(key, translation) {
  cache.set(key, translation);
  if (cache.size > KEPT) cache.delete(cache.keys().next().value);
}

// Translates `text` after a rest; `soon` without one. Calls `on.change`, `on.busy` and `on.error`.
export function translateText(text, on, { soon = false } = {}) {
  clearTimeout(timer);
  running?.abort();
  running = null;
  on.busy(true);
  timer = setTimeout(() => run(text, on), soon ? 0 : delay);
}

export function stopTranslating() {
  clearTimeout(timer);
  running?.abort();
  running = null;
}

async function run(text, on) {
  const { signal } = (running = new AbortController());
  const mine = running;
  try {
    const before = text.trim() && (await updatePair(text, on, signal)) ? [] : sentences;
    if (signal.aborted) return;
    lineCount = text.split("\n").length;
    sentences = splitSentences(text).map((one, number) => {
      const { translation = null, chosen = -1, corrected = false } =
        [before[number], ...before].find((other) => other?.source === one.source && (other.chosen >= 0 || other.corrected)) ?? {};
      return { ...one, translation, chosen, corrected };
    });
    await translateMissing(on, signal);
  } catch (error) {
    if (error.kind === "wait") delay = Math.min(2 * delay, MAX_DELAY);
    if (error.name !== "AbortError") on.error(error);
  } finally {
    if (running === mine) {
      running = null;
      on.busy(false);
    }
  }
}

// Finds the languages of the text; true if they are others than before.
async function updatePair(text, on, signal) {
  const before = pair;
  const next = languages.isAuto() ? await detectPair(text, signal) : { source: languages.source(), target: languages.target() };
  if (signal.aborted) return false;
  pair = next;
  on.pair(pair);
  return before?.source !== pair.source || before.target !== pair.target;
}

async function detectPair(text, signal) {
  const target = languages.target();
  // While the same text grows, its language stays.
  if (detected?.pair.target === target && text.startsWith(detected.text) && text.length < 2 * detected.text.length) return detected.pair;
  const found = await detect(text.slice(0, 2000), signal);
  if (!found?.confidence) return { source: languages.anySource(), target }; // digits, or a letter or two
  const source = found.language;
  if (!languages.canTranslate(source, target)) {
    const names = [source, target].map(languages.languageName);
    const problem = source === target ? `is ${names[0]} already` : `looks like ${names[0]}, which is not translated into ${names[1]} here`;
    throw Object.assign(new Error(`The text ${problem}.`), { kind: "language", source });
  }
  const next = { source, target, detected: true };
  detected = found.confidence > 80 ? { text, pair: next } : null;
  return next;
}

async function translateMissing(on, signal) {
  if (!sentences.length) return on.change();
  const { source, target } = pair, glossary = termsFor(source, target);
  const context = JSON.stringify([source, target, glossary]);
  const recall = () => {
    for (const one of sentences) one.translation ??= cache.get(context + one.source) ?? null;
  };
  recall();
  const missing = [...new Set(sentences.filter((one) => !one.translation).map((one) => one.source))];
  if (!missing.length) return on.change();
  for (let start = 0; start < missing.length; start += AT_ONCE) {
    const some = missing.slice(start, start + AT_ONCE);
    const translations = await translate({ texts: some, source, target, glossary }, signal);
    some.forEach((text, index) => remember(context + text, translations[index]));
    recall();
    on.change();
  }
}

const requestFor = (sentence) => ({ texts: [sentence.source], ...pair, glossary: termsFor(pair.source, pair.target) });

// Other translations of a sentence that differ from its word `index` on: [{ word, rest, text }], the likeliest first.
export async function otherWords(sentence, index, signal) {
  const here = sentence.translation.text.trim().split(/\s+/);
  const before = here.slice(0, index);
  const found = new Map();
  // A vocabulary of characters has the blank as a token of its own: it goes on only after "word ".
  for (const blank of index ? ["", " "] : [""]) {
    const request = { ...requestFor(sentence), alternatives: 8 };
    const [best] = await translate({ ...request, prefix: before.join(" ") + blank }, signal);
    const likeliest = best.alternatives.toSorted((a, b) => b.log_probability - a.log_probability);
    for (const { text } of [best, ...likeliest]) {
      const words = text.trim().split(/\s+/);
      const isNew = words[index] && before.every((word, at) => word === words[at]) && !found.has(words[index]);
      if (isNew) found.set(words[index], { word: words[index], rest: words.slice(index + 1).join(" "), text: text.trim() });
    }
    found.delete(here[index]);
    if (found.size > 1) break;
  }
  return [...found.values()].slice(0, MOST_WORDS);
}

// Takes another translation for a sentence: it is shown as it is, and aligned if the model can.
export async function choose(sentence, index, text, on) {
  Object.assign(sentence, { translation: { text, flags: [] }, chosen: index });
  on.change();
  try {
    const [aligned] = await translate({ ...requestFor(sentence), prefix: text });
    if (sentence.translation.text === text && aligned.text.trim() === text) sentence.translation = { ...aligned, text };
    on.change();
  } catch { /* the choice stands, without an alignment */ }
}

// Shows a visitor's correction in the place of a translation.
export function correct(sentence, text) {
  Object.assign(sentence, { translation: { text, flags: [] }, chosen: -1, corrected: true });
}

export const hasChoices = () => sentences.some((one) => one.chosen >= 0 || one.corrected);

export function undoChoices() {
  for (const one of sentences) Object.assign(one, { translation: null, chosen: -1, corrected: false });
}
