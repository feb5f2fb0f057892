// The translation of each sentence, requested while the user types, and only once for each sentence.

import { detect, findSentences, translate } from "./api.js";
import { termsFor } from "./glossary.js";
import * as languages from "./languages.js";

const DELAY = 250, MAX_DELAY = 2000; // ms of rest before a request
const AT_ONCE = 32; // lines or sentences in a request, so that the first of a long text come soon
const ALTERNATIVES = 8; // that are asked for, to find other words
const MOST_WORDS = 6; // that are offered for a word
const KEPT = 2000; // answers in a cache, which is gone with the page

const sentencesOf = new Map(), translationOf = new Map(); // caches: of a line, and of a sentence, each in its context
// What is shown until another text has its first translation: one text, its languages, and its sentences. A sentence is
// { source, read, line, start, gap, translation, chosen, corrected }: `read` is what the model reads, with a language
// tag; `line` and `start` are its place in the text; `gap` is the text before its translation; and `chosen` is the
// index of the word that the visitor chose, or -1.
let shown = { text: "", pair: null, sentences: [] };
let detected = null; // { text, pair }
let delay = DELAY; // doubled whenever the server asks to slow down, until it answers again
let atOnce = AT_ONCE, mostAlternatives = ALTERNATIVES;
let timer = 0;
let running = null;

export const currentText = () => shown.text;
export const currentSentences = () => shown.sentences;
export function currentLines() {
  const lines = shown.text.split("\n").map(() => []);
  for (const sentence of shown.sentences) lines[sentence.line].push(sentence);
  return lines;
}
// Count the first sentences that a text shares with the text on display.
export function sentencesIn(text) {
  const end = shown.sentences.findIndex(({ source, start }) => !text.startsWith(source, start));
  return end < 0 ? shown.sentences : shown.sentences.slice(0, end);
}
export const currentPair = () => shown.pair;
export const isTranslated = (text) => text === shown.text && shown.sentences.every((one) => one.translation);
export const translatedText = () => currentLines().map(translatedLine).join("\n");
export const translatedLine = (line) => line.map((one) => one.translation?.text ? one.gap + one.translation.text : "").join("");

// The server's limits for one request; -1 means no limit.
export function setLimits({ textsLimit = -1, alternativesLimit = ALTERNATIVES }) {
  if (textsLimit > 0) atOnce = Math.min(AT_ONCE, textsLimit);
  mostAlternatives = Math.min(ALTERNATIVES, alternativesLimit);
}

// Return the answers of `request` for some texts. Texts that `cache` has are not sent; the others are sent a few at a
// time, and `onAnswers` is called after each request.
async function ask(cache, context, texts, request, onAnswers = () => {}) {
  const missing = [...new Set(texts)].filter((text) => text && !cache.has(context + text));
  for (let start = 0; start < missing.length; start += atOnce) {
    const some = missing.slice(start, start + atOnce);
    const answers = await request(some);
    some.forEach((text, index) => cache.set(context + text, answers[index]));
    onAnswers();
  }
  const answers = texts.map((text) => cache.get(context + text));
  for (const key of cache.keys()) {
    if (cache.size <= KEPT) break;
    cache.delete(key);
  }
  return answers;
}

// Translate `text` after a pause, or without one if `soon` is set. Calls `on.change`, `on.busy` and `on.error`.
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
    const pair = text.trim() ? await findPair(text, signal) : shown.pair;
    if (signal.aborted) return;
    if (text.trim()) on.pair(pair);
    const { source, target } = pair ?? {}, request = { source, target, glossary: termsFor(source, target) };
    const sentences = withChoices(await splitLines(text.split("\n"), request, signal), pair);
    if (signal.aborted) return;
    await translateSentences({ text, pair, sentences }, request, on, signal);
    delay = DELAY;
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

// Return the sentences of a text: { source, read, line, start, gap }. The server knows where they end.
async function splitLines(lines, request, signal) {
  const send = (texts) => findSentences({ texts, ...request }, signal);
  const answers = await ask(sentencesOf, JSON.stringify(request), lines.map((line) => line.trim() && line), send);
  const textTag = answers.find((some) => some?.length)?.[0].tag ?? "";
  let lineStart = 0;
  return lines.flatMap((content, line) => {
    let place = lineStart;
    lineStart += content.length + 1;
    return (answers[line] ?? []).map(({ text, before, gap, tag }) => {
      const start = place + before.length;
      place = start + text.length;
      const first = tag || textTag;
      const read = text.startsWith(first) ? text : `${first} ${text}`;
      return { source: text, read, line, start, gap };
    });
  });
}

// Make sentences. A sentence that is already shown keeps what the visitor chose or wrote.
function withChoices(sentences, pair) {
  const before = pair?.source === shown.pair?.source && pair?.target === shown.pair?.target ? shown.sentences : [];
  return sentences.map((one, number) => {
    const { translation = null, chosen = -1, corrected = false } =
      [before[number], ...before].find((other) => other?.source === one.source && (other.chosen >= 0 || other.corrected)) ?? {};
    return { ...one, translation, chosen, corrected };
  });
}

async function findPair(text, signal) {
  return languages.isAuto() ? detectPair(text, signal) : { source: languages.source(), target: languages.target() };
}

async function detectPair(text, signal) {
  const target = languages.target();
  // While a text grows, its language stays the same.
  if (detected?.pair.target === target && text.startsWith(detected.text) && text.length < 2 * detected.text.length) return detected.pair;
  const found = await detect(text.slice(0, 2000).toWellFormed(), signal);
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

// Replace what is shown with the first translations of `next`.
async function translateSentences(next, request, on, signal) {
  const context = JSON.stringify(request);
  const show = () => {
    for (const one of next.sentences) one.translation ??= translationOf.get(context + one.read) ?? null;
    shown = next;
    on.change();
  };
  const texts = next.sentences.map((one) => one.translation ? "" : one.read);
  await ask(translationOf, context, texts, (some) => translate({ texts: some, ...request }, signal), show);
  show();
}

const requestFor = ({ read }) => ({ texts: [read], ...shown.pair, glossary: termsFor(shown.pair.source, shown.pair.target) });

// Find translations of a sentence that differ from word `index` on: [{ word, rest, text }], the most likely first.
export async function otherWords(sentence, index, signal) {
  const here = sentence.translation.text.trim().split(/\s+/);
  const before = here.slice(0, index);
  const found = new Map();
  // In a vocabulary of characters a blank is a token of its own, so a translation continues after "word " with a blank.
  for (const blank of index ? ["", " "] : [""]) {
    const request = { ...requestFor(sentence), alternatives: mostAlternatives };
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

// Take another translation for a sentence. It is shown unchanged, and aligned if the model can align it.
export async function choose(sentence, index, text, on) {
  Object.assign(sentence, { translation: { text, flags: [] }, chosen: index });
  on.change();
  try {
    const [aligned] = await translate({ ...requestFor(sentence), prefix: text });
    if (sentence.translation.text === text && aligned.text.trim() === text) sentence.translation = { ...aligned, text };
    on.change();
  } catch { /* the choice stands, without an alignment */ }
}

// Show a visitor's correction in place of a translation.
export function correct(sentence, text) {
  Object.assign(sentence, { translation: { text, flags: [] }, chosen: -1, corrected: true });
}

export const hasChoices = () => shown.sentences.some((one) => one.chosen >= 0 || one.corrected);

// The next translation of the text is the model's again.
export function undoChoices() {
  for (const one of shown.sentences) Object.assign(one, { chosen: -1, corrected: false });
}
