// A matrix as coloured squares. Rows and columns are { label, key }; `key` is that of a token, or undefined.

const SIZE = 22;

// `onRead(row, column)` is told which square the pointer, a tap or the arrow keys are on.
function heatmap({ rows, columns, values, label, onRead, onKeys }) {
  const isShort = (one) => [...one.label].length <= 2; // upright; longer labels are slanted
  const upright = columns.every(isShort);
  const left = 10 + Math.max(...rows.map((one) => textWidth(one.label)));
  const longest = Math.max(...columns.map((one) => textWidth(one.label)));
  const top = upright ? 22 : 12 + 0.82 * longest;
  const width = left + SIZE * columns.length + (upright ? 4 : 0.6 * longest), height = top + SIZE * rows.length + 4;
  const reach = Math.max(1e-9, ...values.flat().filter((value) => value !== null).map(Math.abs));
  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "application", tabindex: "0",
    "aria-label": `${label}: ${rows.length} rows, ${columns.length} columns; arrow keys read the values`, class: "heatmap" });
  const box = (row, column) => ({ x: left + SIZE * column, y: top + SIZE * row, width: SIZE - 1, height: SIZE - 1 });

  rows.forEach((one, r) => svg.append(draw("text", {
    x: left - 6, y: top + SIZE * r + 15, "text-anchor": "end", "data-token": one.key }, one.label)));
  columns.forEach((one, c) => {
    const x = left + SIZE * c + SIZE / 2, y = top - 7;
    const turned = isShort(one) ? { x, y, "text-anchor": "middle" } : { transform: `translate(${x},${y}) rotate(-55)` };
    svg.append(draw("text", { ...turned, "data-token": one.key }, one.label));
  });
  values.forEach((line, r) => line.forEach((value, c) => {
    if (value === null) return svg.append(draw("rect", { ...box(r, c), class: "masked" }));
    svg.append(draw("rect", { ...box(r, c), class: "ground" }), draw("rect", {
      ...box(r, c), class: value < 0 ? "negative" : "positive", "fill-opacity": (Math.abs(value) / reach).toFixed(3) }));
  }));
  rows.forEach((one, r) => one.key && svg.append(draw("rect", {
    class: "band", "data-token": one.key, x: left, y: top + SIZE * r, width: SIZE * columns.length, height: SIZE - 1 })));
  columns.forEach((one, c) => one.key && svg.append(draw("rect", {
    class: "band", "data-token": one.key, x: left + SIZE * c, y: top, width: SIZE - 1, height: SIZE * rows.length })));

  const cursor = draw("rect", { class: "cursor", visibility: "hidden", ...box(0, 0) });
  svg.append(cursor);
  let at = [0, -1];
  const read = (row, column) => {
    at = [row, column];
    for (const [key, value] of Object.entries({ ...box(row, column), visibility: "visible" })) cursor.setAttribute(key, value);
    onKeys([rows[row].key, columns[column].key].filter(Boolean));
    onRead(row, column);
  };
  const under = (event) => {
    const corner = svg.getBoundingClientRect();
    const column = Math.floor((event.clientX - corner.left - left) / SIZE), row = Math.floor((event.clientY - corner.top - top) / SIZE);
    return row in rows && column in columns ? [row, column] : undefined;
  };
  for (const kind of ["pointermove", "click"]) {
    svg.addEventListener(kind, (event) => { const square = under(event); if (square) read(...square); });
  }
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (!step) return;
    event.preventDefault();
    const row = at[0] + step[0], column = Math.max(0, at[1]) + (at[1] < 0 ? 0 : step[1]);
    if (row in rows && column in columns) read(row, column);
  });
  return svg;
}

// The same, a pixel for each number.
function thumbnail(values) {
  const canvas = make("canvas", { width: values[0].length, height: values.length, "aria-hidden": "true" });
  const context = canvas.getContext("2d"), picture = context.createImageData(canvas.width, canvas.height);
  values.flat().forEach((value, index) => picture.data.set([70, 130, 220, Math.round(255 * Math.abs(value))], 4 * index));
  context.putImageData(picture, 0, 0);
  return canvas;
}
