// What several test files need.

/** `count` values made from a function of a random number; the same each time. */
export function drawn(count, make, seed = 1) {
  let state = seed;
  const draw = () => {
    state = (state * 48271) % 2147483647; // Park and Miller's
    return state / 2147483647;
  };
  return Array.from({ length: count }, () => make(draw));
}

/** The number that a text shows. */
export const parsed = (text) => Number(text.replaceAll("−", "-").replace("∞", "Infinity"));
