// Draw a matrix as coloured squares. Rows and columns are { label, key }; `key` identifies a token, or is undefined.

const SIZE = 22;

// `onRead(row, column)` is called with the square that the pointer, a tap or the arrow keys are on, and `onKeys` with
// the keys of its tokens. `onOpen(row, column)`, if given, is called when a square is clicked or Enter is pressed on
// it. The method `fill(values)` of the picture shows other numbers in the same squares.
function heatmap({ rows, columns, values, label, size = SIZE, reach, onRead = () => {}, onKeys = () => {}, onOpen }) {
  const isShort = (one) => [...one.label].length <= 2; // upright; longer labels are slanted
  const upright = columns.every(isShort);
  const left = 10 + Math.max(...rows.map((one) => textWidth(one.label)));
  const longest = Math.max(...columns.map((one) => textWidth(one.label)));
  const top = upright ? 22 : 12 + 0.82 * longest;
  const width = left + size * columns.length + (upright ? 4 : 0.6 * longest), height = top + size * rows.length + 4;
  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "application", tabindex: "0",
    "aria-label": `${label}: ${rows.length} rows, ${columns.length} columns; arrow keys read the values${onOpen ? ", Enter shows how one is computed" : ""}`,
    class: `heatmap${onOpen ? " opens" : ""}${size < 14 ? " small" : ""}` });
  const box = (row, column) => ({ x: left + size * column, y: top + size * row, width: size - 1, height: size - 1 });

  rows.forEach((one, r) => svg.append(draw("text", {
    x: left - 6, y: top + size * (r + 0.5) + 4, "text-anchor": "end", "data-token": one.key }, one.label)));
  columns.forEach((one, c) => {
    const x = left + size * (c + 0.5), y = top - 7;
    const turned = isShort(one) ? { x, y, "text-anchor": "middle" } : { transform: `translate(${x},${y}) rotate(-55)` };
    svg.append(draw("text", { ...turned, "data-token": one.key }, one.label));
  });
  const squares = rows.map((_, r) => columns.map((_, c) => {
    const square = draw("rect", box(r, c));
    svg.append(draw("rect", { ...box(r, c), class: "ground" }), square);
    return square;
  }));
  svg.fill = (values) => {
    const most = reach ?? Math.max(1e-9, ...values.flat().filter((value) => value !== null).map(Math.abs));
    values.forEach((line, r) => line.forEach((value, c) => {
      squares[r][c].setAttribute("class", value === null ? "masked" : value < 0 ? "negative" : "positive");
      squares[r][c].setAttribute("fill-opacity", value === null ? "0" : (Math.abs(value) / most).toFixed(3));
    }));
  };
  svg.fill(values);
  rows.forEach((one, r) => one.key && svg.append(draw("rect", {
    class: "band", "data-token": one.key, x: left, y: top + size * r, width: size * columns.length, height: size - 1 })));
  columns.forEach((one, c) => one.key && svg.append(draw("rect", {
    class: "band", "data-token": one.key, x: left + size * c, y: top, width: size - 1, height: size * rows.length })));

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
    const column = Math.floor((event.clientX - corner.left - left) / size), row = Math.floor((event.clientY - corner.top - top) / size);
    return row in rows && column in columns ? [row, column] : undefined;
  };
  for (const kind of ["pointermove", "click"]) {
    svg.addEventListener(kind, (event) => {
      const square = under(event);
      if (square) read(...square);
      if (square && kind === "click") onOpen?.(...square);
    });
  }
  svg.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && at[1] >= 0) onOpen?.(...at);
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (!step) return;
    event.preventDefault();
    const row = at[0] + step[0], column = Math.max(0, at[1]) + (at[1] < 0 ? 0 : step[1]);
    if (row in rows && column in columns) read(row, column);
  });
  return svg;
}

// Draw the matrix with one pixel for each number.
function thumbnail(values) {
  const canvas = make("canvas", { width: values[0].length, height: values.length, "aria-hidden": "true" });
  const context = canvas.getContext("2d"), picture = context.createImageData(canvas.width, canvas.height);
  values.flat().forEach((value, index) => picture.data.set([70, 130, 220, Math.round(255 * Math.abs(value))], 4 * index));
  context.putImageData(picture, 0, 0);
  return canvas;
}
