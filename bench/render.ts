import type { Figure } from "./results.ts";

/** Formats numbers for display. The unit is part of a metric's name. */

const names: Readonly<Record<string, string>> = {
  ms: "time",
  perSecond: "messages",
  usPerMessage: "per message",
  rssMb: "memory",
  storeMs: "store opened",
  appendMs: "first append",
  firstMs: "first call",
  lastMs: "last 20",
  anywhereMs: "20 anywhere",
  bytes: "bytes",
  ratio: "of payload",
  indexBytes: "index",
  indexRatio: "index of payload",
  openMs: "store opened",
  listMs: "first list",
  p50Ms: "p50",
  p95Ms: "p95",
  maxMs: "longest",
  blockedMs: "event loop blocked",
  hitsPerQuery: "hits per query",
  mbPerSecond: "text",
  o200kPercent: "error vs. o200k",
  cl100kPercent: "error vs. cl100k",
  worstPercent: "worst sample",
  bareMs: "bare loop",
  addedMs: "added",
  syncMs: "one sync",
  waitedMs: "waited for syncs",
  addedCpuMs: "added CPU time",
  addedBesideSyncMs: "added, without syncs",
  fileSyncs: "file syncs",
  commitSyncs: "database syncs",
  turnMs: "per turn",
  lost: "lost",
  spawnMs: "per sub-agent",
  peakMb: "total memory",
  twice: "twice",
  plainMs: "without messages",
  rows: "rows",
  requestsPerSecond: "requests",
  fullP99Ms: "p99, full load",
  halfP50Ms: "p50, half load",
  halfP99Ms: "p99, half load",
  usCpu: "CPU per request",
  bodyKb: "answer",
  serverMb: "server's memory",
  p99Ms: "p99",
  heardPerSecond: "received",
  grownMb: "growth",
  bootMs: "Node itself",
  importMs: "loading code",
  restMs: "opening until ready",
  parseMs: "read",
  linkMs: "link",
  contextMs: "context",
  paintMs: "first paint",
  frameMs: "longest frame",
  workMs: "longest task",
  firstLoadKb: "first load",
  totalKb: "all files",
  turnsPerSecond: "turns",
  claimMs: "slot lock held",
  workerCpuMs: "CPU of Skein",
  databaseCpuMs: "CPU of the database",
  transactions: "transactions",
  entries: "entries",
  insertedRows: "rows inserted",
  walKb: "WAL",
  storedKb: "stored",
  events: "events",
  batches: "batches",
  batchesPerEvent: "batches per event",
  eventsPerSecond: "events",
  usCpuSent: "CPU per event, sender and receiver",
  usDatabaseCpu: "CPU per event, database",
  recall: "recall",
  parseUsPerEntry: "read, per entry",
};

export function figureName(name: string): string {
  return names[name] ?? name;
}

export function formatValue(name: string, value: number): string {
  if (name.endsWith("Ms") || name === "ms") return formatMs(value);
  if (name.startsWith("us") || name.includes("Us")) return `${digits(value)} µs`;
  if (name === "mbPerSecond") return `${digits(value)} MB/s`;
  if (name.endsWith("Percent")) return `${digits(value)} %`;
  if (name.toLowerCase().endsWith("persecond")) return `${digits(value)}/s`;
  if (name === "recall") return value.toFixed(3);
  if (name.endsWith("Kb")) return `${digits(value)} KB`;
  if (name.endsWith("Mb")) return `${digits(value)} MB`;
  if (name.toLowerCase().endsWith("bytes")) return `${digits(value / 1e6)} MB`;
  if (name.toLowerCase().endsWith("ratio")) return `${value.toFixed(2)} ×`;
  return digits(value);
}

function formatMs(value: number): string {
  if (value >= 10_000) return `${digits(value / 1000)} s`;
  return value < 0.1 ? `${digits(value * 1000)} µs` : `${digits(value)} ms`;
}

/** Three significant digits, with thousands separators. */
export function digits(value: number): string {
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(value >= 10 ? 3 : 2)));
}

export function formatFigure(name: string, figure: Figure): string {
  const { median, min, max, runs } = figure;
  const middle = formatValue(name, median);
  if (runs === 1 || min === max) return middle;
  return `${middle} (${formatValue(name, min)} – ${formatValue(name, max)})`;
}

export function formatFigures(figures: Readonly<Record<string, Figure>>): string {
  return Object.entries(figures)
    .map(([name, figure]) => `${figureName(name)} ${formatFigure(name, figure)}`)
    .join("   ");
}

export function table(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [row(head), `|${head.map(() => "---").join("|")}|`, ...lines.map(row)].join("\n");
}
