// The data kept in this browser: glossary, colours, chosen languages and, if requested, an API key. Never a text.

const memory = new Map(); // where the browser refuses storage, until the page closes

export function load(name, fallback) {
  try {
    return JSON.parse(localStorage.getItem(`allyouneed.${name}`)) ?? memory.get(name) ?? fallback;
  } catch {
    return memory.get(name) ?? fallback;
  }
}

export function store(name, value) {
  memory.set(name, value);
  try {
    if (value === undefined) localStorage.removeItem(`allyouneed.${name}`);
    else localStorage.setItem(`allyouneed.${name}`, JSON.stringify(value));
  } catch { /* kept in memory */ }
}
