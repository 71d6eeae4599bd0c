// Spectrograms: from the levels of the page in wide views, from the samples in narrow ones.
const FINEST = 60;  // seconds seen up to which spectra are computed here
const HEIGHT = 128;  // rows of these

// Columns of a picture that is so many pixels wide.
const columns = pixelsWide => Math.min(2400, Math.ceil(pixelsWide));

// Power spectra of real windows by a radix-2 transform.
class Spectra {
  constructor(recording) {
    this.rate = recording.rate;
    this.sigma = Math.max(1, recording.sigma * this.rate);
    this.width = Math.floor(6 * this.sigma) | 1;
    this.size = 512;
    while (this.size < this.width) this.size *= 2;
    const middle = (this.width - 1) / 2;
    this.window = Float64Array.from({length: this.width}, (_, i) => Math.exp(-0.5 * ((i - middle) / this.sigma) ** 2));
    this.cos = Float64Array.from({length: this.size / 2}, (_, i) => Math.cos(2 * Math.PI * i / this.size));
    this.sin = Float64Array.from({length: this.size / 2}, (_, i) => Math.sin(2 * Math.PI * i / this.size));
    this.re = new Float64Array(this.size);
    this.im = new Float64Array(this.size);
    const bits = Math.log2(this.size);
    this.swap = Uint16Array.from({length: this.size}, (_, i) => {
      let out = 0;
      for (let b = 0; b < bits; b++) out |= (i >> b & 1) << (bits - 1 - b);
      return out;
    });
  }

  // The spectrum of the window that begins at a sample, after pre-emphasis; left in re and im.
  compute(samples, first) {
    const {re, im, size, window, swap} = this;
    re.fill(0);
    im.fill(0);
    for (let i = 0; i < this.width; i++) {
      const at = first + i, before = at > 0 ? samples[at - 1] : 0;
      re[swap[i]] = ((samples[at] ?? 0) - 0.97 * before) * window[i];
    }
    for (let half = 1; half < size; half *= 2) {
      const stride = size / (2 * half);
      for (let begin = 0; begin < size; begin += 2 * half) {
        for (let k = 0; k < half; k++) {
          const c = this.cos[k * stride], s = -this.sin[k * stride], a = begin + k, b = a + half;
          const x = re[b] * c - im[b] * s, y = re[b] * s + im[b] * c;
          re[b] = re[a] - x; im[b] = im[a] - y;
          re[a] += x; im[a] += y;
        }
      }
    }
  }
}

class Spectrogram {
  constructor(recording) {
    this.recording = recording;
    this.spectra = new Spectra(recording);
    this.fine = null;  // {from, to, canvas}
    this.shades = null;
  }

  // Set the colours of the lowest and the highest level, [red, green, blue] each.
  colours(low, high) {
    const key = `${low} ${high}`;
    if (this.key === key) return;
    this.key = key;
    this.shades = Uint32Array.from({length: 256}, (_, i) => {
      const [r, g, b] = low.map((v, j) => Math.round(v + (high[j] - v) * i / 255));
      return (255 << 24 | b << 16 | g << 8 | r) >>> 0;
    });
    this.fine = this.coarse = null;
  }

  canvas(width, height) {
    const canvas = document.createElement('canvas');
    canvas.width = width;
    canvas.height = height;
    return canvas;
  }

  // The levels of the page between two times: a pixel each, or the means of several.
  wide(from, to, columns) {
    const {levels, levelRows: rows, levelsPerSecond} = this.recording, count = levels.length / rows;
    const first = Math.max(0, Math.floor(from * levelsPerSecond) - 1);
    const last = Math.min(count, Math.ceil(to * levelsPerSecond) + 1);
    const step = Math.max(1, Math.floor((last - first) / columns)), width = Math.max(1, Math.ceil((last - first) / step));
    const canvas = this.canvas(width, rows), context = canvas.getContext('2d');
    const image = context.createImageData(width, rows), pixels = new Uint32Array(image.data.buffer);
    for (let x = 0; x < width; x++) {
      const begin = Math.min(count - 1, first + x * step), end = Math.min(count, begin + step);
      for (let y = 0; y < rows; y++) {
        let sum = 0;
        for (let column = begin; column < end; column++) sum += levels[column * rows + y];
        pixels[(rows - 1 - y) * width + x] = this.shades[Math.round(sum / (end - begin))];
      }
    }
    context.putImageData(image, 0, 0);
    return {from: first / levelsPerSecond, to: (first + width * step) / levelsPerSecond, canvas};
  }

  // Compute the picture of a part from its samples, which are decoded already, with a column per pixel.
  compute(from, to, pixelsWide) {
    const width = columns(pixelsWide);
    const {rate, loudest, range, maxHz} = this.recording, {spectra} = this, first = Math.floor(from * rate) - spectra.width;
    const samples = this.recording.copy(first, new Float32Array(Math.ceil((to - from) * rate) + 3 * spectra.width));
    const bins = Math.floor(maxHz / rate * spectra.size), canvas = this.canvas(width, HEIGHT);
    const context = canvas.getContext('2d'), image = context.createImageData(width, HEIGHT);
    const pixels = new Uint32Array(image.data.buffer), {re, im} = spectra;
    for (let x = 0; x < width; x++) {
      const middle = Math.round((from + (x + 0.5) / width * (to - from)) * rate) - first;
      spectra.compute(samples, middle - (spectra.width >> 1));
      for (let y = 0; y < HEIGHT; y++) {
        const low = Math.floor(y * bins / HEIGHT), high = Math.max(low + 1, Math.floor((y + 1) * bins / HEIGHT));
        let power = 0;
        for (let k = low; k < high; k++) power += re[k] * re[k] + im[k] * im[k];
        const level = 1 + (10 * Math.log10(Math.max(power / (high - low), 1e-12)) - loudest) / range;
        pixels[(HEIGHT - 1 - y) * width + x] = this.shades[Math.round(255 * Math.max(0, Math.min(1, level)))];
      }
    }
    context.putImageData(image, 0, 0);
    this.fine = {from, to, canvas};
  }

  exact(from, to, pixelsWide) {
    const {fine} = this;
    return fine !== null && fine.from === from && fine.to === to && fine.canvas.width >= columns(pixelsWide);
  }

  // Draw what there is of a view now; better pictures may come later.
  draw(context, view, box) {
    const place = picture => {
      const scale = box.width / (view.to - view.from);
      context.drawImage(
        picture.canvas, box.left + (picture.from - view.from) * scale, box.top, (picture.to - picture.from) * scale, box.height,
      );
    };
    context.save();
    context.beginPath();
    context.rect(box.left, box.top, box.width, box.height);
    context.clip();
    if (!this.exact(view.from, view.to, box.width)) place(this.wide(view.from, view.to, box.width));
    const near = this.fine && (this.fine.to - this.fine.from) < 2 * (view.to - view.from);
    if (near && this.fine.to > view.from && this.fine.from < view.to) place(this.fine);
    context.restore();
  }
}
