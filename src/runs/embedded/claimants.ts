import type { SessionRef } from "../../core/session-ref.ts";
import type { AcceptRequest, Run } from "../contract.ts";
import type { Books } from "./books.ts";
import { refreshQueue } from "./queue.ts";
import type { RunRow } from "./rows.ts";

/**
 * Which processes may claim a run. A run of an agent that is defined in code belongs to an app: only a process of that app
 * that offers the run's tools claims it. All other runs belong to no app, and any process that has the agent claims them.
 */

/** As columns: the app, empty for none, and the names of the tools as JSON. */
export interface Claimants {
  readonly app: string;
  readonly tools: string;
}

const anyProcess: Claimants = { app: "", tools: "[]" };

/**
 * The claimants of new input. A run of the same request in the same session decides, else the app of this process if it
 * defines the agent in code, else the app that ran the session last.
 */
export function claimantsOf(books: Books, request: AcceptRequest, isSilent: boolean): Claimants {
  if (isSilent) return anyProcess;
  const { session, root, options, retryOf } = request;
  const { userId, uid, key, agentId } = session;
  const before =
    retryOf === undefined
      ? root && ofRuns(books, "root = ? AND uid = ? AND silent = 0", root.rootId, uid)
      : ofRuns(books, "run_id = ?", retryOf);
  if (before !== undefined) return before;
  const here = books.options.agentHere(agentId, key, options?.tools);
  const own = here?.app ?? null;
  if (here !== null && own !== null) return { app: own, tools: JSON.stringify(here.tools) };
  const sql = "SELECT app, tools FROM session_apps WHERE user = ? AND key = ?";
  return claimantsIn(books.get(sql, userId ?? "", key)) ?? anyProcess;
}

function ofRuns(books: Books, where: string, ...values: string[]): Claimants | undefined {
  const sql = `SELECT app, tools FROM runs WHERE ${where} ORDER BY seq DESC LIMIT 1`;
  return claimantsIn(books.get(sql, ...values));
}

function claimantsIn(row: Record<string, unknown> | undefined): Claimants | undefined {
  return row === undefined ? undefined : { app: String(row.app), tools: String(row.tools) };
}

/** Remembers the app of a session's last run, for input that arrives where the agent is not defined. */
export function rememberApp(books: Books, session: SessionRef, { app, tools }: Claimants): void {
  const at = [session.userId ?? "", session.key] as const;
  const known = books.get("SELECT app, tools FROM session_apps WHERE user = ? AND key = ?", ...at);
  if ((known?.app ?? "") === app && (known?.tools ?? "[]") === tools) return;
  if (app === "") books.run("DELETE FROM session_apps WHERE user = ? AND key = ?", ...at);
  else {
    const sql = "INSERT OR REPLACE INTO session_apps (user, key, app, tools) VALUES (?, ?, ?, ?)";
    books.run(sql, ...at, app, tools);
  }
}

/** What a process lacks to claim a run; `null`: nothing. */
export interface Lacking {
  readonly app: string | null;
  /** Of a process that has the app and the agent. */
  readonly tools: readonly string[];
}

/** `null`: this process can claim it. */
export function lackingHere(
  books: Books,
  { session, app, requiredTools, options }: Pick<Run, "session" | "app" | "requiredTools" | "options">,
): Lacking | null {
  const here = books.options.agentHere(session.agentId, session.key, options.tools);
  if (app === null) return here === null ? { app, tools: [] } : null;
  if (here === null || here.app !== app) return { app, tools: [] };
  const tools = requiredTools.filter((name) => !here.tools.includes(name));
  return tools.length === 0 ? null : { app, tools };
}

/** Lets any process that has the agent claim the run, and continue its session. */
export function releaseRun(books: Books, row: RunRow): void {
  const { app, tools } = anyProcess;
  books.run("UPDATE runs SET app = ?, tools = ? WHERE run_id = ?", app, tools, row.runId);
  rememberApp(books, row.session, anyProcess);
  refreshQueue(books, row.session.uid);
  if (row.state === "queued")
    books.note("run.queued", row.session, row.runId, { lane: row.lane, kind: row.kind });
}
