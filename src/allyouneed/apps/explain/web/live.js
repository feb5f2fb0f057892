// Turn a translation by the model that runs in the page (convert/web/translator.js) into a trace for showExplanation:
//
//   const result = translator.translate(text, { beam: 2, numbers: true, switches });
//   showExplanation(root, traceOfTranslation(text, result, translator.layers, switches));
//
// The trace has tokens, attention, steps, search and alignment. Parts that the model in the page does not compute, such
// as tensors, are missing, and their views are hidden. A blank text has no translation and no trace.

function traceOfTranslation(text, result, layers, { causal = true, scaling = true } = {}) {
  const [best] = result.hypotheses;
  const target = best.steps.map(({ piece, id }) => ({ piece, id }));
  const source = result.source.map((piece, i) => ({ piece, id: result.sourceIds[i] }));
  const padded = (row, length) => [...row, ...Array(Math.max(0, length - row.length)).fill(0)];
  const attention = layers.map(({ name, title, heads }) => {
    const isEncoder = name.startsWith("encoder"), reads = name.endsWith("self_attention");
    const weights = isEncoder ? result.encoderAttention[name]
      : Array.from({ length: heads }, (_, head) => best.steps.map((step) => padded(step.attention[name][head], reads ? target.length : source.length)));
    // Without the causal mask every step has its own keys, so no square can show how it is computed.
    const numbers = isEncoder ? result.encoderAttention[name].numbers : causal && numbersOfSteps(best.steps.map((step) => step.numbers?.[name]));
    return { name, title, ...(numbers && splitHeads(numbers, heads)), divisor: scaling ? undefined : 1, rows: isEncoder ? "source" : "target", columns: reads ? "inputs" : "source", weights };
  });
  const crossing = layers.filter(({ name }) => name.endsWith("cross_attention"));
  const beam = Math.max(1, ...result.beam.map((candidates) => candidates.filter(({ fate }) => fate === "kept").length));
  return {
    text, output: best.text, source, target, attention,
    inputs: [source[0], ...target.slice(0, -1)],
    search: { kind: beam > 1 ? "beam" : "greedy", beam, ending: best.finished ? "" : "The translation was cut off at its longest." },
    steps: best.steps.map(({ top, piece, probability }) => (top.some(({ chosen }) => chosen) ? top : [...top, { piece, probability, chosen: true }])),
    tree: treeOfBeam(result.beam, target),
    alignment: crossing.at(crossing.length >= 6 ? -2 : -1).name, // as alignment_layer in decode/likelihood.py
  };
}

// The queries of all steps, with the keys and values of the last step.
function numbersOfSteps(steps) {
  return steps.at(-1) && { ...steps.at(-1), query: steps.map(({ query }) => query.at(-1)) };
}

// Convert rows for all heads to rows for each head.
function splitHeads(numbers, heads) {
  const split = (rows) => Array.from({ length: heads }, (_, head) => rows.map((row) => {
    const width = row.length / heads;
    return [...row.slice(head * width, (head + 1) * width)];
  }));
  return Object.fromEntries(Object.entries(numbers).map(([name, rows]) => [name, split(rows)]));
}

// The hypotheses that were kept, as nodes; those that ended have a log-probability.
function treeOfBeam(steps, target) {
  const nodes = [{ piece: "<sos>", parent: null, total: 0, chosen: true, ended: null }];
  let before = [0]; // the nodes of the hypotheses kept in the step before
  steps.forEach((candidates, step) => {
    const kept = [];
    for (const { piece, total, parent, fate } of candidates) {
      if (fate === "ended") nodes[before[parent]].ended = total;
      if (fate !== "kept") continue;
      const chosen = nodes[before[parent]].chosen && piece === target[step]?.piece;
      kept.push(nodes.push({ piece, parent: before[parent], total, chosen, ended: null }) - 1);
    }
    before = kept;
  });
  return { nodes, expanded: nodes.length };
}
