// What the scripts of a page of the site hand to each other.

// oxlint-disable-next-line no-var -- only a var is a property of globalThis
declare var flashSite: {
  widgets: Record<string, { render(context: any): any }>;
  recorded: Record<string, { words: string; numbers: string; places: string }>;
  chapters?: { slug: string; cards: string[]; exercises: string[] }[];
  index?: import("./find.js").Entry[];
  loading?: Promise<any>;
  live?: any;
  mended?: { player: any; verdict: string };
};
