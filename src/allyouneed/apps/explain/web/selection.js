// The token that is highlighted everywhere. An element belongs to the tokens of its data-token and data-other:
// "source:3" and "target:5" count from 0; <sos>, which the decoder reads at position 0, is "target:-1".

class Selection {
  // Listen until `signal` is aborted.
  constructor(root, onChange, signal) {
    this.root = root;
    this.onChange = onChange;
    this.pinned = [];
    this.keys = [];
    const tokens = (event) => {
      const element = event.target.closest?.("[data-token]");
      return element ? [element.dataset.token, element.dataset.other].filter(Boolean) : [];
    };
    root.addEventListener("pointerover", (event) => this.show(tokens(event)), { signal });
    root.addEventListener("pointerleave", () => this.show([]), { signal });
    root.addEventListener("focusin", (event) => this.show(tokens(event)), { signal });
    root.addEventListener("click", (event) => {
      const keys = tokens(event);
      if (keys.length) this.pin(keys);
    }, { signal });
    root.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.pin(this.pinned);
    }, { signal });
  }

  // Keep some tokens highlighted when the pointer leaves them; a second call with the same tokens ends this.
  pin(keys) {
    this.pinned = keys.join() === this.pinned.join() ? [] : keys;
    for (const button of this.root.querySelectorAll("button[data-token]")) {
      button.setAttribute("aria-pressed", String(this.pinned.includes(button.dataset.token)));
    }
    this.light(this.pinned);
  }

  // Highlight tokens for the moment; without tokens, highlight the pinned ones.
  show(keys) {
    this.light(keys.length ? keys : this.pinned);
  }

  light(keys, always = false) {
    if (!always && keys.join() === this.keys.join()) return;
    this.keys = keys;
    for (const element of this.root.querySelectorAll("[data-token]")) {
      const { token, other } = element.dataset;
      element.classList.toggle("lit", keys.includes(token) && (!other || keys.length === 1 || keys.includes(other))
        || (other !== undefined && keys.length === 1 && keys.includes(other)));
    }
    for (const svg of this.root.querySelectorAll("svg.lines")) {
      svg.classList.toggle("some-lit", svg.querySelector(".weight.lit") !== null);
    }
    this.onChange(keys);
  }

  // Highlight again after something was redrawn.
  refresh() {
    this.light(this.keys, true);
  }
}

// Make tokens buttons. The arrow keys move among them, so that Tab passes all of them in one step.
function tokenToolbar(toolbar, tokens, side, signal) {
  const buttons = tokens.map(({ piece }, index) => make("button", {
    type: "button", class: "token", "data-token": `${side}:${index}`, "aria-pressed": "false", tabindex: index ? "-1" : "0",
  }, piece));
  toolbar.replaceChildren(...buttons);
  toolbar.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const next = step && buttons[buttons.indexOf(document.activeElement) + step];
    if (!next) return;
    event.preventDefault();
    buttons.forEach((button) => button.setAttribute("tabindex", button === next ? "0" : "-1"));
    next.focus();
  }, { signal });
}
