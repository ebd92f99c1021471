// Makes elements. Every text is set as text, never as markup.

// Returns an element; attributes that are functions are listeners, those that are false or null are left out.
export function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(attribute, value);
    else if (value === true) made.setAttribute(attribute, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(attribute, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

export const byId = (id) => document.getElementById(id);

// Says something to those who hear the page.
export function say(text) {
  byId("said").textContent = text;
}

const WORDS = { verbalize: "Write the facts out" };

// Returns the words of a name such as "generate_pattern".
export function words(name) {
  if (WORDS[name]) return WORDS[name];
  const text = name.replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function counted(number, one, more) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : more}`;
}

export function percent(share) {
  return `${Math.floor(100 * share)} %`; // never more than it is, as everywhere else
}

// Shows an error, and what to do next.
export function problem(error) {
  const step = error.nextStep ? make("span", { class: "next" }, error.nextStep) : null;
  return make("div", { class: "problem", role: "alert" }, make("strong", {}, error.message), step);
}

let ids = 0;
export const freshId = (name) => `${name}-${++ids}`;
