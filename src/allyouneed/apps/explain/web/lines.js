// Draw attention as lines from queries, on the left, to keys, on the right. Both are { label, key }.

const LEAST = 0.04; // weight that is drawn, but for the largest of each row

const isDrawn = (weight, line) => weight >= LEAST || weight === Math.max(...line);

// Return a paragraph about what the lines leave out, or nothing.
function notDrawn(values) {
  const isWhole = values.every((line) => line.every((weight) => weight === 0 || isDrawn(weight, line)));
  return isWhole ? [] : [make("p", { class: "soft" }, `Weights below ${percent(LEAST)} are not drawn, except the largest of each row.`)];
}

function lines({ rows, columns, values, label }) {
  const left = 12 + Math.max(...rows.map((one) => textWidth(one.label)));
  const right = 12 + Math.max(...columns.map((one) => textWidth(one.label)));
  const gap = 170, width = left + gap + right, height = SIZE * Math.max(rows.length, columns.length) + 24;
  const from = (r) => 24 + SIZE * (r + 0.5), to = (c) => 24 + SIZE * (c + 0.5);
  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: "lines" });
  svg.append(draw("text", { x: left - 6, y: 13, "text-anchor": "end", class: "soft" }, "query"));
  svg.append(draw("text", { x: left + gap + 6, y: 13, class: "soft" }, "key"));
  values.forEach((line, r) => line.forEach((weight, c) => {
    if (!isDrawn(weight, line)) return;
    svg.append(draw("line", { class: "weight", "data-token": rows[r].key, "data-other": columns[c].key,
      x1: left, y1: from(r), x2: left + gap, y2: to(c), "stroke-opacity": Math.min(1, 0.3 + weight).toFixed(3),
      "stroke-width": (1 + 5 * weight).toFixed(2) }));
  }));
  rows.forEach((one, r) => svg.append(draw("text", { x: left - 6, y: from(r) + 4, "text-anchor": "end", "data-token": one.key }, one.label)));
  columns.forEach((one, c) => svg.append(draw("text", { x: left + gap + 6, y: to(c) + 4, "data-token": one.key }, one.label)));
  return svg;
}
