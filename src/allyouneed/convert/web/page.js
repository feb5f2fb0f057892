"use strict";
// The page: what is typed goes to a worker, which translates; what comes back is drawn.

const element = (id) => document.getElementById(id);
const WORKER = `
let translator;
onmessage = ({ data }) => {
  if (data.bundle) { translator = new Translator(JSON.parse(data.bundle), data.weights); return; }
  const started = performance.now();
  try {
    const switches = { ...data.switches, headsOff: new Set(data.headsOff) };
    const result = translator.translate(data.text, { beam: data.beam, temperature: data.temperature, switches });
    postMessage({ number: data.number, result, milliseconds: performance.now() - started });
  } catch (error) {
    postMessage({ number: data.number, error: error.message });
  }
};`;
const worker = new Worker(URL.createObjectURL(new Blob([element("library").textContent, WORKER])));
worker.postMessage({ bundle: element("bundle").textContent, weights: element("weights").textContent });

const { config } = JSON.parse(element("bundle").textContent);
const layers = [];
for (let i = 0; i < config.encoder_layers; i++) layers.push(`encoder.layers.${i}.attention`);
for (let i = 0; i < config.decoder_layers; i++) {
  layers.push(`decoder.layers.${i}.self_attention`, `decoder.layers.${i}.cross_attention`);
}
let newest = 0; // the number of the newest request
let busy = false; // a request is being answered
let shown = null; // the result on the page
let chosen = 0; // the step whose attention is marked

function title(layer) {
  const [stack, , i, part] = layer.split(".");
  return `${stack} ${Number(i) + 1}, ${part.replace("_", "-").replace(/^attention$/, "self-attention")}`;
}

function request() {
  element("beam-value").textContent = element("beam").value;
  element("temperature-value").textContent = Number(element("temperature").value).toFixed(1);
  newest += 1;
  if (!busy) send();
}

function send() {
  busy = true;
  const boxes = [...document.querySelectorAll("[data-switch]")];
  worker.postMessage({
    number: newest,
    text: element("input").value.trim(),
    beam: Number(element("beam").value),
    temperature: Number(element("temperature").value),
    switches: Object.fromEntries(boxes.map((box) => [box.dataset.switch, box.checked])),
    headsOff: [...document.querySelectorAll("[data-head]")].filter((box) => !box.checked).map((box) => box.dataset.head),
  });
}

worker.onmessage = ({ data }) => {
  busy = false;
  if (data.number !== newest) return send(); // the text has changed meanwhile
  element("error").hidden = !data.error;
  element("error").textContent = data.error || "";
  if (data.error) return clear();
  shown = data.result;
  chosen = 0;
  const [best] = shown.hypotheses;
  element("output").textContent = element("input").value.trim() && best ? best.text : "";
  element("time").textContent = `${Math.round(data.milliseconds)} ms`;
  document.documentElement.dataset.answered = data.number;
  drawHypotheses();
  drawSteps();
  drawMatrix();
};

// Nothing of an earlier text stands beside a text that is refused.
function clear() {
  shown = null;
  for (const id of ["output", "time", "hypotheses", "steps", "matrix"]) element(id).replaceChildren();
}

function drawHypotheses() {
  element("hypotheses").replaceChildren(
    ...shown.hypotheses.slice(0, Number(element("beam").value)).map(({ text, score, finished }) => {
      const item = make("li", `${text || "(nothing)"} `);
      item.append(make("small", `score ${score.toFixed(3)}${finished ? "" : ", cut off"}`));
      return item;
    }),
  );
}

function drawSteps() {
  const steps = shown.hypotheses[0]?.steps ?? [];
  element("steps").replaceChildren(
    ...steps.map((step, i) => {
      const box = make("div", "", "step");
      box.id = `step-${i}`;
      box.setAttribute("role", "option");
      box.setAttribute("aria-selected", String(i === chosen));
      box.append(make("b", step.piece));
      for (const { piece, probability } of step.top) {
        const row = make("div", "", "bar");
        const bar = make("i", "");
        bar.style.width = `${Math.max(1, 100 * probability)}%`;
        row.append(make("span", piece), bar, make("span", `${(100 * probability).toFixed(probability < 0.1 ? 1 : 0)} %`));
        box.append(row);
      }
      box.onclick = () => choose(i);
      return box;
    }),
  );
}

function choose(step) {
  const boxes = [...element("steps").children];
  if (!boxes.length) return;
  chosen = Math.max(0, Math.min(boxes.length - 1, step));
  boxes.forEach((box, i) => box.setAttribute("aria-selected", String(i === chosen)));
  element("steps").setAttribute("aria-activedescendant", `step-${chosen}`);
  boxes[chosen].scrollIntoView({ block: "nearest", inline: "nearest" });
  drawMatrix();
}

// The attention weights of one layer, of one head or the mean of all: a row for each query, a column for each key.
function drawMatrix() {
  if (!shown) return;
  const layer = element("layer").value;
  const steps = shown.hypotheses[0]?.steps ?? [];
  const inEncoder = layer.startsWith("encoder");
  const written = ["<sos>", ...steps.map((step) => step.piece)];
  const rows = inEncoder ? shown.source : written.slice(0, -1);
  const columns = layer.endsWith("self_attention") ? written.slice(0, -1) : shown.source;
  const heads = inEncoder
    ? shown.encoderAttention[layer]
    : Array.from({ length: config.heads }, (_, h) => steps.map((step) => step.attention[layer][h]));
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
  element("matrix").replaceChildren(make("caption", `${title(layer)}: rows attend to columns`), head_, body);
}

function make(tag, text, className) {
  const made = document.createElement(tag);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

function build() {
  element("layer").append(...layers.map((layer) => new Option(title(layer), layer)));
  element("layer").value = layers.at(-1);
  element("head").append(new Option("mean of all", "mean"));
  for (let h = 0; h < config.heads; h++) element("head").append(new Option(String(h + 1), String(h)));
  element("heads").append(
    ...layers.map((layer) => {
      const group = make("fieldset", "");
      group.append(make("legend", title(layer)));
      for (let h = 0; h < config.heads; h++) {
        const label = make("label", "");
        const box = document.createElement("input");
        Object.assign(box, { type: "checkbox", checked: true });
        box.dataset.head = `${layer}:${h}`;
        label.append(box, ` ${h + 1}`);
        group.append(label);
      }
      return group;
    }),
  );
  for (const id of ["input", "beam", "temperature", "switches", "heads"]) element(id).addEventListener("input", request);
  for (const id of ["layer", "head"]) element(id).addEventListener("change", drawMatrix);
  element("steps").addEventListener("keydown", (event) => {
    const moves = { ArrowRight: 1, ArrowLeft: -1 };
    if (event.key in moves) {
      event.preventDefault();
      choose(chosen + moves[event.key]);
    }
  });
  request();
}

build();
