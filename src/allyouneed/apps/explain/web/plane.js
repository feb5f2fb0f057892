// Attention in a plane: a query and four keys that can be dragged, or moved with the arrow keys; weights and output
// follow. All are vectors from the origin. A key is measured along the query: q · k is the length of q times the
// distance from the origin to the foot of the key. Every key has a number as its value. showPlane(root) fills `root`.

function showPlane(root) {
  const size = 300, unit = size / 5, points = { q: [0.9, 0.6], A: [1.7, 0.4], B: [0.6, 1.8], C: [-1.5, 1], D: [0.6, -1.5] };
  const values = { A: 10, B: 20, C: 30, D: 40 }, keys = Object.keys(values);
  const signed = (value) => (Math.round(100 * value) / 100 + 0).toFixed(2).replace("-", "−"); // no −0.00
  const x = (one) => size / 2 + one[0] * unit, y = (one) => size / 2 - one[1] * unit;
  const svg = draw("svg", { width: size, height: size, viewBox: `0 0 ${size} ${size}`, class: "plane-drawing" });
  svg.append(draw("line", { class: "zero", x1: 0, x2: size, y1: size / 2, y2: size / 2 }), draw("line", { class: "zero", y1: 0, y2: size, x1: size / 2, x2: size / 2 }));
  const along = draw("line", { class: "along" }), line = () => draw("line", { class: "weight" });
  const vectors = Object.fromEntries(keys.map((key) => [key, { arrow: line(), drop: draw("line", { class: "drop" }), foot: draw("circle", { class: "foot", r: 3.5 }) }]));
  const query = draw("line", { class: "query" });
  svg.append(along, ...Object.values(vectors).flatMap(({ arrow, drop, foot }) => [drop, arrow, foot]), query);
  const handles = Object.fromEntries(Object.keys(points).map((name) => {
    const handle = draw("g", { tabindex: "0", role: "button", class: name === "q" ? "handle asks" : "handle" },
      draw("circle", { r: name === "q" ? 14 : 13 }), draw("text", { "text-anchor": "middle", y: 4 }, name));
    const move = ([a, b]) => { points[name] = [a, b].map((one) => Math.max(-2.3, Math.min(2.3, Math.round(one * 10) / 10))); show(); };
    handle.addEventListener("pointerdown", (event) => { handle.setPointerCapture(event.pointerId); handle.focus(); event.preventDefault(); });
    handle.addEventListener("pointermove", (event) => {
      if (!handle.hasPointerCapture(event.pointerId)) return;
      const box = svg.getBoundingClientRect();
      move([(event.clientX - box.left) / box.width * 5 - 2.5, 2.5 - (event.clientY - box.top) / box.height * 5]);
    });
    handle.addEventListener("keydown", (event) => {
      const step = { ArrowRight: [0.1, 0], ArrowLeft: [-0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
      if (!step) return;
      event.preventDefault();
      move([points[name][0] + step[0], points[name][1] + step[1]]);
    });
    return [name, handle];
  }));
  svg.append(...Object.values(handles));
  const numbers = make("div", {}), note = make("p", { class: "soft" }), output = make("p", { class: "reading" });
  root.replaceChildren(make("div", { class: "plane-and-numbers" }, svg, make("div", { class: "beside-plane" }, wide(numbers, "Weights"), note, output)));

  function place(line, from, to) {
    for (const [name, value] of Object.entries({ x1: x(from), y1: y(from), x2: x(to), y2: y(to) })) line.setAttribute(name, value);
  }

  function show() {
    const reaches = {};
    const scores = keys.map((key) => (points.q[0] * points[key][0] + points.q[1] * points[key][1]) / Math.SQRT2);
    const shares = scores.map((score) => Math.exp(score - Math.max(...scores))), sum = shares.reduce((all, one) => all + one, 0);
    const weights = shares.map((share) => share / sum);
    const mixed = keys.reduce((all, key, i) => all + weights[i] * values[key], 0);
    for (const [name, handle] of Object.entries(handles)) {
      handle.setAttribute("transform", `translate(${x(points[name])},${y(points[name])})`);
      handle.setAttribute("aria-label", `${name === "q" ? "Query" : `Key ${name}`} at ${points[name].join(", ")}; arrow keys move it`);
    }
    const length = Math.hypot(...points.q), [right, up] = points.q.map((one) => one / (length || 1));
    place(query, [0, 0], points.q);
    place(along, [-4 * right, -4 * up], [4 * right, 4 * up]);
    keys.forEach((key, i) => {
      const { arrow, drop, foot } = vectors[key], reach = points[key][0] * right + points[key][1] * up, end = [reach * right, reach * up];
      place(arrow, [0, 0], points[key]);
      arrow.setAttribute("stroke-width", (0.5 + 9 * weights[i]).toFixed(2));
      place(drop, points[key], end);
      foot.setAttribute("cx", x(end));
      foot.setAttribute("cy", y(end));
      reaches[key] = reach;
    });
    const rows = keys.map((key, i) => [key, signed(reaches[key]), signed(scores[i] * Math.SQRT2), signed(scores[i]),
      make("span", {}, make("meter", { min: "0", max: "1", value: String(weights[i]), "aria-hidden": "true" }), ` ${percent(weights[i])}`), String(values[key])]);
    numbers.replaceChildren(table(["key", numeric("along q"), numeric("q · k"), numeric("÷ √2"), "weight", numeric("value")], rows));
    note.replaceChildren(`q is ${length.toFixed(2)} long; q · k is that times the way along q.`);
    output.replaceChildren("Output: ", make("b", {}, mixed.toFixed(1)), ` = ${keys.map((key, i) => `${weights[i].toFixed(2)} · ${values[key]}`).join(" + ")}`);
  }
  show();
}
