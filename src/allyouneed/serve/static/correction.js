// A visitor's better translation, sent to the server as a pair for training.

import { suggest } from "./api.js";
import { $ } from "./dom.js";
import { showMessage } from "./messages.js";
import { correct, currentLines, currentPair, translatedText } from "./translation.js";

function setOpen(open) {
  $("correction").hidden = !open;
  $("output").hidden = open;
  $("target-foot").hidden = open;
  $("flags").hidden = open || !$("flags").children.length;
}

export function openCorrection() {
  if ($("correct").hidden || $("target-foot").hidden) return;
  $("corrected").value = translatedText();
  setOpen(true);
  $("corrected").focus();
}

export function closeCorrection() {
  if (!$("correction").hidden) setOpen(false);
}

// The pairs to send: line by line where the lines still match, else the text as a whole.
function changedPairs(lines, corrected) {
  const written = corrected.split("\n");
  if (written.length !== lines.length) return [[lines.map((line) => line.source).join("\n"), corrected]];
  return lines.map((line, number) => [line.source, written[number]]).filter(([source, text], number) =>
    source.trim() && text.trim() && text.trim() !== lines[number].translation?.text.trim());
}

export function setUpCorrection(on) {
  $("correct").hidden = false;
  $("correct").addEventListener("click", openCorrection);
  $("correction-cancel").addEventListener("click", () => { setOpen(false); $("correct").focus(); });
  $("correction").addEventListener("keydown", (event) => {
    if (event.key === "Escape") $("correction-cancel").click();
    else if (event.key === "Enter" && event.ctrlKey) $("correction").requestSubmit();
  });
  $("correction").addEventListener("submit", async (event) => {
    event.preventDefault();
    const lines = currentLines(), { source, target } = currentPair(), corrected = $("corrected").value.trimEnd();
    const pairs = corrected.trim() ? changedPairs(lines, corrected) : [];
    if (!pairs.length) {
      $("correction-cancel").click();
      return;
    }
    try {
      for (const [text, better] of pairs) await suggest(text.trim(), better.trim(), source, target);
    } catch (error) {
      on.error(error);
      return;
    }
    const written = corrected.split("\n");
    if (written.length === lines.length) lines.forEach((line, number) => {
      if (written[number].trim() !== line.translation?.text.trim()) correct(line, written[number]);
    });
    setOpen(false);
    on.change();
    showMessage("Thank you. Your translation is stored on this server and helps to train its next model.", "good");
    $("correct").focus();
  });
}
