"use strict";
// Elements, numbers in words, and tables.

const SVG = "http://www.w3.org/2000/svg";

function make(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

function draw(name, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// Make an element for a text of any direction, which does not move its neighbours.
const isolated = (text) => make("bdi", {}, text);
const quoted = (text) => ["“", isolated(text), "”"];

// See percent() in search_trace.py: only 0 itself becomes 0 %.
const percent = (share) => (share > 0 && share < 0.001 ? "< 0.1 %" : `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`);
const number = (value) => (value === null ? "masked" : Number(value.toPrecision(4)).toString().replace("-", "−"));
const textWidth = (text) => 7.4 * [...text].length; // of the 12 px monospace font

// Return nested rows of numbers, with null where masked. A matrix already is such rows, or is packed as { shape, low,
// high, data } or exactly as { shape, float32 }.
function unpack(matrix) {
  if (Array.isArray(matrix)) return matrix;
  const bytes = Uint8Array.from(atob(matrix.data ?? matrix.float32), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const range = matrix.high - matrix.low;
  let next = 0;
  const value = () => {
    if (matrix.float32) return view.getFloat32(4 * next++, true);
    const step = view.getInt16(2 * next++, true);
    return step === -32768 ? null : matrix.low + ((step + 32767) / 65534) * range;
  };
  const nested = ([length, ...rest]) => Array.from({ length }, () => (rest.length ? nested(rest) : value()));
  return nested(matrix.shape);
}

const meanOfHeads = (heads) =>
  heads[0].map((row, r) => row.map((_, c) => heads.reduce((sum, head) => sum + head[r][c], 0) / heads.length));

// Make a box that scrolls sideways, and says so, if its content is too wide.
function wide(content, label) {
  const box = make("div", { class: "wide" }, content);
  const sign = make("p", { class: "sign" }, "↔ wider than the screen: scroll sideways");
  new ResizeObserver(() => {
    const overflows = box.scrollWidth > box.clientWidth + 1;
    sign.classList.toggle("needed", overflows);
    for (const [key, value] of Object.entries({ tabindex: "0", role: "region", "aria-label": label })) {
      if (overflows) box.setAttribute(key, value);
      else box.removeAttribute(key);
    }
  }).observe(box);
  const whole = make("div", {}, sign, box);
  return whole;
}

// Make the heading of a column of numbers. Other columns have texts.
const numeric = (name) => ({ name, class: "number" });

function table(header, rows, attributes = {}) {
  return make("table", attributes,
    make("thead", {}, make("tr", {}, ...header.map((one) => make("th", { scope: "col" }, one.name ?? one)))),
    make("tbody", {}, ...rows.map(([first, ...rest]) => make("tr", {}, make("th", { scope: "row" }, first),
      ...rest.map((one, index) => make("td", { class: header[index + 1].class }, one))))));
}

// Make a table when it is opened for the first time.
function valuesTable(header, rows, label) {
  const details = make("details", {}, make("summary", {}, "Values as a table"));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(wide(table(header, rows()), label));
  });
  return details;
}

// Make a group of buttons; one of them is always pressed. `onChoose` is called with its index.
function choice(group, labels, chosen, onChoose) {
  const hadFocus = group.contains(document.activeElement);
  const buttons = labels.map((label, index) => make("button", {
    type: "button", "aria-pressed": String(index === chosen),
    onclick: () => {
      buttons.forEach((one, other) => one.setAttribute("aria-pressed", String(other === index)));
      onChoose(index);
    },
  }, label));
  group.replaceChildren(...buttons);
  group.hidden = labels.length < 2;
  if (hadFocus) buttons[chosen]?.focus();
}
