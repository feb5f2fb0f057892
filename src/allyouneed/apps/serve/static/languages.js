// The pair of languages: which languages can be chosen, swapping, and detection.

import { $, make } from "./dom.js";
import { load, store } from "./storage.js";

const AUTO = "auto";
let languages = [];
let detected = ""; // the source of the text, where it is to be detected
const name = (code) => languages.find((one) => one.code === code)?.name ?? code;

export const languageName = name;
export const source = () => $("source-language").value;
export const target = () => $("target-language").value;
export const isAuto = () => source() === AUTO;
// Return the `lang` attribute of a text. A model without a pair of languages, such as one of dates, has its name in
// their place.
export const languageTag = (code) => (!code || canTranslate(code, code) ? "" : code);
export const canTranslate = (from, to) => targetsFrom(from).includes(to);

function targetsFrom(code) {
  const from = code === AUTO ? languages : languages.filter((one) => one.code === code);
  return [...new Set(from.flatMap((one) => one.targets))];
}

function fill(select, codes, chosen) {
  select.replaceChildren(...codes.map((code) => make("option", { value: code }, code === AUTO ? "Auto-detect" : name(code))));
  select.value = codes.includes(chosen) ? chosen : codes[0];
  select.disabled = codes.length < 2;
  select.parentElement.classList.toggle("single", codes.length < 2);
}

function showTargets(chosen) {
  fill($("target-language"), targetsFrom(source()), chosen);
  showSwap();
}

function showSwap() {
  const from = isAuto() ? detected : source(), to = target();
  $("swap").hidden = !languages.some((one) => one.targets.some((code) => code !== one.code && canTranslate(code, one.code)));
  $("swap").disabled = !from || !canTranslate(to, from);
}

export function setDetected(code) {
  detected = code;
  showSwap();
}

// `listed` is the answer of /languages, and `preset` the first target. `onChange` is called when the pair changes.
export function setUpLanguages(listed, preset, onChange) {
  languages = listed;
  const sources = languages.filter((one) => one.targets.length).map((one) => one.code);
  const [lastSource, lastTarget] = load("pair", []);
  fill($("source-language"), sources.length > 1 ? [AUTO, ...sources] : sources, lastSource);
  showTargets(lastTarget ?? preset);
  const changed = () => {
    store("pair", [source(), target()]);
    showSwap();
    onChange();
  };
  $("source-language").addEventListener("change", () => { showTargets(target()); changed(); });
  $("target-language").addEventListener("change", changed);
}

// Return the first language that this one can be translated into.
export const anyTarget = (code) => targetsFrom(code)[0];

export function chooseTarget(code) {
  $("target-language").value = code;
  $("target-language").dispatchEvent(new Event("change"));
}

// Return the first source that can be translated into the chosen target.
export const anySource = () => languages.find((one) => one.targets.includes(target()))?.code;

// Swap the pair. Returns false if no model translates in the other direction.
export function swap() {
  const from = isAuto() ? detected : source(), to = target();
  if (!from || !canTranslate(to, from)) return false;
  $("source-language").value = to;
  showTargets(from);
  store("pair", [to, from]);
  return true;
}
