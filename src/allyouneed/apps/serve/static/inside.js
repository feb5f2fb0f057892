// The inside of the model for one sentence: the component of `allyouneed explain`, with the data of POST /v1/explain.
/* global showExplanation */

import { explainText } from "./api.js";
import { $, disclosure } from "./dom.js";
import { currentPair, currentSentences } from "./translation.js";

let asking = null;
let shown = ""; // what the explanation that is shown was asked for

function say(text) {
  $("inside-note").textContent = text;
  $("inside-note").hidden = !text;
  $("inside-views").hidden = text !== "";
}

// Look inside the chosen sentence again, if the panel is open and something has changed.
export async function refreshInside() {
  if ($("inside").hidden) return;
  const sentences = currentSentences();
  const select = $("inside-sentence"), before = select.selectedIndex;
  $("inside-sentence-field").hidden = sentences.length < 2;
  select.replaceChildren(...sentences.map(({ source }, index) => new Option(source.slice(0, 60), String(index))));
  select.selectedIndex = Math.max(0, Math.min(before, sentences.length - 1));
  const sentence = sentences[select.selectedIndex];
  asking?.abort();
  if (!sentence) {
    shown = "";
    say("Type a text first.");
    return;
  }
  const { source, target } = currentPair();
  if (shown === JSON.stringify([sentence.source, source, target])) return;
  const { signal } = (asking = new AbortController());
  if (!shown) say("Looking inside …");
  try {
    showExplanation($("inside-views").firstElementChild, await explainText(sentence.source, source, target, signal));
    shown = JSON.stringify([sentence.source, source, target]);
    say("");
  } catch (error) {
    if (error.name === "AbortError") return;
    shown = "";
    say(error.kind === "wait" ? `${error.message} Try again in ${error.seconds} s.` : error.message);
  }
}

export function setUpInside() {
  $("inside-sentence").addEventListener("change", refreshInside);
  return disclosure($("inside-button"), $("inside"), refreshInside);
}
