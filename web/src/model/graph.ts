// A plan as a graph: levels by the longest way, and groups where there are too many steps to show each.

export type GraphStep = { id: string; after: string[]; title: string; tool: string; state: string; mark: string };
/** A step, or all steps of some levels. */
export type GraphNode = { id: string; level: number; lastLevel: number; steps: GraphStep[] };
export type Graph = { nodes: GraphNode[]; edges: { from: string; to: string }[]; grouped: boolean };

/** More steps than this are shown by level. */
export const MOST_NODES = 120;

/** How many steps a step has before it, along the longest way. */
export function levelsOf(steps: { id: string; after: string[] }[]): Map<string, number> {
  const known = new Set(steps.map((step) => step.id));
  const open = new Map<string, number>();
  const followers = new Map<string, string[]>();
  for (const step of steps) {
    const before = step.after.filter((id) => known.has(id));
    open.set(step.id, before.length);
    for (const id of before) {
      const others = followers.get(id);
      if (others) others.push(step.id);
      else followers.set(id, [step.id]);
    }
  }
  // One after the other and not by recursion: a chain can be as long as the plan.
  const levels = new Map<string, number>();
  const ready = steps.filter((step) => open.get(step.id) === 0).map((step) => step.id);
  for (const id of ready) levels.set(id, 0);
  for (let next = 0; next < ready.length; next += 1) {
    const id = ready[next];
    if (id === undefined) break;
    const level = (levels.get(id) ?? 0) + 1;
    for (const follower of followers.get(id) ?? []) {
      levels.set(follower, Math.max(levels.get(follower) ?? 0, level));
      const left = (open.get(follower) ?? 1) - 1;
      open.set(follower, left);
      if (left === 0) ready.push(follower);
    }
  }
  // A circle is no plan; it is drawn flat and reported elsewhere.
  for (const step of steps) if (!levels.has(step.id)) levels.set(step.id, 0);
  return levels;
}

export function graphOf(steps: GraphStep[]): Graph {
  const levels = levelsOf(steps);
  const level = (id: string) => levels.get(id) ?? 0;
  if (steps.length <= MOST_NODES) {
    return {
      nodes: steps.map((step) => ({ id: step.id, level: level(step.id), lastLevel: level(step.id), steps: [step] })),
      edges: steps.flatMap((step) => step.after.filter((id) => levels.has(id)).map((from) => ({ from, to: step.id }))),
      grouped: false,
    };
  }
  // A plan that is deeper than what can be drawn has several levels in one node.
  const depth = steps.reduce((most, step) => Math.max(most, level(step.id)), 0) + 1;
  const perNode = Math.ceil(depth / MOST_NODES);
  const bandOf = (id: string) => Math.floor(level(id) / perNode);
  const bands = new Map<number, GraphStep[]>();
  for (const step of steps) {
    const band = bands.get(bandOf(step.id));
    if (band) band.push(step);
    else bands.set(bandOf(step.id), [step]);
  }
  const nodes = [...bands]
    .sort(([a], [b]) => a - b)
    .map(([band, of]) => ({ id: `level-${band}`, level: band * perNode, lastLevel: Math.min(depth, (band + 1) * perNode) - 1, steps: of }));
  const pairs = new Map<string, { from: string; to: string }>();
  for (const step of steps) {
    const to = bandOf(step.id);
    for (const id of step.after) {
      const from = levels.has(id) ? bandOf(id) : to;
      if (from !== to) pairs.set(`${from}>${to}`, { from: `level-${from}`, to: `level-${to}` });
    }
  }
  return { nodes, edges: [...pairs.values()], grouped: true };
}
