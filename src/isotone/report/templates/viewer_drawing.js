// Drawing of a view: time axis, wave, spectrogram, rows of segments.
const AXIS = 20, WAVE = 64, PICTURE = 136, ROW = 38, TOP = AXIS + WAVE + PICTURE;
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", Arial, sans-serif';

const rgb = hex => [1, 3, 5].map(i => parseInt(hex.trim().slice(i, i + 2), 16));
const LEFTWARD = /^\P{L}*[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;
const mixed = (a, b, share) => `rgb(${a.map((v, i) => Math.round(v * share + b[i] * (1 - share))).join(' ')})`;

class Drawing {
  constructor(canvas, recording, tiers) {
    this.canvas = canvas;
    this.context = canvas.getContext('2d');
    this.recording = recording;
    this.tiers = tiers;
    this.spectrogram = new Spectrogram(recording);
    this.widths = new Map();
    this.height = TOP + ROW * tiers.rows.length;
  }

  // Read the page's colours, which follow the reader's setting.
  restyle() {
    const style = getComputedStyle(this.canvas), read = name => rgb(style.getPropertyValue(`--${name}`));
    this.page = read('page'); this.ink = read('ink'); this.muted = read('muted'); this.rule = read('rule');
    this.accent = read('accent'); this.hit = read('hit'); this.panel = read('panel');
    this.doubt = read('doubt');
    const dark = this.page[0] + this.page[1] + this.page[2] < 384;
    this.strength = dark ? 0.55 : 0.8;  // of a system's colour in lines
    this.spectrogram.colours(this.page, this.ink);
  }

  resize() {
    const ratio = this.paper ? 3 : devicePixelRatio || 1;
    const {clientWidth} = this.canvas.parentElement;
    this.width = Math.max(1, this.paper ? Math.min(620, clientWidth) : clientWidth);  // a sheet is no wider
    this.canvas.style.height = `${this.height}px`;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  x(time) { return (time - this.view.from) * this.width / (this.view.to - this.view.from); }

  time(x) { return this.view.from + x * (this.view.to - this.view.from) / this.width; }

  // selection: {from, to, row, index}; heard: time that is heard now, or null
  draw(view, selection, heard) {
    const {context, width, height} = this;
    this.view = view;
    context.fillStyle = mixed(this.page, this.page, 1);
    context.fillRect(0, 0, width, height);
    this.spectrogram.draw(context, view, {left: 0, top: AXIS + WAVE, width, height: PICTURE});
    this.axis();
    this.wave();
    this.tiers.rows.forEach((row, r) => this.row(row, r, selection, heard));
    this.boundaries();
    if (selection) {
      context.fillStyle = mixed(this.accent, this.accent, 1);
      context.globalAlpha = 0.16;
      const x = this.x(selection.from);
      context.fillRect(x, 0, Math.max(1, this.x(selection.to) - x), TOP);
      context.globalAlpha = 1;
    }
  }

  axis() {
    const {context, view, width} = this, least = 70 * (view.to - view.from) / width;
    const steps = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600];
    const step = steps.find(s => s >= least) ?? 7200, digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    context.font = `11px ${FONT}`;
    context.textAlign = 'left';
    context.textBaseline = 'middle';
    context.fillStyle = context.strokeStyle = mixed(this.muted, this.page, 1);
    for (let i = Math.ceil(view.from / step); i * step <= view.to; i++) {
      const t = i * step, x = Math.round(this.x(t)) + 0.5;
      context.fillRect(x - 0.5, AXIS - 6, 1, 6);
      context.fillText(this.clock(t, digits), x + 3, AXIS / 2);
    }
  }

  clock(t, digits) {
    if (this.recording.duration < 100) return t.toFixed(digits);
    const hours = Math.floor(t / 3600 + 1e-9), minutes = Math.floor(t / 60 + 1e-9) - 60 * hours;
    const seconds = Math.max(0, t - 3600 * hours - 60 * minutes).toFixed(digits).padStart(digits ? digits + 3 : 2, '0');
    return hours ? `${hours}:${String(minutes).padStart(2, '0')}:${seconds}` : `${minutes}:${seconds}`;
  }

  wave() {
    const {context, view, width} = this, columns = Math.max(1, Math.floor(width));
    const [low, high] = this.recording.outline(view.from, view.to, columns);
    const middle = AXIS + WAVE / 2, scale = WAVE / 2 - 3;
    context.fillStyle = mixed(this.ink, this.page, 0.72);
    for (let x = 0; x < columns; x++) {
      const top = middle - high[x] * scale, bottom = middle - low[x] * scale;
      context.fillRect(x, top, 1, Math.max(1, bottom - top));
    }
  }

  row(row, r, selection, heard) {
    const {context, view, width} = this, top = TOP + r * ROW, colour = rgb(row.colour), {segments} = row;
    context.fillStyle = mixed(this.rule, this.page, 1);
    context.fillRect(0, top, width, 1);
    const fill = mixed(colour, this.page, this.strength < 0.6 ? 0.4 : 0.26), quiet = mixed(colour, this.page, 0.08);
    const edge = mixed(colour, this.ink, this.strength), labels = [];
    let drawn = -1;
    for (let i = this.tiers.after(r, view.from); i < segments.length && segments[i].start < view.to; i++) {
      const segment = segments[i], left = Math.max(-2, this.x(segment.start)), right = Math.min(width + 2, this.x(segment.end));
      if (right < drawn + 0.7) continue;  // nothing of it would be seen
      drawn = right;
      const on = heard !== null && segment.start <= heard && heard < segment.end;
      const chosen = selection && selection.row === r && selection.index === i;
      context.fillStyle = on || chosen ? mixed(this.hit, this.page, 1) : segment.silent ? quiet : fill;
      context.fillRect(left, top + 4, Math.max(1, right - left), ROW - 7);
      if (segment.confidence !== null && segment.confidence < 0.9 && !segment.silent) {
        context.globalAlpha = Math.max(0.15, 0.95 - segment.confidence);
        context.fillStyle = mixed(this.doubt, this.page, 1);
        context.fillRect(left, top + ROW - 7, Math.max(1, right - left), 4);
        context.globalAlpha = 1;
      }
      if (right - left > 3) {
        context.fillStyle = edge;
        context.fillRect(left, top + 4, 1.5, ROW - 7);
        const next = segments[i + 1];
        if (!next || next.start - segment.end > 0.0005) context.fillRect(right - 1, top + 4, 1, ROW - 7);
        labels.push([segment, left, right]);
        if (segment.moved) this.moved(segment, top);
      }
      if (row.spreads?.[i]) this.spread(row.spreads[i], top);
    }
    for (const label of labels) this.label(...label, top);
  }

  moved(segment, top) {
    this.context.fillStyle = mixed(this.accent, this.page, 1);
    for (const side of segment.moved) this.context.fillRect(this.x(segment[side]) - 1.5, top + 1, 3, ROW - 1);
  }

  // The interval in which the systems put a boundary, or in which it lies nine times of ten.
  spread([startLow, startHigh, endLow, endHigh], top) {
    const {context} = this;
    context.fillStyle = mixed(this.doubt, this.page, 1);
    for (const [low, high] of [[startLow, startHigh], [endLow, endHigh]]) {
      const left = this.x(low), right = this.x(high);
      if (right - left < 2) continue;
      context.globalAlpha = 0.28;
      context.fillRect(left, top + 4, right - left, ROW - 7);
      context.globalAlpha = 0.9;
      context.fillRect(left, top + 2, right - left, 2);
    }
    context.globalAlpha = 1;
  }

  measure(label) {
    let width = this.widths.get(label);
    if (width === undefined) {
      this.context.font = `12px ${FONT}`;
      this.widths.set(label, width = this.context.measureText(label).width);
    }
    return width;
  }

  // Write a label into its segment: smaller, turned, or not at all, where there is too little room.
  label(segment, left, right, top) {
    const {context} = this, room = right - left - 4, width = this.measure(segment.label);
    const small = width * 10 / 12;
    if (small > room && (room < 8 || small > ROW - 8)) return;
    context.fillStyle = mixed(segment.silent ? this.muted : this.ink, this.page, 1);
    context.font = `${width <= room ? 12 : 10}px ${FONT}`;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    context.save();
    context.translate((left + right) / 2 + 0.5, top + ROW / 2 + 1);
    if (small > room) context.rotate(-Math.PI / 2);
    context.direction = LEFTWARD.test(segment.label) ? 'rtl' : 'ltr';
    context.fillText(segment.label, 0, 0);
    context.restore();
  }

  // The boundaries of the first system's finest tier whose lines do not crowd, through the picture.
  boundaries() {
    const {context, view, tiers} = this;
    for (let r = tiers.rows.length - 1; r >= 0; r--) {
      if (!tiers.rows[r].own) continue;
      const {segments} = tiers.rows[r], first = tiers.after(r, view.from);
      let last = first;
      while (last < segments.length && segments[last].start < view.to) last++;
      if (last === first || (last - first) * 14 > this.width) continue;
      context.fillStyle = mixed(this.accent, this.page, 1);
      context.globalAlpha = 0.55;
      for (const segment of segments.slice(first, last)) {
        for (const t of [segment.start, segment.end]) context.fillRect(this.x(t) - 0.4, AXIS, 0.8, TOP - AXIS);
      }
      context.globalAlpha = 1;
      return;
    }
  }

  // Draw the whole recording into a strip, with marks at the doubtful places.
  overview(canvas, places) {
    const ratio = this.paper ? 3 : devicePixelRatio || 1, width = this.paper ? 700 : Math.max(1, canvas.parentElement.clientWidth), height = 36;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext('2d'), {duration} = this.recording, columns = Math.floor(width);
    context.scale(ratio, ratio);
    if (this.whole?.[0].length !== columns) this.whole = this.recording.outline(0, duration, columns);
    const [low, high] = this.whole;
    context.fillStyle = mixed(this.muted, this.panel, 0.7);
    for (let x = 0; x < columns; x++) context.fillRect(x, 17 - 14 * high[x], 1, Math.max(1, 14 * (high[x] - low[x])));
    context.fillStyle = mixed(this.doubt, this.page, 1);
    for (const time of places) context.fillRect(width * time / duration - 1, height - 5, 2, 5);
    const scale = width / duration, left = this.view.from * scale, size = (this.view.to - this.view.from) * scale;
    context.fillStyle = context.strokeStyle = mixed(this.accent, this.page, 1);
    context.globalAlpha = 0.18;
    context.fillRect(left, 0, Math.max(3, size), height);
    context.globalAlpha = 1;
    context.strokeRect(left + 0.5, 0.5, Math.max(2, size - 1), height - 1);
  }
}
