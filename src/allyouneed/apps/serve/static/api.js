// The requests to the server, one function each. All their failures become one kind of error.

import { getKey } from "./key.js";

// `kind`: "offline", "wait" (with `seconds`), "key", "request" or "server".
export class ServerError extends Error {
  constructor(message, kind, seconds = 0) {
    super(message);
    Object.assign(this, { kind, seconds });
  }
}

function explain(status, text, retryAfter) {
  const seconds = Math.max(1, Number.parseInt(retryAfter, 10) || 0);
  if (status === 429) {
    const most = text.replace(/^Slowdown: /, "");
    return new ServerError(most ? `Too many requests: this server takes ${most}.` : "Too many requests.", "wait", retryAfter ? seconds : 10);
  }
  if (status === 503 || status === 504) return new ServerError("The server is busy.", "wait", retryAfter ? seconds : 5);
  if (status === 403 && retryAfter) return new ServerError(text || "This is not allowed now.", "wait", seconds);
  if (status === 401 || status === 403 || /api key/i.test(text)) return new ServerError(text || "This is not allowed.", "key");
  if (status >= 500) return new ServerError(text || `The server failed (${status}).`, "server");
  return new ServerError(text || `The server refused the request (${status}).`, "request");
}

function message(body) {
  const found = body?.error?.message ?? body?.error ?? body?.detail ?? body?.message;
  if (Array.isArray(found)) return found.map((one) => one.msg ?? one).join("; ");
  return typeof found === "string" ? found : "";
}

const readJson = (text) => { try { return JSON.parse(text); } catch { return {}; } };

const keyHeader = () => (getKey() ? { Authorization: `Bearer ${getKey()}` } : {});

async function call(path, body, signal) {
  let response;
  try {
    response = await fetch(path, {
      method: body === undefined ? "GET" : "POST",
      headers: { ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...keyHeader() },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError("The server cannot be reached.", "offline");
  }
  const answer = readJson(await response.text());
  if (!response.ok) throw explain(response.status, message(answer), response.headers.get("Retry-After"));
  return answer;
}

export const fetchLanguages = () => call("languages");
export const fetchSettings = () => call("frontend/settings");

// Detect the language of a text: { language, confidence }, from 0 to 100.
export async function detect(text, signal) {
  const [best] = await call("detect", { q: text, api_key: getKey() }, signal);
  return best;
}

// Return the sentences of each text, { text, before, gap }: the text before it, and the text to put before its
// translation.
export async function findSentences({ texts, source, target, glossary }, signal) {
  return (await call("v1/sentences", { texts, source, target, glossary }, signal)).sentences;
}

// Translate some sentences. Each result is { text, confidence, flags, alignment, alternatives }.
export async function translate({ texts, source, target, glossary, prefix = "", alternatives = 0 }, signal) {
  const body = { texts, source, target, align: "words", glossary, prefix, alternatives, split_sentences: false };
  return (await call("v1/translate", body, signal)).translations;
}

export const explainText = (text, source, target, signal) => call("v1/explain", { text, source, target }, signal);

export const suggest = (q, s, source, target) => call("suggest", { q, s, source, target, api_key: getKey() });

export const fetchTraining = () => call("v1/training");

// Export the model as one HTML file.
export async function fetchPage() {
  const response = await fetch("v1/training/page", { headers: keyHeader() });
  if (!response.ok) throw explain(response.status, message(readJson(await response.text())), null);
  return response.blob();
}

// Return the events of a stream so far, each { name, data }, without an incomplete last one.
function readEvents(text) {
  return text.split("\n\n").slice(0, -1).map((part) => {
    const [, name = "", data] = /^(?:event: (.*)\n)?data: (.*)$/.exec(part) ?? [];
    return { name, data: readJson(data) };
  });
}

// Upload a file. `onSent` is called with the share that is sent, `onProgress` with the share that is translated, both
// from 0 to 1. XMLHttpRequest is used because fetch does not report how much is sent.
export function translateFile(file, { source, target, glossary }, { onSent, onProgress }) {
  const request = new XMLHttpRequest();
  const done = new Promise((resolve, reject) => {
    const form = new FormData();
    for (const [name, value] of Object.entries({ file, source, target, glossary: JSON.stringify(glossary), api_key: getKey() })) form.append(name, value);
    request.upload.onprogress = (event) => event.lengthComputable && onSent(event.loaded / event.total);
    request.upload.onload = () => onSent(1);
    request.onprogress = () => {
      const last = readEvents(request.responseText).at(-1)?.data;
      if (last?.total) onProgress(last.done / last.total);
    };
    request.onload = () => {
      const last = readEvents(request.responseText).at(-1), answer = readJson(request.responseText);
      if (last?.name === "done") resolve(last.data.translatedFileUrl);
      else if (last?.name === "error") reject(explain(last.data.status, last.data.error, null));
      else if (request.status === 200) reject(new ServerError("The server broke off.", "server"));
      else reject(explain(request.status, message(answer), request.getResponseHeader("Retry-After")));
    };
    request.onerror = () => reject(new ServerError("The server cannot be reached.", "offline"));
    request.onabort = () => reject(new DOMException("cancelled", "AbortError"));
    request.open("POST", "translate_file");
    request.setRequestHeader("Accept", "text/event-stream");
    for (const [name, value] of Object.entries(keyHeader())) request.setRequestHeader(name, value);
    request.send(form);
  });
  return { done, cancel: () => request.abort() };
}
