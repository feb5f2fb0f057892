"use strict";
// The page: it sends typed text to a worker, which translates, and draws the results.

const element = (id) => document.getElementById(id);
const WORKER = `
let translator;
onmessage = ({ data }) => {
  const started = performance.now();
  try {
    if (data.bundle) {
      translator = new Translator(JSON.parse(data.bundle), data.weights);
      postMessage({ loaded: performance.now() - started, bytes: translator.memory, layers: translator.layers });
    } else {
      const whole = translator.translateText(data.text, data.options);
      const result = whole.results.find(({ hypotheses }) => hypotheses.length) ?? NOTHING;
      postMessage({ number: data.number, text: data.text, whole, result, milliseconds: performance.now() - started });
    }
  } catch (error) {
    postMessage({ number: data.number, error: error.message });
  }
};`;
const worker = new Worker(URL.createObjectURL(new Blob([element("library").textContent, WORKER])));
worker.postMessage({ bundle: element("bundle").textContent, weights: element("weights").textContent });
element("weights").remove(); // the worker has them

let newest = 0; // the number of the newest request
let busy = true; // a request is being answered, or the model is being loaded
let answer = null; // the result on the page
let chosen = 0; // the step whose attention is marked

function request() {
  element("beam-value").textContent = element("beam").value;
  element("temperature-value").textContent = Number(element("temperature").value).toFixed(1);
  newest += 1;
  if (!busy) send();
}

function send() {
  busy = true;
  const boxes = [...document.querySelectorAll("[data-switch]")];
  const switches = Object.fromEntries(boxes.map((box) => [box.dataset.switch, box.checked]));
  const headsOff = [...document.querySelectorAll("[data-head]")].filter((box) => !box.checked);
  switches.headsOff = headsOff.map((box) => box.dataset.head);
  const options = { beam: Number(element("beam").value), temperature: Number(element("temperature").value), switches };
  worker.postMessage({ number: newest, text: element("input").value, options });
}

worker.onmessage = ({ data }) => {
  busy = false;
  if (data.loaded !== undefined) {
    const megabytes = (data.bytes / 1e6).toFixed(1);
    element("loading").textContent = `Loaded in ${Math.round(data.loaded)} ms: ${megabytes} MB of memory.`;
    build(data.layers);
    return request();
  }
  if (data.number !== undefined && data.number !== newest) return send(); // the text has changed meanwhile
  element("error").hidden = !data.error;
  element("error").textContent = data.error || "";
  if (data.error) return draw(null);
  draw(data.result, data.whole);
  element("time").textContent = data.text.trim() ? `${Math.round(data.milliseconds)} ms` : "";
  document.documentElement.dataset.answered = data.number;
};

const FLAGS = {
  copied: "Nothing to translate: copied as it is.",
  split: "Too long for one go: translated in parts.",
  repeats: "The model began to repeat itself. Check the translation.",
  wrong_spans: "A link, number or placeholder differs from the text. Compare them.",
  unfinished: "The translation breaks off. Try shorter sentences.",
  long: "Longer than the texts the model learned from. Shorter sentences may come out better.",
  unknown: "Has letters or words that the model has never seen. Check the translation.",
};

// Null for a refused text, so that nothing of an earlier text is left on the page.
function draw(result, whole) {
  answer = result?.hypotheses.length ? result : null;
  chosen = 0;
  element("empty").hidden = result === null || whole.sentences.length > 0;
  for (const part of document.querySelectorAll(".answer")) part.hidden = !answer;
  for (const id of ["output", "flags", "time", "hypotheses", "steps", "candidates", "matrix", "matrix-caption"]) element(id).replaceChildren();
  element("steps").removeAttribute("aria-activedescendant");
  if (whole) {
    element("output").textContent = whole.text;
    element("flags").replaceChildren(...whole.flags.filter((flag) => FLAGS[flag]).map((flag) => make("li", FLAGS[flag])));
  }
  if (!answer) return;
  element("first").hidden = whole.sentences.length < 2; // what is below is that of the first sentence
  drawHypotheses();
  drawSteps();
  drawStep();
}

function drawHypotheses() {
  element("hypotheses").replaceChildren(
    ...answer.hypotheses.slice(0, Number(element("beam").value)).map(({ text, score, finished }) => {
      const item = make("li", `${text || "(nothing)"} `);
      item.append(make("small", `score ${score.toFixed(3)}${finished ? "" : ", cut off"}`));
      return item;
    }),
  );
}

function drawSteps() {
  element("steps").replaceChildren(
    ...answer.hypotheses[0].steps.map((step, i) => {
      const box = make("div", "", "step");
      box.id = `step-${i}`;
      box.setAttribute("role", "option");
      box.setAttribute("aria-selected", String(i === chosen));
      box.append(titled("b", step.piece));
      for (const { piece, probability } of step.top) {
        const row = make("div", "", "bar");
        const bar = make("i", "");
        bar.style.width = `${Math.max(1, 100 * probability)}%`;
        row.append(titled("span", piece), bar, make("span", `${(100 * probability).toFixed(probability < 0.1 ? 1 : 0)} %`));
        box.append(row);
      }
      box.onclick = () => choose(i);
      return box;
    }),
  );
  if (answer.hypotheses[0].steps.length) element("steps").setAttribute("aria-activedescendant", `step-${chosen}`);
}

function choose(step) {
  const boxes = [...element("steps").children];
  if (!boxes.length) return;
  chosen = Math.max(0, Math.min(boxes.length - 1, step));
  boxes.forEach((box, i) => box.setAttribute("aria-selected", String(i === chosen)));
  element("steps").setAttribute("aria-activedescendant", `step-${chosen}`);
  boxes[chosen].scrollIntoView({ block: "nearest", inline: "nearest" });
  drawStep();
}

function drawStep() {
  drawCandidates();
  drawMatrix();
}

// Draw the candidates of the beam at the chosen step. A candidate is a hypothesis with one more token.
function drawCandidates() {
  const candidates = answer.beam[chosen];
  element("candidates").replaceChildren(
    make("caption", `Candidates at step ${chosen + 1}`),
    ...candidates.map(({ piece, total, parent, fate }) => {
      const row = make("tr", "", fate);
      const text = make("td", written(chosen - 1, parent).join(""));
      text.append(make("b", piece));
      row.append(text, make("td", total.toFixed(2)), make("td", fate));
      return row;
    }),
  );
}

// Return the pieces of a hypothesis that the beam kept after a step.
function written(step, index) {
  if (step < 0) return [];
  const { piece, parent } = answer.beam[step].filter(({ fate }) => fate === "kept")[index];
  return [...written(step - 1, parent), piece];
}

// Return the attention weights of one layer, of one head or the mean of all heads: rows are queries, columns are keys.
function drawMatrix() {
  if (!answer) return;
  const layer = element("layer").value;
  const { steps } = answer.hypotheses[0];
  const inEncoder = layer.startsWith("encoder");
  const target = ["<sos>", ...steps.map((step) => step.piece)].slice(0, -1);
  const rows = inEncoder ? answer.source : target;
  const columns = layer.endsWith("self_attention") ? target : answer.source;
  const heads = inEncoder
    ? answer.encoderAttention[layer]
    : steps[0].attention[layer].map((_, h) => steps.map((step) => step.attention[layer][h]));
  const head = element("head").value;
  const weight = (i, k) =>
    head === "mean" ? heads.reduce((sum, one) => sum + (one[i][k] ?? 0), 0) / heads.length : heads[Number(head)][i][k] ?? 0;

  const header = make("tr", "");
  header.append(make("td", ""), ...columns.map((piece) => make("th", piece)));
  const head_ = make("thead", "");
  head_.append(header);
  const body = make("tbody", "");
  rows.forEach((piece, i) => {
    const row = make("tr", "", !inEncoder && i === chosen ? "chosen" : "");
    row.append(make("th", piece));
    columns.forEach((column, k) => {
      const value = weight(i, k);
      const cell = make("td", "");
      cell.style.background = `color-mix(in srgb, var(--mark) ${Math.round(100 * value)}%, transparent)`;
      cell.title = `${piece} → ${column}: ${(100 * value).toFixed(1)} %`;
      cell.setAttribute("aria-label", cell.title);
      row.append(cell);
    });
    body.append(row);
  });
  element("matrix-caption").textContent = `${element("layer").selectedOptions[0].text}: rows attend to columns`;
  element("matrix").replaceChildren(head_, body);
}

function make(tag, text, className) {
  const made = document.createElement(tag);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

// Make a text that may be cut off if there is too little room.
function titled(tag, text) {
  return Object.assign(make(tag, text), { title: text });
}

function build(layers) {
  element("layer").append(...layers.map(({ name, title }) => new Option(title, name)));
  element("layer").value = layers.at(-1).name;
  element("head").append(new Option("mean of all", "mean"));
  for (let h = 0; h < layers[0].heads; h++) element("head").append(new Option(String(h + 1), String(h)));
  element("heads").append(
    ...layers.map(({ name, title, heads }) => {
      const group = make("fieldset", "");
      group.append(make("legend", title));
      for (let h = 0; h < heads; h++) {
        const label = make("label", "");
        const box = document.createElement("input");
        Object.assign(box, { type: "checkbox", checked: true });
        box.dataset.head = `${name}:${h}`;
        label.append(box, ` ${h + 1}`);
        group.append(label);
      }
      return group;
    }),
  );
  for (const id of ["layer", "head"]) element(id).addEventListener("change", drawMatrix);
  element("steps").addEventListener("keydown", (event) => {
    const moves = { ArrowRight: 1, ArrowLeft: -1 };
    if (event.key in moves) {
      event.preventDefault();
      choose(chosen + moves[event.key]);
    }
  });
}

for (const id of ["input", "beam", "temperature", "switches", "heads"]) element(id).addEventListener("input", request);
