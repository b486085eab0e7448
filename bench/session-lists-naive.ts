import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Acts } from "./side.ts";
import { timed, timedOften } from "./side.ts";

/**
 * The same page without an index. Reads and parses every transcript and keeps the newest 100, without redaction or
 * checks.
 */

interface Listed {
  readonly updatedAt: string;
  readonly messages: readonly unknown[];
}

interface Line {
  readonly type?: string;
  readonly timestamp?: string;
  readonly message?: unknown;
}

function read(path: string): Listed {
  const lines = readFileSync(path, "utf8").trimEnd().split("\n");
  const entries = lines.map((line) => JSON.parse(line) as Line);
  const messages = entries.flatMap(({ type, message }) => (type === "message" ? [message] : []));
  return { updatedAt: entries.at(-1)?.timestamp ?? "", messages: messages.slice(-5) };
}

function newest(folder: string): Listed[] {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const transcripts = names.filter((name) => name.endsWith(".jsonl") && !name.endsWith(".log.jsonl"));
  const all = transcripts.map((name) => read(join(folder, name)));
  return all.toSorted((a, b) => (a.updatedAt < b.updatedAt ? 1 : -1)).slice(0, 100);
}

export const acts: Acts = {
  listTool: async ({ folder }) => {
    const agents = join(folder, "store", "agents");
    let rows = 0;
    const list = () => {
      rows = newest(agents).length;
    };
    const firstMs = await timed(list);
    return { ms: await timedOften(3, list), firstMs, rows };
  },
};
