import type { ServerParts } from "../../contract.ts";
import { SocketCount } from "../../limits/rates.ts";
import { Door } from "./door.ts";
import type { Tuning } from "./tuning.ts";
import { usualTuning } from "./tuning.ts";
import { Underway } from "./underway.ts";
import { Visitors } from "./visitors.ts";

/** What HTTP and sockets share. */
export interface Ground {
  readonly parts: ServerParts;
  readonly tuning: Tuning;
  readonly door: Door;
  readonly underway: Underway;
  readonly visitors: Visitors;
  /** Sockets and streams of each token. */
  readonly sockets: SocketCount;
  /** Requests of each token that are under way over HTTP. */
  readonly requests: SocketCount;
}

export function groundOf(parts: ServerParts, given: Partial<Tuning>): Ground {
  const tuning = { ...usualTuning, ...given };
  const door = new Door(parts, tuning);
  return {
    parts,
    tuning,
    door,
    underway: new Underway(),
    visitors: new Visitors((principal) => door.isOver(principal)),
    sockets: new SocketCount(tuning.socketsPerToken),
    requests: new SocketCount(tuning.requestsPerToken),
  };
}

/** Methods that do nothing but wait for something to happen. */
export const longMethods: ReadonlySet<string> = new Set(["agent.wait"]);
