// The small charts above the rows. All share the view's time.
const charts = {
  restarts: {
    there: () => data.restarts.counts.some((n) => n),
    start() {
      const w = data.restarts.width;
      $("restarts-unit").textContent = "openings after the first, per " + columnName(w);
    },
    draw(c, width, height, place) {
      const { width: w, counts } = data.restarts;
      const first = Math.max(Math.floor(view.from / w), 0), last = Math.min(Math.ceil(view.to / w), counts.length);
      // What shares a pixel is drawn as its highest column.
      let top = 1;
      for (let i = first; i < last; i++) top = Math.max(top, counts[i]);
      const y = scaleTo(c, width, height, top);
      c.fillStyle = colour("--s-pending");
      for (let i = first; i < last; i++) {
        if (!counts[i]) continue;
        const left = place(i * w), right = place((i + 1) * w);
        c.fillRect(left, y(counts[i]), Math.max(right - left - (right - left > 4 ? 1 : 0), 1), height - y(counts[i]));
      }
    },
    tell(t) {
      const n = data.restarts.counts[Math.floor(t / data.restarts.width)] || 0;
      return [n + (n === 1 ? " restart" : " restarts") + " in this " + columnName(data.restarts.width)];
    },
  },
  gate: {
    there: () => data.gate.length > 0,
    start() {
      for (const p of data.gate) {
        let at = 0;
        p.steps.at = p.steps.at.map((d) => (at += d));
      }
      $("gate-key").replaceWith(make("span", "key slots", "slots held"), make("span", "key waiting", "unanswered"));
    },
    draw(c, width, height, place) {
      const pools = data.gate.filter((p) => p.most > 0);
      // A limit that is far away would flatten what there is: it is shown when half of it was reached.
      const near = (p) => p.limit && p.most * 2 >= p.limit;
      const top = Math.max(1, ...pools.map((p) => near(p) ? Math.max(p.limit, p.most) : p.most));
      const y = scaleTo(c, width, height, top);
      pools.forEach((p) => {
        const waiting = p.name.startsWith("processes without");
        c.strokeStyle = colour(waiting ? "--s-auth" : "--s-pending");
        c.lineWidth = 1.5;
        c.setLineDash(p.name.startsWith("network") ? [5, 2] : p.name.startsWith("in-process") ? [1, 2] : []);
        drawSteps(c, p.steps, width, y, place);
        c.setLineDash([]);
        if (near(p)) {
          c.lineWidth = 1;
          c.setLineDash([4, 3]);
          c.beginPath();
          c.moveTo(0, y(p.limit));
          c.lineTo(width, y(p.limit));
          c.stroke();
          c.setLineDash([]);
          c.textAlign = "right";
          c.textBaseline = "top";
          label(c, "limit of " + p.name + ": " + number(p.limit), width - 3, y(p.limit) + 2);
        }
      });
    },
    tell: (t) => data.gate.map((p) => levelAt(p.steps, t) + (p.limit ? " of " + p.limit : "") + " " + p.name),
  },
  latency: {
    there: () => Object.values(data.latency).some((s) => s.calls.some((n) => n)),
    start() {
      const keys = Object.keys(data.latency).filter((k) => data.latency[k].calls.some((n) => n)).reverse();
      $("latency-key").replaceWith(...keys.map((k) => make("span", "key " + k + (k === "faulty" ? " dash" : ""), k)));
    },
    draw(c, width, height, place) {
      const all = Object.values(data.latency).flatMap((s) => s.p99).filter((v) => v > 0);
      if (!all.length) return;
      const low = Math.floor(Math.log10(Math.min(...all))), high = Math.max(Math.ceil(Math.log10(Math.max(...all))), low + 1);
      const y = (v) => height - 3 - (Math.log10(Math.max(v, 1)) - low) / (high - low) * (height - 8);
      c.textAlign = "left";
      c.textBaseline = "middle";
      for (let e = low; e <= high; e++) {
        c.fillStyle = colour("--edge");
        c.fillRect(0, y(10 ** e), width, 1);
      }
      for (const [health, s] of Object.entries(data.latency)) {
        c.strokeStyle = c.fillStyle = colour("--" + health);
        c.lineWidth = 1.6;
        c.setLineDash(health === "faulty" ? [5, 3] : []);
        const w = data.end / s.p99.length;
        let drawing = false;
        c.beginPath();
        s.p99.forEach((v, i) => {
          if (v < 0) { drawing = false; return; }
          const x = place((i + .5) * w);
          if (drawing) c.lineTo(x, y(v)); else { c.moveTo(x, y(v)); c.lineTo(x + 1, y(v)); }
          drawing = true;
        });
        c.stroke();
        c.setLineDash([]);
      }
      for (const e of [low, high]) {
        c.textBaseline = e === low ? "bottom" : "top";
        label(c, took(10 ** e), 3, e === low ? height - 3 : 3);
      }
    },
    tell(t) {
      const out = [];
      for (const health of ["healthy", "faulty"]) {
        const s = data.latency[health];
        if (!s) continue;
        const i = Math.min(Math.floor(t / data.end * s.p99.length), s.p99.length - 1);
        if (s.calls[i]) out.push(health + ": " + number(s.calls[i]) + " calls, " + number(s.failed[i]) + " failed, p50 " + took(s.p50[i]) + ", p99 " + took(s.p99[i]));
      }
      return out.length ? out : ["no calls"];
    },
  },
};

// columnName is what restarts are counted by.
const columnName = (w) => w === minute ? "minute" : w === second ? "second" : w / second + " s";

// scaleTo draws the highest value and gives the scale.
function scaleTo(c, width, height, top) {
  c.fillStyle = colour("--edge");
  c.fillRect(0, 8, width, 1);
  c.textAlign = "left";
  c.textBaseline = "top";
  label(c, number(top), 3, 10);
  return (v) => height - v / top * (height - 9);
}

function levelAt(steps, t) {
  let low = 0, high = steps.at.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (steps.at[middle] <= t) low = middle; else high = middle - 1;
  }
  return steps.level[low] || 0;
}

// drawSteps draws a count over time; of what shares a pixel, the highest.
function drawSteps(c, steps, width, y, place) {
  const { at, level } = steps;
  c.beginPath();
  c.moveTo(0, y(levelAt(steps, view.from)));
  let x = 0, now = levelAt(steps, view.from), peak = now;
  for (let i = 0; i < at.length; i++) {
    if (at[i] <= view.from) continue;
    if (at[i] > view.to) break;
    const p = place(at[i]);
    if (p - x >= 1) {
      if (peak !== now) { c.lineTo(x, y(peak)); c.lineTo(x, y(now)); }
      c.lineTo(p, y(now));
      c.lineTo(p, y(level[i]));
      x = p;
      peak = level[i];
    } else peak = Math.max(peak, level[i]);
    now = level[i];
  }
  c.lineTo(x, y(peak));
  c.lineTo(x, y(now));
  c.lineTo(width, y(now));
  c.stroke();
}

function drawCharts() {
  const width = plotWidth();
  const place = (t) => (t - view.from) / (view.to - view.from) * width;
  for (const chart of document.querySelectorAll("[data-chart]")) {
    if (chart.hidden) continue;
    const canvas = chart.querySelector("canvas"), height = Number(canvas.getAttribute("height-css"));
    const c = paper(canvas, width + edge, height);
    c.save();
    c.beginPath();
    c.rect(0, 0, width, height);
    c.clip();
    if (data.broken < data.healed) {
      c.fillStyle = colour("--fault-soft");
      c.globalAlpha = .5;
      c.fillRect(place(data.broken), 0, place(data.healed) - place(data.broken), height);
      c.globalAlpha = 1;
    }
    charts[chart.dataset.chart].draw(c, width, height, place);
    c.restore();
  }
  drawAxis(width, place);
}

function drawAxis(width, place) {
  const c = paper($("axis"), width + edge, 24);
  const { step: size, out } = ticks(width);
  c.fillStyle = colour("--dim");
  c.textBaseline = "middle";
  for (const t of out) {
    const x = place(t);
    c.fillRect(x, 0, 1, 5);
    c.textAlign = x < 16 ? "left" : x > width - 16 ? "right" : "center";
    c.fillText(tickLabel(t, size), x, 14);
  }
}

function startCharts() {
  for (const chart of document.querySelectorAll("[data-chart]")) {
    const own = charts[chart.dataset.chart], canvas = chart.querySelector("canvas");
    canvas.setAttribute("height-css", canvas.height);
    chart.hidden = !own.there();
    if (!chart.hidden) own.start();
  }
  listeners.push(drawCharts);
}
