import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { describe, expect, test } from "vitest";
import { ScratchFolder } from "./files.ts";

describe("attachments of a store in memory", () => {
  test("have their own folder, whatever the user IDs are, and are removed with it", async () => {
    const scratch = new ScratchFolder();
    const users = [null, "null", ".nobody", "..", "../../x", "Ann", "ann", "[1]/a"];
    const places = users.map((user) => scratch.attachments(user, "main", "s"));
    const base = dirname(dirname(dirname(places[0] ?? "")));
    expect(dirname(base)).toBe(tmpdir());
    expect(new Set(places).size).toBe(users.length);
    for (const place of places) expect(relative(base, place).split("/")).toHaveLength(3);
    for (const place of places) expect(relative(base, place).split("/")).not.toContain("..");
    const other = new ScratchFolder();
    expect(other.attachments(null, "main", "s")).not.toBe(places[0]);
    mkdirSync(places[0] ?? "", { recursive: true });
    writeFileSync(join(places[0] ?? "", "a"), "x");
    await scratch.close();
    await other.close();
    expect(existsSync(base)).toBe(false);
  });
});
