import { isAcpKey } from "../core/keys.ts";
import { present } from "../core/present.ts";
import * as s from "../core/schema.ts";
import { outputs } from "../protocol/tool-results.ts";
import type { Child } from "../runs/contract.ts";
import type { App } from "../sessions/app.ts";
import type { Caller } from "../sessions/session-access.ts";
import type { SessionRecord } from "../store/contract.ts";
import type { SessionTool, ToolAnswer, ToolResult } from "./contract.ts";
import { ToolInputError } from "./tool-input-error.ts";
import { childRow, childrenText } from "./watching/child-row.ts";
import { targetedChild } from "./watching/child-target.ts";
import type { Member } from "./watching/family.ts";
import { familyOf, isAtWork, workOf } from "./watching/family.ts";
import { killFamily } from "./watching/kill.ts";
import { steerChild } from "./watching/steer.ts";

const parameters = s.closed({
  action: s.optional(
    s.union([s.literal("list"), s.literal("steer"), s.literal("kill")], { default: "list" }),
  ),
  target: s.optional(s.string({ description: "Key, label or runId of a child, or last." })),
  message: s.optional(s.string({ description: "With steer: what it is told." })),
  recentMinutes: s.optional(
    s.integer({ minimum: 1, maximum: 1440, default: 30, description: "With list: how far back." }),
  ),
});

const longestMessage = 4000;

type Parent = Caller & { readonly session: SessionRecord };

/** Lists what this session spawned, tells a child something in the middle of its turn, or ends it with all below it. */
export const subagents: SessionTool = {
  name: "subagents",
  label: "Subagents",
  description: "List the sub-agents of this session, steer one in the middle of its turn, or kill one.",
  parameters,
  output: outputs.subagents,
  isDestructive: true,
  execute: async (args, call, app) => {
    const { session } = call;
    if (session === null)
      return { result: { status: "error", code: "no_session", error: "No session context" } };
    const parent = { ...call, session };
    const { action = "list" } = args;
    if (action === "list") return { result: await list(parent, minutesOf(args.recentMinutes), app) };
    if (action !== "steer" && action !== "kill") throw new ToolInputError("Unsupported action.", "action");
    if (session.meta.role === "leaf") {
      const error = "Leaf subagents cannot control other sessions.";
      return { result: { status: "forbidden", code: "leaf_restricted", action, error } };
    }
    return action === "steer" ? steer(args, parent, app) : kill(args, parent, app);
  },
};

async function list(parent: Parent, recentMinutes: number, app: App): Promise<ToolResult> {
  const now = app.clock.now();
  const family = await familyOf(app.runs, parent.userId, parent.session.key);
  const work = await workOf(
    app.runs,
    family.map(({ child }) => child),
  );
  const models = await ownModels(parent, family, app);
  const isBusy = ({ run }: Child) => isAtWork(work.get(run.session.uid));
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

/** Models that children were spawned with, or changed to since, by uid. */
async function ownModels(
  { userId }: Parent,
  family: readonly Member[],
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

/** Its own children, each with all that is below it: a family is told with each behind its parent. */
function withDescendants(family: readonly Member[]): { readonly child: Child; readonly below: Child[] }[] {
  const own: { readonly child: Child; readonly below: Child[] }[] = [];
  for (const { child, depth } of family) {
    if (depth === 1) own.push({ child, below: [] });
    else own.at(-1)?.below.push(child);
  }
  return own;
}

async function steer(args: ToolResult, parent: Parent, app: App): Promise<ToolAnswer> {
  const text = steeringText(args.message);
  const found = await target(args, parent, app, false);
  if (!("child" in found)) return { result: { action: "steer", ...found } };
  const { child } = found;
  const said = await steerChild(child, text, parent, app);
  if ("gone" in said) return finished("steer", child, parent, app);
  return { result: { status: "ok", action: "steer", ...named(child, parent, app), ...said } };
}

async function kill(args: ToolResult, parent: Parent, app: App): Promise<ToolAnswer> {
  const found = await target(args, parent, app, true);
  if (!("child" in found)) return { result: { action: "kill", ...found } };
  const { child } = found;
  const { runs, descendants } = await killFamily(child, parent, app);
  if (runs === 0) return finished("kill", child, parent, app);
  const who = named(child, parent, app);
  const more = descendants === 0 ? "" : ` and ${descendants} below it`;
  const text = `Killed ${who.label ?? who.sessionKey}${more}.`;
  return { result: { status: "ok", action: "kill", ...who, killed: runs, descendants, text } };
}

async function target(args: ToolResult, parent: Parent, app: App, descendants: boolean) {
  const wanted = textOf(args.target);
  if (wanted === undefined) throw new ToolInputError("Missing subagent target.", "target");
  const family = await familyOf(app.runs, parent.userId, parent.session.key);
  const display = (key: string) => app.access.display(parent, key);
  return targetedChild(wanted, family, { descendants, display });
}

function finished(action: string, child: Child, parent: Parent, app: App): ToolAnswer {
  const who = named(child, parent, app);
  const text = `${who.label ?? who.sessionKey} is already finished.`;
  return { result: { status: "done", action, ...who, text } };
}

function named({ run, label }: Child, parent: Parent, app: App) {
  const sessionKey = app.access.display(parent, run.session.key);
  return present({ runId: run.runId, sessionKey, label });
}

/** What is said to a child, fit to be said. */
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
