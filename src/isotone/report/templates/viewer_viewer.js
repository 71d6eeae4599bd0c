// The viewer: what is seen, what is selected, and what keys and pointer do.
const GRASP = 5;  // pixels from a boundary at which it is grasped
const READABLE = 110;  // pixels per second at which a recording is shown at first

class Viewer {
  constructor(root) {
    this.root = root;
    const find = name => root.querySelector(name);
    this.canvas = find('canvas.main');
    this.strip = find('canvas.overview');
    this.cursor = find('.cursor');
    this.output = find('output');
    const data = JSON.parse(find('script.data').textContent);
    this.recording = new Recording(data, [...root.querySelectorAll('script.chunk')]);
    this.tiers = new Tiers(data);
    this.drawing = new Drawing(this.canvas, this.recording, this.tiers);
    this.sound = new Sound(this.recording, () => this.follow());
    this.doubts = [...root.querySelectorAll('aside button')];
    this.selection = null;
    this.at = 0;  // time of the cursor
    this.before = [];  // views to go back to
    this.drawing.restyle();
    this.drawing.resize();
    this.begin();
    this.listen();
    if (this.tiers.editable) this.arrive();
    this.draw();
  }

  // See as much of the beginning as can be read.
  begin() { this.view = {from: 0, to: Math.min(this.duration, Math.max(1, this.drawing.width / READABLE))}; }

  // The page has another width, or one at last: a frame of another page may be hidden when it is loaded.
  resize() {
    const hidden = this.drawing.width <= 1;
    this.drawing.resize();
    this.drawing.restyle();
    if (hidden && this.drawing.width > 1) {
      this.begin();
      this.goTo(this.at);
    }
    this.draw();
  }

  // Begin on a page of its own: keys work at once, and an address may name a time.
  arrive() {
    this.canvas.focus({preventScroll: true});
    const wanted = /^#t=([\d.]+)$/.exec(location.hash);
    if (!wanted) return;
    this.goTo(Math.min(this.duration, Number(wanted[1])));
    this.doubts.find(button => Math.abs(Number(button.dataset.time) - this.at) < 0.001)?.classList.add('now');
    const row = this.tiers.rows.findIndex(one => one.own), index = row < 0 ? null : this.tiers.at(row, this.at + 0.001);
    if (index !== null) this.pick(row, index);
  }

  get duration() { return this.recording.duration; }

  // Views

  // Show a part; it is moved into the recording, and no shorter than 10 ms.
  show(from, to, remember = false) {
    if (remember) this.before = [...this.before.slice(-49), this.view];
    const seconds = Math.min(this.duration, Math.max(0.01, to - from));
    const begin = Math.max(0, Math.min(this.duration - seconds, from));
    this.view = {from: begin, to: begin + seconds};
    this.update();
  }

  zoom(factor, around = null) {
    const {from, to} = this.view, inside = t => t >= from && t <= to;
    const middle = this.selection && (this.selection.from + this.selection.to) / 2;
    const fixed = around ?? (middle !== null && inside(middle) ? middle : (from + to) / 2);
    this.show(fixed - (fixed - from) * factor, fixed + (to - fixed) * factor, around === null);
  }

  scroll(seconds) { this.show(this.view.from + seconds, this.view.to + seconds); }

  goTo(time) {
    const seconds = this.view.to - this.view.from;
    if (time < this.view.from || time > this.view.to) this.show(time - seconds / 2, time + seconds / 2, true);
    this.at = time;
    this.update();
  }

  // Drawing

  update() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => { this.frame = 0; this.draw(); });
  }

  draw() {
    const begin = performance.now(), {drawing, view} = this;
    drawing.draw(view, this.selection, this.sound.time);
    drawing.overview(this.strip, this.doubts.map(d => Number(d.dataset.time)));
    this.mark();
    this.root.dataset.drawn = (performance.now() - begin).toFixed(1);
    clearTimeout(this.later);
    if (view.to - view.from <= FINEST && !drawing.spectrogram.exact(view.from, view.to, drawing.width)) {
      this.later = setTimeout(() => this.refine(view), this.refined ? 80 : 0);
    }
  }

  // Decode what is seen, and draw it from its samples, unless something else is seen by then.
  async refine(view) {
    this.refined = true;
    try {
      await this.recording.need(view.from, view.to);
    } catch {
      this.say('This browser cannot decode the sound of this page.');
      return;
    }
    if (view !== this.view) return;
    this.drawing.spectrogram.compute(view.from, view.to, this.drawing.width);
    this.draw();
  }

  mark() {
    const time = this.sound.time ?? this.at, x = this.drawing.x(time);
    this.cursor.hidden = x < 0 || x > this.drawing.width;
    this.cursor.style.transform = `translateX(${x}px)`;
  }

  // Follow what is heard, frame by frame.
  follow() {
    const playing = this.sound.playing !== null;
    this.root.classList.toggle('playing', playing);
    this.root.querySelector('[data-do=play]').textContent = playing ? 'Stop' : 'Play';
    const step = () => {
      const time = this.sound.time;
      if (time !== null) {
        const {from, to} = this.view;
        if (time >= to || time < from) this.show(time - 0.05 * (to - from), time + 0.95 * (to - from));
        const heard = this.tiers.rows.map((row, r) => this.tiers.at(r, time)).join();
        if (heard !== this.heard) { this.heard = heard; this.update(); } else this.mark();
      }
      if (this.sound.playing) requestAnimationFrame(step); else { this.heard = ''; this.update(); }
    };
    step();
  }

  say(text) { this.output.value = text; }

  // Sound

  play(from, to) {
    // a hair more than nothing, so that an empty segment can be heard to be empty
    this.sound.play(from, Math.max(to, from + 0.03)).catch(() => {
      this.sound.stop();
      this.say('This browser refused to play the sound.');
    });
  }

  playOrStop(visible = false) {
    if (this.sound.playing) this.sound.stop();
    else if (this.selection && !visible) this.play(this.selection.from, this.selection.to);
    else this.play(this.view.from, this.view.to);
  }

  // Selection

  // Select a segment, and show it whole unless it was clicked where it is seen.
  pick(row, index, clicked = false) {
    const segment = this.tiers.rows[row]?.segments[index];
    if (!segment) return;
    this.selection = {row, index, from: segment.start, to: segment.end};
    this.at = segment.start;
    const {from, to} = this.view;
    if (!clicked && (segment.start < from || segment.end > to)) {
      const middle = (segment.start + segment.end) / 2, seconds = Math.max(to - from, segment.end - segment.start);
      this.show(middle - seconds / 2, middle + seconds / 2);
    }
    this.describe();
    this.update();
  }

  describe() {
    const {row, index, from, to} = this.selection ?? {}, segment = this.tiers.rows[row]?.segments[index];
    if (this.selection === null) return;
    const sure = segment && segment.confidence !== null ? `, confidence ${segment.confidence.toFixed(2)}` : '';
    const span = `${from.toFixed(3)}\u2013${to.toFixed(3)} s (${Math.round(1000 * (to - from))} ms${sure})`;
    this.say(segment ? `${segment.label}: ${span}` : span);
  }

  walk(step) {
    const row = this.selection?.row ?? 0;
    if (!this.tiers.rows.length) return;
    this.pick(row, this.selection?.index !== undefined ? this.selection.index + step : this.tiers.nearest(row, this.at));
  }

  climb(step) {
    const row = this.selection?.row === undefined ? 0 : this.selection.row + step;
    const middle = this.selection ? (this.selection.from + this.selection.to) / 2 : this.at;
    if (this.tiers.rows[row]?.segments.length) this.pick(row, this.tiers.nearest(row, middle));
  }

  nextDoubt(step) {
    if (!this.doubts.length) return;
    const now = this.doubts.indexOf(this.doubt);
    this.toDoubt(this.doubts[(now < 0 && step < 0 ? this.doubts.length - 1 : now + step + this.doubts.length) % this.doubts.length]);
  }

  toDoubt(button) {
    this.doubt?.classList.remove('now');
    this.doubt = button;
    button.classList.add('now');
    button.scrollIntoView({block: 'nearest'});
    const time = Number(button.dataset.time);
    this.goTo(time);
    this.pick(Number(button.dataset.row), Number(button.dataset.index));
    this.at = time;
    this.play(Math.max(0, time - 0.4), Math.min(this.duration, Math.max(time + 0.4, this.selection?.to ?? 0)));
  }

  // Corrections

  changed() {
    const {row, index} = this.selection ?? {}, segment = this.tiers.rows[row]?.segments[index];
    if (segment) Object.assign(this.selection, {from: segment.start, to: segment.end});
    const undo = this.root.querySelector('[data-do=undo]');
    if (undo) undo.disabled = !this.tiers.done.length;
    this.describe();
    this.update();
  }

  nudge(side, seconds) {
    const {row, index} = this.selection ?? {}, one = this.tiers.rows[row], segment = one?.segments[index];
    if (!segment || !one.own || !this.tiers.editable) return;
    const grasped = this.tiers.grasp(row, segment[side], false);
    this.tiers.move(grasped, segment[side] + seconds);
    this.tiers.settle(grasped);
    this.changed();
  }

  undo() {
    const back = this.tiers.undo();
    if (back) this.goTo(back.time);
    this.changed();
  }

  save() {
    if (!this.tiers.editable) return;
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([this.tiers.textGrid()], {type: 'text/plain'}));
    link.download = this.tiers.saveAs;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    this.tiers.saved = this.tiers.done.at(-1);
    this.say(`${this.tiers.saveAs}: in the folder of downloads.`);
  }

  // Keys and pointer

  listen() {
    const {canvas, root, strip} = this;
    new ResizeObserver(() => this.resize()).observe(canvas.parentElement);
    const restyle = () => { this.drawing.restyle(); this.draw(); };
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', restyle);
    for (const [event, paper] of [['beforeprint', true], ['afterprint', false]]) {
      addEventListener(event, () => {
        this.drawing.paper = paper;
        document.documentElement.classList.toggle('printing', paper);
        this.drawing.restyle();
        this.drawing.resize();
        const {from, to} = this.view;
        if (to - from <= FINEST && this.recording.has(from, to)) this.drawing.spectrogram.compute(from, to, 1600);
        this.draw();
      });
    }
    addEventListener('beforeunload', event => { if (this.tiers.unsaved) event.preventDefault(); });
    root.addEventListener('click', event => {
      const button = event.target.closest('button');
      if (button?.dataset.do) this.command(button.dataset.do);
      else if (button?.dataset.row) { canvas.focus({preventScroll: true}); this.toDoubt(button); }
    });
    canvas.addEventListener('keydown', event => { if (this.key(event)) event.preventDefault(); });
    canvas.addEventListener('pointerdown', event => this.press(event));
    canvas.addEventListener('pointermove', event => this.hover(event));
    canvas.addEventListener('wheel', event => this.wheel(event), {passive: false});
    const jump = event => {
      const box = strip.getBoundingClientRect(), time = this.duration * (event.clientX - box.left) / box.width;
      const seconds = this.view.to - this.view.from;
      this.show(time - seconds / 2, time + seconds / 2);
    };
    strip.addEventListener('pointerdown', event => { strip.setPointerCapture(event.pointerId); jump(event); });
    strip.addEventListener('pointermove', event => { if (strip.hasPointerCapture(event.pointerId)) jump(event); });
  }

  command(name) {
    const {selection} = this;
    ({
      play: () => this.playOrStop(),
      in: () => this.zoom(0.5),
      out: () => this.zoom(2),
      all: () => this.show(0, this.duration, true),
      selection: () => {
        if (!selection) return;
        const margin = 0.2 * (selection.to - selection.from);
        this.show(selection.from - margin, selection.to + margin, true);
      },
      back: () => { const view = this.before.pop(); if (view) this.show(view.from, view.to); },
      undo: () => this.undo(),
      save: () => this.save(),
    })[name]();
  }

  // Do what a key says; false where it says nothing here.
  key(event) {
    const {key, shiftKey, ctrlKey, metaKey} = event, seconds = this.view.to - this.view.from;
    const does = {
      Tab: () => this.playOrStop(shiftKey), ' ': () => this.playOrStop(),
      Enter: () => this.selection && this.play(this.selection.from, this.selection.to),
      ArrowLeft: () => this.walk(-1), ArrowRight: () => this.walk(1),
      ArrowUp: () => this.climb(-1), ArrowDown: () => this.climb(1),
      PageUp: () => this.scroll(-0.8 * seconds), PageDown: () => this.scroll(0.8 * seconds),
      Home: () => this.show(0, seconds), End: () => this.show(this.duration - seconds, this.duration),
      i: () => this.command('in'), o: () => this.command('out'), a: () => this.command('all'),
      n: () => this.command('selection'), b: () => this.command('back'),
      d: () => this.nextDoubt(1), D: () => this.nextDoubt(-1),
      ',': () => this.nudge('start', -0.005), '.': () => this.nudge('start', 0.005),
      '<': () => this.nudge('end', -0.005), '>': () => this.nudge('end', 0.005),
      Escape: () => this.escape(),
    };
    const controlled = {...does, z: () => this.undo(), s: () => this.save()};
    const found = ctrlKey || metaKey ? controlled[key] : does[key];
    if (found) found();
    return Boolean(found);
  }

  escape() {
    if (this.sound.playing) this.sound.stop();
    else if (this.selection) this.selection = null;
    else this.canvas.blur();
    this.update();
  }

  // What is under the pointer: time, row, and the boundary that can be grasped.
  under(event) {
    const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const row = y < TOP ? null : Math.min(this.tiers.rows.length - 1, Math.floor((y - TOP) / ROW));
    const time = Math.max(0, Math.min(this.duration, this.drawing.time(x)));
    const reach = GRASP * (this.view.to - this.view.from) / this.drawing.width;
    const free = row !== null && this.tiers.editable && this.tiers.rows[row].own;
    return {x, row, time, edge: free ? this.tiers.boundary(row, time, reach) : null};
  }

  hover(event) {
    if (event.buttons) return;
    const {row, time, edge} = this.under(event), i = row === null ? null : this.tiers.at(row, time);
    this.canvas.style.cursor = edge !== null ? 'col-resize' : i !== null ? 'pointer' : 'crosshair';
  }

  press(event) {
    if (event.button) return;
    this.canvas.focus({preventScroll: true});
    const begin = this.under(event), view = this.view;
    const grasped = begin.edge === null ? null : this.tiers.grasp(begin.row, begin.edge, event.altKey);
    let far = false;
    const move = now => {
      const {x, time} = this.under(now);
      far ||= Math.abs(x - begin.x) > 3;
      if (!far) return;
      if (grasped) {
        const to = this.tiers.move(grasped, begin.edge + time - begin.time);
        this.at = to;
        this.say(`${to.toFixed(4)} s`);
      } else if (event.pointerType === 'touch') {
        const seconds = (x - begin.x) * (view.to - view.from) / this.drawing.width;
        this.show(view.from - seconds, view.to - seconds);
        return;
      } else {
        this.selection = {from: Math.min(begin.time, time), to: Math.max(begin.time, time)};
        this.at = this.selection.from;
        this.describe();
      }
      this.update();
    };
    const end = now => {
      this.canvas.removeEventListener('pointermove', move);
      this.canvas.removeEventListener('pointerup', end);
      this.canvas.removeEventListener('pointercancel', end);
      if (grasped && far && this.tiers.settle(grasped)) this.changed();
      else if (!far && now.type === 'pointerup') this.click(begin);
    };
    this.canvas.setPointerCapture(event.pointerId);
    this.canvas.addEventListener('pointermove', move);
    this.canvas.addEventListener('pointerup', end);
    this.canvas.addEventListener('pointercancel', end);
  }

  click({row, time}) {
    const index = row === null ? null : this.tiers.at(row, time);
    if (index !== null) {
      this.pick(row, index, true);
      this.play(this.selection.from, this.selection.to);
      return;
    }
    this.selection = null;
    this.at = time;
    if (row === null) this.play(time, this.duration); else this.sound.stop();
    this.update();
  }

  wheel(event) {
    const across = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.ctrlKey || event.metaKey) this.zoom(1.2 ** Math.max(-3, Math.min(3, event.deltaY / 40)), this.under(event).time);
    else if (Math.abs(across) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      this.scroll(across * (this.view.to - this.view.from) / this.drawing.width);
    } else return;
    event.preventDefault();
  }
}

for (const root of document.querySelectorAll('.viewer')) new Viewer(root);
