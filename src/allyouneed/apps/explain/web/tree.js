// Draw the prefixes of a search as a tree. Nodes are { piece, parent, total, chosen, ended }; the first one is the
// root.

function searchTree(nodes) {
  const children = nodes.map(() => []), depth = nodes.map(() => 0);
  nodes.forEach((node, index) => {
    if (node.parent === null) return;
    children[node.parent].push(index);
    depth[index] = depth[node.parent] + 1;
  });
  const row = placeRows(nodes, children, depth);
  const ending = (node) => `end ${number(node.ended)}`;
  const isInner = (index) => children[index].length > 0;
  const widths = Array(Math.max(...depth) + 1).fill(0); // of columns: the label of an inner node that has ended is below it
  nodes.forEach((node, index) => {
    const below = node.ended !== null && isInner(index) ? textWidth(ending(node)) : 0;
    widths[depth[index]] = Math.max(widths[depth[index]], 26 + Math.max(textWidth(node.piece), below));
  });
  const starts = widths.map((_, column) => widths.slice(0, column).reduce((sum, one) => sum + one, 6));
  const ends = Math.max(...nodes.map((node) => (node.ended === null ? 0 : textWidth(ending(node)))));
  const width = starts.at(-1) + widths.at(-1) + ends, height = 24 * (Math.max(...row) + 1) + 12;
  const x = (index) => starts[depth[index]], y = (index) => 20 + 24 * row[index];
  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `Tree of ${nodes.length} prefixes; the table below has their scores` });
  nodes.forEach((node, index) => {
    if (node.parent === null) return;
    const start = x(node.parent) + textWidth(nodes[node.parent].piece) + 4, middle = x(index) - 12;
    svg.append(draw("path", { class: node.chosen ? "edge chosen" : "edge",
      d: `M${start},${y(node.parent) - 4} H${Math.max(start, middle)} L${x(index) - 4},${y(index) - 4}` }));
  });
  nodes.forEach((node, index) => {
    const key = node.chosen && depth[index] ? `target:${depth[index] - 1}` : undefined;
    svg.append(draw("text", { x: x(index), y: y(index), class: node.chosen ? "chosen" : undefined, "data-token": key }, node.piece));
    if (node.ended === null) return;
    const position = isInner(index) ? { x: x(index), y: y(index) + 11 } : { x: x(index) + textWidth(node.piece) + 6, y: y(index) };
    svg.append(draw("text", { class: "soft", ...position }, ending(node)));
  });
  return svg;
}

// Assign a row to every node. The translation has the first row. Any other branch gets the next row below its parent
// that has room for it, so that later branches can use the rest of a row.
function placeRows(nodes, children, depth) {
  const row = nodes.map(() => 0), taken = [];
  const place = (start, from) => {
    const branch = [start];
    const inside = (index) => [...children[index]].sort((a, b) => nodes[b].chosen - nodes[a].chosen || nodes[b].total - nodes[a].total);
    for (let next = inside(start)[0]; next !== undefined; next = inside(next)[0]) branch.push(next);
    const span = [depth[start] - 1, ...branch.map((index) => depth[index]), depth[branch.at(-1)] + 1, depth[branch.at(-1)] + 2];
    let at = from;
    while (span.some((column) => taken[at]?.has(column))) at++;
    taken[at] = new Set([...(taken[at] ?? []), ...span]);
    for (const index of branch) row[index] = at;
    for (const index of branch.reverse()) for (const child of inside(index).slice(1)) place(child, at + 1);
  };
  place(0, 0);
  return row;
}

// Return the tokens of a prefix.
function prefixPieces(nodes, index) {
  const { parent, piece } = nodes[index];
  return parent === null ? [piece] : [...prefixPieces(nodes, parent), piece];
}
