import type { EdgeProps, Edge as FlowEdge, Node, NodeProps, ReactFlowInstance } from "@xyflow/react";
import { Controls, getBezierPath, Handle, Position, ReactFlow } from "@xyflow/react";
import type { SessionPlace } from "../paths.ts";
import { sessionPath, userParam } from "../paths.ts";
import { threadOf } from "../ui/theme.ts";
import "@xyflow/react/dist/base.css";
import { hierarchy, tree } from "d3-hierarchy";
import { useEffect, useMemo, useRef, useState } from "react";
import { Link } from "wouter";
import { rowName } from "../live/session-row.ts";
import type { Edge, Family, Member, Tone } from "./family-data.ts";
import { edgePath, findTones, orderMembers, toneNames } from "./family-data.ts";
import styles from "./family-graph.module.css";
import { useSize } from "./use-viewport.ts";

type MemberNode = Node<
  {
    readonly name: string;
    readonly thread: number;
    readonly tone: Tone | null;
    readonly href: string;
    readonly isOpen: boolean;
  },
  "member"
>;
type ThreadEdge = FlowEdge<
  {
    readonly thread: number;
    readonly kind: "spawn" | "fork" | "message";
    readonly href: string;
    readonly text: string;
  },
  "thread"
>;

interface Branch {
  readonly member: Member | null;
  readonly children: Branch[];
}

const nodeTypes = { member: MemberBox };
const edgeTypes = { thread: ThreadLink };
const rowHeight = 48;
const boxHeight = 32;
/** At this zoom level, 13-pixel text is 11 pixels high, the smallest size that is easy to read. */
const minReadableZoom = 0.85;

/** From left to right, or as an indented list if there is no room for columns. */
const layouts = {
  wide: { boxWidth: 224, columnWidth: 320, margin: "40px" },
  narrow: { boxWidth: 192, columnWidth: 24, margin: "12px" },
} as const;
type Layout = keyof typeof layouts;

/**
 * The family as a tree from left to right. Messages between sessions are arcs on the left, labeled with their number.
 */
export default function FamilyGraph({
  family,
  place,
  needsYou,
}: {
  readonly family: Family;
  readonly place: SessionPlace;
  readonly needsYou: ReadonlySet<string>;
}) {
  const graph = useRef<HTMLDivElement>(null);
  const { width } = useSize(graph);
  const layout: Layout = width < 600 ? "narrow" : "wide";
  const nodes = useMemo(() => findNodes(family, place, needsYou, layout), [family, place, needsYou, layout]);
  const edges = useMemo(() => findEdges(family, place, layout), [family, place, layout]);
  const [flow, setFlow] = useState<ReactFlowInstance<MemberNode, ThreadEdge> | null>(null);
  const count = nodes.length;
  const { margin } = layouts[layout];
  // Messages are drawn to the left of the boxes.
  const fitViewOptions = useMemo(
    () => ({ maxZoom: 1, padding: { x: margin, y: margin, left: "132px" } }) as const,
    [margin],
  );
  useEffect(() => {
    // A new member might be outside the visible area.
    if (flow === null || count === 0) return;
    void flow.fitView(fitViewOptions).then(() => {
      const open = flow.getNodes().find(({ data }) => data.isOpen);
      if (flow.getZoom() >= minReadableZoom || open === undefined) return;
      const { x, y } = open.position;
      void flow.setCenter(x + (open.width ?? 0) / 2, y, { zoom: minReadableZoom });
    });
  }, [flow, count, fitViewOptions]);
  return (
    <div ref={graph} className={styles.graph}>
      <ReactFlow
        onInit={setFlow}
        nodes={nodes}
        edges={edges}
        nodeTypes={nodeTypes}
        edgeTypes={edgeTypes}
        minZoom={0.1}
        nodesDraggable={false}
        nodesConnectable={false}
        edgesFocusable={false}
        nodesFocusable={false}
        elementsSelectable={false}
        proOptions={{ hideAttribution: true }}
        aria-label="Graph of the family; the table shows the same data as text"
      >
        <Controls showInteractive={false} fitViewOptions={fitViewOptions} />
      </ReactFlow>
    </div>
  );
}

function MemberBox({ data }: NodeProps<MemberNode>) {
  const { name, thread, tone, href, isOpen } = data;
  return (
    <Link
      href={href}
      className={`${styles.member} nopan`}
      data-thread={thread}
      aria-current={isOpen ? "page" : undefined}
    >
      <Handle type="target" position={Position.Left} className={styles.handle ?? ""} />
      <Handle type="source" id="left" position={Position.Left} className={styles.handle ?? ""} />
      <span className={styles.name}>{name}</span>
      {tone !== null && tone !== "done" && (
        <span className={styles.tone} data-tone={tone}>
          {toneNames[tone].toLowerCase()}
        </span>
      )}
      <Handle type="source" id="below" position={Position.Bottom} className={styles.handle ?? ""} />
      <Handle type="source" id="right" position={Position.Right} className={styles.handle ?? ""} />
    </Link>
  );
}

function ThreadLink({ data, ...ends }: EdgeProps<ThreadEdge>) {
  if (data === undefined) return null;
  const { sourceX, sourceY, targetX, targetY } = ends;
  const { thread, kind, href, text } = data;
  const bend = Math.min(sourceX, targetX) - 24 - Math.min(32, Math.abs(targetY - sourceY) / 6);
  const [path, x, y] =
    kind === "message"
      ? [
          `M${sourceX} ${sourceY}C${bend} ${sourceY} ${bend} ${targetY} ${targetX} ${targetY}`,
          (Math.min(sourceX, targetX) + 3 * bend) / 4 - 8,
          (sourceY + targetY) / 2,
        ]
      : ends.sourcePosition === Position.Bottom
        ? [`M${sourceX} ${sourceY}V${targetY}H${targetX}`, (sourceX + targetX) / 2, (sourceY + targetY) / 2]
        : getBezierPath(ends);
  return (
    <a href={`#${href}`} className={styles.link} data-thread={thread} data-kind={kind} aria-label={text}>
      <path className={styles.hit} d={path} />
      <path className={styles.line} d={path} />
      <path className={styles.tip} d={`M${targetX - 7} ${targetY - 4}l7 4l-7 4Z`} />
      {kind !== "spawn" && (
        <text x={x} y={y + 4} textAnchor={kind === "message" ? "end" : "middle"} className={styles.text}>
          {text}
        </text>
      )}
    </a>
  );
}

function findNodes(
  family: Family,
  place: SessionPlace,
  needsYou: ReadonlySet<string>,
  layout: Layout,
): MemberNode[] {
  const tones = findTones(family, needsYou);
  // Members are in depth-first order, so the last one at each depth is the parent of the next.
  const root: Branch = { member: null, children: [] };
  const path: Branch[] = [root];
  for (const { member, depth } of orderMembers(family)) {
    const branch: Branch = { member, children: [] };
    path[depth]?.children.push(branch);
    path[depth + 1] = branch;
    path.length = depth + 2;
  }
  const { columnWidth, boxWidth } = layouts[layout];
  const laidOut = tree<Branch>().nodeSize([rowHeight, columnWidth])(hierarchy(root));
  // In a list, every box has its own row, in the order of the other views.
  let row = 0;
  if (layout === "narrow")
    laidOut.eachBefore((each) => {
      each.x = row;
      row += rowHeight;
    });
  return laidOut.descendants().flatMap(({ data: { member }, x, y }): MemberNode[] => {
    if (member === null) return [];
    const { key, sessionId } = member;
    const data = {
      name: rowName(member),
      thread: threadOf(sessionId),
      tone: tones.get(key) ?? null,
      href: sessionPath({ key, ...userParam(place) }),
      isOpen: key === place.key,
    };
    return [{ id: key, type: "member", position: { x: y, y: x }, data, width: boxWidth, height: boxHeight }];
  });
}

/**
 * An arrow from each session to the sessions it spawned, and one arrow for all messages between any other two sessions.
 */
function findEdges(family: Family, place: SessionPlace, layout: Layout): ThreadEdge[] {
  const threads = new Map(family.nodes.map(({ key, sessionId }) => [key, threadOf(sessionId)]));
  const known = family.edges.filter(
    ({ fromKey, toKey }) => fromKey !== toKey && threads.has(fromKey) && threads.has(toKey),
  );
  const groups = [...Map.groupBy(known, ({ fromKey, toKey }) => [fromKey, toKey].sort().join(" ")).entries()];
  return groups.flatMap(([id, edges]): ThreadEdge[] => {
    const origin = edges.find(({ kind }) => kind === "spawn" || kind === "fork");
    const first = origin ?? edges[0];
    const last = edges.at(-1);
    if (first === undefined || last === undefined) return [];
    const { fromKey: source, toKey: target } = first;
    const kind = first.kind === "spawn" || first.kind === "fork" ? first.kind : "message";
    const data = {
      thread: threads.get(source) ?? 0,
      kind,
      href: edgePath(last, place),
      text: textOf(edges, kind),
    } as const;
    const sourceHandle = kind === "message" ? "left" : layout === "narrow" ? "below" : "right";
    return [{ id, type: "thread", ariaRole: "group", source, target, sourceHandle, data }];
  });
}

function textOf(edges: readonly Edge[], kind: string): string {
  const count = edges.filter((edge) => edge.kind === "send" || edge.kind === "reply").length;
  const messages = count === 1 ? "1 message" : `${count} messages`;
  if (kind === "message") return messages;
  return count === 0 ? kind : `${kind}, ${messages}`;
}
