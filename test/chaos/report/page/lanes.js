// One row for each server that is shown. Only rows in sight exist: names as elements, bands on one canvas.
let shownServers = servers;
let items = [];    // rows and the heads of groups, in order: { server } or { head, of, open }
let tops = [];     // where each item begins, and where the last one ends
let listing = 0;   // counts the lists that were made
let chosen = null; // the selected server
let rowHeight = 18;
const headHeight = 26;
const closedGroups = new Set();

const filters = {
  all: () => true,
  violated: (s) => s.verdicts.length > 0,
  faulty: (s) => s.faulty || s.faults.length > 0,
  healthy: (s) => !s.faulty && !s.faults.length,
  restarted: (s) => s.opens.length > 0,
  failing: (s) => s.state.at(-1) !== connected,
};
const failedCalls = (s) => (s.load || []).reduce((n, w) => n + w[1], 0);
const slowest = (s) => Math.max(0, ...(s.load || []).map((w) => w[4]));
const byName = (a, b) => a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
const sorts = {
  bad: (a, b) => b.verdicts.length - a.verdicts.length || !!b.faults.length - !!a.faults.length || b.faulty - a.faulty ||
    (a.faults.length ? b.away - a.away : 0) || byName(a, b),
  name: byName,
  restarts: (a, b) => b.opens.length - a.opens.length || byName(a, b),
  away: (a, b) => b.away - a.away || byName(a, b),
  failed: (a, b) => failedCalls(b) - failedCalls(a) || byName(a, b),
  p99: (a, b) => slowest(b) - slowest(a) || byName(a, b),
};
const groupings = {
  group: (s) => s.group || "no group",
  kind: (s) => (s.kind || "stdio") + (s.era ? ", " + s.era : ""),
  fault: (s) => [...new Set(s.faults.map((f) => f.name))].sort().join(", ") || "no fault",
};

// list makes the items anew: after another filter, order, group or height.
function list() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  shownServers = servers.filter((s) => filters[$("filter").value](s) &&
    words.every((w) => (s.name + " " + s.group + " " + s.kind + " " + s.faults.map((f) => f.name).join(" ")).toLowerCase().includes(w)));
  shownServers.sort(sorts[$("sort").value]);
  items = [];
  const grouping = groupings[$("group").value];
  if (grouping) {
    const groups = Map.groupBy ? Map.groupBy(shownServers, grouping) : groupBy(shownServers, grouping);
    for (const [head, of] of groups) {
      items.push({ head, of });
      if (!closedGroups.has(head)) for (const server of of) items.push({ server });
    }
  } else items = shownServers.map((server) => ({ server }));
  listing++;
  measure();
  $("shown").textContent = shownServers.length === servers.length ? number(servers.length) + (servers.length === 1 ? " server" : " servers")
    : number(shownServers.length) + " of " + number(servers.length) + " servers";
  redraw();
}
function groupBy(all, of) {
  const out = new Map();
  for (const x of all) out.set(of(x), [...(out.get(of(x)) || []), x]);
  return out;
}

// measure places the items. Rows that fit share the room; a thousand of them get a pixel each at least.
function measure() {
  const lanes = $("lanes");
  const most = Math.max(Math.round(innerHeight * .62), 240);
  const heads = items.filter((i) => i.head !== undefined).length, rows = items.length - heads;
  const asked = Number($("height").value);
  rowHeight = asked || Math.min(26, Math.max(1, (most - heads * headHeight) / Math.max(rows, 1)));
  tops = [0];
  for (const item of items) tops.push(tops.at(-1) + (item.head !== undefined ? headHeight : rowHeight));
  const all = Math.max(tops.at(-1), 60);
  lanes.style.height = Math.min(all, printing ? all : most) + "px";
  $("sheet").style.height = all + "px";
}

// itemAt is the item at a height of the sheet, -1 if there is none.
function itemAt(y) {
  if (y < 0 || y >= tops.at(-1)) return -1;
  let low = 0, high = items.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (tops[middle] <= y) low = middle; else high = middle - 1;
  }
  return low;
}

// The elements of rows in sight, kept from one picture to the next.
const rowElements = new Map();

function drawLanes() {
  const lanes = $("lanes"), height = lanes.clientHeight, scroll = lanes.scrollTop, left = gutter(), width = plotWidth();
  $("window").style.height = height + "px";
  const canvas = $("bands");
  canvas.style.left = left + "px";
  const c = paper(canvas, width + edge, height);
  const seen = new Set();
  const first = Math.max(itemAt(scroll), 0);
  const gap = rowHeight >= 12 ? 2 : rowHeight >= 6 ? 1 : 0;
  const grid = ticks(width);
  for (let i = first; i < items.length && tops[i] < scroll + height; i++) {
    const y = tops[i] - scroll, item = items[i], s = item.server;
    const key = s ? "s" + s.place : "g" + item.head;
    if (!s || rowHeight >= 9) {
      seen.add(key);
      placeElement(key, item, y);
    }
    if (!s) continue;
    drawRow(c, s, view.from, view.to, 0, y + gap / 2, width, Math.max(rowHeight - gap, .8));
    if (s === chosen) {
      c.strokeStyle = colour("--focus");
      c.lineWidth = 2;
      c.strokeRect(1, y + 1, width - 2, Math.max(rowHeight - 2, 2));
      if (rowHeight < 9) {
        seen.add(key);
        placeElement(key, item, Math.min(Math.max(y - 8, 0), height - 17), 17);
      }
    }
  }
  c.globalAlpha = .25;
  c.fillStyle = colour("--dim");
  for (const t of grid.out) c.fillRect((t - view.from) / (view.to - view.from) * width, 0, 1, height);
  c.globalAlpha = 1;
  for (const [key, e] of rowElements) {
    if (seen.has(key)) continue;
    e.remove();
    rowElements.delete(key);
  }
  const none = $("names").querySelector(".none-found");
  if (!items.length && !none) $("names").append(make("p", "none-found", "No server is like that."));
  if (items.length && none) none.remove();
  if (chosen && rowElements.has("s" + chosen.place)) lanes.setAttribute("aria-activedescendant", "row-" + chosen.place);
  else lanes.removeAttribute("aria-activedescendant");
}

function placeElement(key, item, y, height = item.server ? rowHeight : headHeight) {
  let e = rowElements.get(key);
  if (!e) {
    e = item.server ? rowElement(item.server) : headElement(item);
    rowElements.set(key, e);
    $("names").append(e);
  }
  e.style.top = y + "px";
  e.style.height = height + "px";
  e.style.fontSize = Math.min(12, Math.max(8, height - 2)) + "px";
  if (item.server) e.setAttribute("aria-selected", item.server === chosen);
}

function rowElement(s) {
  const e = make("div", "row");
  if (s.verdicts.length) e.append(make("b", "", "✗"));
  else if (s.faults.length || s.faulty) e.append(make("i"));
  e.append(make("span", "", s.name));
  e.id = "row-" + s.place;
  e.role = "option";
  e.title = s.name;
  e.onclick = () => open(s);
  return e;
}

function headElement(item) {
  const bad = item.of.filter((s) => s.verdicts.length).length, broken = item.of.filter((s) => s.faults.length).length;
  const e = make("div", "head", (closedGroups.has(item.head) ? "▸ " : "▾ ") + item.head);
  const parts = [number(item.of.length) + (item.of.length === 1 ? " server" : " servers")];
  if (broken) parts.push(number(broken) + " faulty");
  if (bad) parts.push(number(bad) + " with a violation");
  e.append(make("small", "", parts.join(" · ")));
  e.onclick = () => {
    if (!closedGroups.delete(item.head)) closedGroups.add(item.head);
    rowElements.forEach((old) => old.remove());
    rowElements.clear();
    list();
  };
  return e;
}

// select chooses a server and brings it into sight.
function select(s, say = true) {
  chosen = s;
  const at = items.findIndex((i) => i.server === s), lanes = $("lanes");
  if (at >= 0) {
    if (tops[at] < lanes.scrollTop) lanes.scrollTop = tops[at];
    else if (tops[at] + rowHeight > lanes.scrollTop + lanes.clientHeight) lanes.scrollTop = tops[at] + rowHeight - lanes.clientHeight;
  }
  if (s && say) $("live").textContent = s.name + ": " + about(s).join(", ");
  redraw();
}

// step selects the server so many rows away.
function step(by) {
  const rows = items.filter((i) => i.server).map((i) => i.server);
  if (!rows.length) return;
  const now = rows.indexOf(chosen);
  select(rows[Math.min(Math.max(now < 0 ? 0 : now + by, 0), rows.length - 1)]);
  if (!$("panel").hidden) open(chosen, false);
}

// about is a server in a few words.
function about(s) {
  const share = 1 - s.away / data.end;
  const out = ["connected " + (share > .9995 ? "100" : (100 * share).toFixed(1)) + " % of the time"];
  out.push(s.opens.length + (s.opens.length === 1 ? " restart" : " restarts"));
  if (s.faults.length) out.push(s.faults.length + (s.faults.length === 1 ? " fault" : " faults"));
  if (failedCalls(s)) out.push(number(failedCalls(s)) + " calls failed");
  if (s.verdicts.length) out.push("violates " + s.verdicts.map((v) => v.id).join(", "));
  return out;
}

// reveal shows a server that a filter may hide.
function reveal(s) {
  if (!shownServers.includes(s)) {
    $("filter").value = "all";
    $("search").value = "";
    list();
  }
  if (!items.some((i) => i.server === s)) {
    closedGroups.clear();
    list();
  }
}
