import { openFileLimit } from "../../../store/files/disk.ts";
import type { ServerParts } from "../../contract.ts";
import { HeldBytes } from "../../limits/held-bytes.ts";
import { OpenCount } from "../../limits/rates.ts";
import { Door } from "./door.ts";
import type { Tuning } from "./tuning.ts";
import { connectionLimits, usualTuning } from "./tuning.ts";
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
  readonly sockets: OpenCount;
  /** Requests of each token that are under way over HTTP. */
  readonly requests: OpenCount;
  /** Memory for the unfinished requests of each token: bodies over HTTP, and messages of sockets that have not all arrived. */
  readonly bodies: HeldBytes;
  /** Memory for bodies of requests without a token, all together. */
  readonly unsignedBodies: HeldBytes;
}

export function groundOf(parts: ServerParts, given: Partial<Tuning>): Ground {
  const tuning = { ...usualTuning, ...connectionLimits(openFileLimit()), ...given };
  const door = new Door(parts, tuning);
  return {
    parts,
    tuning,
    door,
    underway: new Underway(),
    visitors: new Visitors((principal) => door.isOver(principal)),
    sockets: new OpenCount(tuning.socketsPerToken),
    requests: new OpenCount(tuning.requestsPerToken),
    bodies: new HeldBytes(tuning.bodyBytesPerToken, tuning.bodyBytes),
    unsignedBodies: new HeldBytes(tuning.unsignedBytes),
  };
}
