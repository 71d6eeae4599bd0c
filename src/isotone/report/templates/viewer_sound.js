// Playing of any part of a recording: chunk after chunk, joined to the sample.
class Sound {
  // changed: is told when playing begins and ends
  constructor(recording, changed) {
    this.recording = recording;
    this.changed = changed;
    this.turn = 0;
    this.playing = null;
  }

  // Time of the recording that is heard now; null where nothing is played.
  get time() {
    if (!this.playing || this.playing.zero === null) return null;
    const heard = this.context.currentTime - (this.context.outputLatency || 0) - this.playing.zero;
    return Math.max(this.playing.from, Math.min(this.playing.to, heard));
  }

  stop() {
    this.turn++;
    if (!this.playing) return;
    for (const source of this.playing.sources) source.stop();
    this.playing = null;
    this.changed();
  }

  async play(from, to) {
    this.stop();
    const turn = this.turn, recording = this.recording;
    const playing = this.playing = {from, to: Math.min(to, recording.duration), zero: null, sources: []};
    this.changed();
    this.context ??= this.open();
    const context = this.context;
    await context.resume();
    for (let i = recording.numberAt(from); i * recording.chunk < playing.to; i++) {
      const buffer = await recording.decode(i);
      if (turn !== this.turn) return;
      const begin = i * recording.chunk, a = Math.max(from, begin), b = Math.min(playing.to, begin + recording.chunk);
      // the first chunk, or one that came late
      if (playing.zero === null || playing.zero + a < context.currentTime) playing.zero = context.currentTime + 0.02 - a;
      this.add(playing, buffer, a - begin, b - a, playing.zero + a, a === from, b === playing.to);
      // while one is heard the next is made ready
      while (turn === this.turn && this.time < a && b < playing.to) await new Promise(r => setTimeout(r, 100));
      if (turn !== this.turn) return;
    }
  }

  open() {
    try {
      return new AudioContext({sampleRate: this.recording.rate});
    } catch {
      return new AudioContext();
    }
  }

  // Schedule a part of a chunk; 2 ms of fading at both ends of what is played, so that cuts do not sound like bursts.
  add(playing, buffer, offset, seconds, when, first, last) {
    const source = this.context.createBufferSource(), gain = this.context.createGain();
    const fade = Math.min(0.002, seconds / 2);
    source.buffer = buffer;
    if (first) gain.gain.setValueAtTime(0, when).linearRampToValueAtTime(1, when + fade);
    if (last) {
      gain.gain.setValueAtTime(1, when + seconds - fade);
      gain.gain.linearRampToValueAtTime(0, when + seconds);
      source.onended = () => { if (this.playing === playing) this.stop(); };
    }
    source.connect(gain).connect(this.context.destination);
    source.start(when, offset, seconds);
    playing.sources.push(source);
  }
}
