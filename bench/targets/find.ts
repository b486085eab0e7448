import type { Target } from "../target.ts";
import { at, atMost, full } from "../target.ts";

const listHeadline = "list 100 of 100k sessions, filtered";

export const listing: readonly Target[] = [
  { ...atMost(listHeadline, at("list", "100k", full), 5), headline: listHeadline },
  {
    what: "… flat: compared with 1k",
    us: at("list", "100k", full),
    against: at("list", "1k", full),
    goal: { kind: "within", times: 1.5 },
  },
  ...["pi", "pi 0.87", "Claude Agent SDK"].map(
    (peer): Target => ({
      what: "… on the same transcripts",
      headline: listHeadline,
      us: at("list", "100k", full),
      against: at("list", "100k", peer),
      goal: { kind: "faster", times: 200 },
    }),
  ),
  {
    what: "… by text, compared with 1k",
    headline: "list 100 of 100k sessions by a part of their name",
    us: at("list", "100k, by text", full),
    against: at("list", "1k, by text", full),
    goal: { kind: "within", times: 2 },
  },
];

const toolHeadline = "`sessions_list`, 100 of 10k with five messages each";
const visibilities = ["all", "agent", "tree"] as const;

export const listingByTool: readonly Target[] = [
  ...visibilities.map(
    (visibility): Target => ({
      what: `${toolHeadline}, visibility ${visibility}`,
      ...(visibility === "all" ? { headline: toolHeadline } : {}),
      us: at("list-with-messages", `10k, ${visibility}`, full),
      against: at("list-with-messages", `10k, ${visibility}`, "every transcript read"),
      goal: { kind: "at most", value: 20 },
    }),
  ),
  ...visibilities.map(
    (visibility): Target => ({
      what: `… visibility ${visibility}, compared with 1k`,
      us: at("list-with-messages", `10k, ${visibility}`, full),
      against: at("list-with-messages", `1k, ${visibility}`, full),
      goal: { kind: "within", times: 1.5 },
    }),
  ),
];

const recall = (side: string) => at("recall", "589 questions", side, "recall");
const recallHeadline = "evidence among the first 10 hits (R@10)";

export const searching: readonly Target[] = [
  {
    what: "search 1m messages, p95",
    headline: "search 1m messages, p95",
    us: at("search", "1m", full, "p95Ms"),
    against: at("search", "1m", "grep", "p95Ms"),
    goal: { kind: "at most", value: 50 },
  },
  atMost("… longest time that the event loop was blocked", at("search", "1m", full, "blockedMs"), 10),
  {
    what: recallHeadline,
    headline: recallHeadline,
    us: recall(full),
    against: recall("any-word BM25"),
    goal: { kind: "at least", value: 0.8 },
  },
  {
    what: "… more than any-word BM25 finds",
    us: recall(full),
    against: recall("any-word BM25"),
    goal: { kind: "above", by: 0.1 },
  },
  {
    what: "… on PostgreSQL, compared with files",
    us: recall("skein (PostgreSQL)"),
    against: recall(full),
    goal: { kind: "above", by: -0.02 },
  },
];
