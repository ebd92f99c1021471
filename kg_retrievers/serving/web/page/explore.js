// Looks into the graph: why an entity is not among the answers, names while typing, and the schema.
import { byId, counted, freshId, make, problem, say } from "./elements.js";
import { get, post } from "./server.js";

// Returns a form that asks why an entity is not among the answers.
export function whyNot({ question, method, edited, settings, refused, again }) {
  const [id, list] = [freshId("entity"), freshId("names")];
  const names = make("datalist", { id: list });
  const input = make("input", { id, list, type: "text", maxlength: "1000", required: true, placeholder: "The name of an entity" });
  const outcome = make("div", { class: "outcome", role: "status" });
  input.addEventListener("input", later(() => suggest(input.value, names)));
  const ask = async (event) => {
    event.preventDefault();
    outcome.replaceChildren(make("p", { class: "soft" }, "Looking for the reason …"));
    try {
      outcome.replaceChildren(...explained(await post("api/why-not", { question, method, edited, entity: input.value, ...settings }), again));
    } catch (error) {
      outcome.replaceChildren(problem(error));
    }
  };
  const form = make("form", { class: "why", submit: ask }, make("label", { for: id }, refused ? "You expected" : "Why not"), input, names);
  form.append(make("button", { type: "submit" }, "Ask why not"));
  return make("section", { class: "card", "aria-label": "Why not" }, make("h3", {}, "Did you expect something else?"), form, outcome);
}

function explained(told, again) {
  const name = () => make("bdi", { class: "name" }, told.label);
  if (told.found) return [make("p", {}, name(), told.role === "answer" ? " is among the answers." : " stands in the facts that were found.")];
  say(told.change ? `It would come in with ${told.change}` : told.lines[0]);
  const retry = Object.keys(told.again).length ? make("button", { type: "button", class: "quiet", click: () => again(told.again) }, "Ask again this way") : "";
  return [make("p", {}, name(), " is not found."), retry, make("ul", { class: "reasons" }, told.lines.map((line) => make("li", { dir: "auto" }, line)))];
}

async function suggest(text, list) {
  if (!text.trim()) return;
  try {
    const { entities } = await get("api/entities", { text: text.slice(0, 200) });
    const keys = new Set(entities.map((one) => one.label));
    list.replaceChildren(...entities.map((one) => {
      const named = keys.size === entities.length ? one.label : one.key; // two entities may share a label
      return make("option", { value: named }, one.type);
    }));
  } catch {
    list.replaceChildren(); // names are a help, and no more
  }
}

function later(action, pause = 180) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, pause);
  };
}

// Opens the schema; `ask` takes an example.
export async function openSchema() {
  const dialog = byId("schema");
  dialog.querySelector(".close").onclick = () => dialog.close();
  dialog.showModal();
  const body = byId("schema-body");
  if (body.dataset.filled) return;
  body.replaceChildren(make("p", { class: "soft" }, "Reading …"));
  try {
    body.replaceChildren(...schema(await get("api/schema")));
    body.dataset.filled = "yes";
  } catch (error) {
    body.replaceChildren(problem(error));
  }
}

function schema(told) {
  const sizes = [];
  if (told.entities !== null) sizes.push(counted(told.entities, "entity", "entities"));
  if (told.facts !== null) sizes.push(counted(told.facts, "fact", "facts"));
  sizes.push(counted(told.relation_count, "relation", "relations"), counted(told.type_count, "type", "types"));
  const parts = [make("p", {}, sizes.join(" · "))];
  const cells = (texts, head = "td") => texts.map((text) => make(head, { dir: "auto", scope: head === "th" ? "col" : null }, text));
  const table = (caption, heads, rows) => make("table", {}, make("caption", {}, caption),
    make("thead", {}, make("tr", {}, cells(heads, "th"))), make("tbody", {}, rows.map((row) => make("tr", {}, cells(row)))));
  const range = (one) => (one.least === null ? "" : ` (${one.least} to ${one.greatest})`);
  parts.push(table("Relations", ["from", "relation", "to", "facts"], told.relations.map((one) => [
    one.head_types.join(", ") || "anything", one.relation, (one.tail_types.join(", ") || "anything") + range(one), one.facts.toLocaleString("en")])));
  if (told.types.length) parts.push(table("Types", ["type", "entities"], told.types.map((one) => [one.name, one.count.toLocaleString("en")])));
  if (told.sources.length) parts.push(table("Sources", ["source", "facts"], told.sources.map((one) => [one.name, one.count.toLocaleString("en")])));
  if (told.left_out) parts.push(make("p", { class: "soft" }, `${counted(told.left_out, "row is", "rows are")} left out here.`));
  return parts;
}
