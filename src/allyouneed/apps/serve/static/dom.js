// Find and make elements.

export const $ = (id) => document.getElementById(id);

const SVG = new Set(["svg", "use", "rect", "text", "title", "g"]);

// make("button", { class: "main", onclick: f }, "Send") takes attributes, listeners (on…) and children.
export function make(tag, attributes = {}, ...children) {
  const node = SVG.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

export const icon = (name) => make("svg", { "aria-hidden": "true" }, make("use", { href: `static/icons.svg#${name}` }));

// Make tabs as WAI-ARIA describes them: one tab stop, and arrow keys to choose.
export function tabs(list, onChoose = () => {}) {
  const all = [...list.querySelectorAll("[role=tab]")];
  const choose = (tab) => {
    for (const one of all) {
      const chosen = one === tab;
      one.setAttribute("aria-selected", chosen);
      one.tabIndex = chosen ? 0 : -1;
      $(one.getAttribute("aria-controls")).hidden = !chosen;
    }
    onChoose(tab.id);
  };
  all.forEach((tab, index) => {
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const next = all[(index + step + all.length) % all.length];
      choose(next);
      next.focus();
    });
  });
  return (id) => choose($(id));
}

// Make a button that opens and closes the panel it controls.
export function disclosure(button, panel, onOpen = () => {}) {
  const set = (open) => {
    panel.hidden = !open;
    button.setAttribute("aria-expanded", open);
    if (open) onOpen();
  };
  button.addEventListener("click", () => set(panel.hidden));
  return set;
}
