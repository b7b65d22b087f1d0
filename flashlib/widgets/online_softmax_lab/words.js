// The sentences of OnlineSoftmaxLab, one for each position, and what the marks mean.

/** @import { Scan } from "./types.js" */
import { div, h, symbol } from "../shared/elements.js";
import { inBrackets, number } from "../shared/number_text.js";

/**
 * What happens at score j, in words, by phase.
 * @param {Scan} scan
 * @param {number} j
 * @param {Record<string, number>} sum
 */
export function sentences({ x, m_old, m, alpha, l_old, kept, p, l, l_wrong, error_wrong }, j, sum) {
  const masked = `Score ${j + 1} is −∞: it has weight 0 and changes nothing`;
  const old = j ? l_wrong[j - 1] : 0;
  return {
    rescale(rescale) {
      if (m[j] === -Infinity) return `${masked}. There is no maximum yet; m stays −∞.`;
      if (x[j] === -Infinity) return `${masked}. m stays ${number(m[j])}.`;
      if (m_old[j] === -Infinity)
        return `The first finite score is the maximum: m = ${number(m[j])}. Nothing was summed yet, so alpha = 0 loses nothing.`;
      if (m[j] === m_old[j])
        return `${number(x[j])} is not above the maximum ${number(m[j])}: alpha = 1, and nothing has to be rescaled.`;
      const grew = `The maximum grew from ${number(m_old[j])} to ${number(m[j])}, so everything summed so far`;
      const factor = `alpha = exp(${number(m_old[j])} − ${inBrackets(m[j])}) = ${number(alpha[j])}`;
      return rescale
        ? `${grew} is multiplied by ${factor}: ${number(l_old[j])} becomes ${number(kept[j])}.`
        : `${grew} should be multiplied by ${factor}. It is not: ${number(old)} stays, where ${number(kept[j])} is right.`;
    },
    add(rescale) {
      if (x[j] === -Infinity) return `${masked}: exp(−∞) = 0 is added.`;
      const total = rescale ? l : l_wrong;
      const added = `exp(${number(x[j])} − ${inBrackets(m[j])}) = ${number(p[j])} is added: l = ${number(total[j])}.`;
      if (rescale || !(l_wrong[j] > l[j])) return added;
      return `${added} It should be ${number(l[j])}; the relative error is ${number(error_wrong[j])}.`;
    },
    end(rescale) {
      if (m[j] === -Infinity) return "All scores are −∞: m = −∞, l = 0, and every weight is 0.";
      const added = `With m and l known, a second pass over the scores makes the weights. They add up to ${number(sum[rescale])}`;
      if (rescale) return `${added}.`;
      if (l_wrong[j] > l[j])
        return `${added}, not 1: l is ${number(l_wrong[j])} and should be ${number(l[j])}, so each weight is too small.`;
      return `${added}: in this row nothing had to be rescaled, and the mistake does not show.`;
    },
  };
}

export function legend() {
  const swatch = (name) => h("i", { class: `flash-online-swatch flash-online-${name}` });
  const mark = (name, text, when) => h("span", { "data-when": when }, swatch(name), h("span", {}, text));
  return div(
    "flash-legend flash-note",
    mark("m", symbol("m")),
    mark("bar", "seen"),
    mark("bar flash-online-negative", "seen, negative"),
    mark("now", "now"),
    mark("pending", "to come"),
    mark("masked", "masked, −∞"),
    mark("ghost", "before the rescale", "true"),
    mark("excess", "✕ too much: not rescaled", "false"),
    mark("ghost", "the right weight", "false"),
  );
}
