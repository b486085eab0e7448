/** The targets as data: which of our metrics is compared with which other metric, and the required ratio. */

export interface Place {
  readonly row: string;
  readonly case: string;
  readonly side: string;
  readonly figure: string;
}

export type Goal =
  /** The other side takes at least this many times as long. */
  | { readonly kind: "faster"; readonly times: number }
  /** Our throughput is at least this many times the other's. */
  | { readonly kind: "more"; readonly times: number }
  /** We take at most this many times as long as the other side. */
  | { readonly kind: "within"; readonly times: number }
  | { readonly kind: "at most"; readonly value: number }
  /**
   * Only a comparison, not a target: how many times as long the other side takes, or how many times its throughput ours
   * is.
   */
  | { readonly kind: "shown"; readonly as: "faster" | "more" };

export interface Target {
  readonly what: string;
  readonly us: Place;
  readonly against?: Place;
  readonly goal: Goal;
}

const full = "skein (full)";
const os = "skein (os)";
const at = (row: string, name: string, side: string, figure = "ms"): Place => ({
  row,
  case: name,
  side,
  figure,
});

const opening: Target[] = [
  {
    what: "open 500k entries, compacted",
    us: at("open-compacted", "500k", full),
    against: at("open-compacted", "500k", "pi"),
    goal: { kind: "faster", times: 100 },
  },
  {
    what: "… flat: compared with 10k",
    us: at("open-compacted", "500k", full),
    against: at("open-compacted", "10k", full),
    goal: { kind: "within", times: 1.5 },
  },
  {
    what: "… added memory",
    us: at("open-compacted", "500k", full, "rssMb"),
    against: at("open-compacted", "500k", "pi", "rssMb"),
    goal: { kind: "at most", value: 30 },
  },
  {
    what: "open 500k entries, never compacted",
    us: at("open-whole", "500k", full),
    against: at("open-whole", "500k", "pi"),
    goal: { kind: "faster", times: 20 },
  },
  {
    what: "… compared with the compacted one",
    us: at("open-whole", "500k", full),
    against: at("open-compacted", "500k", full),
    goal: { kind: "within", times: 3 },
  },
];

function appendTarget(what: string, name: string, side: string, against: Place, times = 1): Target {
  return { what, us: at("append", name, side, "perSecond"), against, goal: { kind: "more", times } };
}

function appendShown(what: string, name: string, side: string, against: Place): Target {
  return { what, us: at("append", name, side, "perSecond"), against, goal: { kind: "shown", as: "more" } };
}

const one = (side: string) => at("append", "one at a time", side, "perSecond");
const batches = (side: string) => at("append", "batches of 100", side, "perSecond");

const appending: Target[] = [
  appendTarget("append one at a time, `os`: no sync on either side", "one at a time", os, one("pi")),
  appendShown("… the bare minimum", "one at a time", os, one("plain JSONL, no sync")),
  ...["Google ADK", "Mastra LibSQL", "LangGraph SQLite"].map((peer) =>
    appendTarget("append one at a time, `full`", "one at a time", full, one(peer)),
  ),
  ...["Cloudflare Sessions", "SQLite rows", "plain JSONL"].map((peer) =>
    appendShown("append one at a time, `full`", "one at a time", full, one(peer)),
  ),
  appendTarget("append in batches of 100, `os`", "batches of 100", os, one("pi")),
  appendTarget("append in batches of 100, `full`", "batches of 100", full, batches("Mastra LibSQL")),
  ...["SQLite rows", "plain JSONL"].map((peer) =>
    appendShown("append in batches of 100, `full`", "batches of 100", full, batches(peer)),
  ),
  appendTarget("append to 64 sessions at once, `full`", "64 sessions at once", full, one(full), 3),
];

/** An absolute limit, followed by a comparison with each peer. */
function timesTarget(
  what: string,
  row: string,
  name: string,
  limit: number,
  peers: readonly string[],
): Target[] {
  const us = at(row, name, full);
  return [
    { what, us, goal: { kind: "at most", value: limit } },
    ...peers.map(
      (peer): Target => ({ what, us, against: at(row, name, peer), goal: { kind: "shown", as: "faster" } }),
    ),
  ];
}

const reading: Target[] = [
  ...timesTarget("load 5,000 messages", "load", "5,000", 60, [
    "pi",
    "Mastra LibSQL",
    "Google ADK",
    "Claude Agent SDK",
    "Cloudflare Sessions",
  ]),
  ...timesTarget("fork a session of 5,000", "fork", "5,000", 50, ["pi", "Mastra LibSQL", "Claude Agent SDK"]),
  {
    what: "disk for 5,000 messages, log and working set linked",
    us: at("disk", "5,000", full, "ratio"),
    against: at("disk", "5,000", "SQLite rows", "ratio"),
    goal: { kind: "at most", value: 1.6 },
  },
  {
    what: "list 100 of 100k sessions, filtered",
    us: at("list", "100k", full),
    goal: { kind: "at most", value: 5 },
  },
  {
    what: "… flat: compared with 1k",
    us: at("list", "100k", full),
    against: at("list", "1k", full),
    goal: { kind: "within", times: 1.5 },
  },
  ...["pi", "Claude Agent SDK"].map(
    (peer): Target => ({
      what: "… on the same transcripts",
      us: at("list", "100k", full),
      against: at("list", "100k", peer),
      goal: { kind: "faster", times: 200 },
    }),
  ),
  ...(["lastMs", "anywhereMs"] as const).map(
    (figure): Target => ({
      what: figure === "lastMs" ? "the last 20 of 500k" : "20 anywhere in 500k",
      us: at("page", "500k", full, figure),
      against: at("page", "500k", "pi", "firstMs"),
      goal: { kind: "at most", value: 5 },
    }),
  ),
  {
    what: "search 1m messages, p95",
    us: at("search", "1m", full, "p95Ms"),
    against: at("search", "1m", "grep", "p95Ms"),
    goal: { kind: "at most", value: 50 },
  },
  {
    what: "… longest time that the event loop was blocked",
    us: at("search", "1m", full, "blockedMs"),
    goal: { kind: "at most", value: 20 },
  },
  {
    what: "start with 100k sessions, first list",
    us: at("start", "100k", full),
    goal: { kind: "at most", value: 1000 },
  },
  { what: '`import "skein"`', us: at("import", "entry", "skein"), goal: { kind: "at most", value: 100 } },
];

const postgres = "skein (PostgreSQL)";
const onPostgres: Target[] = [
  ...["one at a time", "16 sessions at once"].flatMap((name) =>
    [full, "LangGraph Postgres", "Mastra Postgres"].map(
      (other): Target => ({
        what: `append on PostgreSQL, ${name}`,
        us: at("postgres-append", name, postgres, "perSecond"),
        against: at("postgres-append", name, other, "perSecond"),
        goal: other === full ? { kind: "shown", as: "more" } : { kind: "more", times: 1 },
      }),
    ),
  ),
  ...[full, "Mastra Postgres"].map(
    (other): Target => ({
      what: "list 100 of 10k sessions on PostgreSQL, p99",
      us: at("postgres-list", "10k", postgres, "p99Ms"),
      against: at("postgres-list", "10k", other, "p99Ms"),
      goal: other === full ? { kind: "shown", as: "faster" } : { kind: "faster", times: 1 },
    }),
  ),
  {
    what: "search 100k messages on PostgreSQL, p95",
    us: at("postgres-search", "100k", postgres, "p95Ms"),
    against: at("postgres-search", "100k", full, "p95Ms"),
    goal: { kind: "at most", value: 50 },
  },
  ...[full, "LangGraph Postgres", "Mastra Postgres"].map(
    (other): Target => ({
      what: "open 10k entries on PostgreSQL, compacted",
      us: at("postgres-open", "10k", postgres),
      against: at("postgres-open", "10k", other),
      goal: other !== "Mastra Postgres" ? { kind: "shown", as: "faster" } : { kind: "faster", times: 1 },
    }),
  ),
  {
    what: "turns with two workers on PostgreSQL",
    us: at("postgres-workers", "two workers, 8 lanes each", postgres, "turnsPerSecond"),
    against: at("postgres-workers", "one worker, 8 lanes", postgres, "turnsPerSecond"),
    goal: { kind: "more", times: 1.6 },
  },
];

const preparing: Target[] = [
  {
    what: "pipeline, 10k clean messages",
    us: at("pipeline", "10k clean", "skein pipeline"),
    against: at("pipeline", "10k clean", "naively chained"),
    goal: { kind: "at most", value: 15 },
  },
  {
    what: "pipeline, 10k damaged messages",
    us: at("pipeline", "10k damaged", "skein pipeline"),
    against: at("pipeline", "10k damaged", "naively chained"),
    goal: { kind: "at most", value: 60 },
  },
  {
    what: "… linear: 100k compared with 10k, damaged",
    us: at("pipeline", "100k damaged", "skein pipeline"),
    against: at("pipeline", "10k damaged", "skein pipeline"),
    goal: { kind: "within", times: 12 },
  },
];

const counting: Target[] = [
  {
    what: "estimate the tokens of English text",
    us: at("estimate", "english", "skein estimate", "mbPerSecond"),
    against: at("estimate", "english", "gpt-tokenizer", "mbPerSecond"),
    goal: { kind: "more", times: 10 },
  },
  {
    what: "… error of the worst sample",
    us: at("estimate", "all samples", "skein estimate", "worstPercent"),
    goal: { kind: "at most", value: 15 },
  },
];

/** 50 MB/s. */
const redacting: Target[] = [
  {
    what: "redact 10 MB of mixed text",
    us: at("redaction", "10 MB mixed", "skein redaction"),
    against: at("redaction", "10 MB mixed", "one regex after another"),
    goal: { kind: "at most", value: 200 },
  },
  {
    what: "… linear: 10 MB compared with 1 MB, hostile",
    us: at("redaction", "10 MB hostile", "skein redaction"),
    against: at("redaction", "1 MB hostile", "skein redaction"),
    goal: { kind: "within", times: 12 },
  },
];

const memory = "skein (memory)";
const addedTo = (side: string, what: string): Target => ({
  what,
  us: at("turn", "two calls", side, "addedBesideSyncMs"),
  against: at("turn", "two calls", "bare AI SDK loop"),
  goal: { kind: "at most", value: 5 },
});

const turning: Target[] = [
  addedTo(full, "added to a turn with two calls, `full`, without the disk's own syncs"),
  addedTo(os, "… `os`"),
  addedTo(memory, "… in memory"),
  {
    what: "1,000 sessions at once, none lost",
    us: at("sessions-at-once", "1k", full, "lost"),
    goal: { kind: "at most", value: 0 },
  },
  {
    what: "… per turn, compared with 100",
    us: at("sessions-at-once", "1k", full, "turnMs"),
    against: at("sessions-at-once", "100", full, "turnMs"),
    goal: { kind: "within", times: 1.5 },
  },
];

const spawning: Target[] = [
  {
    what: "1,000 sub-agents spawned, run and announced, `full`",
    us: at("spawns", "1k", full),
    goal: { kind: "at most", value: 15_000 },
  },
  { what: "… `os`", us: at("spawns", "1k", os), goal: { kind: "at most", value: 15_000 } },
  {
    what: "… total memory",
    us: at("spawns", "1k", full, "peakMb"),
    goal: { kind: "at most", value: 600 },
  },
  { what: "… none lost", us: at("spawns", "1k", full, "lost"), goal: { kind: "at most", value: 0 } },
  {
    what: "… none announced twice",
    us: at("spawns", "1k", full, "twice"),
    goal: { kind: "at most", value: 0 },
  },
  {
    what: "… per sub-agent, compared with 100",
    us: at("spawns", "1k", full, "spawnMs"),
    against: at("spawns", "100", full, "spawnMs"),
    goal: { kind: "within", times: 1.5 },
  },
];

const listingByTool: Target[] = [
  {
    what: "list 100 of 10k sessions with the tool, five messages each",
    us: at("list-with-messages", "10k, all", full),
    against: at("list-with-messages", "10k, all", "every transcript read"),
    goal: { kind: "shown", as: "faster" },
  },
  ...(["all", "agent", "tree"] as const).map(
    (visibility): Target => ({
      what: `… visibility ${visibility}, compared with 1k`,
      us: at("list-with-messages", `10k, ${visibility}`, full),
      against: at("list-with-messages", `1k, ${visibility}`, full),
      goal: { kind: "within", times: 1.5 },
    }),
  ),
];

const gateway = "skein gateway";
const served = {
  "list, HTTP": "`sessions.list`, 100 of 100k, over HTTP",
  "list, WebSocket": "… over a socket",
  "list during writes, HTTP": "… over HTTP, with a change every 50 ms",
  "history, HTTP": "`chat.history` of sessions that are read often, over HTTP",
  "history, WebSocket": "… over a socket",
  "any history, HTTP": "… of any of 100k, over HTTP",
};
const consolePage = "skein console";
const showing: Target[] = [
  {
    what: "console: first paint of the desk with 10k sessions",
    us: at("console", "desk, 10k sessions", consolePage, "paintMs"),
    goal: { kind: "at most", value: 1000 },
  },
  {
    what: "… longest frame while scrolling 5k entries and a result of 1 MB",
    us: at("console", "session, 5k entries and a result of 1 MB", consolePage, "frameMs"),
    goal: { kind: "at most", value: 100 },
  },
  {
    what: "… longest frame while 20 sessions stream",
    us: at("console", "20 sessions stream", consolePage, "frameMs"),
    goal: { kind: "at most", value: 100 },
  },
  {
    what: "… files of the first view, gzipped",
    us: at("console", "files, gzipped", consolePage, "firstLoadKb"),
    goal: { kind: "at most", value: 250 },
  },
];
const serving: Target[] = [
  ...Object.entries(served).flatMap(([name, what]): Target[] => [
    {
      what,
      us: at("gateway", name, gateway, "requestsPerSecond"),
      against: at("gateway", name, "bare Fastify route", "requestsPerSecond"),
      goal: { kind: "more", times: 0.4 },
    },
    {
      what: "… p99 at half load",
      us: at("gateway", name, gateway, "halfP99Ms"),
      goal: { kind: "at most", value: 20 },
    },
  ]),
  ...["each its own session", "all the same one"].flatMap((name): Target[] => [
    {
      what: `1,000 subscribers, ${name}: p99 from emit to receipt`,
      us: at("subscribers", name, gateway, "p99Ms"),
      goal: { kind: "at most", value: 200 },
    },
    {
      what: "… none lost",
      us: at("subscribers", name, gateway, "lost"),
      goal: { kind: "at most", value: 0 },
    },
    {
      what: "… total memory",
      us: at("subscribers", name, gateway, "peakMb"),
      goal: { kind: "at most", value: 400 },
    },
  ]),
  {
    what: "`skein start` ready, 100k sessions",
    us: at("gateway-start", "100k", gateway),
    goal: { kind: "at most", value: 1000 },
  },
];

export const targets: readonly Target[] = [
  ...opening,
  ...appending,
  ...reading,
  ...listingByTool,
  ...turning,
  ...spawning,
  ...serving,
  ...showing,
  ...onPostgres,
  ...preparing,
  ...counting,
  ...redacting,
];

/**
 * The state of a target: the ratio to print and the factor by which it is missed. A factor of 1 or less means that it
 * is reached, and `null` that there is no target.
 */
export function judge(
  goal: Goal,
  us: number,
  other: number | null,
): { ratio: number | null; missedBy: number | null } {
  if (goal.kind === "at most")
    return { ratio: other === null ? null : other / us, missedBy: us <= goal.value ? 0 : us / goal.value };
  if (other === null) return { ratio: null, missedBy: null };
  switch (goal.kind) {
    case "faster":
      return { ratio: other / us, missedBy: (goal.times * us) / other };
    case "more":
      return { ratio: us / other, missedBy: (goal.times * other) / us };
    case "within":
      return { ratio: us / other, missedBy: us / (goal.times * other) };
    case "shown":
      return { ratio: goal.as === "faster" ? other / us : us / other, missedBy: null };
  }
}
