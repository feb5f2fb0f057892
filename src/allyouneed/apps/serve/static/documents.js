// Documents: chosen or dropped, sent with progress, translated by the server, and downloaded.

import { translateFile } from "./api.js";
import { $, icon, make } from "./dom.js";
import { termsFor } from "./glossary.js";
import { isAuto, languageName, source, target } from "./languages.js";
import { announce } from "./messages.js";

let formats = [];

function size(bytes) {
  return bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1e3))} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

function addJob(file) {
  const state = make("p", { class: "state" }), bar = make("progress", { max: "1", value: "0", "aria-label": `Progress of ${file.name}` });
  const action = make("div", { class: "action" });
  const job = make("li", { class: "card job" }, make("p", { class: "name", dir: "auto" }, file.name), state, action, bar);
  $("jobs").prepend(job);
  start(file, { job, state, bar, action });
}

function fail(file, parts, text) {
  parts.job.classList.add("failed");
  parts.state.textContent = text;
  parts.bar.remove();
  parts.action.replaceChildren(make("button", { type: "button", class: "quiet", onclick: () => parts.job.remove() }, "Remove"));
  announce(`${file.name}: ${text}`);
}

async function start(file, parts) {
  const { job, state, bar, action } = parts, from = source(), to = target();
  const direction = `${isAuto() ? "detected language" : languageName(from)} → ${languageName(to)}`;
  if (formats.length && !formats.some((ending) => file.name.toLowerCase().endsWith(ending.toLowerCase()))) {
    fail(file, parts, `This kind of file is not translated here. Known: ${formats.join(" ")}`);
    return;
  }
  state.textContent = `Sending ${size(file.size)} …`;
  const request = translateFile(file, { source: from, target: to, glossary: termsFor(from, to) }, {
    onSent(share) {
      bar.value = share;
      if (share < 1) return;
      bar.removeAttribute("value"); // until the server has read it
      state.textContent = `Translating, ${direction} …`;
    },
    onProgress(share) {
      bar.value = share;
      state.textContent = `Translating, ${direction}: ${Math.floor(100 * share)} %`;
    },
  });
  action.replaceChildren(make("button", { type: "button", class: "quiet", onclick: request.cancel }, "Cancel"));
  try {
    const url = new URL(await request.done, location.href);
    bar.remove();
    state.textContent = `Translated, ${direction}`;
    const link = make("a", { class: "main", href: url.pathname + url.search, download: "" }, icon("download"), "Download");
    link.setAttribute("aria-label", `Download the translation of ${file.name}`);
    action.replaceChildren(link);
    job.classList.add("done");
    announce(`${file.name} is translated`);
  } catch (error) {
    if (error.name === "AbortError") job.remove();
    else fail(file, parts, error.kind === "wait" ? `${error.message} Try again in ${error.seconds} s.` : error.message);
  }
}

export function setUpDocuments(settings) {
  formats = settings.supportedFilesFormat ?? [];
  const drop = $("drop"), input = $("file");
  input.accept = formats.join(",");
  $("formats").textContent = formats.length ? `Documents keep their layout and markup. ${formats.join("  ")}` : "";
  $("choose").addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    for (const file of input.files) addJob(file);
    input.value = "";
  });
  for (const name of ["dragover", "dragenter"]) drop.addEventListener(name, (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
  drop.addEventListener("dragleave", (event) => drop.contains(event.relatedTarget) || drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    for (const file of event.dataTransfer.files) addJob(file);
  });
  // A file dropped outside the field must not replace the page.
  for (const name of ["dragover", "drop"]) addEventListener(name, (event) => event.preventDefault());
}
