import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FilesStore } from "../../src/entry-store.ts";
import { openFilesStore } from "../../src/store/files/store.ts";
import { SimDisk } from "./sim-disk.ts";

/** A files store on a simulated disk. Its databases are real files: SQLite does its own syncing. */
export class SimStore {
  disk = new SimDisk();
  readonly databases = mkdtempSync(join(tmpdir(), "skein-sim-"));
  readonly #opened: FilesStore[] = [];

  async open(durability: "full" | "os" = "full"): Promise<FilesStore> {
    const { databases, disk } = this;
    const store = await openFilesStore({ root: "/store", databases, disk, durability, lockTimeoutMs: 0 });
    this.#opened.push(store);
    return store;
  }

  /** The same store after the power came back. */
  async powerCut(): Promise<FilesStore> {
    this.disk = this.disk.cutPower();
    return this.open();
  }

  async dispose(): Promise<void> {
    for (const store of this.#opened) await store.close().catch(() => undefined);
    rmSync(this.databases, { recursive: true, force: true });
  }
}
