import type { FilesStore } from "../../src/entry-store.ts";
import { createStore } from "../../src/entry-store.ts";
import { SimulatedDisk, temporaryFolder } from "../../src/entry-testing.ts";

/** A files store on a simulated disk. Its databases are real files, because SQLite does its own syncing. */
export class SimStore {
  disk = new SimulatedDisk();
  readonly #folder = temporaryFolder("skein-sim-");
  readonly databases = this.#folder.path;
  readonly #opened: FilesStore[] = [];

  async open(durability: "full" | "os" = "full"): Promise<FilesStore> {
    const { databases, disk } = this;
    const store = await createStore({ dir: "/store", databases, disk, durability, lockTimeoutMs: 0 });
    this.#opened.push(store);
    return store;
  }

  /** The same store after a power failure. */
  async powerCut(): Promise<FilesStore> {
    this.disk = this.disk.cutPower();
    return this.open();
  }

  async dispose(): Promise<void> {
    for (const store of this.#opened) await store.close().catch(() => undefined);
    this.#folder.remove();
  }
}
