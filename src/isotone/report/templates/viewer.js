for (const viewer of document.querySelectorAll('.viewer')) {
  const audio = viewer.querySelector('audio'), track = viewer.querySelector('.track');
  const scroller = viewer.querySelector('.scroller'), cursor = viewer.querySelector('.cursor');
  const output = viewer.querySelector('output'), zoom = viewer.querySelector('input');
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
    if (started) started.catch(() => { output.value = 'This browser refused to play the sound.'; });
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
      output.value = button.title;
      // a hair more than nothing, so that an empty segment can be heard to be empty
      play(time(button, 'start'), Math.max(time(button, 'end'), time(button, 'start') + 0.03));
    });
    button.addEventListener('keydown', event => {
      const step = {ArrowRight: 'nextElementSibling', ArrowLeft: 'previousElementSibling'}[event.key];
      if (!step) return;
      event.preventDefault();
      if (button[step] && button[step].matches('button')) pick(button[step], true);
    });
    button.addEventListener('focus', () => { output.value = button.title; });
  }
  zoom.addEventListener('input', () => {
    const middle = (scroller.scrollLeft + scroller.clientWidth / 2) / track.clientWidth;
    fit();
    scroller.scrollLeft = middle * track.clientWidth - scroller.clientWidth / 2;
  });
  new ResizeObserver(fit).observe(scroller);
  fit();
}
