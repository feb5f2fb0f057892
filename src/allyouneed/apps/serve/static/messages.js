// The line of messages above the text, and announcements for screen readers.

import { $, icon, make } from "./dom.js";

let timer = 0;
let whenOnline = () => {};

addEventListener("online", () => whenOnline());

// Show a message of a kind: "bad", "wait" or "good". `action` is { label, run }.
export function showMessage(text, kind = "bad", action = null) {
  clearInterval(timer);
  const box = $("message");
  box.className = `notice ${kind}`;
  box.replaceChildren(make("span", {}, text));
  if (action) box.append(make("button", { type: "button", onclick: action.run }, action.label));
  box.append(make("button", { type: "button", class: "dismiss", "aria-label": "Close the message", onclick: hideMessage }, icon("clear")));
  box.hidden = false;
}

export function hideMessage() {
  clearInterval(timer);
  whenOnline = () => {};
  $("message").hidden = true;
}

// Count down the seconds in the message, then call `again` once. Screen readers only hear the first number.
export function waitAndRetry(text, seconds, again) {
  let left = seconds;
  showMessage(`${text} Trying again in `, "wait", { label: "Try now", run: () => { clearInterval(timer); again(); } });
  const count = make("span", { "aria-live": "off" }, `${left} s`);
  $("message").firstChild.append(count, ".");
  timer = setInterval(() => {
    left -= 1;
    count.textContent = `${left} s`;
    if (left > 0) return;
    clearInterval(timer);
    again();
  }, 1000);
}

// Show a failed request, with possible remedies. `again` repeats the request; `askForKey` is null if a key does not
// help.
export function showError(error, again, askForKey) {
  if (error.name === "AbortError") return;
  if (error.kind === "wait") waitAndRetry(error.message, error.seconds, again);
  else if (error.kind === "offline") {
    showMessage(
      navigator.onLine ? "The server cannot be reached. Check that it runs." : "You are offline. The translation goes on when the connection is back.",
      "bad", { label: "Try again", run: again },
    );
    whenOnline = again;
  } else if (error.kind === "key") showMessage(error.message, "bad", askForKey && { label: "Enter a key", run: askForKey });
  else showMessage(error.message, "bad", error.kind === "server" ? { label: "Try again", run: again } : null);
}

// Tell a screen reader something without showing it.
export function announce(text, lang = "en") {
  $("live").lang = lang;
  $("live").textContent = text;
}
