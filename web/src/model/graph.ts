// A plan as a graph: levels by the longest way, and groups where there are too many steps to show each.

export type GraphStep = { id: string; after: string[]; title: string; tool: string; state: string; mark: string };
export type GraphNode = { id: string; level: number; steps: GraphStep[] };
export type Graph = { nodes: GraphNode[]; edges: { from: string; to: string }[]; grouped: boolean };

/** More steps than this are shown by level. */
export const MOST_NODES = 120;

export function levelsOf(steps: { id: string; after: string[] }[]): Map<string, number> {
  const byId = new Map(steps.map((step) => [step.id, step]));
  const levels = new Map<string, number>();
  const visit = (id: string, path: Set<string>): number => {
    const known = levels.get(id);
    if (known !== undefined) return known;
    const step = byId.get(id);
    // A circle is no plan; it is drawn flat and reported elsewhere.
    if (step === undefined || path.has(id)) return -1;
    path.add(id);
    const level = Math.max(-1, ...step.after.map((other) => visit(other, path))) + 1;
    path.delete(id);
    levels.set(id, level);
    return level;
  };
  for (const step of steps) visit(step.id, new Set());
  return levels;
}

export function graphOf(steps: GraphStep[]): Graph {
  const levels = levelsOf(steps);
  const level = (id: string) => levels.get(id) ?? 0;
  if (steps.length <= MOST_NODES) {
    const known = new Set(steps.map((step) => step.id));
    return {
      nodes: steps.map((step) => ({ id: step.id, level: level(step.id), steps: [step] })),
      edges: steps.flatMap((step) => step.after.filter((id) => known.has(id)).map((from) => ({ from, to: step.id }))),
      grouped: false,
    };
  }
  const groups = new Map<number, GraphStep[]>();
  for (const step of steps) groups.set(level(step.id), [...(groups.get(level(step.id)) ?? []), step]);
  const nodes = [...groups].sort(([a], [b]) => a - b).map(([at, of]) => ({ id: `level-${at}`, level: at, steps: of }));
  const pairs = new Set(
    steps.flatMap((step) => step.after.filter((id) => levels.has(id)).map((from) => `${level(from)}>${level(step.id)}`)),
  );
  const edges = [...pairs].map((pair) => {
    const [from, to] = pair.split(">");
    return { from: `level-${from}`, to: `level-${to}` };
  });
  return { nodes, edges, grouped: true };
}
