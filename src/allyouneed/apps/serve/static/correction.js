// A visitor's better translation, sent to the server as a pair for training.

import { suggest } from "./api.js";
import { $ } from "./dom.js";
import { languageTag } from "./languages.js";
import { announce, showMessage } from "./messages.js";
import { correct, currentLines, currentPair, currentText, isTranslated, translatedLine, translatedText } from "./translation.js";

function setOpen(open) {
  $("correction").hidden = !open;
  $("output").hidden = open;
  $("target-foot").hidden = open;
  $("flags").hidden = open || !$("flags").children.length;
}

export function openCorrection() {
  if ($("correct").hidden || $("target-foot").hidden) return;
  if (!isTranslated($("source").value)) { // a correction of what is shown would not belong to what is typed
    announce("The translation is not finished yet");
    return;
  }
  $("corrected").value = translatedText();
  $("corrected").lang = languageTag(currentPair().target);
  setOpen(true);
  $("corrected").focus();
}

export function closeCorrection() {
  if (!$("correction").hidden) setOpen(false);
}

// Return the changes, as [sentences, source, translation]: for each line, the sentences between the unchanged ones at
// its beginning and at its end. If the lines differ, return the text as a whole.
function changes(corrected) {
  const whole = currentText(), written = corrected.split("\n"), lines = currentLines();
  if (written.length !== lines.length) return [[[], whole, corrected]];
  return lines.flatMap((line, number) => {
    let better = written[number].trim();
    if (!line.length || !better || better === translatedLine(line).trim()) return [];
    const text = (one) => one.translation.text.trim();
    let first = 0, last = line.length - 1;
    for (; first < last && text(line[first]); first++) {
      const kept = text(line[first]) + line[first + 1].gap;
      if (better === kept || !better.startsWith(kept)) break;
      better = better.slice(kept.length);
    }
    for (; first < last && text(line[last]); last--) {
      const kept = line[last].gap + text(line[last]);
      if (better === kept || !better.endsWith(kept)) break;
      better = better.slice(0, better.length - kept.length);
    }
    const { start } = line[first], { start: lastStart, source } = line[last];
    return [[line.slice(first, last + 1), whole.slice(start, lastStart + source.length), better]];
  });
}

export function setUpCorrection(on) {
  const sent = new Set();
  $("correct").hidden = false;
  $("correct").addEventListener("click", openCorrection);
  $("correction-cancel").addEventListener("click", () => { setOpen(false); $("correct").focus(); });
  $("correction").addEventListener("keydown", (event) => {
    if (event.key === "Escape") $("correction-cancel").click();
    else if (event.key === "Enter" && event.ctrlKey) $("correction").requestSubmit();
  });
  $("correction").addEventListener("submit", async (event) => {
    event.preventDefault();
    const { source, target } = currentPair(), corrected = $("corrected").value.trimEnd();
    const changed = corrected.trim() ? changes(corrected) : [];
    if (!changed.length) {
      $("correction-cancel").click();
      return;
    }
    try {
      for (const [, text, better] of changed) {
        const pair = `${text}\n${better}`;
        if (!sent.has(pair)) await suggest(text.trim(), better.trim(), source, target);
        sent.add(pair);
      }
    } catch (error) { // what was written stays, and goes on with the first that was not sent
      on.error(error, () => { if (!$("correction").hidden) $("correction").requestSubmit(); });
      return;
    }
    sent.clear();
    for (const [sentences, , better] of changed) sentences.forEach((one, index) => correct(one, index ? "" : better));
    setOpen(false);
    on.change();
    showMessage("Thank you. Your translation is stored on this server and helps to train its next model.", "good");
    $("correct").focus();
  });
}
