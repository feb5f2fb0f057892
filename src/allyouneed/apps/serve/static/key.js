// The API key: asked for if the server needs one, and kept for this page or, if requested, in this browser.

import { $ } from "./dom.js";
import { load, store } from "./storage.js";

let key = load("key", "");

export const getKey = () => key;

export function setUpKey({ needed, onChange }) {
  const dialog = $("key-dialog");
  $("key-button").hidden = false;
  $("key-why").textContent = needed
    ? "This server translates for those who have a key. Its operator hands them out."
    : "This server works without a key. A key of its operator may allow more requests.";
  $("key-button").addEventListener("click", askForKey);
  dialog.addEventListener("close", () => {
    if (dialog.returnValue !== "save") return;
    key = $("key").value.trim();
    store("key", $("key-remember").checked && key ? key : undefined);
    onChange();
  });
}

export function askForKey() {
  const dialog = $("key-dialog");
  dialog.returnValue = "";
  $("key").value = key;
  $("key-remember").checked = Boolean(load("key", ""));
  dialog.showModal();
}
