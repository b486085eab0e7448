import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../testing/support/temporary-folder.ts";
import { temporaryFolder } from "../../testing/support/temporary-folder.ts";
import { FileWatcher, snapshotFiles } from "./reload-config.ts";

let folder: TemporaryFolder;
let watching: FileWatcher;
let changes: number;
let failures: string[];
beforeEach(() => {
  folder = temporaryFolder();
  changes = 0;
  failures = [];
  watching = new FileWatcher({
    quietMs: 20,
    onChange: () => changes++,
    onError: (path) => failures.push(path),
  });
});
afterEach(() => {
  watching.close();
  folder.remove();
});

const at = (name: string) => join(folder.path, name);
const heard = () => expect.poll(() => changes);

describe("watched files", () => {
  test("reports files that are written, replaced, removed and restored", async () => {
    writeFileSync(at("skein.yaml"), "a");
    watching.watch(snapshotFiles([at("skein.yaml"), at(".env")]));
    writeFileSync(at("skein.yaml"), "b");
    await heard().toBe(1);
    writeFileSync(at("new"), "c");
    renameSync(at("new"), at("skein.yaml"));
    await heard().toBe(2);
    writeFileSync(at(".env"), "X=1");
    await heard().toBe(3);
    rmSync(at("skein.yaml"));
    await heard().toBe(4);
    writeFileSync(at("skein.yaml"), "c");
    await heard().toBe(5);
  });

  test("ignores unchanged content and other files", async () => {
    writeFileSync(at("skein.yaml"), "a");
    watching.watch(snapshotFiles([at("skein.yaml")]));
    writeFileSync(at("skein.yaml"), "a");
    writeFileSync(at("other"), "x");
    writeFileSync(at("skein.yaml"), "b");
    await heard().toBe(1);
    writeFileSync(at("skein.yaml"), "a");
    await heard().toBe(2);
  });

  test("reports a folder that is replaced through a link", async () => {
    for (const [name, text] of [
      ["one", "a"],
      ["two", "b"],
    ] as const) {
      mkdirSync(at(name));
      writeFileSync(at(`${name}/skein.yaml`), text);
    }
    symlinkSync("one", at("..data"));
    symlinkSync("..data/skein.yaml", at("skein.yaml"));
    watching.watch(snapshotFiles([at("skein.yaml")]));
    symlinkSync("two", at("..next"));
    renameSync(at("..next"), at("..data"));
    await heard().toBe(1);
  });

  test("a missing folder is reported, and affects nothing else", async () => {
    writeFileSync(at("skein.yaml"), "a");
    watching.watch(snapshotFiles([at("gone/skein.yaml"), at("skein.yaml")]));
    expect(failures).toEqual([at("gone")]);
    writeFileSync(at("skein.yaml"), "b");
    await heard().toBe(1);
  });
});
