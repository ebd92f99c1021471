// One answer, as it grows: the stages, the evidence, the answer with its citations.
import { counted, freshId, make, percent, problem, say, words } from "./elements.js";
import { post, stream } from "./server.js";
import { whyNot } from "./explore.js";

// Returns the view of one question to one method: `element`, `run()` and `stop()`. `turns` are the questions before it;
// `ended` takes the event of the answer.
export function answerView(question, method, { small = false, turns = [], ended = () => {} } = {}) {
  const parts = {
    result: make("section", { class: "card result", "aria-label": "Answer", hidden: true }),
    stages: make("ol", { class: "stages" }),
    graph: make("div", { class: "graph", hidden: true }),
    more: make("div", { class: "more" }),
    problem: make("div"),
  };
  const title = small ? make("h2", {}, method) : null;
  const steps = make("section", { class: "card", "aria-label": "Stages" }, make("h3", {}, "How it was found"), parts.stages);
  const side = make("div", { class: "side" }, title, parts.result, parts.problem, steps, parts.more);
  const element = make("article", { class: small ? "answer small" : "answer", "aria-label": `Answer of ${method}` }, side, parts.graph);
  const state = { question, method, small, ended, parts, element, view: null, data: null, controller: null, edited: {}, run };

  async function run(edited = {}) {
    stop();
    state.controller = new AbortController();
    state.edited = edited;
    const { signal } = state.controller;
    begin(state);
    try {
      for await (const event of stream("api/ask", { question, method, turns, edited }, signal)) show(state, event);
    } catch (error) {
      if (error.name === "AbortError") return;
      failed(state, error);
    }
    element.setAttribute("aria-busy", "false");
  }

  function stop() {
    state.controller?.abort();
  }

  function remove() {
    stop();
    state.view?.destroy();
    element.remove();
  }

  return { element, run, stop, remove };
}

function begin(state) {
  const { parts } = state;
  state.element.setAttribute("aria-busy", "true");
  state.element.classList.remove("alone");
  parts.result.hidden = true;
  parts.problem.replaceChildren();
  parts.more.replaceChildren();
  parts.stages.replaceChildren(make("li", { class: "running" }, make("span", { class: "name" }, "Asking")));
}

function show(state, event) {
  if (event.event === "started") started(state, event);
  else if (event.event === "stage") stageEnded(state, event);
  else if (event.event === "evidence") evidence(state, event);
  else if (event.event === "answer") answered(state, event);
  else if (event.event === "error") failed(state, Object.assign(new Error(event.error), { nextStep: event.next_step }));
}

// --- stages ----------------------------------------------------------------------------------------------------------

function started(state, event) {
  const rows = event.stages.map((name) => {
    const row = make("li", { class: "waiting" }, make("span", { class: "name" }, words(name)));
    row.dataset.stage = name;
    return row;
  });
  rows[0].className = "running";
  state.parts.stages.replaceChildren(...rows);
}

function stageEnded(state, event) {
  const row = [...state.parts.stages.children].find((one) => one.dataset.stage === event.name);
  if (!row) return;
  const isOver = row.parentElement.querySelector(".refused") !== null; // the stages behind a refusal find nothing
  row.className = event.refused ? "refused" : isOver ? "skipped" : "done";
  if (isOver) return;
  const time = event.seconds < 0.01 ? "" : `${event.seconds.toFixed(2)} s`;
  const head = make("div", { class: "head" }, make("span", { class: "name" }, words(event.name)));
  if (event.edited) head.append(make("span", { class: "tag" }, "yours"));
  head.append(make("span", { class: "time" }, time));
  row.replaceChildren(head);
  const next = row.nextElementSibling;
  if (next && !event.refused) next.className = "running";
  if (event.editable) row.append(...editor(event, state.run));
  else for (const found of event.found) row.append(lines(found));
  say(`${words(event.name)}: done`);
}

function lines(found) {
  return make("ul", { class: "found" }, found.lines.map((line) => make("li", { dir: "auto" }, line)));
}

// A text that a stage wrote, and a way to write another and run on from there.
function editor(event, run) {
  const { key, text, form } = event.editable;
  const shown = make("div", {}, event.edited ? make("pre", { dir: "auto", tabindex: "0" }, text) : event.found.map(lines));
  const id = freshId("edit");
  const area = make("textarea", { id, rows: Math.min(14, text.split("\n").length + Math.ceil(text.length / 80)), spellcheck: "false", dir: "auto", maxlength: "30000" });
  area.value = text;
  const label = make("label", { for: id, class: "soft" }, form);
  const form_ = make("form", { class: "edit", hidden: true, submit: (submitted) => {
    submitted.preventDefault();
    run({ [key]: area.value });
  } }, label, area);
  const open = make("button", { type: "button", class: "quiet", "aria-expanded": "false" }, "Edit and run on");
  const toggle = (isOpen) => {
    form_.hidden = !isOpen;
    shown.hidden = open.hidden = isOpen;
    open.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) area.focus();
    else open.focus();
  };
  open.addEventListener("click", () => toggle(true));
  form_.append(make("div", { class: "buttons" },
    make("button", { type: "submit", class: "main" }, "Run on"),
    make("button", { type: "button", click: () => toggle(false) }, "Leave it")));
  return [shown, open, form_];
}

// --- evidence and answer ---------------------------------------------------------------------------------------------

function evidence(state, event) {
  state.data = event.drawing;
  const { graph, result } = state.parts;
  if (!result.hidden) return;
  result.hidden = false;
  const names = event.answers.map((answer) => answer.label).join("; ");
  result.replaceChildren(make("p", { class: "text provisional", dir: "auto" }, names || "Facts found"));
  graph.hidden = false;
  if (state.view) state.view.update(state.data);
  else state.view = showGraph(graph, state.data, { onExpand: (node) => expand(state, node) });
}

function answered(state, event) {
  const { result, stages } = state.parts;
  result.hidden = false;
  const text = make("p", { class: event.refused ? "text none" : "text", dir: "auto" }, event.answer);
  const shown = [event.table ? table(event.table) : text, confidence(event.confidence), ...notes(event), citations(state, event)];
  if (event.asked_as) {
    state.question = event.asked_as;
    shown.unshift(make("p", { class: "soft understood" }, "Understood as: ", make("bdi", {}, event.asked_as)));
  }
  result.replaceChildren(...shown.filter((part) => part !== null));
  if (event.refused) refused(state, event);
  for (const row of stages.querySelectorAll(".waiting, .running")) row.className = "skipped";
  if (!state.small) state.parts.more.append(whyNot({ question: state.question, method: state.method, edited: state.edited, refused: event.refused }));
  state.ended(event);
  say(`Answer: ${event.answer}`);
}

function table({ columns, rows, more }) {
  const cell = (value) => make("td", { dir: "auto" }, Array.isArray(value) ? value.join(", ") : String(value));
  const body = rows.map((row) => make("tr", {}, row.map(cell)));
  const left = more ? make("caption", {}, `and ${counted(more, "row", "rows")} more`) : null;
  const head = make("tr", {}, columns.map((title) => make("th", { scope: "col", dir: "auto" }, title)));
  return make("div", { class: "text" }, make("table", {}, left, make("thead", {}, head), make("tbody", {}, body)));
}

function confidence(share) {
  if (share === null || share === undefined) return null;
  const word = share >= 0.8 ? "likely right" : share >= 0.5 ? "perhaps right" : "unsure";
  const meter = make("meter", { min: "0", max: "1", value: String(share), "aria-label": "Confidence" });
  return make("p", { class: "confidence" }, meter, make("span", {}, `${percent(share)} confidence, ${word}`));
}

function notes(event) {
  const found = [];
  if (event.stopped) found.push(event.stopped);
  if (event.supported === false) found.push("A name in this answer stands in none of the facts below.");
  if (event.rejected_citations) found.push(`${counted(event.rejected_citations, "citation was", "citations were")} left out: no such fact was shown.`);
  if (event.cost?.llm_calls) {
    const tokens = event.cost.input_tokens + event.cost.output_tokens;
    found.push(`${counted(event.cost.llm_calls, "call", "calls")} of the language model, ${counted(tokens, "token", "tokens")}.`);
  }
  return found.map((note) => make("p", { class: "soft" }, note));
}

function refused(state, event) {
  const { graph, result } = state.parts;
  graph.hidden = true;
  state.element.classList.add("alone");
  result.append(make("p", { dir: "auto" }, event.reason), make("p", { class: "next" }, event.next_step));
}

function citations(state, event) {
  if (!event.citations.length) return null;
  const rows = event.citations.map(({ number, text }) => {
    const open = () => state.view?.open(edgeOf(state, number));
    const fact = make("button", { type: "button", class: "cite", click: open, "aria-label": `Fact ${number}: ${text}` });
    fact.append(make("span", { class: "number" }, String(number)), make("bdi", {}, text.replaceAll(" -> ", " → ")));
    return make("li", {}, fact);
  });
  return make("div", { class: "cited" }, make("h3", {}, "Because"), make("ol", { class: "citations" }, rows));
}

function edgeOf(state, number) {
  return state.data.edges.find((edge) => edge.citation === number)?.id ?? state.data.edges[0].id;
}

function failed(state, error) {
  state.element.setAttribute("aria-busy", "false");
  for (const row of state.parts.stages.querySelectorAll(".running")) row.className = "refused";
  state.parts.problem.replaceChildren(problem(error));
}

// --- more facts ------------------------------------------------------------------------------------------------------

// Adds the facts around an entity to the picture; facts that were there keep their numbers.
async function expand(state, node) {
  const { data } = state;
  const keys = new Map(data.nodes.map((one) => [one.id, one.key]));
  const facts = data.edges.map((edge) => [keys.get(edge.source), edge.relation, keys.get(edge.target)]);
  const role = (name) => data.nodes.filter((one) => one.role === name).map((one) => one.key);
  const labels = Object.fromEntries(data.nodes.map((one) => [one.key, one.name]));
  const asked = { entity: node.key, facts, labels, answers: role("answer"), known: role("known") };
  state.parts.problem.replaceChildren();
  try {
    const more = await post("api/expand", asked);
    state.data = merged(data, more);
    state.view.update(state.data);
    const added = state.data.edges.length - data.edges.length;
    say(added ? `${counted(added, "fact", "facts")} added` : "It has no further facts");
  } catch (error) {
    state.parts.problem.replaceChildren(problem(error));
  }
}

function merged(old, more) {
  const name = (data, edge) => {
    const key = (id) => data.nodes.find((node) => node.id === id).key;
    return JSON.stringify([key(edge.source), edge.relation, key(edge.target)]);
  };
  const before = new Map(old.edges.map((edge) => [name(old, edge), edge]));
  const edges = more.edges.map((edge) => {
    const { citation = null, sources = edge.sources, documents = [] } = before.get(name(more, edge)) ?? {};
    return { ...edge, citation, sources, documents };
  });
  return { ...more, edges, documents: old.documents, answers: old.answers };
}
