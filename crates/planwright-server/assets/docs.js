"use strict";
// Shows openapi.json. Texts are put in as texts only, never as markup.

const METHODS = ["get", "post", "patch", "put", "delete"];

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function resolve(api, value) {
  if (!value || !value.$ref) return value;
  return value.$ref.replace(/^#\//, "").split("/").reduce((found, key) => found && found[key], api);
}

function schemaText(schema) {
  return JSON.stringify(schema, null, 2);
}

function bodies(api, title, content) {
  const part = element("section");
  for (const [kind, media] of Object.entries(content || {})) {
    part.append(element("h4", `${title} (${kind})`));
    const named = media.schema && media.schema.$ref;
    if (named) part.append(element("p", named.split("/").pop(), "name"));
    part.append(element("pre", schemaText(resolve(api, media.schema) || {})));
  }
  return part;
}

function parameters(operation) {
  const table = element("table");
  for (const parameter of operation.parameters || []) {
    const row = element("tr");
    row.append(element("td", parameter.name), element("td", parameter.in));
    row.append(element("td", parameter.required ? "required" : ""), element("td", parameter.description || ""));
    table.append(row);
  }
  return table;
}

function operationPart(api, path, method, operation) {
  const part = element("details");
  const summary = element("summary");
  summary.append(element("code", method.toUpperCase(), `method ${method}`), element("code", path, "path"));
  summary.append(element("span", operation.summary || "", "words"));
  summary.append(element("span", operation["x-planwright-action"] || "", "action"));
  part.append(summary);
  if (operation.description) part.append(element("p", operation.description));
  if ((operation.parameters || []).length) part.append(element("h4", "Parameters"), parameters(operation));
  if (operation.requestBody) part.append(bodies(api, "Body", operation.requestBody.content));
  for (const [status, given] of Object.entries(operation.responses || {})) {
    const response = resolve(api, given);
    part.append(element("h4", `${status} ${response.description || ""}`));
    if (!given.$ref) part.append(bodies(api, "Answer", response.content));
  }
  return part;
}

function show(api) {
  document.getElementById("about").textContent = `${api.info.title} ${api.info.version}: ${api.info.description}`;
  const groups = new Map();
  for (const [path, item] of Object.entries(api.paths)) {
    for (const method of METHODS) {
      const operation = item[method];
      if (!operation) continue;
      const tag = (operation.tags || ["other"])[0];
      if (!groups.has(tag)) groups.set(tag, []);
      groups.get(tag).push(operationPart(api, path, method, operation));
    }
  }
  const main = document.getElementById("operations");
  main.replaceChildren();
  for (const [tag, parts] of groups) {
    const section = element("section");
    section.append(element("h2", tag), ...parts);
    main.append(section);
  }
}

// The token of this tab. Unlike a cookie, another port of this machine never sees it.
const SESSION = "planwright-token";

async function ask(path, options = {}) {
  const token = sessionStorage.getItem(SESSION);
  const headers = { ...options.headers, ...(token ? { authorization: `Bearer ${token}` } : {}) };
  const answer = await fetch(path, { ...options, headers });
  const text = await answer.text();
  const json = (answer.headers.get("content-type") || "").includes("json");
  return { ok: answer.ok, status: answer.status, value: json ? JSON.parse(text) : text };
}

// The code of the link is good once. It leaves the address bar before anything else happens.
async function signIn() {
  const code = new URLSearchParams(location.hash.slice(1)).get("sign-in");
  if (!code) return;
  history.replaceState(null, "", location.pathname);
  const body = JSON.stringify({ code });
  const answer = await ask("sign-in", { method: "POST", headers: { "content-type": "application/json" }, body });
  if (!answer.ok) throw new Error(answer.value.detail || `the service answered ${answer.status}`);
  sessionStorage.setItem(SESSION, answer.value.token);
}

async function session() {
  const part = document.getElementById("session");
  try {
    await signIn();
  } catch (error) {
    part.append(element("p", `You are not signed in: ${error.message}`));
    return;
  }
  if (!sessionStorage.getItem(SESSION)) return;
  const who = await ask("whoami");
  if (!who.ok) {
    sessionStorage.removeItem(SESSION);
    return;
  }
  part.append(element("p", `Signed in as ${who.value.kind} ${who.value.name}, ${who.value.role}.`));
  const shown = element("pre");
  shown.hidden = true;
  for (const path of ["approvals", "plan", "tools", "stats"]) {
    const button = element("button", `GET ${path}`);
    button.addEventListener("click", async () => {
      const answer = await ask(path);
      shown.hidden = false;
      shown.textContent = schemaText(answer.value);
    });
    part.append(button);
  }
  part.append(shown);
}

function filter(words) {
  for (const part of document.querySelectorAll("details")) {
    part.hidden = !part.querySelector("summary").textContent.toLowerCase().includes(words.toLowerCase());
  }
}

fetch("openapi.json")
  .then((answer) => answer.json())
  .then(show)
  .catch((error) => {
    document.getElementById("operations").textContent = `openapi.json cannot be read: ${error}`;
  });
session();
document.getElementById("filter").addEventListener("input", (event) => filter(event.target.value));
