import type { Place, Target } from "../target.ts";
import { at, atMost, full, limitBesidePeers, os } from "../target.ts";

export const opening: readonly Target[] = [
  ...(["pi", "pi 0.87"] as const).map(
    (peer): Target => ({
      what: "open 500k entries, compacted",
      headline: "open a compacted session of 500k entries",
      us: at("open-compacted", "500k", full),
      against: at("open-compacted", "500k", peer),
      goal: { kind: "faster", times: 1000 },
    }),
  ),
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
    goal: { kind: "at most", value: 10 },
  },
  ...(["pi", "pi 0.87"] as const).map(
    (peer): Target => ({
      what: "open 500k entries, never compacted",
      headline: "open a session of 500k entries, never compacted",
      us: at("open-whole", "500k", full),
      against: at("open-whole", "500k", peer),
      goal: { kind: "faster", times: 20 },
    }),
  ),
  {
    what: "… compared with the compacted one",
    us: at("open-whole", "500k", full),
    against: at("open-compacted", "500k", full),
    goal: { kind: "within", times: 3 },
  },
];

const perSecond = (name: string, side: string) => at("append", name, side, "perSecond");
const one = "one at a time";
const batches = "batches of 100";

function compareAppends(
  what: string,
  us: Place,
  peers: readonly (readonly [Place, times?: number])[],
  headline?: string,
): Target[] {
  return peers.map(
    ([against, times]): Target => ({
      what,
      us,
      against,
      goal: times === undefined ? { kind: "shown", as: "more" } : { kind: "more", times },
      ...(headline === undefined || times === undefined ? {} : { headline }),
    }),
  );
}

export const appending: readonly Target[] = [
  ...compareAppends(
    "append one at a time, `os`: no sync on either side",
    perSecond(one, os),
    [
      [perSecond(one, "pi"), 1],
      [perSecond(one, "pi 0.87"), 1],
    ],
    "append one message, not synced (`os`)",
  ),
  ...compareAppends("… the bare minimum", perSecond(one, os), [[perSecond(one, "plain JSONL, no sync")]]),
  ...compareAppends(
    "append one at a time, `full`",
    perSecond(one, full),
    ["Google ADK", "Mastra LibSQL", "LangGraph SQLite", "Cloudflare Sessions"].map((peer) => [
      perSecond(one, peer),
      1,
    ]),
    "append one message, synced (`full`)",
  ),
  ...compareAppends("append one at a time, `full`", perSecond(one, full), [
    [perSecond(one, "plain JSONL"), 0.7],
    [perSecond(one, "SQLite rows")],
  ]),
  ...compareAppends("append in batches of 100, `os`", perSecond(batches, os), [
    [perSecond(one, "pi"), 1],
    [perSecond(one, "pi 0.87"), 1],
  ]),
  ...compareAppends("append in batches of 100, `full`", perSecond(batches, full), [
    [perSecond(batches, "Mastra LibSQL"), 1],
    [perSecond(batches, "SQLite rows")],
    [perSecond(batches, "plain JSONL")],
  ]),
  ...compareAppends(
    "append to 64 sessions at once, `full`",
    perSecond("64 sessions at once", full),
    [[perSecond(one, full), 3]],
    "append to 64 sessions at once, synced",
  ),
];

export const reading: readonly Target[] = [
  ...limitBesidePeers("load 5,000 messages", at("load", "5,000", full), 40, [
    "pi",
    "pi 0.87",
    "Mastra LibSQL",
    "Google ADK",
    "Claude Agent SDK",
    "Cloudflare Sessions",
  ]),
  ...limitBesidePeers("fork a session of 5,000", at("fork", "5,000", full), 25, [
    "pi",
    "pi 0.87",
    "Mastra LibSQL",
    "Claude Agent SDK",
  ]),
  {
    what: "disk for 5,000 messages, log and working set linked",
    headline: "disk for 5,000 messages, compared with their text",
    us: at("disk", "5,000", full, "ratio"),
    against: at("disk", "5,000", "SQLite rows", "ratio"),
    goal: { kind: "at most", value: 1.6 },
  },
  ...(["lastMs", "anywhereMs"] as const).map(
    (figure): Target => ({
      what: figure === "lastMs" ? "the last 20 of 500k" : "20 anywhere in 500k",
      ...(figure === "lastMs" ? {} : { headline: "read 20 messages anywhere in 500k" }),
      us: at("page", "500k", full, figure),
      against: at("page", "500k", "pi", "firstMs"),
      goal: { kind: "at most", value: 5 },
    }),
  ),
  atMost("start with 100k sessions, first list", at("start", "100k", full), 1000),
  atMost('`import "skein"`', at("import", "entry", "skein"), 100),
];
