// What frames.py packed, unpacked: the steps and their numbers, and what each did to a row in words.

/** "row 4" or "rows 4–7", from the first and the last + 1. */
const span = (name, [start, stop]) => (stop - start === 1 ? `${name} ${start}` : `${name}s ${start}–${stop - 1}`);

/** What Python sent: sizes, the steps with the offset of each array in `numbers`, and the writes of O. */
class Frames {
  constructor(raw) {
    Object.assign(this, raw);
    const { buffer, byteOffset, byteLength } = raw.buffer;
    this.numbers = new Float64Array(buffer.slice(byteOffset, byteOffset + byteLength)); // aligned to 8 bytes
    this.steps = raw.steps.map(([i, j, r0, r1, c0, c1, offset]) => {
      const [n_r, n_c] = [r1 - r0, c1 - c0];
      const step = { i, j, rows: [r0, r1], cols: [c0, c1], n_r, n_c };
      for (const name of raw.packed) {
        step[name] = offset;
        offset += n_r * (/_ij$/.test(name) ? n_c : /^O/.test(name) ? this.d : 1);
      }
      return step;
    });
    this.T = this.steps.length;
    const peak = (name, size) =>
      this.steps.reduce((most, step) => Math.max(most, this.#peak(step[name], step.n_r * size(step))), 0);
    this.peaks = {
      Q: this.#peak(this.inputs.Q, this.N_q * this.d),
      K: this.#peak(this.inputs.K, this.N_k * this.d),
      V: this.#peak(this.inputs.V, this.N_k * this.d),
      S: peak("S_ij", (step) => step.n_c),
      P: 1,
      l: peak("l", () => 1),
      O_acc: peak("O_acc", () => this.d),
      O: raw.writes.reduce(
        (most, [, start, stop, at]) => Math.max(most, this.#peak(at, (stop - start) * this.d)),
        0,
      ),
    };
  }

  #peak(offset, length) {
    let most = 0;
    for (let k = offset; k < offset + length; k++) {
      const size = Math.abs(this.numbers[k]);
      if (size > most && size < Infinity) most = size;
    }
    return most;
  }

  /** The numbers of one row of a step. */
  row(step, r) {
    const at = (name) => this.numbers[step[name] + r];
    const weights = this.numbers.subarray(step.P_ij + r * step.n_c, step.P_ij + (r + 1) * step.n_c);
    return {
      m_old: at("m_old"),
      m: at("m"),
      alpha: at("alpha"),
      l_old: at("l_old"),
      l: at("l"),
      added: weights.reduce((sum, p) => sum + p, 0),
      visible: this.numbers
        .subarray(step.S_ij + r * step.n_c, step.S_ij + (r + 1) * step.n_c)
        .some((s) => s !== -Infinity),
    };
  }
}

/** What a step did to one row, in words. */
function sentence(row, { m_old, m, alpha, l_old, l, added, visible }) {
  const sum = `l = ${number(alpha)} · ${number(l_old)} + ${number(added)} = ${number(l)}.`;
  const name = `Row ${row}`;
  if (m === -Infinity)
    return `${name} sees no key yet: all its scores are masked, m stays −∞, l and O_acc stay 0.`;
  if (!visible) return `${name} sees no key of this tile: m, l and O_acc stay as they are.`;
  if (m_old === -Infinity)
    return (
      `${name}: the first scores it sees. Their maximum is ${number(m)}; ` +
      `there is nothing to rescale, alpha = exp(−∞) = 0. ${sum}`
    );
  if (m > m_old)
    return (
      `${name}: the maximum grew from ${number(m_old)} to ${number(m)}, so everything summed so far is multiplied ` +
      `by alpha = exp(${number(m_old)} − ${m < 0 ? `(${number(m)})` : number(m)}) = ${number(alpha)}. ${sum}`
    );
  return (
    `${name}: the maximum did not grow, it stays ${number(m)}; ` +
    `alpha = ${number(alpha)}, nothing is rescaled. ${sum}`
  );
}
