import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { holdsSessions } from "../src/app/folder.ts";
import { openSkein } from "../src/app.ts";
import { oneLine } from "../src/cli/output/terminal.ts";
import { configNames } from "../src/config/find-file.ts";

/** The messages that create the sample family, in this order. */
const conversation = [
  { agentId: "support", text: "describe what the desk of a small hotel looks after" },
  {
    agentId: "main",
    text: "spawn three helpers to describe the gardens of Kyoto; compare its temples; plan two days of food and summarize",
  },
  { agentId: "main", text: "tell agent:support:main that three guests come in spring" },
  { agentId: "main", text: "list the sessions" },
] as const;

const configText = `# Two agents on the rehearsal model: offline, without a key, and free. docs/rehearsal.md lists what it understands.
# For a real model, set a key such as ANTHROPIC_API_KEY and delete the two lines with "model".
agents:
  main:
    model: rehearsal/basic
  support:
    model: rehearsal/basic

# Each agent may see the other's sessions and write to them.
tools:
  sessions: { visibility: all }
  agentToAgent: { enabled: true }
`;

const longestLine = 100;

export interface FamilyOptions {
  /** Receives the progress, one line at a time. */
  say(line: string): void;
  /** Work that is not finished by then is left to the next process. */
  readonly limitMs?: number;
}

/**
 * Creates a sample family of sessions in a folder without sessions: agents that use the rehearsal model, even if API
 * keys are set, spawn helpers and message each other. `there`: the folder already has sessions, and nothing was
 * changed.
 */
export async function makeFamily(
  dir: string,
  { say, limitMs = 60_000 }: FamilyOptions,
): Promise<"made" | "there"> {
  if (holdsSessions(dir)) return "there";
  const config = writeConfig(dir);
  const skein = await openSkein({ dir, config, cwd: dir, env: {}, quiet: true });
  const limit = AbortSignal.timeout(limitMs);
  try {
    for (const { agentId, text } of conversation) {
      say(`you → ${agentId}: ${text}`);
      const turn = skein.session({ agentId }).send(text);
      const { reply } = await before(limit, turn.result);
      for (const line of reply.split("\n")) say(`  ${oneLine(line, longestLine)}`);
      const run = await skein.runs.get(turn.runId);
      if (run !== null) await skein.settled(run.root.rootId, limit);
    }
  } catch (error) {
    if (!limit.aborted) throw error;
    say("This takes longer than expected. The next command on this folder continues with the rest.");
  } finally {
    await skein.close();
  }
  return "made";
}

/** An existing file belongs to the user and is kept. */
function writeConfig(dir: string): string {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const there = configNames.map((name) => join(dir, name)).find((path) => existsSync(path));
  if (there !== undefined) return there;
  const file = join(dir, "skein.yaml");
  writeFileSync(file, configText, { flag: "wx" });
  return file;
}

async function before<T>(limit: AbortSignal, doing: Promise<T>): Promise<T> {
  limit.throwIfAborted();
  const late = Promise.withResolvers<never>();
  const stop = () => late.reject(limit.reason);
  limit.addEventListener("abort", stop, { once: true });
  try {
    return await Promise.race([doing, late.promise]);
  } finally {
    limit.removeEventListener("abort", stop);
  }
}
