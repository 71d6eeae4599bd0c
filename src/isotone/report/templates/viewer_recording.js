// A recording inside the page: its outline and levels, which are there at once, and its samples, decoded by chunks.
const bytes = text => {
  const raw = atob(text), out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out;
};

class Recording {
  constructor(data, chunks) {
    Object.assign(this, data);  // duration, rate, chunk, peak, peaksPerSecond, levelsPerSecond, rows, loudest ...
    this.peaks = new Int8Array(bytes(data.peaks).buffer);
    this.levels = bytes(data.levels);
    this.texts = chunks;
    this.buffers = new Map();  // the chunks used last are the last ones of the map
    this.waiting = new Map();
  }

  numberAt(time) { return Math.max(0, Math.min(this.texts.length - 1, Math.floor(time / this.chunk))); }

  // Decode a chunk, at the recording's own rate; the dozen used last are kept.
  decode(number) {
    const known = this.buffers.get(number);
    if (known) {
      this.buffers.delete(number);
      this.buffers.set(number, known);
      return Promise.resolve(known);
    }
    if (!this.waiting.has(number)) {
      this.decoder ??= new OfflineAudioContext(1, 1, this.rate);
      const ready = this.decoder.decodeAudioData(bytes(this.texts[number].textContent).buffer).then(buffer => {
        this.buffers.set(number, buffer);
        if (this.buffers.size > 12) this.buffers.delete(this.buffers.keys().next().value);
        return buffer;
      }).finally(() => this.waiting.delete(number));
      this.waiting.set(number, ready);
    }
    return this.waiting.get(number);
  }

  // Decode all chunks of a part; resolves when all of them are there.
  need(from, to) {
    const numbers = [];
    for (let i = this.numberAt(from); i <= this.numberAt(to); i++) numbers.push(i);
    return Promise.all(numbers.map(i => this.decode(i)));
  }

  has(from, to) {
    for (let i = this.numberAt(from); i <= this.numberAt(to); i++) if (!this.buffers.has(i)) return false;
    return true;
  }

  // Copy decoded samples from a sample number on; 0 outside of the recording and where nothing is decoded.
  copy(first, out) {
    const size = Math.round(this.chunk * this.rate);
    out.fill(0);
    for (let at = Math.max(0, first); at < first + out.length;) {
      const number = Math.floor(at / size), buffer = this.buffers.get(number);
      const end = Math.min((number + 1) * size, first + out.length);
      if (buffer) {
        const part = buffer.getChannelData(0).subarray(at - number * size, end - number * size);
        out.set(part, at - first);
      }
      at = end;
    }
    return out;
  }

  // Lowest and highest values of columns, as shares of the peak: from samples where they are there, else the outline.
  outline(from, to, columns) {
    const low = new Float32Array(columns), high = new Float32Array(columns);
    const step = (to - from) / columns, fine = step * this.peaksPerSecond < 1.5 && this.has(from, to);
    const rate = fine ? this.rate : this.peaksPerSecond, stride = fine ? 1 : 2, scale = fine ? this.peak : 127;
    const first = Math.floor(from * rate);
    const values = fine ? this.copy(first, new Float32Array(Math.ceil((to - from) * rate) + 2)) : this.peaks;
    const offset = fine ? first : 0, last = values.length / stride;
    for (let x = 0; x < columns; x++) {
      const a = Math.max(0, Math.floor((from + x * step) * rate) - offset);
      const b = Math.min(last, Math.max(a + 1, Math.ceil((from + (x + 1) * step) * rate) - offset));
      let l = Infinity, h = -Infinity;
      for (let i = a; i < b; i++) {
        const one = values[i * stride], other = fine ? one : values[i * stride + 1];
        if (one < l) l = one;
        if (other > h) h = other;
      }
      low[x] = l === Infinity ? 0 : l / scale;
      high[x] = h === -Infinity ? 0 : h / scale;
    }
    return [low, high];
  }
}
