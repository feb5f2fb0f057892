// On the page of attention: the plane, and the attention of a live model with its microscope.
showPlane(document.querySelector(".plane"));
{ // a scope of its own
const root = document.querySelector(".explanation.closely"), input = document.querySelector("#closely-input");
function show() {
  const result = translator.translate(input.value, { numbers: true });
  root.hidden = !result.hypotheses.length;
  if (root.hidden) return;
  const { text, output, source, target, inputs, attention, alignment } = traceOfTranslation(input.value, result, translator.layers);
  showExplanation(root, { text, output, source, target, inputs, attention });
  if (!root.explanation.attention.opened) root.explanation.attention.show(attention.findIndex(({ name }) => name === alignment), 0);
}
chooseModel(document.querySelector("#closely-model"), input, show);
input.addEventListener("input", () => { try { show(); } catch (error) { root.hidden = true; } });
show();
}
