import { Mutex } from "../../core/concurrency.ts";
import { codeOf, SkeinError } from "../../core/errors.ts";
import type { EventFeed, LiveProcess, SkeinEvent } from "../../core/events.ts";
import type { PostgresDatabase } from "./database.ts";
import { everyUser } from "./database.ts";

/**
 * Events that could not be sent for this long are dropped, because a client that has moved to another process might
 * have received some of them. Other processes notice the missing number.
 */
const staleMs = 5000;
/** The maximum number of characters in unsent events. If there are more, the events are also dropped. */
const maxUnsent = 16 * 1024 * 1024;
const maxBatches = 500;
const beatEveryMs = 2000;
const sweepEveryMs = 30_000;
/**
 * The maximum number of owner names. Each reload of a gateway's configuration adds one, so only the newest are kept.
 */
const maxOwners = 20;

interface Listener {
  readonly onEvent: (event: SkeinEvent) => void;
  readonly onLoss: () => void;
}

/** What this process knows about another process. */
interface Publisher {
  /** The number of the last batch that was delivered here. */
  number: number;
  isSilent: boolean;
  hasLeft: boolean;
  /** The process's description of itself as JSON, or `null` if it has not sent one. */
  process: string | null;
}

/** A process's description of itself. */
interface Described extends LiveProcess {
  /** The names under which the process claims work. Each Skein instance in the process has its own name. */
  readonly owners: readonly string[];
}

interface Batch {
  readonly number: number;
  readonly events: string;
  /** When the batch's first event was emitted. */
  readonly since: number;
}

interface FeedRow {
  readonly publisher: string;
  /** The number of the last batch that the process has published. */
  readonly last: number;
  readonly is_silent: boolean;
  readonly has_left: boolean;
  readonly process: string | null;
  /** The remaining columns are `null` if there is no unread batch. */
  readonly id: number | null;
  readonly number: number | null;
  readonly events: string | null;
}

/**
 * Exchanges events with other processes through a table. Each process numbers its batches and commits them one after
 * the other. Readers track the last number of each process, so batches need no order across processes. A long
 * transaction in one process therefore does not delay the events of the others. A missing number means that events were
 * lost.
 */
export class PostgresFeed implements EventFeed {
  readonly #database: PostgresDatabase;
  readonly #name: string;
  readonly #announce: () => void;
  readonly #report: (error: unknown) => void;
  readonly #listeners = new Set<Listener>();
  readonly #publishers = new Map<string, Publisher>();
  readonly #sends = new Mutex();
  readonly #reads = new Mutex();
  #unsent: string[] = [];
  #unsentSize = 0;
  #unsentSince = 0;
  /** The batch that is being sent. Kept until it is known to be stored. */
  #batch: Batch | null = null;
  #number = 0;
  #beatAt = 0;
  #sweepAt = 0;

  #joining: Promise<void> | null = null;
  #hasJoined = false;
  #process: Described | null = null;

  constructor(options: FeedOptions) {
    this.#database = options.database;
    this.#name = options.name;
    this.#announce = options.announce;
    this.#report = options.report;
  }

  get hasJoined(): boolean {
    return this.#hasJoined;
  }

  /** Throws `database_unavailable` if the role may not work for all users. */
  join(process?: LiveProcess, owner?: string): Promise<void> {
    // Several Skein instances in one process can share the database.
    const executesRuns = this.#process?.executesRuns === true || process?.executesRuns === true;
    const owners = [...(this.#process?.owners ?? []), ...(owner === undefined ? [] : [owner])].slice(
      -maxOwners,
    );
    if (process !== undefined) this.#process = { ...process, executesRuns, owners };
    this.#joining ??= this.#reads
      .run(() => this.#join())
      .catch((error: unknown) => {
        this.#joining = null;
        throw error;
      });
    return this.#joining;
  }

  async #join(): Promise<void> {
    try {
      await this.#beat();
    } catch (error) {
      if (codeOf((error as Error).cause) !== "42501") throw error;
      const problem = "its role can only work for one user at a time";
      const advice = "Also set postgres.workerUrl to the address for the role that works for all users";
      const database = this.#database.name;
      throw new SkeinError("database_unavailable", { database, problem, advice }, { cause: error });
    }
    for (const { publisher, last, is_silent, has_left, process } of await this.#query())
      this.#publishers.set(publisher, {
        number: last,
        isSilent: is_silent && !has_left,
        hasLeft: has_left,
        process,
      });
    this.#hasJoined = true;
  }

  processes(): readonly LiveProcess[] {
    const others = [...this.#publishers.values()].flatMap(({ isSilent, hasLeft, process }) =>
      isSilent || hasLeft || process === null ? [] : [JSON.parse(process) as Described],
    );
    const all = this.#process === null ? others : [this.#process, ...others];
    return all
      .toSorted((one, other) => one.startedAt - other.startedAt)
      .map(({ owners: _, ...process }) => process);
  }

  isGone(owner: string): boolean {
    return [...this.#publishers.values()].some(
      ({ isSilent, hasLeft, process }) =>
        (isSilent || hasLeft) &&
        process !== null &&
        ((JSON.parse(process) as Partial<Described>).owners ?? []).includes(owner),
    );
  }

  publish(event: SkeinEvent): void {
    const text = JSON.stringify(event);
    if (this.#unsent.length === 0) this.#unsentSince = performance.now();
    this.#unsent.push(text);
    this.#unsentSize += text.length;
    if (this.#unsentSize > maxUnsent) this.#takeBatch();
    this.#announce();
  }

  subscribe(onEvent: Listener["onEvent"], onLoss: Listener["onLoss"] = () => undefined): () => void {
    const listener = { onEvent, onLoss };
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  flush(): Promise<void> {
    return this.#sends.run(() => this.#send()).catch(this.#report);
  }

  catchUp(): Promise<void> {
    return this.#reads.run(() => this.#read()).catch(this.#report);
  }

  /** Called each second and when another process has announced something. */
  async look(): Promise<void> {
    await this.catchUp();
    // Sends events that could not be sent before.
    await this.flush();
    await this.#beatIfDue();
    const now = Date.now();
    if (now < this.#sweepAt) return;
    this.#sweepAt = now + sweepEveryMs;
    await this.#sweep().catch(this.#report);
  }

  /**
   * Sends the remaining events and records that this process has left, so that its silence is not mistaken for a crash.
   */
  async close(): Promise<void> {
    if (!this.#hasJoined) return;
    await this.flush();
    // The last number tells other processes that some events could not be sent.
    const text = "UPDATE skein.feed_publishers SET left_at = now(), number = $2 WHERE publisher = $1";
    await this.#database.call(text, [this.#name, this.#number]).catch(this.#report);
  }

  #takeBatch(): Batch {
    const events = `[${this.#unsent.join(",")}]`;
    this.#unsent = [];
    this.#unsentSize = 0;
    this.#number += 1;
    return { number: this.#number, events, since: this.#unsentSince };
  }

  async #send(): Promise<void> {
    while (this.#batch !== null || this.#unsent.length > 0) {
      this.#batch ??= this.#takeBatch();
      if (performance.now() - this.#batch.since > staleMs) {
        this.#batch = null;
        continue;
      }
      await this.#database.call(
        `WITH beat AS (
           INSERT INTO skein.feed_publishers (publisher, number, beat_at) VALUES ($1, $2, now())
           ON CONFLICT (publisher) DO UPDATE SET number = excluded.number, beat_at = excluded.beat_at)
         INSERT INTO skein.feed (publisher, number, events) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
        [this.#name, this.#batch.number, this.#batch.events],
      );
      this.#batch = null;
    }
  }

  async #beatIfDue(): Promise<void> {
    if (Date.now() >= this.#beatAt) await this.#beat().catch(this.#report);
  }

  async #beat(): Promise<void> {
    this.#beatAt = Date.now() + beatEveryMs;
    await this.#sends.run(() =>
      this.#database.call(
        `INSERT INTO skein.feed_publishers (publisher, number, beat_at, process) VALUES ($1, $2, now(), $3)
         ON CONFLICT (publisher) DO UPDATE
           SET number = excluded.number, beat_at = excluded.beat_at, left_at = NULL, process = excluded.process`,
        [
          this.#name,
          this.#batch === null ? this.#number : this.#batch.number - 1,
          this.#process === null ? null : JSON.stringify(this.#process),
        ],
      ),
    );
  }

  async #sweep(): Promise<void> {
    await this.#database.call("DELETE FROM skein.feed WHERE at < now() - interval '2 minutes'", []);
    const gone = "DELETE FROM skein.feed_publishers WHERE beat_at < now() - interval '10 minutes'";
    await this.#database.call(gone, []);
  }

  async #read(): Promise<void> {
    for (let hasMore = true; hasMore; ) {
      // Reading a backlog can take longer than other processes wait for a heartbeat.
      await this.#beatIfDue();
      const rows = await this.#query();
      const batches = rows.filter(({ id }) => id !== null).toSorted((a, b) => Number(a.id) - Number(b.id));
      const end = endOfRead(batches);
      hasMore = end < Number.POSITIVE_INFINITY;
      this.#deliver(batches.filter(({ id }) => Number(id) <= end));
      if (!hasMore) this.#compare(rows);
    }
  }

  #query(): Promise<FeedRow[]> {
    const known = [...this.#publishers];
    return this.#database.read<FeedRow>(
      everyUser,
      `SELECT p.publisher, p.number AS last, p.left_at IS NOT NULL AS has_left,
         p.beat_at < now() - interval '8 seconds' AS is_silent, p.process,
         f.id, f.number, f.events
       FROM skein.feed_publishers AS p
       LEFT JOIN unnest($2::text[], $3::bigint[]) AS k (publisher, number) ON k.publisher = p.publisher
       LEFT JOIN LATERAL (
         SELECT id, number, events FROM skein.feed
         WHERE publisher = p.publisher AND number > coalesce(k.number, 0) ORDER BY number LIMIT ${maxBatches}
       ) AS f ON true
       WHERE p.publisher <> $1`,
      [this.#name, known.map(([name]) => name), known.map(([, { number }]) => number)],
    );
  }

  #deliver(batches: readonly FeedRow[]): void {
    for (const { publisher: name, number, events } of batches) {
      const publisher = this.#publisher(name);
      if (number !== publisher.number + 1) this.#lose();
      publisher.number = Number(number);
      for (const event of JSON.parse(events ?? "[]") as SkeinEvent[])
        this.#tell(({ onEvent }) => onEvent(event));
    }
  }

  /**
   * Reports a loss for processes whose events have been deleted, or that might have crashed before they sent
   * everything.
   */
  #compare(rows: readonly FeedRow[]): void {
    const present = new Set(rows.map(({ publisher }) => publisher));
    for (const row of rows) {
      const publisher = this.#publisher(row.publisher);
      const isSilent = row.is_silent && !row.has_left;
      if (publisher.number < row.last || (isSilent && !publisher.isSilent)) this.#lose();
      Object.assign(publisher, {
        number: Math.max(publisher.number, row.last),
        isSilent,
        hasLeft: row.has_left,
        process: row.process,
      });
    }
    for (const [name, { hasLeft, isSilent }] of this.#publishers) {
      if (present.has(name)) continue;
      this.#publishers.delete(name);
      if (!hasLeft && !isSilent) this.#lose();
    }
  }

  #publisher(name: string): Publisher {
    const known = this.#publishers.get(name) ?? {
      ...{ number: 0, isSilent: false, hasLeft: false, process: null },
    };
    this.#publishers.set(name, known);
    return known;
  }

  #lose(): void {
    this.#tell(({ onLoss }) => onLoss());
  }

  #tell(act: (listener: Listener) => void): void {
    for (const listener of [...this.#listeners]) {
      try {
        act(listener);
      } catch (error) {
        this.#report(error);
      }
    }
  }
}

export interface FeedOptions {
  /** Can read and write for all users. */
  readonly database: PostgresDatabase;
  /** Distinguishes this process from the others. */
  readonly name: string;
  /** Schedules a flush, and then wakes the other processes. */
  announce(): void;
  report(error: unknown): void;
}

/**
 * Returns the ID up to which all batches have been read. If one process has more batches than were read, later batches
 * of the others must wait, because they might depend on them.
 */
function endOfRead(batches: readonly FeedRow[]): number {
  const ofEach = Map.groupBy(batches, ({ publisher }) => publisher);
  const full = [...ofEach.values()].filter(({ length }) => length === maxBatches);
  return Math.min(Number.POSITIVE_INFINITY, ...full.map((rows) => Number(rows.at(-1)?.id)));
}
