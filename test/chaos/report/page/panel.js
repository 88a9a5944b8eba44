// One server beside the timeline: its numbers, its faults, its events.
let panelServer = null, opener = null;
const hiddenSides = new Set();

function open(s, focus = true) {
  if (!s) return;
  if ($("panel").hidden) opener = document.activeElement;
  panelServer = s;
  if (s !== machine) select(s, false);
  $("panel").hidden = false;
  document.body.classList.add("beside");
  leave();
  $("panel-title").textContent = s.name;
  $("panel-body").replaceChildren(factsOf(s), aboutIt(s), eventTools(s), ...eventList(s));
  fillEvents();
  if (focus) $("panel").focus();
}

function closePanel() {
  if ($("panel").hidden) return;
  $("panel").hidden = true;
  document.body.classList.remove("beside");
  panelServer = null;
  (opener && opener.isConnected ? opener : $("lanes")).focus();
}

function factsOf(s) {
  const parts = s === machine ? [] : [s.group && "group " + s.group, s.kind, s.era, s.faulty ? "faulty" : "healthy", ...about(s)];
  return make("ul", "facts", null, ...parts.filter(Boolean).map((p) => make("li", "", p)));
}

function aboutIt(s) {
  const out = make("div", "about-it");
  if (s.verdicts.length) {
    out.append(make("h3", "", "Violated here"));
    for (const v of s.verdicts) {
      const b = make("button", "jump", v.id + " at " + clock(v.at) + " →");
      b.onclick = () => jump(v);
      out.append(b, " ");
    }
  }
  if ((s.load || []).some((w) => w[0])) {
    const rows = ["before", "while it breaks", "after the heal"].map((name, i) => {
      const [calls, failed, p50, p90, p99, max] = s.load[i];
      const cells = [number(calls), number(failed), ...[p50, p90, p99, max].map((v) => max ? took(v) : "–")];
      return calls ? make("tr", "", null, make("th", "", name), ...cells.map((v, n) => make("td", n === 1 && failed ? "n some" : "n", v))) : "";
    });
    const head = make("tr", "", null, ...["Calls", "n", "failed", "p50", "p90", "p99", "max"].map((h, i) => make("th", i ? "n" : "", h)));
    out.append(make("table", "", null, make("thead", "", null, head), make("tbody", "", null, ...rows)));
  }
  if (s.faults.length || everywhere.length && s !== machine) {
    out.append(make("h3", "", "Faults"));
    for (const f of [...s.faults, ...everywhere]) {
      const b = make("button", "jump", f.name + ", " + clock(f.begin, 1) + (f.end > f.begin ? " to " + clock(f.end, 1) : ""));
      b.title = f.fired ? "it took effect " + f.fired + " times" : "it was not seen to take effect";
      b.onclick = () => {
        const around = Math.max((f.end - f.begin) * .2, data.end / 200);
        show(f.begin - around, f.end + around);
        pin(f.begin);
      };
      out.append(b, " ");
    }
  }
  out.hidden = !out.childNodes.length;
  return out;
}

function eventTools(s) {
  const bar = make("div", "tools");
  const find = make("input");
  find.type = "search";
  find.id = "find-event";
  find.placeholder = "Find in its events";
  find.setAttribute("aria-label", "Find in its events");
  find.oninput = fillEvents;
  bar.append(find);
  for (const side of [...new Set(eventsOf(s).map((e) => e.side))].sort()) {
    const b = make("button", "", side);
    b.type = "button";
    b.setAttribute("aria-pressed", !hiddenSides.has(side));
    b.onclick = () => {
      if (!hiddenSides.delete(side)) hiddenSides.add(side);
      b.setAttribute("aria-pressed", !hiddenSides.has(side));
      fillEvents();
    };
    bar.append(b);
  }
  return bar;
}

function eventList(s) {
  const held = (s.events || []).length / 5;
  const cap = make("p", "cap", held < s.all ? number(held) + " of its " + number(s.all) +
    " events: what tells most, and what is near a violation. history.jsonl has all." : number(held) + (held === 1 ? " event" : " events"));
  const events = make("ol");
  events.id = "events";
  events.tabIndex = 0;
  events.setAttribute("aria-label", "Events");
  return [cap, events];
}

// fillEvents writes the events that the search and the sides let through.
function fillEvents() {
  const s = panelServer;
  const words = $("find-event").value.toLowerCase().split(/\s+/).filter(Boolean);
  const of = {};
  for (const v of data.verdicts) for (const [server, n] of v.events) if (server === s.place) of[n] = [...(of[n] || []), v.id];
  const rows = [];
  eventsOf(s).forEach((e, n) => {
    if (hiddenSides.has(e.side)) return;
    const text = [e.what, e.ref].filter(Boolean).join(" ");
    if (!words.every((w) => (e.side + " " + text + " " + e.text + " " + clock(e.at)).toLowerCase().includes(w))) return;
    const what = make("span", "what", text);
    if (e.conn) what.append(" ", make("small", "", "conn " + e.conn));
    if (e.text) what.append(" ", make("small", "", e.text));
    const row = make("li", e.side, null, make("time", "", clock(e.at)), make("span", "side", e.side), what);
    row.dataset.at = e.at;
    if (of[n]) {
      row.classList.add("evidence");
      what.dataset.of = of[n].join(", ");
    }
    row.onclick = () => pin(e.at, row.classList.contains("evidence"));
    rows.push(row);
  });
  $("events").replaceChildren(...rows);
}

// toEvent brings the event at a time into sight: the last piece of evidence if there is one.
function toEvent(at) {
  const rows = [...document.querySelectorAll("#events li")];
  const row = rows.findLast((r) => r.classList.contains("evidence") && Math.abs(r.dataset.at - at) < 1000)
    || rows.findLast((r) => Number(r.dataset.at) <= at);
  if (row) row.scrollIntoView({ block: "center" });
}

// pin marks a time in all charts, and moves there if it is out of sight.
let pinned = null;
function pin(at, bad = false) {
  pinned = at;
  $("pin").classList.toggle("bad", bad);
  if (at < view.from || at > view.to) {
    const half = (view.to - view.from) / 2;
    show(at - half, at + half);
  }
  redraw();
}
function drawPin() {
  const hide = pinned === null || pinned < view.from || pinned > view.to;
  $("pin").hidden = hide;
  if (!hide) $("pin").style.left = gutter() + (pinned - view.from) / (view.to - view.from) * plotWidth() + "px";
}

// showMoment begins with the moment of the violation that leads and with what led to it, if they are a small part of the run: a day that was
// made smaller breaks within seconds, and settles for minutes.
function showMoment() {
  const first = document.querySelector("[data-verdict]");
  if (!first) return;
  const v = data.verdicts[first.dataset.verdict];
  const times = v.events.map(([server, event]) => eventsOf(data.servers[server])[event]?.at).filter((t) => t !== undefined);
  const from = Math.min(v.at, ...times), to = Math.max(v.at, ...times);
  const margin = Math.max((to - from) / 2, second);
  if (to - from + 2 * margin < data.end / 2) show(from - margin, to + margin);
  pin(v.at, true);
}

// jump goes to what a verdict is about.
function jump(v) {
  const half = Math.max(data.end / 40, Math.min(5 * second, data.end / 8));
  show(v.at - half, v.at + half);
  pin(v.at, true);
  const s = v.server >= 0 ? data.servers[v.server] : machine;
  if (s !== machine) reveal(s);
  $("timeline").scrollIntoView({ block: "start" });
  open(s);
  toEvent(v.at);
}
