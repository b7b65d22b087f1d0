// FlashPlayer: plays the steps that Python recorded. All numbers drawn are read from the one buffer it sent.

class Player extends Stepped {
  constructor(context) {
    super(context, "player", "FlashAttention, step by step", {
      memory: [Memory.key, (frames) => new Memory(frames)],
      grid: [Grid.key, (frames) => new Grid(frames, (k) => this.seekStep(k))],
      chip: [Chip.key, (frames) => new Chip(frames, (row) => this.select(row))],
      bars: [RowBars.key, (frames) => new RowBars(frames)],
      lines: [
        (frames) => [frames.lines, frames.order],
        (frames) => new Lines(frames.lines, forwardEquations(frames)),
      ],
      legend: [Legend.key, (frames) => new Legend(frames)],
    });
    this.verdict = h("p", { class: "flash-verdict" });
    const { memory, grid, chip, bars, lines, legend } = this.parts.places;
    const words = div("flash-panel flash-words", this.title, this.sentence, this.verdict, bars);
    this.body.append(div("flash-places", memory, grid, chip), words, lines, legend);
    this.below.className = "flash-errors";
    this.begin();
  }

  unpack(sent) {
    this.equations = forwardEquations(sent);
    return new Frames(sent);
  }

  loaded() {
    drawErrors(this.below, this.frames);
    this.root.classList.toggle("flash-learner", Boolean(this.frames.learner));
  }

  drawParts(at) {
    this.memory.draw(at, this.colour);
    this.grid.draw(at, this.colour);
    this.chip.draw(at, this.selected, this.colour);
    this.bars.draw(at, this.selected);
    this.lines.draw(at);
  }

  words(at) {
    return sentence(this.frames, at, this.selected);
  }

  remark(at) {
    const { frames } = this;
    setText(this.verdict, frames.learner ? verdict(frames, at) : "");
    return this.verdict.textContent;
  }

  ended() {
    return this.frames.learner?.remark ? "stopped" : "finished";
  }

  ending() {
    const { T, T_r, T_c, N_q, numbers, inputs, learner } = this.frames;
    const skipped = T < T_r * T_c ? ` of ${T_r * T_c}` : "";
    const tiles = `${T}${skipped} ${T_r * T_c === 1 ? "tile" : "tiles"} of S`;
    const row = N_q ? ` Row ${this.selected}: lse = ${number(numbers[inputs.lse + this.selected])}.` : "";
    if (learner) return `${tiles} were computed.${row}`;
    const dropped = `${T === 1 ? "was" : "were"} computed and dropped, none was stored`;
    return `${tiles} ${dropped}. O and lse are in HBM.${row}`;
  }
}

export default {
  render(context) {
    const player = new Player(context);
    return () => player.stop();
  },
};
