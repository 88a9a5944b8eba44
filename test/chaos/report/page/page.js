// What a person does, and the start.
let printing = false;

function hover(e) {
  const box = $("charts").getBoundingClientRect();
  const x = e.clientX - box.left - gutter() - 1, width = plotWidth();
  const canvas = e.target.closest("canvas");
  if (!canvas || x < 0 || x > width) return leave();
  const whole = canvas.id === "fleet";
  const t = whole ? x / width * data.end : view.from + x / width * (view.to - view.from);
  $("cross").hidden = whole;
  $("cross").style.left = gutter() + x + "px";
  const lines = [];
  let title = "";
  const chart = canvas.closest("[data-chart]");
  if (chart) lines.push(...charts[chart.dataset.chart].tell(t));
  else if (canvas.id === "bands") {
    const item = items[itemAt(e.clientY - canvas.getBoundingClientRect().top + $("lanes").scrollTop)];
    if (!item || !item.server) return leave();
    const s = item.server;
    title = s.name;
    const i = indexAt(s, t);
    lines.push(states[s.state[i]].name + " from " + clock(s.at[i]) + " for " + clock(s.at[i + 1] - s.at[i]));
    for (const f of [...s.faults, ...everywhere]) {
      const slack = (view.to - view.from) / width * 2;
      if (t >= f.begin - slack && t <= f.end + slack) lines.push("fault: " + f.name);
    }
    for (const v of s.verdicts) if (Math.abs(v.at - t) < (view.to - view.from) / width * 6) lines.push("✗ " + v.id + " at " + clock(v.at));
  } else if (whole) {
    const column = Math.min(Math.floor(x), fleet.columns - 1), one = data.end / fleet.columns;
    states.forEach((s, n) => {
      const so = fleet.parts[n][column] / one;
      if (so > .004) lines.push(Number(so.toPrecision(3)) + " " + s.name);
    });
  } else return leave();
  tip(e, title, clock(t), lines);
}
function tip(e, title, at, lines) {
  const box = $("tip");
  box.replaceChildren(...(title ? [make("b", "", title)] : []), make("span", "at", at), ...lines.map((l) => make("div", "", l)));
  box.hidden = false;
  const left = e.clientX + 16 + box.offsetWidth > innerWidth ? e.clientX - box.offsetWidth - 12 : e.clientX + 16;
  box.style.left = Math.max(left, 4) + "px";
  box.style.top = Math.min(e.clientY + 14, innerHeight - box.offsetHeight - 4) + "px";
}
function leave() {
  $("tip").hidden = $("cross").hidden = true;
}

// Dragging moves in time; a click without a move opens the server under it.
function startDragging() {
  let begun = null;
  const box = $("charts");
  box.addEventListener("pointerdown", (e) => {
    const canvas = e.target.closest("canvas");
    if (!canvas || canvas.id === "fleet" || e.button) return;
    begun = { x: e.clientX, from: view.from, to: view.to, moved: false, canvas };
  });
  addEventListener("pointermove", (e) => {
    if (!begun) return;
    const by = (begun.x - e.clientX) / plotWidth() * (begun.to - begun.from);
    if (Math.abs(begun.x - e.clientX) > 3) begun.moved = true;
    if (begun.moved) show(begun.from + by, begun.to + by);
  });
  addEventListener("pointerup", (e) => {
    if (begun && !begun.moved && begun.canvas.id === "bands" && e.target === begun.canvas) {
      const item = items[itemAt(e.clientY - begun.canvas.getBoundingClientRect().top + $("lanes").scrollTop)];
      if (item && item.server) {
        const t = view.from + (e.clientX - begun.canvas.getBoundingClientRect().left) / plotWidth() * (view.to - view.from);
        pin(t);
        open(item.server);
        toEvent(t);
      }
    }
    begun = null;
  });
  addEventListener("pointercancel", () => { begun = null; });
  box.addEventListener("pointermove", hover);
  box.addEventListener("pointerleave", leave);
  box.addEventListener("wheel", (e) => {
    const sideways = Math.abs(e.deltaX) > Math.abs(e.deltaY) || e.shiftKey;
    if (!e.ctrlKey && !e.metaKey && !sideways) return; // the page or the rows scroll
    e.preventDefault();
    const x = e.clientX - box.getBoundingClientRect().left - gutter();
    if (sideways && !e.ctrlKey) pan((e.deltaX || e.deltaY) / 1000);
    else zoom(Math.exp(Math.max(-60, Math.min(e.deltaY, 60)) / 120), view.from + x / plotWidth() * (view.to - view.from));
  }, { passive: false });
}

function startKeys() {
  const moves = {
    ArrowUp: () => step(-1), ArrowDown: () => step(1), PageUp: () => step(-20), PageDown: () => step(20),
    Home: () => step(-1e9), End: () => step(1e9), Enter: () => chosen && open(chosen), " ": () => chosen && open(chosen),
    ArrowLeft: () => pan(-.1), ArrowRight: () => pan(.1), "+": () => zoom(.6), "=": () => zoom(.6), "-": () => zoom(1 / .6),
    0: () => show(0, data.end),
  };
  $("lanes").addEventListener("keydown", (e) => {
    if (!moves[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    leave();
    moves[e.key]();
  });
  addEventListener("keydown", (e) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (e.key === "Escape") closePanel();
    else if (e.key === "/" && !typing && !e.ctrlKey && !e.metaKey) {
      e.preventDefault();
      $("search").focus();
    }
  });
}

// copy works in files, too, where the clipboard may not be asked for.
async function copyCommand() {
  const text = $("command").textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    getSelection().selectAllChildren($("command"));
    if (!document.execCommand("copy")) {
      $("copied").textContent = "selected: press Ctrl+C";
      return;
    }
    getSelection().removeAllRanges();
  }
  $("copied").textContent = "copied";
  setTimeout(() => { $("copied").textContent = ""; }, 2000);
}

// On paper there is no scrolling: all rows stand below each other, as many as one can look at, in the light theme.
function startPrinting() {
  let before = null;
  addEventListener("beforeprint", () => {
    before = { theme: document.documentElement.dataset.theme, height: $("height").value, held: document.querySelector(".held")?.open };
    printing = true;
    document.documentElement.dataset.theme = "light";
    palette = {};
    $("height").value = servers.length > 120 ? "4" : "13";
    const held = document.querySelector(".held");
    if (held) held.open = true;
    list();
    for (const draw of listeners) draw();
  });
  addEventListener("afterprint", () => {
    printing = false;
    $("height").value = before.height;
    const held = document.querySelector(".held");
    if (held) held.open = before.held;
    theme(before.theme);
    list();
  });
}

function start() {
  // Many servers get thin rows, and those that matter stand first.
  $("height").value = servers.length <= 40 ? "18" : "13";
  startTheme();
  startFleet();
  startCharts();
  listeners.push(drawLanes, drawPin);
  for (const id of ["filter", "sort", "group", "height"]) $(id).onchange = list;
  $("search").oninput = list;
  $("lanes").onscroll = () => { leave(); redraw(); };
  $("in").onclick = () => zoom(.5);
  $("out").onclick = () => zoom(2);
  $("reset").onclick = () => { pinned = null; show(0, data.end); };
  $("machine").onclick = () => open(machine);
  $("close").onclick = closePanel;
  $("copy").onclick = copyCommand;
  for (const b of document.querySelectorAll("[data-verdict]")) b.onclick = () => jump(data.verdicts[b.dataset.verdict]);
  startDragging();
  startKeys();
  startPrinting();
  new ResizeObserver(() => { measure(); redraw(); }).observe($("charts"));
  addEventListener("resize", () => { measure(); redraw(); });
  list();
  showMoment();
}
start();
