// What the run was. Times are microseconds since its start.
const data = JSON.parse(document.getElementById("data").textContent);

// The states of a server. Their order is that of their weight: where several share one pixel, the last one is seen.
const states = [
  { key: "X", name: "not configured", letter: "", colour: "--s-absent", pattern: "none" },
  { key: "C", name: "connected", letter: "C", colour: "--s-connected", pattern: "none" },
  { key: "W", name: "disabled, warm", letter: "W", colour: "--s-warm", pattern: "lines" },
  { key: "D", name: "disabled", letter: "D", colour: "--s-disabled", pattern: "lines" },
  { key: "P", name: "pending", letter: "P", colour: "--s-pending", pattern: "hatch" },
  { key: "A", name: "needs auth", letter: "A", colour: "--s-auth", pattern: "posts" },
  { key: "F", name: "failed", letter: "F", colour: "--s-failed", pattern: "none" },
  { key: "K", name: "failed, parked", letter: "K", colour: "--s-parked", pattern: "dots" },
];
const connected = 1;
const stateOf = Object.fromEntries(states.map((s, i) => [s.key, i]));

const servers = data.servers.slice(0, -1);
const machine = data.servers.at(-1);
machine.name = "Manager and machine";

data.servers.forEach((s, i) => {
  s.place = i;
  s.faults = [];
  s.verdicts = [];
  const parts = s.bands.match(/[A-Z][0-9a-z]+/g) || [];
  s.at = new Float64Array(parts.length + 1);
  s.state = new Uint8Array(parts.length);
  let now = 0;
  parts.forEach((p, n) => {
    now += parseInt(p.slice(1), 36) * 1000;
    s.at[n] = now;
    s.state[n] = stateOf[p[0]] || 0;
  });
  s.at[parts.length] = data.end; // where the last one ends
  now = 0;
  s.opens = s.opens ? s.opens.split(" ").map((p) => (now += parseInt(p, 36) * 1000)) : [];
  s.away = 0;
  s.state.forEach((state, n) => { if (state !== connected) s.away += Math.max(s.at[n + 1] - s.at[n], 0); });
});

// Faults of the machine are those of every server.
const faults = data.faults.map(([id, name, server, begin, end, fired]) => ({ id, name: data.words[name], server, begin, end, fired }));
const everywhere = faults.filter((f) => f.server < 0);
for (const f of faults) if (f.server >= 0) data.servers[f.server].faults.push(f);
data.verdicts.forEach((v, i) => {
  v.place = i;
  if (v.server >= 0 && (v.events.length || v.at)) data.servers[v.server].verdicts.push(v);
});

// eventsOf are the events of a server that the page holds.
function eventsOf(s) {
  const out = [];
  let at = 0;
  for (let i = 0; i < (s.events || []).length; i += 5) {
    at += s.events[i];
    const [side, what] = data.whats[s.events[i + 1]];
    out.push({ at, side, what, conn: s.events[i + 2], ref: data.words[s.events[i + 3]], text: data.words[s.events[i + 4]] });
  }
  return out;
}

// indexAt is the band of a server at a time: the last one that has begun.
function indexAt(s, t) {
  let low = 0, high = s.state.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (s.at[middle] <= t) low = middle; else high = middle - 1;
  }
  return low;
}

const number = (n) => n.toLocaleString("en-US");

// make is an element with a class, a text and children. Text of servers is only ever text.
function make(tag, className, text, ...children) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (text !== undefined && text !== null) e.textContent = text;
  e.append(...children);
  return e;
}
const $ = (id) => document.getElementById(id);
