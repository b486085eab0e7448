import { isAcpKey } from "../core/keys.ts";
import { present } from "../core/present.ts";
import * as s from "../core/schema.ts";
import { cutText, escapeToLine, inLine } from "../core/text.ts";
import { outputs } from "../protocol/tool-results.ts";
import type { Child, SessionWork } from "../runs/contract.ts";
import type { App } from "../sessions/app.ts";
import type { Caller } from "../sessions/session-access.ts";
import type { SessionRecord } from "../store/contract.ts";
import type { SessionTool, ToolAnswer, ToolResult } from "./session-tool.ts";
import { ToolInputError } from "./session-tool.ts";
import type { Descendant } from "./subagent-control.ts";
import {
  isBusyWork,
  killDescendants,
  listDescendants,
  readChildWork,
  steerChild,
} from "./subagent-control.ts";

const parameters = s.closed({
  action: s.optional(
    s.union([s.literal("list"), s.literal("steer"), s.literal("kill")], { default: "list" }),
  ),
  target: s.optional(s.string({ description: "The key, label or runId of a child, or the word last." })),
  message: s.optional(s.string({ description: "For steer: the message for the child." })),
  recentMinutes: s.optional(
    s.integer({
      minimum: 1,
      maximum: 1440,
      default: 30,
      description: "For list: how many minutes to look back for finished sub-agents.",
    }),
  ),
});

const longestMessage = 4000;

type Parent = Caller & { readonly session: SessionRecord };

/** Lists this session's descendants, steers a child during its turn, or kills one along with its descendants. */
export const subagents: SessionTool = {
  name: "subagents",
  label: "Subagents",
  description: "List this session's sub-agents, steer one during its turn, or kill one.",
  parameters,
  output: outputs.subagents,
  isDestructive: true,
  execute: async (args, call, app) => {
    const { session } = call;
    if (session === null)
      return { result: { status: "error", code: "no_session", error: "No session context" } };
    const parent = { ...call, session };
    const { action = "list" } = args;
    if (action === "list") return { result: await listSubagents(parent, minutesOf(args.recentMinutes), app) };
    if (action !== "steer" && action !== "kill") throw new ToolInputError("Unsupported action.", "action");
    if (session.meta.role === "leaf") {
      const error = "Leaf subagents cannot control other sessions.";
      return { result: { status: "forbidden", code: "leaf_restricted", action, error } };
    }
    return action === "steer" ? steerSubagent(args, parent, app) : killSubagent(args, parent, app);
  },
};

async function listSubagents(parent: Parent, recentMinutes: number, app: App): Promise<ToolResult> {
  const now = app.clock.now();
  const family = await listDescendants(app.runs, parent.userId, parent.session.key);
  const work = await readChildWork(
    app.runs,
    family.map(({ child }) => child),
  );
  const models = await ownModels(parent, family, app);
  const isBusy = ({ run }: Child) => isBusyWork(work.get(run.session.uid));
  const rows = withDescendants(family).map(({ child, below }) => {
    const { key, uid, agentId } = child.run.session;
    const ofAgent = isAcpKey(key) ? `acp/${agentId}` : (app.agents.find(agentId)?.model ?? null);
    const model = child.run.options.model ?? models.get(uid) ?? ofAgent;
    const pendingDescendants = below.filter(isBusy).length;
    const sessionKey = app.access.display(parent, key);
    const row = childRow({ child, sessionKey, work: work.get(uid), model, pendingDescendants, now });
    return { row, isActive: isBusy(child) || pendingDescendants > 0, endedAt: child.run.endedAt };
  });
  const since = now - recentMinutes * 60_000;
  const active = rows.filter(({ isActive }) => isActive).map(({ row }) => row);
  const recent = rows
    .filter(({ isActive, endedAt }) => !isActive && (endedAt ?? now) >= since)
    .map(({ row }) => row);
  const total = active.length + recent.length;
  return { status: "ok", action: "list", total, active, recent, text: childrenText(active, recent) };
}

/** Returns the models that were set for the children, either when they were spawned or later, keyed by uid. */
async function ownModels(
  { userId }: Parent,
  family: readonly Descendant[],
  { store }: App,
): Promise<ReadonlyMap<string, string>> {
  const own = family.filter(({ depth }) => depth === 1);
  const found = await Promise.all(
    own.map(({ child }) => store.sessions.get(present({ userId }), child.run.session.sessionId)),
  );
  return new Map(
    found.flatMap((session) =>
      typeof session?.meta.model === "string" ? [[session.uid, session.meta.model] as const] : [],
    ),
  );
}

/** Returns the session's own children, each with its descendants. In the list, descendants follow their parent. */
function withDescendants(
  family: readonly Descendant[],
): { readonly child: Child; readonly below: Child[] }[] {
  const own: { readonly child: Child; readonly below: Child[] }[] = [];
  for (const { child, depth } of family) {
    if (depth === 1) own.push({ child, below: [] });
    else own.at(-1)?.below.push(child);
  }
  return own;
}

async function steerSubagent(args: ToolResult, parent: Parent, app: App): Promise<ToolAnswer> {
  const text = steeringText(args.message);
  const found = await resolveTarget(args, parent, app, false);
  if (!("child" in found)) return { result: { action: "steer", ...found } };
  const { child } = found;
  const steered = await steerChild(child, text, parent, app);
  if ("gone" in steered) return finishedAnswer("steer", child, parent, app);
  return { result: { status: "ok", action: "steer", ...describeChild(child, parent, app), ...steered } };
}

async function killSubagent(args: ToolResult, parent: Parent, app: App): Promise<ToolAnswer> {
  const found = await resolveTarget(args, parent, app, true);
  if (!("child" in found)) return { result: { action: "kill", ...found } };
  const { child } = found;
  const { runs, descendants } = await killDescendants(child, parent, app);
  if (runs === 0) return finishedAnswer("kill", child, parent, app);
  const who = describeChild(child, parent, app);
  const more = descendants === 0 ? "" : ` and ${descendants} below it`;
  const text = `Killed ${who.label ?? who.sessionKey}${more}.`;
  return { result: { status: "ok", action: "kill", ...who, killed: runs, descendants, text } };
}

async function resolveTarget(args: ToolResult, parent: Parent, app: App, descendants: boolean) {
  const wanted = textOf(args.target);
  if (wanted === undefined) throw new ToolInputError("Missing subagent target.", "target");
  const family = await listDescendants(app.runs, parent.userId, parent.session.key);
  const display = (key: string) => app.access.display(parent, key);
  return findTargetChild(wanted, family, { descendants, display });
}

function finishedAnswer(action: string, child: Child, parent: Parent, app: App): ToolAnswer {
  const who = describeChild(child, parent, app);
  const text = `${who.label ?? who.sessionKey} is already finished.`;
  return { result: { status: "done", action, ...who, text } };
}

function describeChild({ run, label }: Child, parent: Parent, app: App) {
  const sessionKey = app.access.display(parent, run.session.key);
  return present({ runId: run.runId, sessionKey, label });
}

/** Checks a steering message. */
function steeringText(message: unknown): string {
  if (typeof message !== "string") throw new ToolInputError("message required", "message");
  if (message.length <= longestMessage) return message;
  const problem = `Message too long (${message.length} chars, max ${longestMessage}).`;
  throw new ToolInputError(problem, "message");
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function minutesOf(value: unknown): number {
  return typeof value === "number" ? Math.min(1440, Math.max(1, Math.floor(value))) : 30;
}

const longestTask = 72;

interface ChildFacts {
  readonly child: Child;
  readonly sessionKey: string;
  readonly work: SessionWork | undefined;
  readonly model: string | null;
  /** Returns the number of the child's descendants that have open runs. */
  readonly pendingDescendants: number;
  readonly now: number;
}

function childRow({ child, sessionKey, work, model, pendingDescendants, now }: ChildFacts) {
  const { run, label, task } = child;
  const { runId, startedAt, usage } = run;
  const endedAt = isBusyWork(work) ? null : run.endedAt;
  return present({
    runId,
    sessionKey,
    label,
    task: shortTask(task),
    status: statusOf(child, work),
    runtimeMs: startedAt === null ? null : (endedAt ?? now) - startedAt,
    model,
    totalTokens: usage.totalTokens,
    startedAt,
    endedAt,
    pendingDescendants,
  });
}

type ChildRow = ReturnType<typeof childRow>;

/** Returns the task on one line, truncated if it is too long. */
function shortTask(task: string): string {
  const line = escapeToLine(task.trim().replace(/\s+/g, " "));
  return line.length <= longestTask ? line : `${cutText(line, longestTask - 1)}…`;
}

/** Returns the current status of the child's session, or the outcome of its task. `waiting` includes sleeping. */
function statusOf({ run }: Child, work: SessionWork | undefined): string {
  if (work !== undefined && isBusyWork(work)) return work.status;
  return run.outcome?.state ?? (run.state === "sleeping" ? "waiting" : run.state);
}

/** Returns one line per child. */
function childrenText(active: readonly ChildRow[], recent: readonly ChildRow[]): string {
  const line = ({ label, sessionKey, status, task, pendingDescendants }: ChildRow) => {
    const more = pendingDescendants === 0 ? "" : `, ${pendingDescendants} working below it`;
    return `- ${escapeToLine(label ?? sessionKey)}: ${status}${more} (${task})`;
  };
  const part = (title: string, rows: readonly ChildRow[]) =>
    rows.length === 0 ? [] : [`${title}:`, ...rows.map(line)];
  const lines = [...part("Active", active), ...part("Recent", recent)];
  return lines.length === 0 ? "No sub-agents." : lines.join("\n");
}

type TargetChild =
  | { readonly child: Child }
  | { readonly status: "forbidden" | "error"; readonly code: string; readonly error: string };

const notOwn = "Subagents can only control runs spawned from their own session.";

/**
 * Finds a child by key, label, run ID or `last`. Descendants can be killed but not steered. Any session outside the
 * tree is reported as unknown, whether or not it exists.
 */
function findTargetChild(
  target: string,
  family: readonly Descendant[],
  options: { readonly descendants: boolean; display(key: string): string },
): TargetChild {
  const own = family.filter(({ depth }) => depth === 1);
  const [last] = own;
  if (target === "last") return last === undefined ? unknown(target) : { child: last.child };
  const found = own.filter(({ child }) => hasName(child, target, options.display));
  const [first, second] = found;
  if (second !== undefined) return ambiguous(target, found, options.display);
  if (first !== undefined) return { child: first.child };
  const below = family.filter(({ child, depth }) => depth > 1 && hasName(child, target, options.display));
  const [descendant] = below;
  if (descendant === undefined) return unknown(target);
  if (!options.descendants) return { status: "forbidden", code: "not_own_child", error: notOwn };
  return below.length > 1 ? ambiguous(target, below, options.display) : { child: descendant.child };
}

function hasName({ run, label, spawnId }: Child, target: string, display: (key: string) => string): boolean {
  const { key } = run.session;
  return [run.runId, key, display(key), `subagent:${spawnId}`, label].includes(target);
}

function unknown(target: string): TargetChild {
  const what = target.includes(":") ? "session" : "target";
  return { status: "error", code: "not_found", error: `Unknown subagent ${what}: ${inLine(target)}` };
}

function ambiguous(
  target: string,
  found: readonly Descendant[],
  display: (key: string) => string,
): TargetChild {
  const keys = found.map(({ child }) => display(child.run.session.key)).join(", ");
  const error = `Ambiguous subagent label: ${inLine(target)} (use one of ${keys})`;
  return { status: "error", code: "ambiguous", error };
}
