import { join } from "node:path";
import type { ListedSession } from "../contract.ts";
import type { Disk } from "./disk.ts";
import { replaceWhole } from "./disk-files.ts";
import type { IndexDb } from "./index-db.ts";
import type { AgentPlace } from "./layout.ts";
import { sessionsFolder } from "./layout.ts";

export const listingName = "sessions.json";
const shortestPauseMs = 1000;
/** A large listing is written the more rarely the longer it takes. */
const pauseFactor = 50;

/** `sessions.json` of each agent's folder: for people, and for programs that know nothing of the index. */
export class Listings {
  readonly #index: IndexDb;
  readonly #disk: Disk;
  readonly #root: string;
  readonly #newToken: () => string;
  readonly #touched = new Map<string, AgentPlace>();
  readonly #notBefore = new Map<string, number>();

  constructor(index: IndexDb, disk: Disk, root: string, newToken: () => string) {
    this.#index = index;
    this.#disk = disk;
    this.#root = root;
    this.#newToken = newToken;
  }

  /** A session of this folder has changed. */
  touch({ home, agentId }: AgentPlace): void {
    this.#touched.set(JSON.stringify([home, agentId]), { home, agentId });
  }

  takeTouched(): AgentPlace[] {
    const places = [...this.#touched.values()];
    this.#touched.clear();
    return places;
  }

  /** Writes the listings that have changed and are due; with `all`, those that are not due too. */
  async write(all: boolean): Promise<void> {
    for (const [name, place] of [...this.#touched]) {
      const started = performance.now();
      if (!all && started < (this.#notBefore.get(name) ?? 0)) continue;
      this.#touched.delete(name);
      await this.#writeOne(place);
      const now = performance.now();
      this.#notBefore.set(name, now + Math.max(shortestPauseMs, pauseFactor * (now - started)));
    }
  }

  async #writeOne(place: AgentPlace): Promise<void> {
    const folder = sessionsFolder(this.#root, place);
    if (!this.#disk.isFolder(folder)) return;
    const rows = this.#index.recordsIn(place.home, place.agentId);
    const lines = rows.map((row) => `  ${JSON.stringify(row.key)}: ${JSON.stringify(listingRow(row))}`);
    const text = lines.length === 0 ? "{}\n" : `{\n${lines.join(",\n")}\n}\n`;
    const path = join(folder, listingName);
    await replaceWhole(this.#disk, path, Buffer.from(text), this.#newToken()).catch((error: unknown) => {
      // A folder that was purged meanwhile needs no listing.
      if (this.#disk.isFolder(folder)) throw error;
    });
  }
}

/** What a person wants to know of a session, absent fields absent. */
function listingRow({ sessionId, name, updatedAt, createdAt, meta, digest }: ListedSession): object {
  const { summary, model, entries, totalTokens } = digest;
  return {
    sessionId,
    summary: name ?? summary ?? "",
    updatedAt,
    createdAt,
    ...meta,
    ...(model === null ? {} : { model: `${model.provider}/${model.modelId}` }),
    entries,
    totalTokens,
  };
}
