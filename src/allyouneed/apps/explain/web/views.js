// One function for each view, which fills its part of the page from the trace.

const label = (token, side, index) => ({ label: token.piece, key: `${side}:${index}` });
const side = {
  source: (trace) => trace.source.map((token, i) => label(token, "source", i)),
  target: (trace) => trace.target.map((token, i) => label(token, "target", i)),
  inputs: (trace) => trace.inputs.map((token, i) => label(token, "target", i - 1)), // read at i, written one step before
};

function piecesView(part, trace) {
  const row = (name, tokens, kind) => make("p", {}, make("span", { class: "soft" }, name), " ", ...tokens.map((token, index) =>
    make("span", { class: "token", "data-token": `${kind}:${index}` }, token.piece, make("small", {}, String(token.id)))));
  part.replaceChildren(row("text", trace.source, "source"), row("translation", trace.target, "target"));
}

// Return the heads of an attention as numbers, which are unpacked only once.
function headsOf(attention) {
  attention.numbers ??= unpack(attention.weights);
  return attention.numbers;
}

// The view of attention: which attention, which head (0 is the mean of all), and whether as a matrix or as lines.
class AttentionView {
  // `before` is the view of the previous trace, whose choices are kept.
  constructor(parts, trace, selection, signal, before) {
    const aligning = trace.attention.findIndex(({ name }) => name === trace.alignment);
    const chosen = before?.trace.attention.length === trace.attention.length ? before : { head: 0, drawing: 0, number: aligning };
    const { head, drawing, number } = chosen;
    this.opened = chosen.opened;
    Object.assign(this, { parts, trace, selection, head, drawing, number: number < 0 ? trace.attention.length - 1 : number });
    parts["attention-choice"].replaceChildren(...trace.attention.map(({ title }, index) => make("option", { value: String(index) }, title)));
    parts["attention-choice"].addEventListener("change", (event) => this.show(Number(event.target.value), this.head), { signal });
    choice(parts["drawing-choice"], ["Matrix", "Lines"], this.drawing, (drawing) => { this.drawing = drawing; this.draw(); });
    this.show(this.number, this.head);
  }

  get attention() { return this.trace.attention[this.number]; }
  get rows() { return side[this.attention.rows](this.trace); }
  get columns() { return side[this.attention.columns](this.trace); }
  get weights() { return this.head ? headsOf(this.attention)[this.head - 1] : meanOfHeads(headsOf(this.attention)); }

  show(number, head) {
    this.number = number;
    const count = headsOf(this.attention).length;
    this.head = Math.min(head, count);
    this.parts["attention-choice"].value = String(number);
    const labels = ["Mean", ...Array.from({ length: count }, (_, index) => `Head ${index + 1}`)];
    choice(this.parts["head-choice"], labels, this.head, (chosen) => { this.head = chosen; this.draw(); });
    this.draw();
  }

  // Show how the weight of a square is computed; for the mean, in the head with the largest weight.
  open(row, column) {
    const shares = headsOf(this.attention).map((weights) => weights[row][column]);
    this.opened = { head: this.head ? this.head - 1 : shares.indexOf(Math.max(...shares)), row, column, step: this.opened?.step ?? 0 };
    showMicroscope(this.parts.microscope, this, this.opened);
  }

  // Return the same square in the present drawing, if it exists.
  openAgain() {
    const { opened } = this;
    const isThere = opened && this.attention.query && opened.row in this.rows && opened.column in this.columns;
    this.parts.microscope.hidden = !isThere;
    if (isThere) this.open(opened.row, opened.column);
  }

  draw() {
    const { rows, columns, weights, selection, parts } = this;
    const name = `${this.attention.title}, ${this.head ? `head ${this.head}` : "mean of all heads"}`;
    const found = this.head && this.trace.heads?.find(({ attention, head }) => attention === this.attention.name && head === this.head);
    parts.finding.textContent = found ? `Head ${this.head}: ${found.finding}.` : "The mean of all heads.";
    const read = (r, c) => selection.say(...quoted(rows[r].label), " attends to ", ...quoted(columns[c].label), `: ${percent(weights[r][c])}`);
    const figure = this.drawing === 0
      ? heatmap({ rows, columns, values: weights, label: name, onRead: read, onKeys: (keys) => selection.show(keys),
        onOpen: this.attention.query && ((r, c) => { this.open(r, c); parts.microscope.focus({ preventScroll: true }); parts.microscope.scrollIntoView({ block: "nearest" }); }) })
      : lines({ rows, columns, values: weights, label: `${name}, as lines; the table below has the values` });
    const header = ["query", ...columns.map((one) => numeric(one.label))];
    const numbers = () => rows.map((one, r) => [one.label, ...weights[r].map((weight) => weight.toFixed(3))]);
    parts.attention.replaceChildren(wide(figure, name), ...(this.drawing ? notDrawn(weights) : []), valuesTable(header, numbers, `Weights of ${name}`));
    this.openAgain();
    selection.refresh();
  }

  // Describe what a token attends to in the present head, and what attends to the token.
  describe(key) {
    const { rows, columns, weights } = this;
    const best = (pairs) => pairs.sort((a, b) => b[1] - a[1]).slice(0, 3).flatMap(([piece, weight], n) => [n ? ", " : "", ...quoted(piece), ` ${percent(weight)}`]);
    const r = rows.findIndex((one) => one.key === key), c = columns.findIndex((one) => one.key === key);
    const parts = [];
    if (r >= 0) parts.push("attends to ", ...best(columns.map((one, index) => [one.label, weights[r][index]])));
    if (r >= 0 && c >= 0) parts.push("; ");
    if (c >= 0) parts.push("most attended to by ", ...best(rows.map((one, index) => [one.label, weights[index][c]])));
    return parts;
  }
}

function headsView(part, trace, attentionView) {
  const titles = new Map(trace.attention.map((attention, index) => [attention.name, [attention, index]]));
  const button = (name, head, ...inside) => {
    const [attention, index] = titles.get(name);
    return make("button", { type: "button", "aria-label": `Show ${attention.title}, head ${head}`, onclick: () => {
      attentionView.show(index, head);
      attentionView.parts["attention-choice"].scrollIntoView({ block: "center" });
      attentionView.parts["attention-choice"].focus({ preventScroll: true });
    } }, ...inside, String(head));
  };
  const picture = (name, head) => button(name, head, thumbnail(headsOf(titles.get(name)[0])[head - 1]), " ");
  const claims = (trace.claims ?? []).map(({ attention, head, text }) => make("li", {}, picture(attention, head), make("span", {}, make("b", {}, titles.get(attention)[0].title), `: ${text}.`)));
  const rows = trace.heads.filter(({ without }) => !without).map(({ attention: name, head, finding, entropy, strongest }) => {
    const [attention] = titles.get(name);
    const query = side[attention.rows](trace)[strongest.row].label, key = side[attention.columns](trace)[strongest.column].label;
    return [attention.title, picture(name, head), finding, make("span", {}, ...quoted(query), " → ", ...quoted(key), ` ${percent(strongest.weight)}`), entropy.toFixed(2)];
  });
  part.replaceChildren(
    ...(claims.length ? [make("ul", { class: "claims" }, ...claims), make("p", {}, "On this text:")] : []),
    ...(rows.length ? [wide(table(["attention", "head", "finding", "largest weight", numeric("entropy, bits")], rows, { class: "heads" }), "What each head does")] : []),
    ...withoutPattern(trace, titles, button));
}

// Describe the heads without a pattern in one sentence, with a button for each.
function withoutPattern(trace, titles, button) {
  const without = trace.heads.filter((one) => one.without), words = [];
  for (const [kind, all] of Map.groupBy(without, (one) => one.without)) {
    words.push(` ${kind[0].toUpperCase()}${kind.slice(1)}: `);
    const parts = [...Map.groupBy(all, ({ attention }) => attention)];
    parts.forEach(([name, heads], index) => words.push(index ? "; " : "", `${titles.get(name)[0].title} `, ...heads.map(({ head }) => button(name, head))));
    words.push(".");
  }
  return without.length ? [make("p", { class: "without" }, `${without.length} of ${trace.heads.length} heads follow no pattern here.`, ...words)] : [];
}

function stepsView(part, trace) {
  part.replaceChildren(...trace.steps.map((candidates, step) => {
    const written = trace.target[step]?.piece;
    return make("li", { "data-token": `target:${step}` },
      make("span", { class: "soft" }, String(step + 1)), make("span", { class: "written mono" }, written ?? ""),
      ...candidates.map(({ piece, probability, chosen }) => make("span", { class: chosen ? "candidate chosen" : "candidate" },
        make("span", {}, make("b", { class: "mono" }, isolated(piece)), ` ${percent(probability)}`),
        make("meter", { min: "0", max: "1", value: String(probability), "aria-hidden": "true" }))));
  }));
}

// Return true if the search extended anything but the translation.
const branches = (trace) => trace.tree?.nodes.some((node) => !node.chosen) ?? false;

function searchView(parts, trace) {
  const { kind, beam, ending } = trace.search;
  const { nodes, expanded } = trace.tree ?? { nodes: [], expanded: 0 };
  const how = { sample: "Sampling draws one token at each step. ", greedy: "Greedy search, a beam of 1, takes the most probable token at each step. " }[kind] ?? "";
  parts.ending.textContent = `${how}${ending ?? ""}`;
  if (!branches(trace)) return;
  const left = expanded > nodes.length ? ` The ${nodes.length} most probable of ${expanded} prefixes are drawn.` : "";
  parts.search.textContent = `A beam of ${beam} keeps ${beam === 1 ? "1 hypothesis" : `${beam} hypotheses`} at each step. This tree has the prefixes that were expanded; the translation is green, and what could end there has its score.${left}`;
  const rows = () => nodes.map((node, index) => [make("span", {}, ...prefixPieces(nodes, index).flatMap((piece) => [isolated(piece), " "])), number(node.total), node.ended === null ? "" : number(node.ended), node.chosen ? "yes" : ""]);
  parts.tree.replaceChildren(wide(searchTree(nodes), "The search as a tree"),
    valuesTable(["prefix", numeric("log-probability"), numeric("score if it ends here"), "translation"], rows, "Prefixes of the search"));
}

function alignmentView(parts, trace) {
  const attention = trace.attention.find(({ name }) => name === trace.alignment);
  parts["alignment-layer"].textContent = attention.title;
  const rows = side.target(trace), columns = side.source(trace), values = meanOfHeads(headsOf(attention));
  const numbers = () => rows.map((one, r) => {
    const most = values[r].indexOf(Math.max(...values[r]));
    return [one.label, columns[most].label, percent(values[r][most])];
  });
  parts.alignment.replaceChildren(wide(lines({ rows, columns, values, label: "Alignment, as lines; the table below has the values" }), "Alignment"), ...notDrawn(values),
    valuesTable(["token of the translation", "attends most to", numeric("weight")], numbers, "Alignment"));
}

function lensView(part, trace) {
  const head = make("tr", {}, make("th", { scope: "col" }, "predicted"), ...trace.target.map((token, t) =>
    make("th", { scope: "col", class: "mono", "data-token": `target:${t}` }, token.piece)));
  const rows = trace.lens.map(({ title, tokens }) => make("tr", {}, make("th", { scope: "row" }, title), ...tokens.map(({ piece, probability }, t) =>
    make("td", { "data-token": `target:${t}` }, make("span", { class: "mono" }, piece), make("span", { class: "soft" }, percent(probability))))));
  part.replaceChildren(wide(make("table", { class: "lens" }, make("thead", {}, head), make("tbody", {}, ...rows)), "The logit lens"));
}

function streamView(part, trace) {
  const most = { norm: Math.max(...trace.stream.map((stage) => stage.norm)), change: Math.max(...trace.stream.map((stage) => stage.change)) };
  const bar = (stage, key) => make("span", {}, make("meter", { min: "0", max: String(most[key] || 1), value: String(stage[key]), "aria-hidden": "true" }), ` ${number(stage[key])}`);
  const rows = trace.stream.map((stage) => [`${stage.stack}: ${stage.part}`, bar(stage, "norm"), bar(stage, "change")]);
  part.replaceChildren(wide(table(["after", "mean norm", "relative change"], rows), "The residual stream"));
}

function tensorsView(parts, trace, selection, signal) {
  const select = parts["tensor-choice"];
  const weights = trace.attention.map((attention) => ({ ...attention, group: "attention weights", values: attention.weights, note: "" }));
  const tensors = [...trace.tensors, ...weights];
  const groups = new Map();
  tensors.forEach((tensor, index) => {
    if (!groups.has(tensor.group)) groups.set(tensor.group, make("optgroup", { label: tensor.group }));
    groups.get(tensor.group).append(make("option", { value: String(index) }, tensor.title));
  });
  select.replaceChildren(...groups.values());

  const drawTensor = (tensor, heads, head) => {
    const values = heads ? heads[head] : unpack(tensor.values);
    const rows = side[tensor.rows](trace).slice(0, values.length);
    const named = Array.isArray(tensor.columns) ? tensor.columns.map((piece) => ({ label: piece })) : side[tensor.columns]?.(trace);
    const columns = named?.slice(0, values[0].length) ?? values[0].map((_, index) => ({ label: index % 8 && index + 1 < values[0].length ? "" : String(index + 1) }));
    const columnName = (c) => (named ? quoted(columns[c].label) : [`dimension ${c + 1}`]);
    const name = `${tensor.group}, ${tensor.title}${heads ? `, head ${head + 1}` : ""}`;
    const read = (r, c) => selection.say(...quoted(rows[r].label), ", ", ...columnName(c), `: ${number(values[r][c])}`);
    const numbers = () => rows.map((one, r) => [one.label, ...values[r].map((value) => (value === null ? "masked" : number(value)))]);
    const flat = values.flat().filter((value) => value !== null);
    parts["tensor-about"].textContent = `${rows.length} rows, one a token, and ${columns.length} columns; values from ${number(Math.min(...flat))} to ${number(Math.max(...flat))}. ${tensor.note}`;
    parts.tensor.replaceChildren(wide(heatmap({ rows, columns, values, label: name, onRead: read, onKeys: (keys) => selection.show(keys) }), name),
      valuesTable(["token", ...columns.map((_, c) => numeric(make("span", {}, ...columnName(c))))], numbers, `Values of ${name}`));
    selection.refresh();
  };
  const showTensor = () => {
    const tensor = tensors[Number(select.value)];
    const nested = unpack(tensor.values), heads = Array.isArray(nested[0][0]) ? nested : undefined;
    choice(parts["tensor-head"], heads ? heads.map((_, index) => `Head ${index + 1}`) : [], 0, (head) => drawTensor(tensor, heads, head));
    drawTensor(tensor, heads, 0);
  };
  select.addEventListener("change", showTensor, { signal });
  showTensor();
}
