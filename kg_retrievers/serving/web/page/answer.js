// One answer, as it grows: the stages, the evidence, the answer with its citations.
import { counted, freshId, make, percent, problem, say, words } from "./elements.js";
import { factsView } from "./facts.js";
import { post, stream } from "./server.js";
import { whyNot } from "./explore.js";

// How many answers are shown before the others are folded.
const SHOWN = 12;

// From how many characters on an answer may scroll.
const LONG = 300;

// Returns the view of one question to one method: `element`, `run()` and `stop()`. `turns` are the questions before it;
// `ended` takes the event of the answer.
export function answerView(question, method, { small = false, turns = [], ended = () => {} } = {}) {
  const parts = {
    result: make("section", { class: "card result", "aria-label": "Answer", hidden: true }),
    stages: make("ol", { class: "stages" }),
    graph: make("div", { class: "graph", hidden: true }),
    facts: make("div"),
    more: make("div", { class: "more" }),
    problem: make("div"),
  };
  const title = make("h2", { class: small ? null : "hidden" }, small ? method : "Answer");
  const steps = make("section", { class: "card", "aria-label": "Stages" }, make("h3", {}, "How it was found"), parts.stages);
  const side = make("div", { class: "side" }, title, parts.result, parts.problem, parts.facts, steps, parts.more);
  const element = make("article", { class: small ? "answer small" : "answer", "aria-label": `Answer of ${method}` }, side, parts.graph);
  const state = { question, method, small, ended, parts, element, view: null, data: null, controller: null, edited: {}, chosen: "", run };

  // Asks; `edited` stands in place of a stage, `settings` are further keys of the request.
  async function run(edited = {}, settings = {}) {
    stop();
    state.controller = new AbortController();
    Object.assign(state, { edited, settings, data: null });
    const { signal } = state.controller;
    begin(state);
    try {
      for await (const event of stream("api/ask", { question, method, turns, edited, ...settings }, signal)) show(state, event);
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
  parts.facts.replaceChildren();
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
  result.replaceChildren(make("p", { class: "text provisional", dir: "auto" }, event.result || names || "Facts found"));
  graph.hidden = false;
  if (state.view) state.view.update(state.data);
  else state.view = showGraph(graph, state.data, { onExpand: (node) => expand(state, node) });
}

function answered(state, event) {
  const { result, stages } = state.parts;
  result.hidden = false;
  const shown = [...(event.table ? [table(event.table)] : answerText(event)), confidence(event.confidence), ...notes(event), ...namesakes(state, event)];
  if (event.asked_as) {
    state.question = event.asked_as;
    shown.unshift(make("p", { class: "soft understood" }, "Understood as: ", make("bdi", {}, event.asked_as)));
  }
  result.replaceChildren(...shown.filter((part) => part !== null));
  if (event.refused) refused(state, event);
  state.event = event;
  showFacts(state);
  for (const row of stages.querySelectorAll(".waiting, .running")) row.className = "skipped";
  if (!state.small) state.parts.more.append(whyNot({ question: state.question, method: state.method, edited: state.edited, settings: state.settings, refused: event.refused, again: (settings) => state.run(state.edited, settings) }));
  state.ended(event);
  say(`Answer: ${event.answer}`);
}

// Many answers are folded.
function answerText({ answer, answers, answer_count: count, refused }) {
  const names = answer.split("; ");
  const folds = answers.length > SHOWN && names.length > SHOWN;
  const text = make("p", { class: refused ? "text none" : "text", dir: "auto", tabindex: answer.length > LONG ? "0" : null }, folds ? names.slice(0, SHOWN).join("; ") : answer);
  if (!folds) return [text];
  const rest = names.slice(SHOWN).map((name) => make("li", { dir: "auto" }, name));
  if (count > names.length) rest.push(make("li", {}, `and ${(count - names.length).toLocaleString("en")} more, not shown`));
  const all = make("details", {}, make("summary", {}, `${(count - SHOWN).toLocaleString("en")} more`), make("ul", { class: "found", tabindex: "0" }, rest));
  return [make("p", { class: "soft" }, counted(count, "answer", "answers")), text, all];
}

// Entities of one name, each to be asked about alone.
function namesakes(state, event) {
  const ask = (seeds, label) => {
    state.chosen = label;
    state.run({}, seeds ? { seed_entities: seeds } : {});
  };
  const button = (text, seeds, label) => make("button", { type: "button", class: "chip", dir: "auto", click: () => ask(seeds, label) }, text);
  if (state.settings.seed_entities && state.chosen) {
    return [make("p", { class: "soft" }, "Asked about ", make("bdi", {}, state.chosen), " alone. "), button("Ask about all of this name", null, "")];
  }
  return event.namesakes.map(({ name, count, entities }) => make("div", { class: "namesakes" },
    make("p", { class: "soft" }, make("bdi", {}, name), ` is the name of ${count.toLocaleString("en")} entities. Ask about one of them:`),
    entities.map(({ label, seeds }) => button(label, seeds, label))));
}

function showFacts(state) {
  const { data, event, parts } = state;
  const isEmpty = !data?.nodes.length;
  parts.graph.hidden = isEmpty;
  state.element.classList.toggle("alone", isEmpty);
  if (!data?.edges.length) return parts.facts.replaceChildren();
  const cited = event.citations.map(({ number }) => number);
  parts.facts.replaceChildren(factsView(state.question, data, cited, event.refused, (id) => state.view?.open(id)));
}

function table({ columns, rows, more }) {
  const cell = (value) => make("td", { dir: "auto" }, Array.isArray(value) ? value.join(", ") : String(value));
  const body = rows.map((row) => make("tr", {}, row.map(cell)));
  const left = more ? make("caption", {}, `and ${counted(more, "row", "rows")} more`) : null;
  const head = make("tr", {}, columns.map((title) => make("th", { scope: "col", dir: "auto" }, title)));
  return make("div", { class: "text", tabindex: "0", role: "group", "aria-label": "Table of results" }, make("table", {}, left, make("thead", {}, head), make("tbody", {}, body)));
}

function confidence(share) {
  if (share === null || share === undefined) return null;
  const word = share >= 0.8 ? "likely right" : share >= 0.5 ? "perhaps right" : "unsure";
  const meter = make("meter", { min: "0", max: "1", value: String(share), "aria-label": "Confidence" });
  return make("p", { class: "confidence" }, meter, make("span", {}, `${percent(share)} confidence, ${word}`));
}

function notes(event) {
  const found = [...event.notes];
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
  const { result, stages } = state.parts;
  result.append(make("p", { dir: "auto" }, event.reason), make("p", { class: "next" }, event.next_step));
  if (!stages.querySelector(".edit") || "min_confidence" in state.settings) return;
  const anyway = () => state.run(state.edited, { ...state.settings, min_confidence: 0 });
  result.append(make("button", { type: "button", class: "quiet", click: anyway }, "Take the likeliest reading anyway"));
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
    showFacts(state);
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
