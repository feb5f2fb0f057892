// Keys that work anywhere on the page; the dialog "help" lists them.

import { $ } from "./dom.js";
import { load, store } from "./storage.js";

// Whether keys work without Alt+Shift. This can be turned off, because speech input types letters.
const isAlone = (event) => $("single-keys").checked && !event.ctrlKey && !event.metaKey && !event.altKey
  && !event.target.matches("textarea, input, select");

// `run` maps letters, pressed with Alt+Shift, to functions. `toTranslation` moves the focus to the first word.
export function setUpShortcuts(run, toTranslation) {
  $("help-button").addEventListener("click", () => $("help").showModal());
  $("single-keys").checked = load("single-keys", true);
  $("single-keys").addEventListener("change", (event) => store("single-keys", event.target.checked));
  addEventListener("keydown", (event) => {
    if (document.querySelector("dialog[open]")) return;
    if (event.altKey && event.shiftKey && !event.ctrlKey && run[event.code]) run[event.code]();
    else if (event.key === "Enter" && event.ctrlKey && event.target === $("source")) toTranslation();
    else if (event.key === "/" && isAlone(event)) $("source").focus();
    else if (event.key === "?" && isAlone(event)) $("help").showModal();
    else return;
    event.preventDefault();
  });
}
