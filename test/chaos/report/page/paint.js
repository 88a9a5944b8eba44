// Colours and patterns for canvases, as the style sheet has them now.
const probe = make("i");
probe.hidden = true;
document.body.append(probe);
let palette = {};

function colour(name) {
  if (!palette[name]) {
    probe.style.color = "var(" + name + ")";
    palette[name] = getComputedStyle(probe).color;
  }
  return palette[name];
}

// tile draws the pattern of a state over its colour.
const drawings = {
  hatch(c) { for (const x of [-3, 3, 9]) { c.moveTo(x - 1, 7); c.lineTo(x + 7, -1); } },
  lines(c) { c.moveTo(0, 1.5); c.lineTo(6, 1.5); c.moveTo(0, 4.5); c.lineTo(6, 4.5); },
  posts(c) { c.moveTo(1.5, 0); c.lineTo(1.5, 6); c.moveTo(4.5, 0); c.lineTo(4.5, 6); },
  dots(c) { c.rect(1, 1, 1, 1); c.rect(4, 4, 1, 1); },
};
function pattern(context, state) {
  const key = "pattern " + state;
  if (key in palette) return palette[key];
  const draw = drawings[states[state].pattern];
  if (!draw) return (palette[key] = null);
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const c = tile.getContext("2d");
  c.strokeStyle = colour("--hatch");
  c.lineWidth = 1.2;
  c.beginPath();
  draw(c);
  c.stroke();
  return (palette[key] = context.createPattern(tile, "repeat"));
}

// paper makes a canvas as sharp as the screen and gives its context, empty, in CSS pixels.
function paper(canvas, width, height) {
  const scale = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
  }
  const c = canvas.getContext("2d");
  c.setTransform(scale, 0, 0, scale, 0, 0);
  c.clearRect(0, 0, width, height);
  c.font = "11px system-ui, sans-serif";
  return c;
}

// the plots of all charts begin at the gutter and end so far from the edge.
const edge = 14;
function plotWidth() {
  return Math.max($("charts").clientWidth - gutter() - edge, 40);
}
function gutter() { return document.querySelector(".axis .gutter").offsetWidth; }

// label is a text that stays readable on whatever it stands.
function label(c, text, x, y) {
  c.strokeStyle = colour("--card");
  c.lineWidth = 3;
  c.lineJoin = "round";
  c.fillStyle = colour("--dim");
  c.strokeText(text, x, y);
  c.fillText(text, x, y);
}

// band fills one state between two pixels of a row.
function fillBand(c, state, x, y, width, height) {
  c.fillStyle = colour(states[state].colour);
  c.fillRect(x, y, width, height);
  if (height >= 7 && width >= 5) {
    const p = pattern(c, state);
    if (p) {
      c.fillStyle = p;
      c.fillRect(x, y, width, height);
    }
  }
}

// The theme: as the system, light or dark. It is remembered where the browser lets a file remember anything.
const themes = ["auto", "light", "dark"];
function theme(name) {
  document.documentElement.dataset.theme = name;
  $("theme").lastElementChild.textContent = name;
  palette = {};
  try { localStorage.setItem("mcpvisor-theme", name); } catch { /* not remembered */ }
  legend();
  redraw();
}
function startTheme() {
  let name = "auto";
  try { name = localStorage.getItem("mcpvisor-theme") || name; } catch { /* the system's */ }
  theme(themes.includes(name) ? name : "auto");
  $("theme").onclick = () => theme(themes[(themes.indexOf(document.documentElement.dataset.theme) + 1) % themes.length]);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => theme(document.documentElement.dataset.theme));
}

// legend shows what the colours, patterns and marks mean: of states only those that occur.
function legend() {
  const seen = new Set();
  for (const s of servers) s.state.forEach((state) => seen.add(state));
  const out = [];
  const sample = (name, draw) => {
    const canvas = document.createElement("canvas");
    draw(paper(canvas, 28, 15));
    out.push(make("span", "", null, canvas, name));
  };
  states.forEach((s, i) => seen.has(i) && i > 0 && sample(s.name, (c) => {
    fillBand(c, i, 0, 0, 28, 15);
    letter(c, i, 0, 0, 28, 15);
  }));
  if (faults.length) sample("fault", (c) => { fillBand(c, connected, 0, 0, 28, 15); faultMark(c, 5, 0, 18, 15); });
  if (servers.some((s) => s.opens.length)) sample("restart", (c) => { fillBand(c, connected, 0, 0, 28, 15); restartMark(c, 14, 0, 15, true); });
  if (data.verdicts.some((v) => v.server >= 0)) sample("violation", (c) => { fillBand(c, connected, 0, 0, 28, 15); violationMark(c, 14, 0, 15); });
  $("legend").replaceChildren(...out);
}
