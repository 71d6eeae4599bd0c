// The tiers of a viewer: finding segments, moving boundaries, and writing them down.
const LEAST = 0.001;  // seconds of the shortest segment
const SAME = 0.0005;  // seconds within which two boundaries are one

class Tiers {
  constructor(data) {
    this.duration = data.duration;
    this.saveAs = data.saveAs;
    this.rows = data.tiers.map(row => ({
      ...row,
      segments: row.segments.map(([label, start, end, confidence, silent]) => ({label, start, end, confidence, silent})),
    }));
    this.done = [];  // changes that can be undone: lists of {segment, side, time}
    this.saved = undefined;  // the last change that was saved
  }

  // Number of the first segment of a row that ends after a time.
  after(row, time) {
    const {segments} = this.rows[row];
    let low = 0, high = segments.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (segments[middle].end > time) high = middle; else low = middle + 1;
    }
    return low;
  }

  // Number of the segment at a time, or null.
  at(row, time) {
    const i = this.after(row, time), segment = this.rows[row]?.segments[i];
    return segment && segment.start <= time ? i : null;
  }

  // Number of the segment nearest to a time.
  nearest(row, time) {
    const {segments} = this.rows[row], i = this.after(row, time);
    if (i === 0 || (i < segments.length && segments[i].start - time <= time - segments[i - 1].end)) return i;
    return i - 1;
  }

  // The time of the boundary of a row nearest to a time, within a tolerance; null where there is none.
  boundary(row, time, tolerance) {
    const {segments} = this.rows[row], i = this.after(row, time);
    let best = null;
    for (const segment of segments.slice(Math.max(0, i - 1), i + 2)) {
      for (const edge of [segment.start, segment.end]) {
        const distance = Math.abs(edge - time);
        if (distance <= tolerance && (best === null || distance < Math.abs(best - time))) best = edge;
      }
    }
    return best;
  }

  get editable() { return this.saveAs !== ''; }

  // The boundary at a time, in one row or in all of the first system: what moves, and between which times.
  grasp(row, time, alone) {
    const moves = [];
    let low = 0, high = this.duration;
    this.rows.forEach((one, r) => {
      if (!one.own || (alone && r !== row)) return;
      const {segments} = one, i = this.after(r, time);
      for (let k = Math.max(0, i - 2); k < Math.min(segments.length, i + 3); k++) {
        const segment = segments[k], before = segments[k - 1], behind = segments[k + 1];
        if (Math.abs(segment.start - time) <= SAME) {
          moves.push({segment, side: 'start', time: segment.start});
          high = Math.min(high, segment.end - LEAST);
          if (before && Math.abs(before.end - time) > SAME) low = Math.max(low, before.end);
        }
        if (Math.abs(segment.end - time) <= SAME) {
          moves.push({segment, side: 'end', time: segment.end});
          low = Math.max(low, segment.start + LEAST);
          if (behind && Math.abs(behind.start - time) > SAME) high = Math.min(high, behind.start);
        }
      }
    });
    return {moves, low, high};
  }

  // Move what was grasped, as far as its neighbours allow; return the new time.
  move(grasped, time) {
    const {moves, low, high} = grasped;
    if (low > high) return moves[0]?.time ?? time;
    const to = Math.round(1e5 * Math.max(low, Math.min(high, time))) / 1e5, kept = Math.max(low, Math.min(high, to));
    for (const {segment, side} of moves) segment[side] = kept;
    return kept;
  }

  // End a move: it can be undone from now on.
  settle(grasped) {
    const moves = grasped.moves.filter(({segment, side, time}) => segment[side] !== time);
    if (!moves.length) return false;
    for (const {segment, side} of moves) (segment.moved ??= new Set()).add(side);
    this.done.push(moves);
    return true;
  }

  undo() {
    const moves = this.done.pop();
    for (const {segment, side, time} of moves ?? []) {
      segment[side] = time;
      if (!this.done.some(m => m.some(one => one.segment === segment && one.side === side))) segment.moved.delete(side);
    }
    return moves?.[0] ?? null;
  }

  get unsaved() { return this.done.at(-1) !== this.saved; }

  // The first system's tiers as Praat's TextGrid, with empty intervals in the gaps.
  textGrid() {
    const time = t => String(Number(t.toFixed(9))).includes('e') ? t.toFixed(9) : String(Number(t.toFixed(9)));
    const text = label => `"${label.replaceAll('\0', '\ufffd').replaceAll('"', '""')}"`;
    const own = this.rows.filter(row => row.own), end = time(this.duration);
    const lines = [
      'File type = "ooTextFile"', 'Object class = "TextGrid"', '', 'xmin = 0 ', `xmax = ${end} `,
      'tiers? <exists> ', `size = ${own.length} `, 'item []: ',
    ];
    own.forEach((row, r) => {
      const intervals = [];
      let now = 0;
      for (const {label, start, end} of row.segments) {
        if (start - now >= 1e-6) intervals.push([now, start, '']); else if (intervals.length) intervals.at(-1)[1] = start;
        intervals.push([start - now >= 1e-6 ? start : now, end, label]);
        now = end;
      }
      if (this.duration - now >= 1e-6 || !intervals.length) intervals.push([now, this.duration, '']);
      intervals.at(-1)[1] = this.duration;
      lines.push(
        `    item [${r + 1}]:`, '        class = "IntervalTier" ', `        name = ${text(row.tier)} `,
        '        xmin = 0 ', `        xmax = ${end} `, `        intervals: size = ${intervals.length} `,
      );
      intervals.forEach(([from, to, label], i) => lines.push(
        `        intervals [${i + 1}]:`, `            xmin = ${time(from)} `, `            xmax = ${time(to)} `,
        `            text = ${text(label)} `,
      ));
    });
    return lines.join('\n') + '\n';
  }
}
