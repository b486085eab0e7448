import { readFileSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { AgentDefinition } from "../agents/tools/define-agent.ts";
import { selectTools } from "../agents/tools/select-tools.ts";
import type { Channel } from "../channels/contract.ts";
import { SkeinError } from "../core/errors.ts";
import { isRecord } from "../core/is-record.ts";
import { isAcpKey } from "../core/keys.ts";
import type { RunLedgerOptions } from "../runs/ledger/run-ledger.ts";
import type { App } from "../sessions/app.ts";
import { layersOf } from "../sessions/run-tools.ts";
import { isGone, parseIdentity, thisProcess } from "../store/files/process-identity.ts";

/** Determines which runs this process claims and which messages it delivers. */
export function claimsHere(
  app: Pick<App, "agents" | "acp" | "channels">,
  given: {
    readonly app?: string;
    readonly agents?: readonly AgentDefinition[];
    readonly channels?: readonly Channel[];
  },
): Pick<RunLedgerOptions, "app" | "agentHere" | "channelsHere"> {
  const own = given.channels ?? [];
  const hasCode = (given.agents ?? []).length + own.length > 0;
  const name = hasCode || given.app !== undefined ? appName(given.app) : "";
  return {
    app: name,
    agentHere: (agentId, key, wanted) => {
      if (isAcpKey(key)) return app.acp.serves(agentId, key) ? { app: null, tools: [] } : null;
      if (!app.agents.ids.includes(agentId)) return null;
      if (!app.agents.isDefinedInCode(agentId)) return { app: null, tools: [] };
      const agent = app.agents.describe(agentId);
      const { tools } = selectTools(agent.definition?.tools ?? [], layersOf(agent, wanted));
      return { app: name, tools: tools.map(({ name }) => name) };
    },
    channelsHere: () =>
      [...app.channels.keys()].map((id) => ({
        id,
        app: own.some((channel) => channel.id === id) ? name : null,
      })),
  };
}

const longestName = 214;

/**
 * Returns the name of the application that this process belongs to: `given` if set, otherwise the name in the
 * package.json nearest to the entry script, otherwise the script's folder and file name. If there is no script (`node
 * -e`, a REPL), the name is `node`.
 */
export function appName(given: string | undefined, script: string | null = entryScript()): string {
  if (given !== undefined) return checkName(given);
  if (script === null) return "node";
  const folder = dirname(script);
  return packageName(folder) ?? join(basename(folder), basename(script)).slice(-longestName);
}

/** Returns `null` if there is no script. With `--eval`, the program's first argument takes the script's place in `argv`. */
function entryScript(): string | null {
  const isEval = process.execArgv.some((option) => /^(-p?e|-p|--eval|--print)(=|$)/.test(option));
  return isEval || process.argv[1] === undefined ? null : realPath(process.argv[1]);
}

function checkName(name: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the name is printed in terminals.
  if (typeof name === "string" && /^[^\u0000-\u001f\u007f]+$/.test(name.trim()) && name.length <= longestName)
    return name.trim();
  const problem = `The app name ${JSON.stringify(name)} is not valid`;
  const advice = `Use a single line of at most ${longestName} characters, such as "desk"`;
  throw new SkeinError("invalid_arguments", { problem, advice });
}

/**
 * Returns `null` if there is no such file, for example if the program is inside a bundle or another virtual file
 * system.
 */
function realPath(script: string): string | null {
  try {
    return realpathSync(script);
  } catch {
    return null;
  }
}

function packageName(folder: string): string | null {
  const name = nameIn(join(folder, "package.json"));
  if (name !== null) return name;
  const parent = dirname(folder);
  return parent === folder ? null : packageName(parent);
}

/**
 * Returns `null` if the file does not exist, is not valid JSON or has no name (for example, `{ "type": "module" }` in a
 * subfolder).
 */
function nameIn(file: string): string | null {
  try {
    const value: unknown = JSON.parse(readFileSync(file, "utf8"));
    const name = isRecord(value) ? value.name : null;
    return typeof name === "string" && name.trim() !== "" ? name.trim().slice(0, longestName) : null;
  } catch {
    return null;
  }
}

/** Returns the owner name for runs that this process claims. `part` distinguishes several owners in one process. */
export function ownerHere(part: string): string {
  return JSON.stringify({ ...thisProcess(), part });
}

/** Whether an owner is known to be dead. An owner that cannot be parsed is assumed to be alive. */
export function isOwnerGone(owner: string): boolean {
  const who = parseIdentity(owner);
  return who !== null && isGone(who);
}

/** How long a process owns a run without renewing its lease. */
export const defaultLeaseMs = 30_000;

/**
 * Returns a function that tells whether this process can take over a run whose lease has expired. After the machine was
 * suspended or its clock was set ahead, all leases on it have expired, so their owners first get time to renew them.
 */
export function createTakeOverCheck(
  leaseMs: number,
  wallTime: () => number = Date.now,
  monotonicTime: () => number = () => performance.now(),
): () => boolean {
  let offset = wallTime() - monotonicTime();
  let waitUntil = Number.NEGATIVE_INFINITY;
  return () => {
    const now = monotonicTime();
    const before = offset;
    offset = wallTime() - now;
    if (offset - before > leaseMs / 2) waitUntil = now + leaseMs;
    return now >= waitUntil;
  };
}
