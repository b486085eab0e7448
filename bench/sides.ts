import { about as adk } from "./peers/adk.ts";
import { about as claude } from "./peers/claude.ts";
import { about as cloudflare } from "./peers/cloudflare.ts";
import { about as grep } from "./peers/grep.ts";
import { about as jsonl } from "./peers/jsonl.ts";
import { about as langgraph, aboutPostgres as langgraphPostgres } from "./peers/langgraph.ts";
import { about as mastra, aboutPostgres as mastraPostgres } from "./peers/mastra.ts";
import { about as pi, aboutNewer as piNewer } from "./peers/pi.ts";
import { about as sqlite } from "./peers/sqlite.ts";
import type { About } from "./side.ts";

/** The modules that a child process can load. */
export interface Side extends About {
  readonly module: string;
  /** Passed with each job to a side that supports both. */
  readonly sync?: "full" | "os";
}

const ours = { module: "ours", packages: [] };
const full = "the log is synced before an append returns";
const os = "with the kernel when an append returns, not synced";

export const sides = {
  full: { ...ours, name: "skein (full)", durability: full, sync: "full" },
  os: { ...ours, name: "skein (os)", durability: os, sync: "os" },
  memory: { ...ours, name: "skein (memory)", durability: "none: it lives as long as its process" },
  postgres: { ...ours, name: "skein (PostgreSQL)", durability: "committed, synced by the server" },
  bare: { ...ours, name: "bare AI SDK loop", durability: "", module: "bare-loop" },
  gateway: { ...ours, name: "skein gateway", durability: "", module: "gateway/acts" },
  bareRoute: { ...ours, name: "bare Fastify route", durability: "", module: "gateway/acts" },
  console: { ...ours, name: "skein console", durability: "", module: "console-page" },
  command: { ...ours, name: "skein command", durability: "", module: "command" },
  plainSearch: { ...ours, name: "any-word BM25", durability: "", module: "recall" },
  entry: { ...ours, name: "skein", durability: "", module: "entry" },
  core: { ...ours, name: "skein core", durability: "", module: "core-curve" },
  pipeline: { ...ours, name: "skein pipeline", durability: "", module: "pipeline" },
  naive: { ...ours, name: "naively chained", durability: "", module: "pipeline-naive" },
  tokens: { ...ours, name: "skein estimate", durability: "", module: "tokens" },
  tokenizer: { ...ours, name: "gpt-tokenizer", durability: "", module: "tokenizer" },
  redaction: { ...ours, name: "skein redaction", durability: "", module: "redaction" },
  regexes: { ...ours, name: "one regex after another", durability: "", module: "redaction-naive" },
  allRead: { ...ours, name: "every transcript read", durability: "", module: "session-lists-naive" },
  jsonl: { ...jsonl, module: "peers/jsonl", sync: "full" },
  jsonlOs: { ...jsonl, name: "plain JSONL, no sync", durability: "none", module: "peers/jsonl", sync: "os" },
  sqlite: { ...sqlite, module: "peers/sqlite" },
  pi: { ...pi, module: "peers/pi" },
  piNewer: { ...piNewer, module: "peers/pi" },
  langgraph: { ...langgraph, module: "peers/langgraph" },
  langgraphPostgres: { ...langgraphPostgres, module: "peers/langgraph" },
  mastraPostgres: { ...mastraPostgres, module: "peers/mastra" },
  mastra: { ...mastra, module: "peers/mastra" },
  adk: { ...adk, module: "peers/adk" },
  claude: { ...claude, module: "peers/claude" },
  cloudflare: { ...cloudflare, module: "peers/cloudflare" },
  grep: { ...grep, module: "peers/grep" },
} as const satisfies Record<string, Side>;

export type SideName = keyof typeof sides;

/** The sides that must be installed. */
export function isPeer(name: SideName): boolean {
  return sides[name].packages.length > 0;
}
