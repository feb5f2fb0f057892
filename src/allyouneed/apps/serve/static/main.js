// The page: connect its parts.

import { setUpAlignment, showMirror } from "./alignment.js";
import { fetchLanguages, fetchSettings } from "./api.js";
import { setUpChoices, showChoices } from "./choices.js";
import { closeCorrection, openCorrection, setUpCorrection } from "./correction.js";
import { $, tabs } from "./dom.js";
import { setUpDocuments } from "./documents.js";
import { setGlossaryPair, setUpGlossary } from "./glossary.js";
import { refreshInside, setUpInside } from "./inside.js";
import { askForKey, getKey, setUpKey } from "./key.js";
import * as languages from "./languages.js";
import { announce, hideMessage, showError, showMessage } from "./messages.js";
import { allWords, setUpOutput, showLines } from "./output.js";
import { setUpShortcuts } from "./shortcuts.js";
import { setUpTraining } from "./training.js";
import { currentLines, currentPair, currentSentences, hasChoices, setLimits, stopTranslating, translatedText, translateText, undoChoices } from "./translation.js";

let limit = -1; // characters, -1: none
let haveKeys = false; // whether this server has any
let announcing = 0;
let isSetUp = false, isWatching = false; // the parts that need a model, and those of a run

const on = {
  change() {
    const text = translatedText();
    showMirror($("source").value);
    showLines(currentLines(), currentSentences(), languages.languageTag(currentPair()?.target));
    $("empty").hidden = Boolean(text.trim()) || Boolean($("source").value.trim());
    $("target-foot").hidden = !text.trim() || !$("correction").hidden;
    $("hint").hidden = !text.trim();
    $("reset").hidden = !hasChoices();
    clearTimeout(announcing);
    announcing = setTimeout(() => announce(text.slice(0, 1000), languages.languageTag(currentPair()?.target)), 800);
    refreshInside();
  },
  busy(isBusy) {
    $("target").setAttribute("aria-busy", isBusy);
    if (isBusy) hideMessage();
  },
  pair(pair) {
    languages.setDetected(pair.source);
    setSourceLanguage(pair.detected || !languages.isAuto() ? pair.source : "");
    $("detected").textContent = pair.detected ? `Detected: ${languages.languageName(pair.source)}` : "";
    setGlossaryPair(pair.source, pair.target);
  },
  error(error, again = () => update({ soon: true })) {
    if (error.kind === "language") {
      const other = languages.anyTarget(error.source);
      showMessage(error.message, "wait", { label: `Translate into ${languages.languageName(other)}`, run: () => languages.chooseTarget(other) });
    } else showError(error, again, haveKeys ? askForKey : null);
  },
};

// Show changed input, and have it translated.
function update({ soon = false } = {}) {
  const text = $("source").value, length = [...text].length;
  const over = limit > 0 && length > limit;
  document.body.classList.toggle("long", length > 400);
  showMirror(text);
  $("clear").hidden = !length;
  $("counter").textContent = limit > 0 ? `${length.toLocaleString()} / ${limit.toLocaleString()}` : length ? length.toLocaleString() : "";
  $("counter").classList.toggle("over", over);
  closeCorrection();
  if (over) {
    stopTranslating();
    $("target").setAttribute("aria-busy", "false");
    showMessage(`The text has ${(length - limit).toLocaleString()} characters more than this server takes. Shorten it, or send it in parts.`, "wait");
    return;
  }
  translateText(text, on, { soon: soon || !text.trim() });
}

// Used for fonts, spelling and screen readers; "" if the language is unknown.
function setSourceLanguage(code) {
  for (const name of ["source", "mirror"]) $(name).lang = languages.languageTag(code);
}

function pairChanged() {
  // The glossary of a pair can be edited before the text shows which source language it has.
  setGlossaryPair(languages.isAuto() ? languages.anySource() : languages.source(), languages.target());
  $("detected").textContent = "";
  languages.setDetected("");
  setSourceLanguage(languages.isAuto() ? "" : languages.source());
  update({ soon: true });
}

function swap() {
  const text = translatedText();
  if (!languages.swap()) return;
  if (text.trim()) $("source").value = text;
  pairChanged();
}

function clear() {
  $("source").value = "";
  update();
  $("source").focus();
}

async function copy() {
  if ($("target-foot").hidden) return;
  const text = translatedText();
  try {
    await navigator.clipboard.writeText(text);
  } catch { // no permission, or no secure context: select it, so that Ctrl+C copies it
    getSelection().selectAllChildren($("output"));
    announce("The translation is selected; copy it with Ctrl+C");
    return;
  }
  $("copy-text").textContent = "Copied";
  announce("Copied");
  setTimeout(() => { $("copy-text").textContent = "Copy"; }, 1500);
}

async function start() {
  let listed, settings;
  try {
    [listed, settings] = await Promise.all([fetchLanguages(), fetchSettings()]);
  } catch (error) {
    showError(error, () => { hideMessage(); start(); }, null);
    return;
  }
  limit = settings.charLimit ?? -1;
  setLimits(settings);
  haveKeys = settings.apiKeys;
  if (settings.textsLogged) {
    $("storing").textContent = "The operator of this server has the texts logged.";
    $("privacy").textContent = "Texts are not stored in this browser, but the operator of this server has them written to its log.";
  }
  if (settings.training && !isWatching) {
    isWatching = true;
    setUpTraining({ onModel: start, onError: on.error });
  }
  if (!listed.length) {
    showMessage("The first model comes with the first validation of the run below; then this page translates.", "wait");
    return;
  }
  if (isSetUp) { // a newer model
    update({ soon: true });
    return;
  }
  isSetUp = true;
  hideMessage();
  languages.setUpLanguages(listed, settings.language?.target?.code, pairChanged);
  if (haveKeys) setUpKey({ needed: settings.keyRequired, onChange: () => update({ soon: true }) });
  if (settings.suggestions) setUpCorrection(on);
  if (settings.filesTranslation) {
    $("modes").hidden = false;
    $("text-mode").setAttribute("role", "tabpanel");
    $("text-mode").setAttribute("aria-labelledby", "text-tab");
    tabs($("modes"), hideMessage);
    setUpDocuments(settings);
  }
  pairChanged();
  if (settings.keyRequired && !getKey()) showMessage("This server needs an API key.", "wait", { label: "Enter a key", run: askForKey });
}

setUpAlignment();
setUpChoices();
const focusTranslation = setUpOutput((word) => showChoices(word, on));
const toggleGlossary = setUpGlossary(() => update({ soon: true }));
const toggleInside = setUpInside();
$("source").addEventListener("input", () => update());
$("swap").addEventListener("click", swap);
$("clear").addEventListener("click", clear);
$("copy").addEventListener("click", copy);
$("reset").addEventListener("click", () => { undoChoices(); update({ soon: true }); });
setUpShortcuts({
  KeyS: swap, KeyX: clear, KeyC: copy, KeyE: openCorrection,
  KeyI: () => toggleInside($("inside").hidden), KeyG: () => toggleGlossary($("glossary").hidden),
}, () => allWords().length && focusTranslation());
start();
