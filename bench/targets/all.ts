import type { Target } from "../target.ts";
import { listing, listingByTool, searching } from "./find.ts";
import { serving, showing } from "./gateway.ts";
import { onPostgres } from "./postgres.ts";
import { appending, opening, reading } from "./store.ts";
import { counting, preparing, redacting } from "./transcripts.ts";
import { spawning, turning } from "./turns.ts";

/** In report order. The first page shows those with a headline, in the same order. */
export const targets: readonly Target[] = [
  ...opening,
  ...appending,
  ...reading,
  ...listing,
  ...listingByTool,
  ...searching,
  ...turning,
  ...spawning,
  ...serving,
  ...showing,
  ...onPostgres,
  ...preparing,
  ...counting,
  ...redacting,
];
