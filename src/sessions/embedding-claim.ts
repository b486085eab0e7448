import type { Clock } from "../core/clock.ts";
import { changeRows } from "../core/script.ts";
import type { StoreWork } from "../store/work.ts";

const fact = "embeddings.backlog";
/** Longer than the slowest request, after which the claim is renewed. */
const claimMs = 120_000;

/**
 * The right to embed what earlier processes have left. One process at a time has it, because each text costs money. The
 * claim of a killed process expires.
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

  /** Takes or renews the claim. Returns `false` if another process has it. */
  async take(): Promise<boolean> {
    const now = this.#clock.now();
    const [owner, until] = [this.#owner, now + claimMs];
    const changes = await this.#engine.change("unsynced", null, () =>
      // The time comes first, and all times have the same number of digits.
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
