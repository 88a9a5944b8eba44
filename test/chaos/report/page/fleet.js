// The whole fleet over the whole run: how many servers are not connected, by state. Its brush chooses what the rest shows.
let fleet = { key: "", parts: null, columns: 0 };

// shares sums, for each column, how long the servers were in each state.
function shares(of, columns) {
  const width = data.end / columns;
  const whole = states.map(() => new Float64Array(columns + 2)); // differences of columns that are covered in full
  const parts = states.map(() => new Float64Array(columns));
  for (const s of of) {
    for (let i = 0; i < s.state.length; i++) {
      const from = s.at[i], to = Math.min(s.at[i + 1], data.end), state = s.state[i];
      if (to <= from) continue;
      const first = Math.min(Math.floor(from / width), columns - 1), last = Math.min(Math.floor(to / width), columns - 1);
      if (first === last) {
        parts[state][first] += to - from;
        continue;
      }
      parts[state][first] += (first + 1) * width - from;
      parts[state][last] += to - last * width;
      whole[state][first + 1] += width;
      whole[state][last] -= width;
    }
  }
  parts.forEach((column, state) => {
    let covered = 0;
    for (let i = 0; i < columns; i++) column[i] += covered += whole[state][i];
  });
  return parts;
}

// The order from the ground up: the heaviest first.
const layers = [7, 6, 5, 4, 3, 2, 0];

function drawFleet() {
  const canvas = $("fleet"), width = plotWidth(), height = 78, top = 12, room = height - top;
  const c = paper(canvas, width + edge, height);
  const columns = Math.max(Math.round(width), 1);
  const key = shownServers.length + " " + columns + " " + listing;
  if (fleet.key !== key) {
    fleet = { key, columns, parts: shares(shownServers, columns) };
    fleet.top = topOf(fleet.parts, data.end / columns);
  }
  const one = data.end / columns; // one server for the width of one column
  c.globalAlpha = .35;
  c.fillStyle = colour(states[connected].colour);
  c.fillRect(0, top, width, room);
  c.globalAlpha = 1;
  for (let x = 0; x < columns; x++) {
    let y = height;
    for (const state of layers) {
      const part = fleet.parts[state][x];
      if (!part) continue;
      const h = Math.max(part / one / fleet.top * room, .6); // a blip of one server of a thousand is seen, too
      c.fillStyle = colour(states[state].colour);
      c.fillRect(x, Math.max(y - h, top), 1.05, Math.min(h, y - top));
      y -= h;
      if (y <= top) break;
    }
  }
  c.textAlign = "left";
  c.textBaseline = "top";
  label(c, number(fleet.top), 3, top + 2);
  const place = (t) => t / data.end * width;
  drawFaultTime(c, place, 0, 8);
  c.fillStyle = colour("--ink");
  if (view.from > 0 || view.to < data.end) {
    const a = place(view.from), b = Math.max(place(view.to), a + 2);
    c.globalAlpha = .5;
    c.fillStyle = colour("--card");
    c.fillRect(0, 0, a, height);
    c.fillRect(b, 0, width - b, height);
    c.globalAlpha = 1;
    c.strokeStyle = colour("--focus");
    c.lineWidth = 1.5;
    c.strokeRect(a + .5, .75, b - a, height - 1.5);
  }
}

// topOf is the scale: all but the highest hundredth of the columns fit, because all servers start together and that moment
// would flatten the rest of the day. What is higher is cut off.
function topOf(parts, one) {
  const sums = Array.from(parts[0], (_, x) => layers.reduce((n, state) => n + parts[state][x], 0) / one).sort((a, b) => a - b);
  const usual = sums[Math.floor(sums.length * .985)] || 0;
  return Math.max(2, Math.min(Math.ceil(usual * 1.2), shownServers.length));
}

// drawFaultTime shows from when to when faults were there, and the healing.
function drawFaultTime(c, place, y, height) {
  c.fillStyle = colour("--fault");
  for (const f of faults) c.fillRect(place(f.begin), y, Math.max(place(f.end) - place(f.begin), 1.5), 4);
  if (data.healed > 0 && data.healed < data.end) {
    const x = place(data.healed);
    c.fillStyle = colour("--ink");
    c.fillRect(x, y, 1, height + 4);
    c.textAlign = x > 60 ? "right" : "left";
    c.textBaseline = "top";
    label(c, "heal", x + (x > 60 ? -3 : 4), y + 4);
  }
}

function startFleet() {
  const canvas = $("fleet");
  let begun = null;
  const at = (e) => Math.min(Math.max((e.clientX - canvas.getBoundingClientRect().left) / plotWidth(), 0), 1) * data.end;
  canvas.addEventListener("pointerdown", (e) => {
    begun = { at: at(e), x: e.clientX, moved: false };
    canvas.setPointerCapture(e.pointerId);
  });
  canvas.addEventListener("pointermove", (e) => {
    if (!begun || Math.abs(e.clientX - begun.x) < 4) return;
    begun.moved = true;
    show(Math.min(begun.at, at(e)), Math.max(begun.at, at(e)));
  });
  canvas.addEventListener("pointerup", (e) => {
    if (begun && !begun.moved) { // a click moves the window there
      const half = (view.to - view.from) / 2;
      if (half * 2 < data.end) show(at(e) - half, at(e) + half);
    }
    begun = null;
  });
  canvas.addEventListener("dblclick", () => show(0, data.end));
  listeners.push(drawFleet);
}
