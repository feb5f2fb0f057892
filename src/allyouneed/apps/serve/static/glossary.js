// The glossary: terms with a fixed translation, for each pair of languages.

import { $, disclosure, icon, make } from "./dom.js";
import { languageName } from "./languages.js";
import { announce } from "./messages.js";
import { load, store } from "./storage.js";

let glossaries = load("glossaries", {});
let pair = { source: "", target: "" };

const keyFor = (source, target) => `${source} ${target}`;
export const termsFor = (source, target) => glossaries[keyFor(source, target)] ?? {};

function change(terms, onChange) {
  glossaries = { ...glossaries, [keyFor(pair.source, pair.target)]: terms };
  store("glossaries", glossaries);
  show(onChange);
  onChange();
}

function show(onChange) {
  const terms = Object.entries(termsFor(pair.source, pair.target));
  $("glossary-pair").textContent = `${languageName(pair.source)} → ${languageName(pair.target)}`;
  $("glossary-count").hidden = !terms.length;
  $("glossary-count").textContent = terms.length;
  $("terms").replaceChildren(...terms.map(([term, translation]) => make("li", {},
    make("span", { dir: "auto" }, term), make("span", { "aria-label": "becomes" }, "→"), make("span", { dir: "auto" }, translation),
    make("button", {
      type: "button", class: "quiet icon", "aria-label": `Remove ${term}`, title: "Remove",
      onclick: () => {
        const { [term]: _, ...others } = termsFor(pair.source, pair.target);
        change(others, onChange);
        announce(`${term} removed`);
        ($("terms").querySelector("button") ?? $("term")).focus();
      },
    }, icon("remove")))));
}

let showPair = () => {};

// Show the terms of another pair.
export function setGlossaryPair(source, target) {
  pair = { source, target };
  showPair();
}

export function setUpGlossary(onChange) {
  showPair = () => show(onChange);
  const toggle = disclosure($("glossary-button"), $("glossary"), () => $("term").focus());
  $("glossary-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const term = $("term").value.trim(), translation = $("term-translation").value.trim();
    if (!term || !translation) return;
    change({ ...termsFor(pair.source, pair.target), [term]: translation }, onChange);
    announce(`${term} is now always translated as ${translation}`);
    $("glossary-form").reset();
    $("term").focus();
  });
  return toggle;
}
