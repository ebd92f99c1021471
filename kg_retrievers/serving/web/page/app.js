// The page: takes the question, and shows one answer, or those of several methods side by side.
import { answerView } from "./answer.js";
import { byId, counted, make, problem, say } from "./elements.js";
import { openSchema } from "./explore.js";
import { get } from "./server.js";

// The most methods side by side.
const MOST_COMPARED = 4;

// The most kinds of entities that are shown before the first question.
const MOST_KINDS = 12;

// How many questions follow-ups may refer to, and how much of them is sent along.
const MOST_TURNS = 5;
const MOST_SENT = 30_000;

const state = { about: null, views: [], turns: [] };

async function begin() {
  byId("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    ask([byId("method").value]);
  });
  byId("compare").addEventListener("click", chooseCompared);
  byId("compare-run").addEventListener("click", () => ask(checked()));
  byId("method").addEventListener("change", describeMethod);
  byId("open-schema").addEventListener("click", openSchema);
  byId("new-conversation").addEventListener("click", newConversation);
  try {
    state.about = await get("api/about");
    showAbout(state.about);
    addEventListener("hashchange", fromAddress);
    fromAddress();
    showSize(await get("api/schema"));
    await showExamples();
  } catch (error) {
    byId("problem").hidden = false;
    byId("problem").replaceChildren(problem(error));
  }
}

function showAbout(about) {
  document.title = `Ask ${about.graph}`;
  byId("graph-name").replaceChildren(make("bdi", {}, about.graph));
  byId("method").replaceChildren(...about.methods.map(({ name }) => make("option", { value: name }, name)));
  byId("compared-methods").replaceChildren(...about.methods.map(({ name, finds }, place) => {
    const box = make("input", { type: "checkbox", name: "compared", value: name, checked: place < 2, change: limitCompared });
    return make("label", { title: finds }, box, name);
  }));
  byId("compare").hidden = about.methods.length < 2;
  describeMethod();
}

function showSize(schema) {
  const sizes = [];
  if (schema.facts !== null) sizes.push(counted(schema.facts, "fact", "facts"));
  if (schema.entities !== null) sizes.push(counted(schema.entities, "entity", "entities"));
  byId("graph-size").textContent = sizes.join(" · ");
  const kinds = schema.types.slice(0, MOST_KINDS).map(({ name, count }) => make("li", {}, make("bdi", {}, name), ` ${count.toLocaleString("en")}`));
  byId("kinds").replaceChildren(...kinds);
  byId("kinds").hidden = !kinds.length;
}

function describeMethod() {
  const method = state.about.methods.find(({ name }) => name === byId("method").value);
  byId("method-about").textContent = method ? `${method.name} finds ${method.finds}.` : "";
}

async function showExamples() {
  const { examples } = await get("api/examples");
  const buttons = examples.map((question) => make("button", { type: "button", class: "chip", dir: "auto", click: () => {
    byId("question").value = question;
    ask([byId("method").value]);
  } }, question));
  byId("examples").replaceChildren(make("span", { class: "soft" }, "Try"), ...buttons);
  byId("examples").hidden = !examples.length;
}

// --- asking ----------------------------------------------------------------------------------------------------------

function ask(methods) {
  const input = byId("question");
  if (!input.reportValidity() || !input.value.trim() || !methods.length) return;
  for (const view of state.views) view.remove();
  const small = methods.length > 1;
  const { turns } = state;
  const ended = (event) => goOn(turns, event, methods);
  state.views = methods.map((method, place) => answerView(input.value.trim(), method, { small, turns, ended: place ? undefined : ended }));
  document.body.classList.add("asked");
  const results = byId("results");
  results.className = small ? "compared" : "";
  results.replaceChildren(...state.views.map((view) => view.element));
  byId("problem").hidden = true;
  intoAddress(input.value.trim(), methods);
  say("Asking");
  for (const view of state.views) view.run();
}

// Keeps what the next question may refer to. The address holds the question as it was understood.
function goOn(turns, { turn, asked_as: whole }, methods) {
  if (!turn) return;
  state.turns = [...turns, turn].slice(-MOST_TURNS);
  while (JSON.stringify(state.turns).length > MOST_SENT) state.turns.shift();
  showConversation();
  if (whole) history.replaceState(null, "", fragmentOf(whole, methods));
}

function showConversation() {
  byId("last-question").textContent = state.turns.at(-1)?.question ?? "";
  byId("conversation").hidden = !state.turns.length;
}

function newConversation() {
  for (const view of state.views) view.remove();
  Object.assign(state, { views: [], turns: [] });
  showConversation();
  document.body.classList.remove("asked");
  history.pushState(null, "", location.pathname);
  byId("question").value = "";
  byId("question").focus();
  say("New conversation");
}

function chooseCompared() {
  byId("compared").hidden = !byId("compared").hidden;
  byId("compare").setAttribute("aria-expanded", String(!byId("compared").hidden));
}

const boxes = () => [...document.querySelectorAll("input[name=compared]")];
const checked = () => boxes().filter((box) => box.checked).map((box) => box.value);

function limitCompared() {
  const full = checked().length >= MOST_COMPARED;
  for (const box of boxes()) box.disabled = full && !box.checked;
}

// --- the address -----------------------------------------------------------------------------------------------------

// Keeps the question and the methods behind the # of the address, which is not sent to any server.
function intoAddress(question, methods) {
  const fragment = fragmentOf(question, methods);
  if (location.hash !== fragment) history.pushState(null, "", fragment);
}

const fragmentOf = (question, methods) => `#${new URLSearchParams({ q: question, m: methods.join(",") })}`;

function fromAddress() {
  const told = new URLSearchParams(location.hash.slice(1));
  const known = state.about.methods.map(({ name }) => name);
  const methods = (told.get("m") || "").split(",").filter((name) => known.includes(name)).slice(0, MOST_COMPARED);
  const question = (told.get("q") || "").slice(0, 2000);
  if (methods.length) byId("method").value = methods[0];
  describeMethod();
  if (!question) return;
  byId("question").value = question;
  ask(methods.length ? methods : [byId("method").value]);
}

begin();
