import type { Target } from "../target.ts";
import { at, full } from "../target.ts";

const postgres = "skein (PostgreSQL)";
export const onPostgres: readonly Target[] = [
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
    us: at("postgres-workers", "two workers, 8 runs at once each", postgres, "turnsPerSecond"),
    against: at("postgres-workers", "one worker, 8 runs at once", postgres, "turnsPerSecond"),
    goal: { kind: "more", times: 1.6 },
  },
];
