// Shows a graph of facts: the picture, a search, the details of what is chosen, and the facts as a table.
//
// `showGraph(container, data, options)` fills `container`; `data` is what `Drawing.page_data` returns in Python.
// `options.onExpand(node)`, where given, is called when a reader asks for more facts of an entity.
// Every text is set as text, never as markup. Needs cytoscape.min.js and style.css.
"use strict";

function showGraph(container, data, options = {}) {
  const view = buildView(container, options);
  const state = { data: null, cy: null, cursor: null, chosen: null, opener: null, moved: false, matches: [], match: -1 };

  const byId = (id) => state.cy.getElementById(id);
  const factOf = (box) => state.data.edges[Number(box.slice(2))]; // "re7" is the box of the relation of fact "e7"
  const boxOf = (id) => (id.startsWith("e") ? `r${id}` : id);
  const thing = (box) => (box.startsWith("r") ? factOf(box) : state.nodes.get(box));

  function update(newData) {
    const chosenKey = state.chosen && state.nodes.get(state.chosen)?.key;
    state.cy?.destroy();
    state.data = newData;
    state.nodes = new Map(newData.nodes.map((node) => [node.id, node]));
    state.cursor = state.chosen = null;
    state.moved = false;
    state.cy = makePicture(view, newData);
    state.cy.on("tap", (event) => (event.target === state.cy ? close() : open(boxAt(event.target), null)));
    state.cy.on("mouseover", "node", () => view.canvas.classList.add("kg-over"));
    state.cy.on("mouseout", "node", () => view.canvas.classList.remove("kg-over"));
    state.cy.on("dragpan scrollzoom pinchzoom", () => (state.moved = true));
    fillTable(view, state, open);
    fillSummary(view, newData);
    close();
    begin();
    const same = newData.nodes.find((node) => chosenKey !== undefined && node.key === chosenKey);
    if (same) open(same.id, null);
  }

  function boxAt(element) {
    return element.isEdge() ? element.data("box") : element.id();
  }

  function fit() {
    state.moved = false;
    showWhole(state.cy);
  }

  // Shows the whole where its names can be read; else the first answer and what is around it.
  function begin() {
    fit();
    if (!state.cy.elements().length || state.cy.zoom() >= LEAST_READABLE) return;
    const first = ["answer", "known", "other"].map((role) => state.cy.nodes(`.${role}`).first()).find((one) => one.length);
    state.cy.zoom(1.5 * LEAST_READABLE);
    state.cy.center(first);
  }

  function zoom(factor) {
    state.moved = true;
    const { width, height } = view.canvas.getBoundingClientRect();
    state.cy.zoom({ level: state.cy.zoom() * factor, renderedPosition: { x: width / 2, y: height / 2 } });
  }

  // Moves the ring of the keyboard, and says what it is on.
  function moveTo(box, centre = true) {
    state.cy.elements(".cursor").removeClass("cursor");
    state.cursor = box;
    const element = byId(box).addClass("cursor");
    if (centre) bringIntoView(state.cy, element);
    view.said.textContent = inWords(state, thing(box));
  }

  // Shows the details of an entity or a fact; `opener` is what has the focus back when they are closed.
  function open(box, opener) {
    state.chosen = box;
    state.opener = opener;
    moveTo(box, opener !== view.canvas);
    focusOn(state.cy, byId(box));
    fillDetails(view, state, thing(box), { open, close, boxOf, onExpand: options.onExpand });
    for (const row of view.body.rows) row.classList.toggle("kg-chosen", row.dataset.box === box);
    if (opener) view.heading.focus();
  }

  function close() {
    const opener = state.opener;
    state.chosen = state.opener = null;
    state.cy.elements().removeClass("faded chosen");
    view.details.hidden = true;
    for (const row of view.body.rows) row.classList.remove("kg-chosen");
    if (opener?.isConnected) opener.focus();
  }

  function search() {
    const wanted = folded(view.search.value);
    const found = (one) => folded(`${one.name}\n${one.key ?? one.relation}`).includes(wanted);
    const boxes = [...state.data.nodes, ...state.data.edges].filter((one) => wanted && found(one));
    state.matches = boxes.map((one) => boxOf(one.id));
    state.match = -1;
    state.cy.batch(() => {
      state.cy.elements().removeClass("match faded");
      if (!wanted) return;
      state.cy.elements().addClass("faded");
      for (const box of state.matches) byId(box).removeClass("faded").addClass("match");
    });
    for (const row of view.body.rows) row.hidden = wanted !== "" && !folded(row.textContent).includes(wanted);
    view.found.textContent = wanted ? `${boxes.length} found` : "";
  }

  function nextMatch() {
    if (!state.matches.length) return;
    state.match = (state.match + 1) % state.matches.length;
    moveTo(state.matches[state.match]);
  }

  view.search.addEventListener("input", search);
  view.search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") nextMatch();
    if (event.key === "Escape" && view.search.value) {
      view.search.value = "";
      search();
      event.stopPropagation();
    }
  });
  view.zoomIn.addEventListener("click", () => zoom(1.25));
  view.zoomOut.addEventListener("click", () => zoom(0.8));
  view.whole.addEventListener("click", fit);
  view.closer.addEventListener("click", close);
  view.root.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && state.chosen) close();
  });
  view.canvas.addEventListener("keydown", (event) => {
    const direction = DIRECTIONS[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || !state.data.nodes.length) return;
    if (direction) {
      const next = nearest(state.cy, state.cursor, direction);
      if (next) moveTo(next);
    } else if (event.key in STEPS) moveTo(boxAfter(state.cy, state.cursor, STEPS[event.key]));
    else if (event.key === "Enter" && state.cursor) open(state.cursor, view.canvas);
    else if (event.key === "+" || event.key === "=") zoom(1.25);
    else if (event.key === "-") zoom(0.8);
    else if (event.key === "0") fit();
    else return;
    event.preventDefault();
  });

  const listeners = new AbortController();
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const recolour = () => state.cy.style(pictureStyle(view.canvas));
  dark.addEventListener("change", recolour, { signal: listeners.signal });
  const beforePrint = () => drawForPrint(view.print, state.cy);
  addEventListener("beforeprint", beforePrint, { signal: listeners.signal });
  const sizes = new ResizeObserver(() => {
    const { clientWidth, clientHeight } = view.canvas;
    if (clientWidth === state.cy.width() && clientHeight === state.cy.height()) return;
    state.cy.resize();
    if (!state.moved) begin();
  });
  update(data);
  sizes.observe(view.canvas);

  function destroy() {
    sizes.disconnect();
    listeners.abort();
    state.cy.destroy();
    container.replaceChildren();
  }

  return { get cy() { return state.cy; }, update, fit, recolour, beforePrint, destroy, open: (id) => open(boxOf(id), null) };
}

// The least zoom at which names can be read.
const LEAST_READABLE = 0.45;

const FONT = "system-ui, sans-serif";

const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const STEPS = { PageDown: 1, PageUp: -1 };

const folded = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().trim();

// --- the parts of the view -----------------------------------------------------------------------------------------

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...children);
  return made;
}

let views = 0;

function buildView(container, options) {
  const id = `kg-view-${++views}`;
  const button = (text, label) => element("button", { type: "button", "aria-label": label, title: label }, text);
  const view = {
    search: element("input", { type: "search", id: `${id}-search`, placeholder: "Search names", autocomplete: "off" }),
    found: element("output", { for: `${id}-search`, class: "kg-found" }),
    zoomOut: button("−", "Zoom out"),
    zoomIn: button("+", "Zoom in"),
    whole: button("Fit", "Fit the whole graph"),
    summary: element("p", { class: "kg-summary" }),
    legend: element("ul", { class: "kg-legend", "aria-label": "Colours" }),
    canvas: element("div", {
      class: "kg-canvas",
      tabindex: "0",
      role: "application",
      "aria-label": "Picture of the facts",
      "aria-describedby": `${id}-hint`,
    }),
    print: element("div", { class: "kg-print", "aria-hidden": "true" }),
    said: element("p", { class: "kg-said", "aria-live": "polite" }),
    heading: element("h2", { tabindex: "-1" }),
    closer: button("×", "Close details"),
    content: element("div", { class: "kg-content", "aria-live": "polite" }),
    body: element("tbody"),
  };
  const label = element("label", { for: `${id}-search`, class: "kg-said" }, "Search names of entities and relations");
  const bar = element("div", { class: "kg-bar" }, label, view.search, view.found);
  bar.append(element("div", { class: "kg-buttons", role: "group", "aria-label": "Zoom" }, view.zoomOut, view.zoomIn, view.whole));
  bar.append(view.legend);
  view.details = element("section", { class: "kg-details", "aria-label": "Details" });
  view.details.append(element("header", {}, view.heading, view.closer), view.content);
  const heads = ["#", "Head", "Relation", "Tail"].map((text) => element("th", { scope: "col" }, text));
  const caption = element("caption", { id: `${id}-facts` }, "Facts");
  const table = element("table", { class: "kg-facts", role: "grid" }, caption);
  table.append(element("thead", {}, element("tr", {}, ...heads)), view.body);
  const hint = "Arrow keys and Page Down move, Enter opens details, Escape closes them, + and − zoom, 0 shows the whole.";
  const picture = element("div", { class: "kg-picture" }, view.canvas, view.print, view.said);
  picture.append(element("p", { class: "kg-hint", id: `${id}-hint` }, hint));
  const scroll = element("div", { class: "kg-scroll" }, table);
  const side = element("div", { class: "kg-side" }, view.summary, view.details, scroll);
  view.root = element("div", { class: "kg-view" }, bar, element("div", { class: "kg-split" }, picture, side));
  container.replaceChildren(view.root);
  return view;
}

function fillSummary(view, data) {
  const counted = (number, one, more) => `${number.toLocaleString("en")} ${number === 1 ? one : more}`;
  const parts = [counted(data.edges.length, "fact", "facts"), counted(data.nodes.length, "entity", "entities")];
  if (data.left_out) parts.push(`${counted(data.left_out, "more fact", "more facts")} left out`);
  const answers = data.answers.map((answer) => element("bdi", { class: "kg-answer" }, answer.text));
  view.summary.replaceChildren(element("span", {}, data.edges.length || data.left_out ? parts.join(" · ") : "No facts"));
  if (answers.length) {
    const named = answers.flatMap((answer, place) => (place ? [", ", answer] : [answer]));
    view.summary.prepend(element("span", { class: "kg-answers" }, answers.length > 1 ? "Answers: " : "Answer: ", ...named));
  }
  const roles = ["answer", "known", "other"].filter((role) => data.nodes.some((node) => node.role === role));
  const names = { answer: "Answer", known: "Known from the question", other: "Other" };
  view.legend.replaceChildren(...roles.map((role) => element("li", { class: `kg-${role}` }, names[role])));
}

// --- the table of facts --------------------------------------------------------------------------------------------

function fillTable(view, state, open) {
  const cell = (text) => element("td", { dir: "auto" }, text);
  const rows = state.data.edges.map((fact) => {
    const row = element("tr", { tabindex: "-1" });
    row.dataset.box = `r${fact.id}`;
    const number = element("th", { scope: "row" }, fact.citation === null ? "" : String(fact.citation));
    const [head, tail] = [state.nodes.get(fact.source), state.nodes.get(fact.target)];
    const [from, to] = [cell(head.name), cell(tail.name)];
    from.className = `kg-${head.role}`;
    to.className = `kg-${tail.role}`;
    row.append(number, from, cell(fact.name), to);
    return row;
  });
  if (rows.length) rows[0].tabIndex = 0;
  view.body.replaceChildren(...rows);
  view.body.onclick = (event) => open(event.target.closest("tr").dataset.box, null);
  view.body.onkeydown = (event) => {
    const row = event.target.closest("tr");
    if (event.key === "Enter") open(row.dataset.box, row);
    const next = rowAfter(view.body, row, event.key);
    if (!next) return;
    event.preventDefault();
    row.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  };
}

function rowAfter(body, row, key) {
  const rows = [...body.rows].filter((one) => !one.hidden);
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -rows.length, End: rows.length };
  if (!(key in steps)) return null;
  const place = rows.indexOf(row) + steps[key];
  return rows[Math.max(0, Math.min(rows.length - 1, place))];
}

// --- details -------------------------------------------------------------------------------------------------------

function inWords(state, one) {
  if ("citation" in one) {
    const [head, tail] = [state.nodes.get(one.source), state.nodes.get(one.target)];
    return `Fact ${one.citation ?? ""}: ${head.name}, ${one.name}, ${tail.name}`;
  }
  const facts = state.data.edges.filter((fact) => fact.source === one.id || fact.target === one.id).length;
  const role = { answer: ", answer", known: ", known from the question", other: "" }[one.role];
  return `${one.name}${role}, ${facts} ${facts === 1 ? "fact" : "facts"}`;
}

function fillDetails(view, state, one, actions) {
  const isFact = "citation" in one;
  view.heading.replaceChildren(element("bdi", {}, isFact ? `Fact ${one.citation ?? ""}` : one.name));
  view.content.replaceChildren(...(isFact ? factDetails(state, one, actions) : entityDetails(state, one, actions)));
  view.details.hidden = false;
}

function entityDetails(state, node, actions) {
  const facts = state.data.edges.filter((fact) => fact.source === node.id || fact.target === node.id);
  const rows = [["Key", node.key]];
  if (node.role !== "other") rows.unshift(["Role", node.role === "answer" ? "Answer" : "Known from the question"]);
  const parts = [pairs(rows), factLinks(state, facts, actions)];
  if (actions.onExpand) {
    const expand = element("button", { type: "button", class: "kg-expand" }, "Show more facts of it");
    expand.addEventListener("click", () => actions.onExpand(node));
    parts.splice(1, 0, expand);
  }
  return parts;
}

function factDetails(state, fact, actions) {
  const ends = [fact.source, fact.target].map((id) => link(state.nodes.get(id).name, () => actions.open(id, null)));
  const sentence = element("p", { class: "kg-sentence" }, ends[0], element("bdi", {}, ` ${fact.name} `), ends[1]);
  const rows = [["Relation", fact.relation]];
  if (fact.sources.length) rows.push(["Sources", fact.sources.join("\n")]);
  const parts = [sentence, pairs(rows)];
  const documents = (fact.documents ?? []).map((position) => state.data.documents[position]);
  for (const found of documents) parts.push(documentDetails(found));
  return parts;
}

function documentDetails(found) {
  const shown = (number) => (number === null || number === undefined ? null : String(Number(number.toPrecision(4))));
  const more = found.more_answers ? `, and ${found.more_answers} more` : "";
  const rows = [
    ["Retriever", found.retriever],
    ["Score", shown(found.score)],
    ["Confidence", shown(found.confidence)],
    ["Answers", found.answers.length ? found.answers.join(", ") + more : null],
    ["Value", found.value],
    ["Facts", `${found.facts}${found.truncated ? " (cut at a limit)" : ""}`],
  ];
  const section = element("section", { class: "kg-document" }, element("h3", {}, `Evidence of rank ${found.rank}`));
  section.append(pairs(rows.filter(([, value]) => value)));
  if (found.text) section.append(element("details", {}, element("summary", {}, "Text"), element("pre", { dir: "auto" }, found.text)));
  return section;
}

function factLinks(state, facts, actions) {
  const items = facts.slice(0, 50).map((fact) => {
    const [head, tail] = [state.nodes.get(fact.source), state.nodes.get(fact.target)];
    const text = `${fact.citation === null ? "" : `[${fact.citation}] `}${head.label} → ${fact.name} → ${tail.label}`;
    return element("li", {}, link(text, () => actions.open(actions.boxOf(fact.id), null)));
  });
  if (facts.length > 50) items.push(element("li", {}, `and ${facts.length - 50} more, in the table`));
  return element("ul", { class: "kg-links" }, ...items);
}

function pairs(rows) {
  return element("dl", {}, ...rows.flatMap(([name, value]) => [element("dt", {}, name), element("dd", { dir: "auto" }, value)]));
}

function link(text, action) {
  const made = element("button", { type: "button", class: "kg-link" }, element("bdi", {}, text));
  made.addEventListener("click", action);
  return made;
}

// --- the picture ---------------------------------------------------------------------------------------------------

function makePicture(view, data) {
  const elements = [];
  const position = (one) => ({ x: one.x, y: one.y });
  const pen = document.createElement("canvas").getContext("2d");
  for (const node of data.nodes) {
    pen.font = `${node.role === "answer" ? 600 : 400} 12px ${FONT}`;
    const shown = { id: node.id, label: fitted(pen, node.label, node.width - 6), w: node.width, h: node.height };
    elements.push({ group: "nodes", data: shown, position: position(node), classes: node.role });
  }
  for (const fact of data.edges) {
    const [box, loop] = [`r${fact.id}`, fact.source === fact.target ? "loop " : ""];
    pen.font = `10px ${FONT}`;
    const shown = { id: box, label: fitted(pen, fact.label, fact.width), w: fact.width, h: fact.height };
    elements.push({ group: "nodes", data: shown, position: position(fact), classes: "relation" });
    const half = (id, source, target, name) => ({ group: "edges", data: { id, box, source, target }, classes: loop + name });
    elements.push(half(`${fact.id}a`, fact.source, box, "first"), half(`${fact.id}b`, box, fact.target, "last"));
  }
  return cytoscape({
    container: view.canvas,
    elements,
    layout: { name: "preset" },
    style: pictureStyle(view.canvas),
    minZoom: 0.05,
    maxZoom: 4,
    boxSelectionEnabled: false,
    autounselectify: true,
  });
}

// As much of a name as its box has room for: Python estimated the widths, and fonts differ.
function fitted(pen, text, width) {
  let shown = text;
  for (let letters = [...text]; letters.length > 1 && pen.measureText(shown).width > width; ) {
    letters.pop();
    shown = `${letters.join("").trimEnd()}…`;
  }
  return shown;
}

function pictureStyle(canvas) {
  const colours = getComputedStyle(canvas);
  const colour = (name) => colours.getPropertyValue(`--kg-${name}`).trim();
  const box = (role) => ({
    selector: `node.${role}`,
    style: { "background-color": colour(`${role}-fill`), "border-color": colour(`${role}-line`) },
  });
  return [
    {
      selector: "node",
      style: {
        ...{ shape: "round-rectangle", width: "data(w)", height: "data(h)", label: "data(label)", "z-index": 2 },
        ...{ "font-family": FONT, "font-size": 12, color: colour("ink"), "border-width": 1 },
        ...{ "text-valign": "center", "text-halign": "center", "text-wrap": "none" },
        ...{ "z-compound-depth": "top", "overlay-opacity": 0, "corner-radius": 6, "min-zoomed-font-size": 4 },
      },
    },
    ...["answer", "known", "other"].map(box),
    { selector: "node.answer", style: { "border-width": 2, "font-weight": 600 } },
    {
      selector: "node.relation",
      style: { "font-size": 10, "background-color": colour("paper"), "border-width": 0, color: colour("soft-ink"), "z-index": 1 },
    },
    { selector: "edge", style: { width: 1.2, "line-color": colour("line"), "curve-style": "straight", "overlay-opacity": 0 } },
    { selector: "edge.last", style: { "target-arrow-shape": "triangle", "target-arrow-color": colour("line"), "arrow-scale": 0.8 } },
    { selector: "edge.loop", style: { "curve-style": "unbundled-bezier", "control-point-distances": 20, "control-point-weights": 0.5 } },
    { selector: ".faded", style: { opacity: 0.22 } },
    { selector: "node.match", style: { "border-width": 2, "border-color": colour("focus") } },
    { selector: "node.chosen", style: { "border-width": 3, "border-color": colour("focus") } },
    { selector: "edge.chosen", style: { width: 2, "line-color": colour("focus"), "target-arrow-color": colour("focus") } },
    { selector: "node.cursor", style: { "outline-width": 2, "outline-color": colour("focus"), "outline-offset": 2 } },
  ];
}

function showWhole(cy) {
  if (!cy.elements().length) return;
  cy.fit(undefined, 24);
  if (cy.zoom() > 1.25) {
    cy.zoom(1.25);
    cy.center();
  }
}

function bringIntoView(cy, element) {
  const [box, seen] = [element.boundingBox(), cy.extent()];
  const inside = box.x1 >= seen.x1 && box.x2 <= seen.x2 && box.y1 >= seen.y1 && box.y2 <= seen.y2;
  if (inside && cy.zoom() >= 0.6) return;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  cy.stop().animate({ center: { eles: element }, zoom: Math.max(cy.zoom(), 0.9) }, { duration: still ? 0 : 200 });
}

// Fades all but an entity and its facts, or all but a fact and its ends.
function focusOn(cy, box) {
  const isFact = box.hasClass("relation");
  const lines = isFact ? box.connectedEdges() : box.connectedEdges().connectedNodes(".relation").connectedEdges();
  cy.batch(() => {
    cy.elements().addClass("faded").removeClass("chosen match");
    lines.union(lines.connectedNodes()).union(box).removeClass("faded");
    lines.union(box).addClass("chosen");
  });
}

// The nearest box in a direction, from the box the cursor is on; the first box where it is on none.
function nearest(cy, from, [across, down]) {
  if (!from) return cy.nodes()[0]?.id();
  const here = cy.getElementById(from).position();
  let best = null;
  let least = Infinity;
  for (const node of cy.nodes()) {
    const { x, y } = node.position();
    const ahead = (x - here.x) * across + (y - here.y) * down;
    const aside = Math.abs((x - here.x) * down) + Math.abs((y - here.y) * across);
    const cost = ahead + 2.5 * aside;
    if (ahead > 1 && cost < least) [best, least] = [node.id(), cost];
  }
  return best;
}

// The box after another one, or before it, round and round: first all entities, then all relations.
function boxAfter(cy, from, step) {
  const entities = cy.nodes().filter((node) => !node.hasClass("relation"));
  const boxes = [...entities, ...cy.nodes(".relation")].map((node) => node.id());
  const place = from ? boxes.indexOf(from) + step : 0;
  return boxes[(place + boxes.length) % boxes.length];
}

// --- print ---------------------------------------------------------------------------------------------------------

// Draws what the canvas shows as lines and texts, sharp at every size.
function drawForPrint(place, cy) {
  const shape = (name, attributes, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const box = cy.elements().boundingBox();
  if (!cy.elements().length) return place.replaceChildren();
  const svg = shape("svg", { viewBox: `${box.x1 - 8} ${box.y1 - 8} ${box.w + 16} ${box.h + 16}`, width: 1.2 * box.w });
  for (const edge of cy.edges()) {
    const [from, to, bend] = [edge.sourceEndpoint(), edge.targetEndpoint(), edge.controlPoints()?.[0]];
    const middle = bend ? `Q${bend.x},${bend.y} ` : "";
    svg.append(shape("path", { d: `M${from.x},${from.y} ${middle}${bend ? "" : "L"}${to.x},${to.y}`, class: "kg-line" }));
    if (edge.hasClass("last")) svg.append(shape("polygon", { points: arrow(bend ?? from, to), class: "kg-tip" }));
  }
  for (const node of cy.nodes()) {
    const [{ x, y }, w, h] = [node.position(), node.data("w"), node.data("h")];
    const role = ["answer", "known", "other", "relation"].find((name) => node.hasClass(name));
    svg.append(shape("rect", { x: x - w / 2, y: y - h / 2, width: w, height: h, rx: 6, class: `kg-box kg-${role}` }));
    svg.append(shape("text", { x, y, class: `kg-name kg-${role}` }, node.data("label")));
  }
  place.replaceChildren(svg);
}

function arrow(from, to) {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const [x, y] = [(to.x - from.x) / length, (to.y - from.y) / length];
  const corner = (side) => `${to.x - 8 * x + side * y},${to.y - 8 * y - side * x}`;
  return `${to.x},${to.y} ${corner(3)} ${corner(-3)}`;
}
