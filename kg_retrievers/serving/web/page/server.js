// Asks the server of this page. The token, where one is asked for, is kept for this tab and sent in a header.
import { byId } from "./elements.js";

const KEPT = "kg-retrievers-token";

export class ServerError extends Error {
  constructor(status, told) {
    super(told.error || `The server answered with ${status}.`);
    this.status = status;
    this.nextStep = told.next_step || "";
  }
}

// Returns the JSON under a path.
export async function get(path, parameters = {}, signal = undefined) {
  const query = new URLSearchParams(parameters).toString();
  return (await send(query ? `${path}?${query}` : path, { signal })).json();
}

export async function post(path, body, signal = undefined) {
  return (await send(path, posted(body, signal))).json();
}

// Yields the events that the server tells, one JSON object a line.
export async function* stream(path, body, signal) {
  const response = await send(path, posted(body, signal));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      const lines = (rest + (value || "")).split("\n");
      rest = lines.pop();
      for (const line of lines) if (line) yield JSON.parse(line);
      if (done) return;
    }
  } finally {
    reader.cancel().catch(() => {}); // whoever leaves before the end stops the server, too
  }
}

function posted(body, signal) {
  return { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" }, signal };
}

async function send(path, options) {
  for (;;) {
    const token = sessionStorage.getItem(KEPT);
    const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
    const response = await reached(fetch(path, { ...options, headers, credentials: "omit", referrerPolicy: "no-referrer" }));
    if (response.ok) return response;
    if (response.status !== 401) throw new ServerError(response.status, await response.json().catch(() => ({})));
    await askForToken(token);
  }
}

async function reached(answer) {
  try {
    return await answer;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError(0, { error: "The server cannot be reached.", next_step: "Is kg-retrievers serve still running?" });
  }
}

let asking = null;

// Asks for the token once, however many requests wait for it.
function askForToken(refused) {
  if (sessionStorage.getItem(KEPT) !== refused) return Promise.resolve(); // another request has asked meanwhile
  asking ??= new Promise((done) => {
    byId("login-problem").textContent = refused ? "The server does not accept this token." : "";
    const dialog = byId("login");
    dialog.oncancel = (event) => event.preventDefault();
    byId("login-form").onsubmit = () => {
      sessionStorage.setItem(KEPT, byId("token").value.trim());
      byId("token").value = "";
      asking = null;
      done();
    };
    dialog.showModal();
  });
  return asking;
}
