// npm run bench: how reading, linking and the context grow with a session. Times are medians of several runs.
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { fileURLToPath } from "node:url";
import { parseSession } from "../src/core/parse-session.ts";
import { SessionTree } from "../src/core/tree.ts";

interface Row {
  entries: number;
  megabytes: number;
  parseMs: number;
  linkMs: number;
  contextMs: number;
  contextNsPerEntry: number;
}

const sizes = [10_000, 50_000, 100_000, 200_000, 500_000];
const text = "x".repeat(850);

function session(entries: number): Buffer {
  const lines = [JSON.stringify({ type: "session", version: 3, id: "bench", timestamp: "", cwd: "/" })];
  for (let index = 0; index < entries; index++) {
    const message = { role: "user", content: [{ type: "text", text }], timestamp: index };
    const parentId = index === 0 ? null : `entry-${index - 1}`;
    lines.push(JSON.stringify({ type: "message", id: `entry-${index}`, parentId, timestamp: "", message }));
  }
  return Buffer.concat(lines.map((line) => Buffer.from(`${line}\n`)));
}

function median(runs: number, work: () => unknown): number {
  const times = Array.from({ length: runs }, () => {
    const started = performance.now();
    work();
    return performance.now() - started;
  });
  return times.toSorted((a, b) => a - b)[Math.floor(runs / 2)] ?? 0;
}

function measure(entries: number): Row {
  const bytes = session(entries);
  const runs = entries > 100_000 ? 3 : 7;
  const parsed = parseSession(bytes);
  const tree = SessionTree.from(parsed);
  const contextMs = median(runs, () => tree.context());
  return {
    entries,
    megabytes: Math.round(bytes.length / 1e6),
    parseMs: Math.round(median(runs, () => parseSession(bytes))),
    linkMs: Math.round(median(runs, () => SessionTree.from(parsed))),
    contextMs: Number(contextMs.toFixed(1)),
    contextNsPerEntry: Math.round((contextMs * 1e6) / entries),
  };
}

const rows = sizes.map(measure);
console.table(rows);
const machine = `${cpus()[0]?.model ?? "unknown"} × ${cpus().length}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.versions.node}`;
console.log(machine);
if (process.argv.includes("--save")) {
  const results = fileURLToPath(new URL("results/", import.meta.url));
  mkdirSync(results, { recursive: true });
  writeFileSync(`${results}core.json`, `${JSON.stringify({ machine, rows }, null, 2)}\n`);
  console.log("written to bench/results/core.json");
}
