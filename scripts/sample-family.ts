import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { holdsSessions } from "../src/app/folder.ts";
import { openSkein } from "../src/app.ts";
import { oneLine } from "../src/cli/output/terminal.ts";
import { configNames } from "../src/config/find-file.ts";

/** What the sample family says to each other, in this order. */
const conversation = [
  { agentId: "support", text: "describe what the desk of a small hotel looks after" },
  {
    agentId: "main",
    text: "spawn three helpers to describe the gardens of Kyoto; compare its temples; plan two days of food and summarize",
  },
  { agentId: "main", text: "tell agent:support:main that three guests come in spring" },
  { agentId: "main", text: "list the sessions" },
] as const;

const configText = `# Two agents on the rehearsal model: offline, without a key, and free. docs/rehearsal.md has what it understands.
# For a real model, set a key such as ANTHROPIC_API_KEY and take the two lines with "model" away.
agents:
  main:
    model: rehearsal/basic
  support:
    model: rehearsal/basic

# Each may see and write to the other's sessions.
tools:
  sessions: { visibility: all }
  agentToAgent: { enabled: true }
`;

const longestLine = 100;

export interface FamilyOptions {
  /** Told what happens, a line at a time. */
  say(line: string): void;
  /** What is not finished by then is left to the next process. */
  readonly limitMs?: number;
}

/**
 * Makes a sample family of sessions in a folder that holds none: agents on the rehearsal model, whatever keys are set, that
 * spawn helpers and write to each other. `there`: the folder has sessions, and is left as it is.
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
      say(`${agentId} is told: ${text}`);
      const turn = skein.session({ agentId }).send(text);
      const { reply } = await before(limit, turn.result);
      for (const line of reply.split("\n")) say(`  ${oneLine(line, longestLine)}`);
      const run = await skein.runs.get(turn.runId);
      if (run !== null) await skein.settled(run.root.rootId, limit);
    }
  } catch (error) {
    if (!limit.aborted) throw error;
    say("This takes longer than it should. What is left goes on with the next command on this folder.");
  } finally {
    await skein.close();
  }
  return "made";
}

/** One that is there is somebody's own. */
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
