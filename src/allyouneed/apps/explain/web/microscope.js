// Show how one attention weight is computed from the numbers of the model, in steps for ← and →.

// Compute every number between a query and the output of its head. `attention` has query, key and value by head (see
// explain.js). For masked keys the score is null and the weight 0.
function computeWeight(attention, head, row, column) {
  const { query, key, value, divisor, causal } = numbersOf(attention, head);
  const visible = causal ? row + 1 : key.length;
  const multiply = (one) => one.map((x, i) => x * query[row][i]);
  const add = (all) => all.reduce((sum, x) => sum + x, 0);
  const scores = key.map((one, k) => (k < visible ? add(multiply(one)) / divisor : null));
  const highest = Math.max(...scores.filter((score) => score !== null));
  const shares = scores.map((score) => (score === null ? 0 : Math.exp(score - highest)));
  const weights = shares.map((share) => share / add(shares));
  const products = multiply(key[column]), mixed = value.map((one, k) => one.map((x) => x * weights[k]));
  return {
    query: query[row], key: key[column], products, sum: add(products), divisor, score: scores[column], scores, weights, mixed,
    output: mixed[0].map((_, i) => add(mixed.map((one) => one[i]))),
  };
}

function numbersOf(attention, head) {
  attention.exact ??= Object.fromEntries(["query", "key", "value"].map((name) => [name, unpack(attention[name])]));
  const { query, key, value } = attention.exact;
  return { query: query[head], key: key[head], value: value[head], divisor: attention.divisor ?? Math.sqrt(key[head][0].length),
    causal: attention.name.startsWith("decoder") && attention.name.endsWith("self_attention") };
}

// Draw bars above and below a line, with numbers where there is room and with labels below, if there are any.
function bars(values, { width, labels, chosen, label, text = number }) {
  const room = width / values.length, height = 96, bottom = labels ? 18 : 2, reach = Math.max(1e-9, ...values.map((value) => Math.abs(value ?? 0)));
  const negative = values.some((value) => value < 0), middle = negative ? (height - bottom) / 2 : height - bottom - 2, full = (negative ? middle : middle) - 14;
  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${label}: ${values.map((value, i) => `${labels ? `${labels[i]} ` : ""}${value === null ? "masked" : text(value)}`).join(", ")}` });
  values.forEach((value, i) => {
    const x = i * room + room * 0.12, tall = (Math.abs(value ?? 0) / reach) * full, y = value < 0 ? middle : middle - tall;
    svg.append(draw("rect", { x, width: room * 0.76, y, height: Math.max(1, tall), class: `${value < 0 ? "negative" : "positive"}${chosen !== undefined && i !== chosen ? " pale" : ""}` }));
    const written = value === null ? "–" : text(value);
    if (textWidth(written) * 0.86 < room) svg.append(draw("text", { class: "soft", x: (i + 0.5) * room, y: value < 0 ? y + tall + 11 : y - 3, "text-anchor": "middle" }, written));
    if (labels) svg.append(draw("text", { class: i === chosen ? "lit" : "", x: (i + 0.5) * room, y: height - 4, "text-anchor": "middle" }, labels[i]));
  });
  svg.append(draw("line", { class: "zero", x1: 0, x2: width, y1: middle, y2: middle }));
  return svg;
}

const short = (value) => (value === null ? "masked" : value.toFixed(2).replace("-", "−"));

// Draw the panel. `at` is { head, row, column, step }, which changes as the reader goes on. `rows` and `columns` have
// labels.
function showMicroscope(root, { attention, rows, columns }, at) {
  root.hidden = false;
  const all = computeWeight(attention, at.head, at.row, at.column);
  const q = rows[at.row].label, k = columns[at.column].label, names = columns.map(({ label }) => (/^<.os>$/.test(label) ? "·" : label));
  const width = Math.max(240, Math.min(880, root.clientWidth - 32)), numbers = all.query.length;
  const keyword = attention.name.endsWith("cross_attention") ? "what is about to be written, " : "";
  const steps = [
    ["Query", [`The query of ${keyword}“${q}”: ${numbers} numbers, its vector times W_Q. It says what is looked for.`], () => bars(all.query, { width, label: "Query", text: short })],
    ["Key", [`The key of “${k}”: as many numbers, its vector times W_K. It says what can be found here.`], () => bars(all.key, { width, label: "Key", text: short })],
    ["Products", ["Number by number, query times key. Where both have the same sign, the product is positive."], () => bars(all.products, { width, label: "Products", text: short })],
    ["Sum", ["The sum of the products: ", make("b", {}, number(all.sum)), `. The larger, the better “${k}” is what “${q}” looks for.`]],
    [all.divisor === 1 ? "Not divided" : `÷ √${numbers}`, [`${number(all.sum)} ÷ ${number(all.divisor)} = `, make("b", {}, number(all.sum / all.divisor)), all.score === null ? ". This key is masked: its score becomes −∞, its weight 0." : ", the score."]],
    ["Softmax", [`The scores of the whole row, above, become weights, below: e to the power of each, divided by their sum. “${k}” gets `, make("b", {}, percent(all.weights[at.column])), "."],
      () => [bars(all.scores, { width, labels: names, chosen: at.column, label: "Scores", text: short }), bars(all.weights, { width, labels: names, chosen: at.column, label: "Weights", text: (weight) => String(Math.round(100 * weight)) })]],
    ["Values", ["The value of each key times its weight; their sum, as bars, is what the head passes on."],
      () => [wide(heatmap({ rows: columns.map(({ label }, c) => ({ label: `${names[c]} ${percent(all.weights[c])}` })), columns: all.output.map(() => ({ label: "" })), values: all.mixed, size: 16, label: "Weighted values",
        onRead: () => {} }), "Weighted values"), bars(all.output, { width, label: "Output of the head", text: short })]],
  ];
  const last = steps.length - 1;
  const list = make("ol", { class: "lens-steps" }), where = make("b", { role: "status" });
  const back = make("button", { type: "button", "aria-label": "Step back", onclick: () => go(at.step - 1) }, "←");
  const on = make("button", { type: "button", "aria-label": "Next step", onclick: () => go(at.step + 1) }, "→");
  function go(step) {
    at.step = Math.max(0, Math.min(last, step));
    where.textContent = `${at.step + 1} of ${last + 1}: ${steps[at.step][0]}`;
    back.disabled = at.step === 0;
    on.disabled = at.step === last;
    list.replaceChildren(...steps.slice(0, at.step + 1).map(([name, words, figure], index) =>
      make("li", { "aria-current": index === at.step ? "step" : undefined }, make("p", {}, make("b", {}, `${name}. `), ...words), ...[figure?.() ?? []].flat())));
    list.lastElementChild.scrollIntoView({ block: "nearest" });
  }
  root.onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step || event.target.closest("svg")) return;
    event.preventDefault();
    go(at.step + step);
  };
  for (const [name, value] of Object.entries({ tabindex: "0", role: "group", "aria-label": `How “${q}” attends to “${k}”: left and right arrow keys` })) root.setAttribute(name, value);
  root.replaceChildren(
    make("div", { class: "controls" }, make("b", {}, `Head ${at.head + 1}: how “${q}” attends to “${k}”`), make("span", { class: "buttons" }, back, where, on)), list);
  go(at.step);
}
