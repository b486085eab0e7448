import { createHash } from "node:crypto";
import type { FSWatcher } from "node:fs";
import { readFileSync, watch } from "node:fs";
import { basename, dirname } from "node:path";

export interface WatchOptions {
  /** Told once things are quiet for so long; by default 200. */
  readonly quietMs?: number;
  changed(): void;
  /** A folder that cannot be watched. */
  failed(folder: string, error: unknown): void;
}

/** Files, and what they held when somebody was about to read them. */
export interface SeenFiles {
  readonly files: readonly string[];
  readonly held: string;
}

export function seeFiles(files: readonly string[]): SeenFiles {
  return { files, held: contentsOf(files) };
}

/**
 * Watches files by their folders, because editors put a new file in the place of the old one; they need not be there yet.
 * Tells of nothing where what they hold is as before.
 */
export class FileWatch {
  readonly #options: WatchOptions;
  #files: readonly string[] = [];
  #held = "";
  #watchers: readonly FSWatcher[] = [];
  #quiet: NodeJS.Timeout | null = null;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  /** From now on these. What has changed in them since they were seen is told like every later change. */
  watch({ files, held }: SeenFiles): void {
    this.close();
    this.#files = files;
    this.#held = held;
    const folders = [...new Set(files.map((file) => dirname(file)))];
    this.#watchers = folders.flatMap((folder) => this.#watchFolder(folder));
    this.#stir();
  }

  close(): void {
    for (const watcher of this.#watchers) watcher.close();
    this.#watchers = [];
    if (this.#quiet !== null) clearTimeout(this.#quiet);
    this.#quiet = null;
  }

  #watchFolder(folder: string): readonly FSWatcher[] {
    const names = new Set(this.#files.map((file) => basename(file)));
    // A folder that is mounted whole changes by a link in it, "..data".
    const concerns = (name: string | null) => name === null || names.has(name) || name.startsWith("..");
    try {
      const watcher = watch(
        folder,
        { persistent: false },
        (_, name) => void (concerns(name) && this.#stir()),
      );
      watcher.on("error", (error) => this.#options.failed(folder, error));
      return [watcher];
    } catch (error) {
      this.#options.failed(folder, error);
      return [];
    }
  }

  #stir(): void {
    if (this.#quiet !== null) clearTimeout(this.#quiet);
    this.#quiet = setTimeout(() => this.#look(), this.#options.quietMs ?? 200).unref();
  }

  #look(): void {
    this.#quiet = null;
    const held = contentsOf(this.#files);
    if (held === this.#held) return;
    this.#held = held;
    this.#options.changed();
  }
}

function contentsOf(files: readonly string[]): string {
  const sum = createHash("sha256");
  for (const file of files) sum.update(`${file}\0${textOf(file) ?? ""}\0`);
  return sum.digest("hex");
}

function textOf(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return null; // not there, or about to be replaced
  }
}
