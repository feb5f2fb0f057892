// Keys that work anywhere on the page; the dialog "help" lists them.

import { $ } from "./dom.js";

const isTyping = (node) => node.matches("textarea, input:not([type=checkbox])");

// `run` maps the letters of Alt+Shift+letter to functions; `toTranslation` moves the focus to the first word.
export function setUpShortcuts(run, toTranslation) {
  $("help-button").addEventListener("click", () => $("help").showModal());
  addEventListener("keydown", (event) => {
    if (document.querySelector("dialog[open]")) return;
    if (event.altKey && event.shiftKey && !event.ctrlKey && run[event.code]) run[event.code]();
    else if (event.key === "Enter" && event.ctrlKey && event.target === $("source")) toTranslation();
    else if (!isTyping(event.target) && event.key === "/") $("source").focus();
    else if (!isTyping(event.target) && event.key === "?") $("help").showModal();
    else return;
    event.preventDefault();
  });
}
