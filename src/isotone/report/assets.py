# ruff: noqa: E501
"""The style sheet and the script of the report page; both are put into the page, which asks nothing of a network."""

from __future__ import annotations

#: No request can leave the page: pictures and sound are data, style and script are its own.
POLICY = "default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"

CSS = """
:root {
  color-scheme: light dark;
  --page: #ffffff; --panel: #f6f8fa; --ink: #1f2328; --muted: #59636e; --rule: #d5dae0; --accent: #1769aa;
  --best: #e4f3ec; --hit: #fff1b8; --paper: #ffffff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14181d; --panel: #1c2128; --ink: #e6eaef; --muted: #9aa5b1; --rule: #353d47; --accent: #6bb3f0;
    --best: #16392b; --hit: #6b5200; --paper: #ffffff;
  }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", Arial, sans-serif;
}
a { color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.layout { max-width: 1130px; margin: 0 auto; padding: 0 24px 64px; }
header { padding: 40px 0 20px; border-bottom: 1px solid var(--rule); margin-bottom: 24px; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 6px; letter-spacing: -0.01em; overflow-wrap: anywhere; }
.subtitle { color: var(--muted); font-size: 1.06rem; margin: 0; max-width: 75ch; }
.facts { display: flex; flex-wrap: wrap; gap: 4px 26px; margin: 16px 0 0; font-size: 0.87rem; }
.facts div { display: flex; gap: 7px; min-width: 0; }
.facts dt { color: var(--muted); }
.facts dd { margin: 0; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; min-width: 0; }
nav { margin: 0 0 24px; font-size: 0.92rem; }
nav ol { list-style: none; display: flex; flex-wrap: wrap; gap: 6px 8px; margin: 0; padding: 0; }
nav a {
  display: block; padding: 3px 12px; border: 1px solid var(--rule); border-radius: 99px; text-decoration: none;
  color: var(--ink); background: var(--panel);
}
nav a:hover { border-color: var(--accent); color: var(--accent); }
h2 {
  font-size: 1.35rem; margin: 44px 0 12px; padding-top: 4px; letter-spacing: -0.005em; overflow-wrap: anywhere;
  scroll-margin-top: 16px;
}
h3 { font-size: 1.08rem; margin: 30px 0 10px; overflow-wrap: anywhere; }
p { max-width: 75ch; margin: 0 0 14px; overflow-wrap: anywhere; }
code { font: 0.88em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
p code { background: var(--panel); border: 1px solid var(--rule); border-radius: 5px; padding: 0 4px; }
figure { margin: 0 0 26px; }
figcaption, caption { color: var(--muted); font-size: 0.9rem; text-align: left; }
figcaption { margin-top: 8px; max-width: 90ch; }
.paper {
  background: var(--paper); border: 1px solid var(--rule); border-radius: 10px; padding: 12px; overflow-x: auto;
}
.paper img { display: block; height: auto; max-width: 100%; min-width: min(620px, var(--width)); margin: 0 auto; }
.scroll { overflow-x: auto; margin: 0 0 26px; border: 1px solid var(--rule); border-radius: 10px; }
table { border-collapse: collapse; width: 100%; font-size: 0.93rem; }
caption span { display: inline-block; position: sticky; left: 14px; max-width: min(90ch, calc(100vw - 64px)); }
caption { padding: 10px 14px; caption-side: top; border-bottom: 1px solid var(--rule); background: var(--panel); }
th, td { padding: 8px 14px; text-align: left; white-space: nowrap; }
thead th { color: var(--muted); font-weight: 600; font-size: 0.85rem; border-bottom: 1px solid var(--rule); }
tbody tr + tr > * { border-top: 1px solid var(--rule); }
tbody th { font-weight: 600; }
tbody tr:hover > * { background: var(--panel); }
th.number, td.number { text-align: right; font-variant-numeric: tabular-nums; }
td.best, tbody tr:hover > td.best { background: var(--best); }
.interval { color: var(--muted); font-size: 0.82em; font-weight: 400; margin-left: 6px; }
pre {
  background: var(--panel); border: 1px solid var(--rule); border-radius: 10px; padding: 12px 14px; margin: 0;
  overflow-x: auto; tab-size: 4;
}
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); gap: 12px; margin: 0 0 26px; }
.tiles div { background: var(--panel); border: 1px solid var(--rule); border-radius: 10px; padding: 12px 16px; }
.tiles dt { color: var(--muted); font-size: 0.86rem; }
.tiles dd { margin: 0; }
.tiles dd:first-of-type {
  font-size: 1.65rem; font-weight: 650; line-height: 1.25; font-variant-numeric: tabular-nums; letter-spacing: -0.01em;
}
.tiles dd + dd { color: var(--muted); font-size: 0.86rem; }
audio { width: 100%; max-width: 560px; display: block; }
footer { margin-top: 56px; padding-top: 14px; border-top: 1px solid var(--rule); color: var(--muted); font-size: 0.85rem; }
@media (max-width: 640px) {
  .layout { padding: 0 14px 48px; } header { padding-top: 26px; } h1 { font-size: 1.6rem; }
}
@media print {
  nav, audio, .viewer .controls { display: none; } .layout { max-width: none; }
  figure, .tiles div, tr { break-inside: avoid; } h2, h3 { break-after: avoid; }
}
"""

VIEWER_CSS = """
.viewer { border: 1px solid var(--rule); border-radius: 10px; background: var(--panel); overflow: hidden; }
.viewer .controls { display: flex; flex-wrap: wrap; align-items: center; gap: 8px 18px; padding: 10px 14px; }
.viewer audio { flex: 1 1 260px; max-width: 420px; height: 36px; }
.viewer .controls label { display: flex; align-items: center; gap: 8px; color: var(--muted); font-size: 0.87rem; }
.viewer output { font-size: 0.9rem; font-variant-numeric: tabular-nums; min-width: 15em; }
.viewer .body { display: flex; border-top: 1px solid var(--rule); background: var(--page); }
.viewer .names { flex: none; max-width: 13em; border-right: 1px solid var(--rule); font-size: 0.82rem; }
.viewer .names div {
  padding: 0 10px; display: flex; flex-direction: column; justify-content: center; line-height: 1.2; overflow: hidden;
}
.viewer .names b { color: color-mix(in srgb, var(--system) 75%, var(--ink)); overflow: hidden; text-overflow: ellipsis; white-space: nowrap; font-weight: 650; }
.viewer .names span { color: var(--muted); font-size: 0.92em; }
@media (max-width: 640px) { .viewer .names { max-width: 7.5em; } }
.viewer .scroller { overflow-x: auto; flex: 1; min-width: 0; position: relative; }
.viewer .track { position: relative; width: 100%; }
.viewer .picture { height: 150px; position: relative; cursor: pointer; touch-action: pan-x; }
.viewer .picture svg { position: absolute; inset: 0 0 auto; width: 100%; height: 46px; color: var(--muted); }
.viewer .picture img {
  position: absolute; top: 48px; left: 0; width: 100%; height: 102px; image-rendering: auto; display: block;
}
@media (prefers-color-scheme: dark) { .viewer .picture img { filter: invert(0.93) hue-rotate(180deg); } }
.viewer .row, .viewer .names div { height: 38px; border-top: 1px solid var(--rule); }
.viewer .names div:first-child { height: 150px; border-top: 0; color: var(--muted); }
.viewer .row { position: relative; }
.viewer .row button {
  position: absolute; top: 4px; bottom: 4px; margin: 0; padding: 0; border: 0; border-left: 2px solid var(--system);
  background: color-mix(in srgb, var(--system) 26%, var(--page)); color: var(--ink); font-size: 12px; line-height: 1;
  font-family: inherit; overflow: visible; white-space: nowrap; cursor: pointer; min-width: 2px;
}
.viewer .row button span { position: absolute; left: 50%; top: 50%; transform: translate(-50%, -50%); }
.viewer .row button.silent { background: color-mix(in srgb, var(--system) 8%, var(--page)); color: var(--muted); }
.viewer .row button.small span { font-size: 10px; }
.viewer .row button.turned span { font-size: 10px; writing-mode: vertical-rl; transform: translate(-50%, -50%) rotate(180deg); }
.viewer .row button.crowded span { display: none; }
.viewer .row button:hover, .viewer .row button.playing { background: var(--hit); z-index: 2; }
.viewer .row button.crowded:hover span, .viewer .row button.crowded.playing span, .viewer .row button.crowded:focus span {
  display: block; background: var(--hit); padding: 2px 4px; border-radius: 4px;
}
.viewer .lines { position: absolute; inset: 0; width: 100%; height: 100%; pointer-events: none; color: var(--muted); }
.viewer .cursor { position: absolute; top: 0; bottom: 0; width: 0; border-left: 2px solid #d1242f; pointer-events: none; }
"""

VIEWER_JS = """
for (const viewer of document.querySelectorAll('.viewer')) {
  const audio = viewer.querySelector('audio'), track = viewer.querySelector('.track');
  const scroller = viewer.querySelector('.scroller'), cursor = viewer.querySelector('.cursor');
  const said = viewer.querySelector('output'), zoom = viewer.querySelector('input');
  const buttons = [...viewer.querySelectorAll('.row button')];
  const rows = [...viewer.querySelectorAll('.row')].map(row => [...row.querySelectorAll('button')]);
  const widths = new Map(buttons.map(button => [button, button.firstElementChild.offsetWidth]));
  const duration = Number(viewer.dataset.duration);
  let stopAt = null;
  const time = (button, key) => Number(button.dataset[key]);
  const fit = () => {
    // the whole recording where it fits, never so narrow that words cannot be read
    const least = Math.max(scroller.clientWidth / duration, 140);
    track.style.width = Math.round(duration * least * 2 ** Number(zoom.value)) + 'px';
    const scale = track.clientWidth / duration;
    for (const row of rows) {
      let taken = 0;
      row.forEach((button, i) => {
        // a label may reach over a gap beside its segment, never over a neighbour or its label
        const middle = scale * (time(button, 'start') + time(button, 'end')) / 2;
        const before = i ? Math.max(taken, scale * time(row[i - 1], 'end')) : 0;
        const after = i + 1 < row.length ? scale * time(row[i + 1], 'start') : track.clientWidth;
        const room = 2 * Math.min(middle - before, after - middle), width = widths.get(button);
        const kind = width + 3 <= room ? '' : 10 / 12 * width + 2 <= room ? 'small'
          : room >= 10 && 10 / 12 * width <= 30 ? 'turned' : 'crowded';
        for (const name of ['small', 'turned', 'crowded']) button.classList.toggle(name, name === kind);
        if (kind !== 'crowded') taken = middle + (kind ? kind === 'small' ? 10 / 12 * width : 10 : width) / 2;
      });
    }
  };
  const show = () => {
    const now = audio.currentTime;
    cursor.style.left = 100 * now / duration + '%';
    for (const button of buttons) {
      const on = !audio.paused && now >= time(button, 'start') && now < time(button, 'end');
      button.classList.toggle('playing', on);
    }
    const x = track.clientWidth * now / duration;
    if (!audio.paused && (x < scroller.scrollLeft || x > scroller.scrollLeft + scroller.clientWidth)) {
      scroller.scrollLeft = x - 40;
    }
  };
  const tick = () => {
    if (stopAt !== null && audio.currentTime >= stopAt) { audio.pause(); stopAt = null; }
    show();
    if (!audio.paused) requestAnimationFrame(tick);
  };
  const play = (from, to) => {
    stopAt = to;
    audio.currentTime = from;
    const started = audio.play();
    if (started) started.catch(() => { said.value = 'This browser refused to play the sound.'; });
  };
  const pick = (button, focus) => {
    for (const other of rows.find(row => row.includes(button))) other.tabIndex = other === button ? 0 : -1;
    if (focus) button.focus();
  };
  audio.addEventListener('play', tick);
  audio.addEventListener('seeked', show);
  audio.addEventListener('pause', show);
  viewer.querySelector('.picture').addEventListener('click', event => {
    const box = track.getBoundingClientRect();
    play(duration * (event.clientX - box.left) / box.width, null);
  });
  for (const button of buttons) {
    button.addEventListener('click', () => {
      pick(button, false);
      said.value = button.title;
      // a hair more than nothing, so that an empty segment can be heard to be empty
      play(time(button, 'start'), Math.max(time(button, 'end'), time(button, 'start') + 0.03));
    });
    button.addEventListener('keydown', event => {
      const step = {ArrowRight: 'nextElementSibling', ArrowLeft: 'previousElementSibling'}[event.key];
      if (!step) return;
      event.preventDefault();
      if (button[step] && button[step].matches('button')) pick(button[step], true);
    });
    button.addEventListener('focus', () => { said.value = button.title; });
  }
  zoom.addEventListener('input', () => {
    const middle = (scroller.scrollLeft + scroller.clientWidth / 2) / track.clientWidth;
    fit();
    scroller.scrollLeft = middle * track.clientWidth - scroller.clientWidth / 2;
  });
  new ResizeObserver(fit).observe(scroller);
  fit();
}
"""
