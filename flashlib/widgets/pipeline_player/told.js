// What the units and roles of a program do between two events, as a sentence.

/** @import { Program, Span } from "./types.js" */

const areMany = (name) => name.endsWith("s"); // "warps"

/** @type {Record<string, (name: string, role: string) => string>} by the kind of a span */
const PIPE_UNIT_DOES = { product: (name, role) => `the tensor cores multiply ${name} for ${role}` };
const PIPE_ROLE_DOES = {
  exp: (name, role) => (areMany(role) ? `${role} compute “${name}”` : `${role} computes “${name}”`),
  fma: (name, role) => {
    const does = PIPE_ROLE_DOES.exp(name, role);
    return name.startsWith("rescale ") ? `${does}, O_acc times alpha` : does;
  },
  write: (name, role) => (areMany(role) ? `${role} write ${name}` : `${role} writes ${name}`),
};
const PIPE_COPIES = {
  copy: (name) => `the copy unit brings ${name}`,
  store: (name) => `the copy unit stores ${name}`,
};

/**
 * Who multiplies and computes; if nobody does, what is copied, and who waits for what.
 * @param {Program} program
 * @param {(span: Span) => boolean} isOn
 */
export function pipeState({ rows, roles, meanings }, isOn) {
  const said = (group, words) =>
    rows
      .filter((row) => row.group === group)
      .flatMap(({ spans }) => spans)
      .filter((span) => words[span[0]] && isOn(span))
      .map(([kind, name, , , role]) => words[kind](name, roles[role]));
  const waits = {
    wait: (name, role) => {
      const what = meanings[name] ? `${name} (${meanings[name]})` : name;
      return areMany(role) ? `${role} wait for ${what}` : `${role} waits for ${what}`;
    },
  };
  const work = [...said("units", PIPE_UNIT_DOES), ...said("roles", PIPE_ROLE_DOES)];
  const clauses = work.length ? work : [...said("units", PIPE_COPIES), ...said("roles", waits)];
  const sentence = clauses.join("; ") || "nobody works";
  return `${sentence[0].toUpperCase()}${sentence.slice(1)}.`;
}
