// BackwardPlayer: plays a pass of the backward that Python recorded. All numbers drawn are read from its buffer.

class Backward extends Stepped {
  constructor(context) {
    super(context, "backward", "the backward pass, step by step", {
      memory: [GradientMemory.key, (frames) => new GradientMemory(frames)],
      grid: [Grid.key, (frames) => new Grid(frames, (k) => this.seekStep(k))],
      error: [ErrorCurve.key, (frames) => new ErrorCurve(frames)],
      chip: [GradientChip.key, (frames) => new GradientChip(frames, (row) => this.select(row))],
      lines: [
        (frames) => [frames.lines, frames.wrt],
        (frames) => new Lines(frames.lines, backwardEquations(frames)),
      ],
      legend: [GradientLegend.key, (frames) => new GradientLegend(frames)],
    });
    const { memory, grid, error, chip, lines, legend } = this.parts.places;
    const words = div("flash-panel flash-words", this.title, this.sentence);
    this.body.append(div("flash-places", memory, grid, error), chip, words, lines, legend);
    this.begin();
  }

  unpack(sent) {
    this.equations = backwardEquations(sent);
    return new BackwardFrames(sent);
  }

  drawParts(at) {
    this.memory.draw(at, this.colour);
    this.grid.draw(at, this.colour);
    this.error.draw(at);
    this.chip.draw(at, this.selected, this.colour);
    this.lines.draw(at);
  }

  words(at) {
    return backwardSentence(this.frames, at, this.selected);
  }

  ending() {
    const { T, T_r, T_c, gradients } = this.frames;
    const tiles =
      T < T_r * T_c ? `${T} of ${T_r * T_c} tiles were` : `${counted(T, "tile")} ${T === 1 ? "was" : "were"}`;
    const names = [...gradients].sort().join(" and ");
    const { whole } = this.frames.error(this.at);
    return `${tiles} made again and dropped, none was stored. In HBM: ${names}, off by ${number(whole)} at most.`;
  }
}

export default {
  render(context) {
    const player = new Backward(context);
    return () => player.stop();
  },
};
