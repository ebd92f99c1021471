// The facts of an answer in one place: those it rests on, the further ones folded, and both as a file.
import { counted, make } from "./elements.js";

const COLUMNS = ["Fact", "Head", "Relation", "Tail"];

// Returns the facts of a picture's `data`; `cited` are the numbers of those that the answer rests on, `open` takes one.
export function factsView(question, data, cited, refused, open) {
  const known = new Set(cited);
  const rests = refused ? [] : data.edges.filter((edge) => known.has(edge.citation));
  const others = data.edges.filter((edge) => !rests.includes(edge));
  const parts = [make("h3", {}, rests.length ? "Because" : "Facts that may help")];
  if (rests.length) parts.push(folding(rests, data, open));
  if (others.length) {
    const title = rests.length ? counted(others.length, "further fact", "further facts") : counted(others.length, "fact", "facts");
    parts.push(make("details", { open: !rests.length }, make("summary", {}, title), folding(others, data, open)));
  }
  if (data.left_out) parts.push(make("p", { class: "soft" }, `${counted(data.left_out, "more fact is", "more facts are")} not shown.`));
  const save = (text, action) => make("button", { type: "button", class: "quiet", click: action }, text);
  parts.push(make("div", { class: "buttons" },
    save("Save as CSV", () => download("facts.csv", "text/csv", csv(data))),
    save("Save as HTML", () => download("facts.html", "text/html", html(question, data)))));
  return make("section", { class: "card facts", "aria-label": "Facts" }, parts);
}

function folding(edges, data, open) {
  return make("div", { class: "citations", tabindex: "0", role: "group", "aria-label": "Table of facts" }, table(edges, data, open));
}

function cellsOf(edge, data) {
  const name = (id) => data.nodes.find((node) => node.id === id).name;
  return [name(edge.source), edge.name, name(edge.target)];
}

function table(edges, data, open) {
  const rows = edges.map((edge) => {
    const cells = cellsOf(edge, data);
    const number = edge.citation === null ? "+" : String(edge.citation);
    const show = open ? make("button", { type: "button", class: "cite", click: () => open(edge.id), "aria-label": `Fact ${number}: ${cells.join(" ")}` }, number) : number;
    return make("tr", {}, make("th", { scope: "row" }, show), cells.map((cell) => make("td", { dir: "auto" }, cell)));
  });
  const head = make("tr", {}, COLUMNS.map((title) => make("th", { scope: "col" }, title)));
  return make("table", {}, make("thead", {}, head), make("tbody", {}, rows));
}

function csv(data) {
  const rows = data.edges.map((edge) => [edge.citation ?? "", ...cellsOf(edge, data), edge.sources.join("; ")]);
  const plain = (cell) => (/^[=+\-@\t\r]/.test(cell) && Number.isNaN(Number(cell)) ? `'${cell}` : String(cell)); // no formula
  const quoted = (cell) => `"${plain(cell).replaceAll('"', '""')}"`;
  return [[...COLUMNS, "Sources"], ...rows].map((row) => row.map(quoted).join(",")).join("\r\n");
}

function html(question, data) {
  const page = document.implementation.createHTMLDocument(question);
  page.documentElement.lang = "en";
  page.head.prepend(make("meta", { charset: "utf-8" }));
  page.body.append(make("h1", { dir: "auto" }, question), table(data.edges, data, null));
  return `<!doctype html>\n${page.documentElement.outerHTML}`;
}

function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
