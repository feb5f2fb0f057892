// Keys that work anywhere on the page; the dialog "help" lists them.

import { $ } from "./dom.js";
import { load, store } from "./storage.js";

// Whether a key counts without Alt+Shift: speech input types letters, so that these keys can be turned off.
const isAlone = (event) => $("single-keys").checked && !event.ctrlKey && !event.metaKey && !event.altKey
  && !event.target.matches("textarea, input, select");

// `run` maps the letters of Alt+Shift+letter to functions; `toTranslation` moves the focus to the first word.
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
