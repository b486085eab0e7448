// How often the suites repeat. `npm test` uses the short form. `npm run torture` sets SKEIN_TORTURE to the fraction of
// the long form that it runs, 1 for all of it.

export interface Repetitions {
  /** The number of random cases for each property. */
  readonly propertyCases: number;
  /** The number of random programs that run on both the files store and the memory store. */
  readonly storeComparisons: number;
  /** The number of random transcripts for each provider. */
  readonly transcripts: number;
  /** The number of random transcripts that are compared with their requests to each model. */
  readonly wireRequests: number;
  readonly writerKills: number;
  /** The number of kills of a session that spawns, yields and announces. */
  readonly familyKills: number;
  /** The maximum number of durable writes in a turn at which its process is killed. */
  readonly killPoints: number;
  readonly gatewayKills: number;
  /** How often machines are killed and stalled, and their database crashes. */
  readonly machineRounds: number;
  /** The number of clients connected to the gateway that is killed. */
  readonly gatewayClients: number;
  /** The number of clients of a gateway whose connections to PostgreSQL are counted. */
  readonly pooledClients: number;
  /** The number of ACP agent spawns that are killed. */
  readonly acpSpawns: number;
  /** The number of ACP agent spawns under a gateway that is killed. */
  readonly acpGatewaySpawns: number;
  /** How many seconds a gateway is under load. */
  readonly soakSeconds: number;
  /** The number of sessions whose queues are processed across restarts. */
  readonly queuedSessions: number;
  /** The number of concurrent messages to one session. */
  readonly messagesAtOnce: number;
  /** The number of turns in a conversation that is compacted repeatedly. */
  readonly compactedTurns: number;
  /** The number of concurrent permission requests from an ACP agent. */
  readonly permissionRequests: number;
  /** The number of entries on the longest branch. */
  readonly branchEntries: number;
}

const shortForm: Repetitions = {
  propertyCases: 200,
  storeComparisons: 200,
  transcripts: 200,
  wireRequests: 50,
  writerKills: 20,
  familyKills: 20,
  killPoints: 20,
  gatewayKills: 20,
  machineRounds: 1,
  gatewayClients: 10,
  pooledClients: 100,
  acpSpawns: 20,
  acpGatewaySpawns: 20,
  soakSeconds: 15,
  queuedSessions: 40,
  messagesAtOnce: 50,
  compactedTurns: 600,
  permissionRequests: 2000,
  branchEntries: 100_000,
};

const longForm: Repetitions = {
  propertyCases: 10_000,
  storeComparisons: 2000,
  transcripts: 20_000,
  wireRequests: 2000,
  writerKills: 1000,
  familyKills: 1000,
  /** More than any turn has. */
  killPoints: 1000,
  gatewayKills: 100,
  machineRounds: 5,
  gatewayClients: 100,
  pooledClients: 500,
  acpSpawns: 1000,
  acpGatewaySpawns: 200,
  soakSeconds: 3000,
  queuedSessions: 200,
  messagesAtOnce: 200,
  compactedTurns: 2000,
  permissionRequests: 10_000,
  branchEntries: 500_000,
};

/** Returns a fraction of the long form, but at least the short form. A fraction of 0 is the short form. */
export function repetitionsFor(share: number): Repetitions {
  const names = Object.keys(shortForm) as (keyof Repetitions)[];
  const counts = names.map((name) => [
    name,
    share === 0 ? shortForm[name] : Math.max(shortForm[name], Math.round(longForm[name] * share)),
  ]);
  return Object.fromEntries(counts);
}

const share = Number(process.env.SKEIN_TORTURE ?? 0);
if (!(share >= 0 && share <= 1))
  throw new Error(`SKEIN_TORTURE is a number from 0 to 1, and not "${process.env.SKEIN_TORTURE}"`);

/** The counts for this run. */
export const repetitions = repetitionsFor(share);
