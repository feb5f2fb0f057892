// The inside of the model for one sentence: attention of every head, the steps of the search, and what each head does.

import { explainText } from "./api.js";
import { $, disclosure, make, tabs } from "./dom.js";
import { drawMatrix, drawThumbnail, mean, strongest } from "./matrix.js";
import { currentPair, currentSentences } from "./translation.js";

let trace = null;
let asking = null;
let shown = ""; // what the trace was made of
let head = -1; // -1: the mean of all
let chooseView = () => {};

const token = (piece) => make("span", { class: "token" }, piece);
const share = (probability) => (probability < 0.001 ? "< 0.1 %" : `${(100 * probability).toFixed(probability < 0.1 ? 1 : 0)} %`);
const layer = () => trace.attention[Number($("layer").value)];

// Shows one head, or the mean of all with -1, of an attention.
function showHead(part, number) {
  $("layer").value = String(part);
  head = Math.min(number, layer().heads.length - 1);
  const labels = ["Mean", ...layer().heads.map((_, index) => String(index + 1))];
  const focused = $("heads").contains(document.activeElement);
  $("heads").replaceChildren(...labels.map((label, index) => make("button", {
    type: "button", "aria-pressed": String(index - 1 === head), "aria-label": index ? `Head ${label}` : "Mean of all heads",
    onclick: () => showHead(part, index - 1),
  }, label)));
  if (focused) $("heads").children[head + 1].focus();
  for (const button of $("gallery").querySelectorAll("button")) {
    button.classList.toggle("on", button.dataset.head === `${part} ${head}`);
  }
  showMatrix();
}

// All heads at a glance, for the pointer: the list and the numbers above choose the same.
function showGallery() {
  $("gallery").replaceChildren(...trace.attention.map(({ name, heads }, part) => make("div", {}, make("span", {}, name),
    ...heads.map((weights, number) => make("button", {
      type: "button", tabindex: "-1", title: `${name}, head ${number + 1}`, "data-head": `${part} ${number}`,
      onclick: () => showHead(part, number),
    }, drawThumbnail(weights))))));
}

function showMatrix() {
  const { name, rows, columns, heads } = layer();
  const weights = head < 0 ? mean(heads) : heads[head];
  const label = `${name}, ${head < 0 ? "mean of all heads" : `head ${head + 1}`}: ${rows.length} rows, ${columns.length} columns`;
  const read = (row, column, weight) => $("reading").replaceChildren(token(row), " attends to ", token(column), `: ${weight}`);
  $("matrix").replaceChildren(drawMatrix({ rows, columns, weights, label }, read));
  const most = strongest({ rows, columns, weights });
  $("in-words").replaceChildren(...most.map(([row, column, weight]) => make("li", {}, token(row), " attends mostly to ", token(column), `, ${weight}`)));
  $("reading").textContent = "Point at a square to read its weight.";
}

function showSteps() {
  $("ending").textContent = trace.ending;
  $("steps").replaceChildren(...trace.steps.map((candidates, number) => {
    const written = trace.decoder_targets[number];
    return make("li", {}, make("span", { class: "number" }, String(number + 1)), make("span", { class: "written" }, written),
      make("div", { class: "candidates" }, ...candidates.map(({ piece, probability, chosen }) => make("span", {
        class: chosen ? "candidate chosen" : "candidate",
      }, make("b", {}, piece), make("span", {}, share(probability)),
      make("meter", { min: "0", max: "1", value: String(probability), "aria-hidden": "true" })))));
  }));
}

function showRoles() {
  $("head-rows").replaceChildren(...trace.heads.map((one) => {
    const part = trace.attention.findIndex((candidate) => candidate.part === one.part);
    const go = make("button", {
      type: "button", "aria-label": `Show ${trace.attention[part].name}, head ${one.head}`,
      onclick: () => {
        chooseView("view-attention-tab");
        showHead(part, one.head - 1);
        $("layer").focus();
      },
    }, `Head ${one.head}`);
    return make("tr", {}, make("td", {}, trace.attention[part].name), make("td", {}, go), make("td", {}, one.role), make("td", {}, one.entropy.toFixed(2)));
  }));
}

function show() {
  const before = $("layer").selectedIndex;
  $("layer").replaceChildren(...trace.attention.map(({ name }, index) => make("option", { value: String(index) }, name)));
  $("layer").selectedIndex = before >= 0 && before < trace.attention.length ? before : trace.attention.length - 1;
  $("inside-note").textContent = trace.note;
  $("inside-note").hidden = !trace.note;
  $("inside-views").hidden = false;
  showGallery();
  showHead($("layer").selectedIndex, head);
  showSteps();
  showRoles();
}

function say(text) {
  $("inside-note").hidden = false;
  $("inside-note").textContent = text;
  $("inside-views").hidden = true;
}

// Looks inside the chosen sentence again, if the panel is open and something changed.
export async function refreshInside() {
  if ($("inside").hidden) return;
  const sentences = currentSentences();
  const select = $("inside-sentence"), before = select.selectedIndex;
  $("inside-sentence-field").hidden = sentences.length < 2;
  select.replaceChildren(...sentences.map(({ source }, index) => make("option", { value: String(index) }, source.slice(0, 60))));
  select.selectedIndex = Math.max(0, Math.min(before, sentences.length - 1));
  const sentence = sentences[select.selectedIndex];
  asking?.abort();
  if (!sentence) {
    shown = "";
    say("Type a text first.");
    return;
  }
  const { source, target } = currentPair();
  if (shown === JSON.stringify([sentence.source, source, target])) return;
  const { signal } = (asking = new AbortController());
  if (!trace) say("Looking inside …");
  try {
    trace = await explainText(sentence.source, source, target, signal);
    shown = JSON.stringify([sentence.source, source, target]);
    show();
  } catch (error) {
    if (error.name === "AbortError") return;
    shown = "";
    trace = null;
    say(error.kind === "wait" ? `${error.message} Try again in ${error.seconds} s.` : error.message);
  }
}

export function setUpInside() {
  chooseView = tabs($("views"));
  $("layer").addEventListener("change", () => showHead($("layer").selectedIndex, head));
  $("inside-sentence").addEventListener("change", refreshInside);
  return disclosure($("inside-button"), $("inside"), refreshInside);
}
