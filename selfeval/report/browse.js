"use strict";
// Filters, sorts, searches and pages the table in #data. Everything from the data becomes text, never markup.
const data = JSON.parse(document.getElementById("data").textContent);
const PAGE = 50;
const byLabel = Object.fromEntries(data.columns.map(column => [column.label, column]));
const cells = data.columns.filter(column => ["cell", "number", "link"].includes(column.show));
const state = {search: "", filters: {}, sort: null, down: false, page: 0, open: new Set()};
let rows = [];

function make(tag, options = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name in node && !name.startsWith("aria")) node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

function shown(value) {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return String(value[0]);
  return typeof value === "number" ? String(Math.round(value * 1e4) / 1e4) : String(value);
}

function searchable(column) {  // the text of each distinct value, once
  column.texts ??= column.values.map(value => column.show === "link" ? value[0].toLowerCase() :
    (Array.isArray(value) ? value.flat().join("\n") : shown(value)).toLowerCase());
  return column.texts;
}

function find() {
  const tests = Object.entries(state.filters).map(([label, code]) => [byLabel[label].codes, code]);
  const words = state.search.toLowerCase().split(/\s+/).filter(Boolean).map(word =>
    data.columns.map(column => [column.codes, searchable(column).map(text => text.includes(word))]));
  rows = [];
  for (let i = 0; i < data.size; i++) {
    if (tests.every(([codes, code]) => codes[i] === code) &&
        words.every(columns => columns.some(([codes, hits]) => hits[codes[i]]))) rows.push(i);
  }
  if (state.sort) {
    const {values, codes, show} = state.sort;
    const key = show === "number" ? values.map(v => v ?? Infinity) : values.map(v => shown(v).toLowerCase());
    const sign = state.down ? -1 : 1;
    const order = (a, b) => key[codes[a]] < key[codes[b]] ? -sign : key[codes[a]] > key[codes[b]] ? sign : a - b;
    rows.sort(order);
  }
  state.page = Math.min(state.page, Math.max(0, Math.ceil(rows.length / PAGE) - 1));
}

function marked(text) {  // the words that were searched for, in <mark>
  const words = state.search.split(/\s+/).filter(Boolean).map(word => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (!words.length) return [text];
  return text.split(new RegExp(`(${words.join("|")})`, "i")).map((part, k) => k % 2 ? make("mark", {}, part) : part);
}

function details(i) {
  const of = show => data.columns.filter(column => column.show === show)
    .map(column => [column.label, column.values[column.codes[i]]]).filter(([, value]) => value && value.length);
  const facts = of("fact").map(([label, value]) => make("div", {}, make("dt", {}, label), make("dd", {}, ...marked(value))));
  const texts = of("text").map(([label, value]) => block(label, value, "", [], label === "raw reply" ? "reply" : ""));
  const closed = of("folded").map(([label, value]) => make("div", {className: "block"}, folded(label, value)));
  const chats = of("chat").flatMap(([, blocks]) => blocks.map(([who, text, note, ...more]) => {
    const aside = /^(read-out|juror|judge|summary)/.test(who);
    return block(who, text, note, more, aside ? "aside" : /^(reply|answer)/.test(who) ? "reply" : "");
  }));
  return [...chats, ...texts, ...closed, ...(facts.length ? [make("dl", {className: "facts"}, ...facts)] : [])];
}

function folded(label, text) {
  return make("details", {}, make("summary", {}, label), make("pre", {className: "raw"}, ...marked(text)));
}

function block(who, text, note, more, kind) {
  const head = make("h4", {}, who, ...(note ? [make("span", {}, ` ${note}`)] : []));
  const parts = [head, make("pre", {}, ...(text ? marked(text) : [make("em", {}, "(empty)")]))];
  ["raw reply", "reasoning", "as sent"].forEach((label, k) => {
    if (more[k] && more[k] !== text) parts.push(folded(label, more[k]));
  });
  return make("div", {className: `block ${kind}`}, ...parts);
}

function line(i) {
  const open = state.open.has(i);
  const button = make("button", {type: "button", "aria-expanded": String(open), "aria-label": `Details of ${data.noun} ${i + 1}`},
    open ? "−" : "+");
  button.addEventListener("click", () => {
    state.open.has(i) ? state.open.delete(i) : state.open.add(i);
    draw();
    document.querySelector(`[data-row="${i}"] button`)?.focus();
  });
  const tr = make("tr", {"data-row": i, className: open ? "open" : ""}, make("td", {className: "toggle"}, button));
  for (const column of cells) {
    const value = column.values[column.codes[i]];
    const text = marked(shown(value));
    const bad = ["error", "failed", "wrong", "no answer"].some(word => shown(value).startsWith(word));
    const kind = `${column.show} ${column.filter && bad ? "bad" : ""}`;
    const inside = column.show === "link" && value[1] ? [make("a", {href: value[1]}, ...text)] : text;
    tr.append(make("td", {className: kind, ...(shown(value) ? {"data-label": column.label} : {})}, ...(shown(value) ? inside : [])));
  }
  return open ? [tr, make("tr", {className: "detail"}, make("td", {colSpan: cells.length + 1}, ...details(i)))] : [tr];
}

function draw() {
  const first = state.page * PAGE, last = Math.min(first + PAGE, rows.length);
  document.getElementById("count").textContent = rows.length
    ? `${first + 1}–${last} of ${rows.length.toLocaleString("en")} ${data.noun}s` : `No ${data.noun} fits.`;
  document.getElementById("body").replaceChildren(...rows.slice(first, last).flatMap(line));
  for (const name of ["first", "previous"]) document.getElementById(name).disabled = state.page === 0;
  for (const name of ["next", "last"]) document.getElementById(name).disabled = last >= rows.length;
  for (const th of document.querySelectorAll("th[data-column]")) {
    const mine = state.sort && state.sort.label === th.dataset.column;
    th.setAttribute("aria-sort", mine ? (state.down ? "descending" : "ascending") : "none");
    th.querySelector("button").textContent = th.dataset.column + (mine ? (state.down ? " ↓" : " ↑") : "");
  }
  remember();
}

function refresh() { state.page = 0; state.open.clear(); find(); draw(); }

function remember() {  // what is chosen stands in the address, so that it can be kept and shared
  const chosen = new URLSearchParams();
  if (state.search) chosen.set("search", state.search);
  for (const [label, code] of Object.entries(state.filters)) chosen.set(label, byLabel[label].values[code]);
  const address = chosen.size ? `#${chosen}` : location.pathname;
  try { history.replaceState(null, "", address); } catch { /* not allowed in every browser for files */ }
}

function recall() {
  for (const [label, text] of new URLSearchParams(location.hash.slice(1))) {
    if (label === "search") state.search = text;
    const code = byLabel[label]?.filter ? byLabel[label].values.indexOf(text) : -1;
    if (code >= 0) state.filters[label] = code;
  }
}

function controls() {
  const form = document.getElementById("controls");
  form.addEventListener("submit", event => event.preventDefault());
  const search = make("input", {type: "search", id: "search", value: state.search, autocomplete: "off"});
  let waiting;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { state.search = search.value; refresh(); }, 120);
  });
  form.append(make("label", {}, "search everything, also the raw replies", search));
  for (const column of data.columns.filter(c => c.filter && c.values.length > 1)) {
    const counts = column.values.map(() => 0);
    column.codes.forEach(code => { counts[code] += 1; });
    const order = column.values.map((_, code) => code).sort((a, b) => shown(column.values[a]) < shown(column.values[b]) ? -1 : 1);
    const select = make("select", {"data-filter": column.label}, make("option", {value: ""}, `all (${column.values.length})`),
      ...order.map(code => make("option", {value: code}, `${shown(column.values[code]) || "(none)"} · ${counts[code]}`)));
    select.value = state.filters[column.label] ?? "";
    select.addEventListener("change", () => {
      if (select.value === "") delete state.filters[column.label];
      else state.filters[column.label] = Number(select.value);
      refresh();
    });
    form.append(make("label", {}, column.label, select));
  }
  const sorter = make("select", {id: "sort"}, make("option", {value: ""}, "as it is"),
    ...cells.map(column => make("option", {value: column.label}, column.label)));
  sorter.addEventListener("change", () => {
    Object.assign(state, {sort: byLabel[sorter.value] ?? null, down: false});
    refresh();
  });
  form.append(make("label", {className: "narrow"}, "sort by", sorter));  // where the table has no head to click
  const clear = make("button", {type: "button", id: "clear"}, "clear");
  clear.addEventListener("click", () => {
    Object.assign(state, {search: "", filters: {}, sort: null, down: false});
    search.value = "";
    form.querySelectorAll("select").forEach(select => { select.value = ""; });
    refresh();
  });
  form.append(clear);
}

function head() {
  const tr = make("tr", {}, make("th", {scope: "col"}, make("span", {className: "hidden"}, "details")));
  for (const column of cells) {
    const button = make("button", {type: "button"}, column.label);
    button.addEventListener("click", () => {
      state.down = state.sort === column ? !state.down : false;
      state.sort = column;
      refresh();
    });
    tr.append(make("th", {scope: "col", "data-column": column.label, "aria-sort": "none"}, button));
  }
  document.getElementById("head").append(tr);
}

const moves = {first: () => 0, previous: () => state.page - 1, next: () => state.page + 1, last: () => Infinity};
for (const [name, to] of Object.entries(moves)) {
  document.getElementById(name).addEventListener("click", () => {
    state.page = to();
    find();
    draw();
  });
}
document.getElementById("open").addEventListener("click", () => {
  const page = rows.slice(state.page * PAGE, (state.page + 1) * PAGE);
  const all = page.every(i => state.open.has(i));
  page.forEach(i => all ? state.open.delete(i) : state.open.add(i));
  draw();
});
recall();
controls();
head();
find();
draw();
