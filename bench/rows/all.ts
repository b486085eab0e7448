import { row as append } from "./append.ts";
import { row as command } from "./command.ts";
import { row as console } from "./console.ts";
import { row as core } from "./core.ts";
import { row as disk } from "./disk.ts";
import { row as estimate } from "./estimate.ts";
import { row as fork } from "./fork.ts";
import { row as gateway } from "./gateway.ts";
import { row as gatewayStart } from "./gateway-start.ts";
import { row as entry } from "./import.ts";
import { row as list } from "./list.ts";
import { row as listWithMessages } from "./list-with-messages.ts";
import { row as load } from "./load.ts";
import { row as openCompacted } from "./open-compacted.ts";
import { row as openWhole } from "./open-whole.ts";
import { row as page } from "./page.ts";
import { row as pipeline } from "./pipeline.ts";
import {
  appendRow as postgresAppend,
  feedRow as postgresFeed,
  listRow as postgresList,
  openRow as postgresOpen,
  searchRow as postgresSearch,
  turnRow as postgresTurn,
  workersRow as postgresWorkers,
} from "./postgres.ts";
import { row as recall } from "./recall.ts";
import { row as redaction } from "./redaction.ts";
import type { Row } from "./row.ts";
import { row as search } from "./search.ts";
import { row as sessionsAtOnce } from "./sessions-at-once.ts";
import { row as spawns } from "./spawns.ts";
import { row as start } from "./start.ts";
import { row as subscribers } from "./subscribers.ts";
import { row as turn } from "./turn.ts";

/** In report order. */
export const rows: readonly Row[] = [
  openCompacted,
  openWhole,
  append,
  load,
  fork,
  disk,
  list,
  listWithMessages,
  page,
  search,
  recall,
  start,
  entry,
  turn,
  sessionsAtOnce,
  spawns,
  gateway,
  subscribers,
  gatewayStart,
  command,
  console,
  postgresAppend,
  postgresList,
  postgresSearch,
  postgresOpen,
  postgresTurn,
  postgresFeed,
  postgresWorkers,
  pipeline,
  estimate,
  redaction,
  core,
];
