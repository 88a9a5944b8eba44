// The part of the run that is shown. Everything with a time axis listens.
const view = { from: 0, to: data.end };
const listeners = [];
let drawing = false;

// redraw draws everything once, before the next picture.
function redraw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    for (const draw of listeners) draw();
  });
}

function show(from, to) {
  const span = Math.min(Math.max(to - from, Math.min(1000, data.end)), data.end);
  view.from = Math.min(Math.max(from, 0), data.end - span);
  view.to = view.from + span;
  redraw();
}
function zoom(factor, around = (view.from + view.to) / 2) {
  show(around - (around - view.from) * factor, around + (view.to - around) * factor);
}
function pan(share) {
  const by = (view.to - view.from) * share;
  show(view.from + by, view.to + by);
}

const second = 1e6, minute = 60 * second, hour = 60 * minute;
const stepsOfTime = [
  1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, second, 2 * second, 5 * second, 10 * second, 15 * second, 30 * second, minute,
  2 * minute, 5 * minute, 10 * minute, 15 * minute, 30 * minute, hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour, 24 * hour,
  48 * hour, 7 * 24 * hour,
];

// ticks are round times in the view, so far apart that their labels have room.
function ticks(width) {
  const least = (view.to - view.from) * 76 / Math.max(width, 1);
  const step = stepsOfTime.find((s) => s >= least) || stepsOfTime.at(-1);
  const out = [];
  for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) out.push(t);
  return { step, out };
}

// clock is a time as the documents of the report write it: 4m12.345s.
function clock(t, digits = 3) {
  if (t < 0) t = 0;
  if (t > 0 && t < 1000) return Math.round(t) + "µs";
  const unit = 10 ** (6 - digits);
  t = Math.round(t / unit) * unit;
  if (t > 0 && t < second) return t / 1000 + "ms";
  const h = Math.floor(t / hour), m = Math.floor(t % hour / minute), s = t % minute / second;
  const seconds = Number(s.toFixed(digits)) + "s";
  if (h) return h + "h" + m + "m" + (digits || s ? seconds : "");
  if (m) return m + "m" + seconds;
  return seconds;
}
function tickLabel(t, step) {
  if (step >= hour) return Math.round(t / hour) + "h";
  if (step >= minute) {
    const h = Math.floor(t / hour), m = Math.round(t % hour / minute);
    return h ? h + "h" + String(m).padStart(2, "0") : m + "m";
  }
  return clock(t, step >= second ? 0 : 3);
}

// took is a latency with three digits.
function took(us) {
  if (us < 0) return "–";
  for (const [unit, word] of [[second, "s"], [1000, "ms"]]) if (us >= unit) return Number((us / unit).toPrecision(3)) + word;
  return us + "µs";
}
