// What the units and roles of a program do between two events, as a sentence.

/** @import { Program, Span } from "./types.js" */

const areMany = (name) => name.endsWith("s"); // "warps"

/** @type {Record<string, (name: string, role: string) => string>} by the kind of a span */
const PIPE_UNIT_DOES = { product: (name, role) => `the tensor cores multiply ${name} for ${role}` };
const PIPE_ROLE_DOES = {
  exp: (name, role) => (areMany(role) ? `${role} compute “${name}”` : `${role} computes “${name}”`),
  fma: (name, role) => {
    const does = PIPE_ROLE_DOES.exp(name, role);
    return name.startsWith("rescale") ? `${does}, O_acc times alpha` : does;
  },
  write: (name, role) => (areMany(role) ? `${role} write ${name}` : `${role} writes ${name}`),
};
const PIPE_COPIES = {
  copy: (name) => `the copy unit brings ${name}`,
  store: (name) => `the copy unit stores ${name}`,
};

/**
 * Return a function that says who multiplies and computes at a time; if nobody does, what is copied, and who waits
 * for what.
 * @param {Pick<Program, "rows" | "roles" | "meanings">} program
 * @returns {(isOn: (span: Span) => boolean, besides?: boolean) => string} besides: only who multiplies and computes
 */
export function pipeStates({ rows, roles, meanings }) {
  const waits = {
    wait: (name, role) => {
      const what = meanings[name] ? `${name} (${meanings[name]})` : name;
      return areMany(role) ? `${role} wait for ${what}` : `${role} waits for ${what}`;
    },
  };
  const told = (group, words) => {
    const spans = rows.filter((row) => row.group === group).flatMap((row) => row.spans.filter(([kind]) => words[kind]));
    return (isOn) => spans.filter(isOn).map(([kind, name, , , role]) => words[kind](name, roles[role]));
  };
  const work = [told("units", PIPE_UNIT_DOES), told("roles", PIPE_ROLE_DOES)];
  const rest = [told("units", PIPE_COPIES), told("roles", waits)];
  return (isOn, besides = false) => {
    const said = (besides ? [work] : [work, rest]).map((some) => some.flatMap((of) => of(isOn))).find((clauses) => clauses.length);
    if (besides && !said) return "";
    const sentence = said?.join("; ") ?? "nobody works";
    return `${sentence[0].toUpperCase()}${sentence.slice(1)}.`;
  };
}
