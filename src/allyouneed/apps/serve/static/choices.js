// Offer other words for a word of the translation, in a list at the word, and translate the rest again from there.

import { $, make } from "./dom.js";
import { languageTag } from "./languages.js";
import { choose, currentPair, currentSentences, otherWords } from "./translation.js";

let asking = null;

// Put the list under the word, or above it if there is no room below.
function place(list, word) {
  const box = word.getBoundingClientRect(), gap = 6, edge = 12;
  const below = box.bottom + gap + list.offsetHeight < innerHeight || box.top < list.offsetHeight + gap;
  list.style.top = `${below ? box.bottom + gap : box.top - gap - list.offsetHeight}px`;
  list.style.left = `${Math.max(edge, Math.min(box.left, innerWidth - list.offsetWidth - edge))}px`;
}

function open(word, ...content) {
  const list = $("choices");
  list.replaceChildren(...content);
  if (!list.matches(":popover-open")) list.showPopover();
  word.setAttribute("aria-expanded", "true");
  place(list, word);
}

export async function showChoices(word, on) {
  asking?.abort();
  const { signal } = (asking = new AbortController());
  const number = Number(word.dataset.sentence), index = Number(word.dataset.word), sentence = currentSentences()[number];
  open(word, make("p", { role: "status" }, "Looking for other words …"));
  $("choices").dataset.opener = `[data-sentence="${number}"][data-word="${index}"]`;
  try {
    const others = await otherWords(sentence, index, signal);
    if (signal.aborted || !$("choices").matches(":popover-open")) return;
    if (!others.length) {
      const split = sentence.translation.flags?.includes("split");
      open(word, make("p", { role: "status" }, split
        ? "This sentence was translated in parts. Shorten it to see other words."
        : "The model has no other word here."));
      return;
    }
    const button = (other) => make("button", {
      type: "button",
      onclick: () => {
        $("choices").hidePopover();
        choose(sentence, index, other.text, on);
        $("output").querySelector($("choices").dataset.opener)?.focus();
      },
    }, make("b", {}, other.word), " ", make("span", { class: "rest" }, other.rest));
    open(word, make("ul", { dir: "auto", lang: languageTag(currentPair().target) }, ...others.map((other) => make("li", {}, button(other)))));
    $("choices").querySelector("button").focus({ preventScroll: true });
  } catch (error) {
    if (error.name === "AbortError") return;
    $("choices").hidePopover();
    on.error(error);
  }
}

export function setUpChoices() {
  const list = $("choices");
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const all = [...list.querySelectorAll("button")];
    all[(all.indexOf(document.activeElement) + step + all.length) % all.length]?.focus();
  });
  list.addEventListener("toggle", (event) => {
    if (event.newState === "open") return;
    asking?.abort();
    for (const word of document.querySelectorAll(".word[aria-expanded]")) word.removeAttribute("aria-expanded");
    if (list.contains(document.activeElement) || document.activeElement === document.body) {
      $("output").querySelector(list.dataset.opener ?? ".word")?.focus();
    }
  });
  addEventListener("scroll", () => list.matches(":popover-open") && list.hidePopover(), { passive: true });
}
