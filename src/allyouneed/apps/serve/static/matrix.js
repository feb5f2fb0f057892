// An attention matrix as a picture: rows attend, columns are attended to.

import { make } from "./dom.js";

const THUMBNAIL = [96, 118, 235]; // readable on light and on dark
const percent = (weight) => `${Math.round(weight / 2.55)} %`;
const width = (pieces) => 12 + 7.5 * Math.max(...pieces.map((piece) => [...piece].length));

// `weights` are rows of whole numbers from 0 to 255. `onRead(text)` is told what the pointer is on.
export function drawMatrix({ rows, columns, weights, label }, onRead) {
  const size = Math.max(14, Math.min(26, Math.floor(620 / columns.length)));
  const left = width(rows), top = width(columns);
  const total = { width: left + size * columns.length + 8, height: top + size * rows.length + 8 };
  const svg = make("svg", { ...total, viewBox: `0 0 ${total.width} ${total.height}`, role: "img", "aria-label": label });
  const columnLabels = columns.map((piece, column) => make("text", {
    transform: `translate(${left + size * column + size / 2 + 4},${top - 6}) rotate(-90)`,
  }, piece));
  const rowLabels = rows.map((piece, row) => make("text", {
    x: left - 8, y: top + size * row + size / 2 + 4, "text-anchor": "end",
  }, piece));
  const cells = weights.flatMap((line, row) => line.flatMap((weight, column) => {
    const box = { x: left + size * column, y: top + size * row, width: size - 1, height: size - 1, rx: 2 };
    return [make("rect", { ...box, class: "ground" }), make("rect", { ...box, class: "weight", "fill-opacity": (weight / 255).toFixed(3) })];
  }));
  const cursor = make("rect", { class: "cursor", width: size - 1, height: size - 1, rx: 2, visibility: "hidden" });
  svg.append(...columnLabels, ...rowLabels, ...cells, cursor);
  const unmark = () => svg.querySelectorAll("text.on").forEach((text) => text.classList.remove("on"));
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - left) / size), row = Math.floor((event.clientY - box.top - top) / size);
    unmark();
    if (!(row in rows) || !(column in columns)) return;
    rowLabels[row].classList.add("on");
    columnLabels[column].classList.add("on");
    for (const [name, value] of Object.entries({ x: left + size * column, y: top + size * row, visibility: "visible" })) cursor.setAttribute(name, value);
    onRead(rows[row], columns[column], percent(weights[row][column]));
  });
  svg.addEventListener("pointerleave", () => { unmark(); cursor.setAttribute("visibility", "hidden"); });
  return svg;
}

// The same, a pixel for each weight.
export function drawThumbnail(weights) {
  const canvas = make("canvas", { width: weights[0].length, height: weights.length });
  const context = canvas.getContext("2d"), picture = context.createImageData(canvas.width, canvas.height);
  weights.flat().forEach((weight, index) => picture.data.set([...THUMBNAIL, weight], 4 * index));
  context.putImageData(picture, 0, 0);
  return canvas;
}

// For each row, the column with the largest weight: [[row, column, "87 %"]].
export function strongest({ rows, columns, weights }) {
  return rows.map((piece, row) => {
    const most = Math.max(...weights[row]);
    return [piece, columns[weights[row].indexOf(most)], percent(most)];
  });
}

// The mean of all heads.
export const mean = (heads) => heads[0].map((line, row) => line.map((_, column) =>
  Math.round(heads.reduce((sum, head) => sum + head[row][column], 0) / heads.length)));
