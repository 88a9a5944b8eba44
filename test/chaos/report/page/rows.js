// The marks of a row, and a whole row.

function letter(c, state, x, y, width, height) {
  if (height < 12 || width < 13 || !states[state].letter) return;
  c.fillStyle = colour(state >= 4 ? "--card" : "--ink");
  c.font = "600 " + Math.min(11, height - 4) + "px system-ui, sans-serif";
  c.textBaseline = "middle";
  c.textAlign = "center";
  const at = x + Math.min(width / 2, 14);
  c.globalAlpha = state === connected ? .45 : 1;
  c.fillText(states[state].letter, at, y + height / 2 + .5);
  c.globalAlpha = 1;
}

// faultMark shades the time of a fault, with a bar at its foot.
function faultMark(c, x, y, width, height) {
  width = Math.max(width, 1.5);
  c.fillStyle = colour("--fault-soft");
  c.fillRect(x, y, width, height);
  if (height < 4) return; // a bar would hide the state
  const foot = Math.max(height >= 6 ? 2 : 1, Math.round(height / 6));
  c.fillStyle = colour("--fault");
  c.fillRect(x, y + height - foot, width, foot);
}

// restartMark is a tick from the top, with a head where there is room for one.
function restartMark(c, x, y, height, room) {
  c.fillStyle = colour("--mark");
  c.fillRect(x - .5, y, 1, Math.max(2, height * (room ? .55 : .3)));
  if (room && height >= 10) {
    c.beginPath();
    c.moveTo(x - 3, y);
    c.lineTo(x + 3, y);
    c.lineTo(x, y + 4);
    c.fill();
  }
}

function violationMark(c, x, y, height) {
  const r = Math.max(3, Math.min(6, height / 2 - 1)), middle = y + height / 2;
  c.beginPath();
  c.moveTo(x, middle - r);
  c.lineTo(x + r, middle);
  c.lineTo(x, middle + r);
  c.lineTo(x - r, middle);
  c.closePath();
  c.fillStyle = colour("--bad");
  c.strokeStyle = colour("--card");
  c.lineWidth = 1.5;
  c.fill();
  c.stroke();
}

// row draws a server between x and x + width. What is narrower than a pixel shares it with its neighbours, and the state with
// the most weight is seen; so a row costs no more than its pixels, however much happened.
function drawRow(c, s, from, to, x, y, width, height) {
  const scale = width / (to - from);
  const place = (t) => x + (t - from) * scale;
  let crowd = -1, heaviest = 0;
  const flush = () => {
    if (crowd >= 0) fillBand(c, heaviest, crowd, y, 1, height);
    crowd = -1;
  };
  const last = s.state.length;
  for (let i = indexAt(s, from); i < last && s.at[i] < to; i++) {
    const left = Math.max(place(s.at[i]), x), right = Math.min(place(s.at[i + 1]), x + width);
    if (right - left < 1) {
      const pixel = Math.floor(left);
      if (pixel !== crowd) {
        flush();
        crowd = pixel;
        heaviest = s.state[i];
      } else heaviest = Math.max(heaviest, s.state[i]);
      continue;
    }
    fillBand(c, s.state[i], left, y, right - left, height);
    letter(c, s.state[i], left, y, right - left, height);
    if (crowd >= 0 && crowd + 1 < left) flush();
    else if (crowd >= 0 && heaviest > s.state[i]) flush();
    else crowd = -1;
  }
  flush();
  for (const f of everywhere.length ? s.faults.concat(everywhere) : s.faults) {
    const left = Math.max(place(f.begin), x), right = Math.min(place(f.end), x + width);
    if (right >= x && left <= x + width) faultMark(c, left, y, right - left, height);
  }
  if (height >= 4) {
    let before = -99;
    s.opens.forEach((at, i) => {
      const p = place(at);
      if (p < x || p > x + width || p - before < 3) return;
      restartMark(c, p, y, height, p - before >= 9 && (i + 1 === s.opens.length || place(s.opens[i + 1]) - p >= 9));
      before = p;
    });
  }
  for (const v of s.verdicts) {
    const p = place(v.at);
    if (p >= x && p <= x + width) violationMark(c, p, y, height);
  }
}
