// The steps of a plan as a graph, laid out by what waits for what. Loaded apart: it is the largest part of the page.
import { graphlib, layout } from "@dagrejs/dagre";
import { Handle, Position, ReactFlow, type Edge, type Node, type NodeProps } from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import { useMemo, type ReactNode } from "react";
import { graphOf, type Graph, type GraphNode, type GraphStep } from "../../model/graph";
import { stateWord } from "../../model/run";
import { count, visible } from "../../model/text";

/** Narrow places are filled from top to bottom, wide ones from left to right. */
type Direction = "down" | "right";
type Props = { steps: GraphStep[]; selected: string | null; onSelect: (step: string) => void; direction?: Direction };
type StepNode = Node<{ node: GraphNode; selected: boolean; direction: Direction }, "step">;

const WIDTH = 152;
const HEIGHT = 44;

export default function GraphView({ steps, selected, onSelect, direction = "down" }: Props): ReactNode {
  const graph = useMemo(() => graphOf(steps), [steps]);
  const shape = useMemo(() => shapeOf(graph), [graph]);
  // Only another shape is laid out again: states change often, places do not.
  const places = useMemo(() => place(graph, direction), [shape, direction]);
  const nodes = useMemo(
    (): StepNode[] =>
      graph.nodes.map((node) => ({
        id: node.id,
        type: "step",
        position: places.get(node.id) ?? { x: 0, y: 0 },
        data: { node, selected: node.steps.some((step) => step.id === selected), direction },
        width: WIDTH,
        height: HEIGHT,
        ariaLabel: labelOf(node),
      })),
    [graph, places, selected, direction],
  );
  const edges = useMemo((): Edge[] => graph.edges.map(({ from, to }) => ({ id: `${from}>${to}`, source: from, target: to, focusable: false })), [shape]);
  return (
    <div className="graph">
      <ReactFlow
        key={shape}
        nodes={nodes}
        edges={edges}
        nodeTypes={NODE_TYPES}
        fitView
        fitViewOptions={{ padding: 0.08, maxZoom: 1 }}
        minZoom={0.1}
        maxZoom={1.5}
        nodesDraggable={false}
        nodesConnectable={false}
        edgesFocusable={false}
        zoomOnScroll={false}
        preventScrolling={false}
        proOptions={{ hideAttribution: true }}
        onNodeClick={(_, node) => pick(graph, node.id, onSelect)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          const id = (event.target as HTMLElement).dataset["id"];
          if (id !== undefined) pick(graph, id, onSelect);
        }}
      />
      {graph.grouped ? <p className="quiet">{steps.length} steps, shown by level. A level opens at its first step.</p> : null}
    </div>
  );
}

function shapeOf(graph: Graph): string {
  return [...graph.nodes.map((node) => node.id), ...graph.edges.map(({ from, to }) => `${from}>${to}`)].join(";");
}

function pick(graph: Graph, id: string, onSelect: (step: string) => void): void {
  const step = graph.nodes.find((node) => node.id === id)?.steps[0];
  if (step) onSelect(step.id);
}

function StepNodeView({ data }: NodeProps<StepNode>): ReactNode {
  const [step] = data.node.steps;
  if (step === undefined) return null;
  const many = data.node.steps.length > 1;
  const tone = many ? "quiet" : toneOf(step.state);
  return (
    <div className={`node ${tone} ${data.selected ? "selected" : ""}`}>
      <Handle type="target" position={data.direction === "right" ? Position.Left : Position.Top} isConnectable={false} />
      <b>
        <span aria-hidden="true">{many ? "≡" : step.mark}</span> {many ? `${data.node.steps.length} steps` : visible(step.id)}
      </b>
      <small>{many ? `${levelWords(data.node)}: ${summary(data.node.steps)}` : visible(step.tool)}</small>
      <Handle type="source" position={data.direction === "right" ? Position.Right : Position.Bottom} isConnectable={false} />
    </div>
  );
}

const NODE_TYPES = { step: StepNodeView };

/** Effects of a review and states of a run have tones alike. */
function toneOf(state: string): string {
  switch (state) {
    case "destroys":
    case "unknown":
      return "bad";
    case "changes":
    case "sends":
      return "ask";
    case "reads":
    case "nothing":
      return "quiet";
    default:
      return stateWord(state).tone;
  }
}

function levelWords(node: GraphNode): string {
  return node.level === node.lastLevel ? `level ${node.level + 1}` : `levels ${node.level + 1} to ${node.lastLevel + 1}`;
}

function summary(steps: GraphStep[]): string {
  const counts = new Map<string, number>();
  for (const step of steps) counts.set(stateWord(step.state).word, (counts.get(stateWord(step.state).word) ?? 0) + 1);
  return [...counts].map(([word, n]) => `${n} ${word}`).join(", ");
}

function labelOf(node: GraphNode): string {
  const [step] = node.steps;
  if (step === undefined) return "";
  return node.steps.length > 1 ? `${levelWords(node)}, ${count(node.steps.length, "step")}` : `step ${visible(step.id)}, ${visible(step.tool)}, ${stateWord(step.state).word}`;
}

function place(graph: Graph, direction: Direction): Map<string, { x: number; y: number }> {
  const drawing = new graphlib.Graph();
  drawing.setGraph({ rankdir: direction === "right" ? "LR" : "TB", nodesep: 14, ranksep: direction === "right" ? 44 : 30, marginx: 4, marginy: 4 });
  drawing.setDefaultEdgeLabel(() => ({}));
  for (const node of graph.nodes) drawing.setNode(node.id, { width: WIDTH, height: HEIGHT });
  for (const edge of graph.edges) drawing.setEdge(edge.from, edge.to);
  layout(drawing);
  return new Map(
    graph.nodes.map((node) => {
      const at = drawing.node(node.id) as { x: number; y: number };
      return [node.id, { x: at.x - WIDTH / 2, y: at.y - HEIGHT / 2 }];
    }),
  );
}
