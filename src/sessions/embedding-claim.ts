import type { Clock } from "../core/clock.ts";
import { changeRows } from "../core/script.ts";
import type { StoreWork } from "../store/work.ts";

const fact = "embeddings.backlog";
/** Longer than the slowest request to the model, because the claim is renewed only after each request. */
const claimMs = 120_000;

/**
 * The right to embed entries that other processes left without embeddings. Only one process at a time holds it, so that
 * no text is paid for twice. If the process is killed, its claim expires.
 */
export class EmbeddingClaim {
  readonly #engine: StoreWork["engine"];
  readonly #clock: Clock;
  readonly #owner: string;

  constructor(engine: StoreWork["engine"], clock: Clock, owner: string) {
    this.#engine = engine;
    this.#clock = clock;
    this.#owner = owner;
  }

  /** Takes or renews the claim. Returns `false` if another process holds it. */
  async take(): Promise<boolean> {
    const now = this.#clock.now();
    const [owner, until] = [this.#owner, now + claimMs];
    const changes = await this.#engine.change("unsynced", null, () =>
      // Values start with the time, whose number of digits never changes, so they can be compared as text.
      changeRows(
        `INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value
         WHERE facts.value < ? OR facts.value LIKE ?`,
        ...[fact, `${until} ${owner}`, String(now), `% ${owner}`],
      ),
    );
    return changes > 0;
  }

  async release(): Promise<void> {
    const text = "DELETE FROM facts WHERE name = ? AND value LIKE ?";
    await this.#engine.change("unsynced", null, () => changeRows(text, fact, `% ${this.#owner}`));
  }
}
