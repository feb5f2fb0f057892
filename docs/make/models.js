// Which of `models` a page shows: the one that is chosen in `select`. `input` gets its text, and `changed` is called.
let translator = models[0].translator;

function chooseModel(select, input, changed) {
  select.append(...models.map(({ name }) => Object.assign(document.createElement("option"), { textContent: name })));
  select.addEventListener("change", () => {
    const { text, translator: chosen } = models[select.selectedIndex];
    translator = chosen;
    input.value = text;
    changed();
  });
  input.value = models[0].text;
}
