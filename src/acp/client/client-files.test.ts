import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fileBoundary } from "../../../test/support/file-boundary.ts";
import { clientFiles, selectLines } from "./client-files.ts";

let folder = "";
let cwd = "";
/** `cwd` contains files, folders and links of every kind. `outside` is next to it. */
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "client-files-")));
  cwd = join(folder, "cwd");
  for (const name of ["cwd/deep/er", "outside/deep"]) mkdirSync(join(folder, name), { recursive: true });
  for (const name of ["a", "deep/b", "deep/er/c"]) writeFileSync(join(cwd, name), `inside ${name}\n`);
  for (const name of ["a", "deep/b"]) writeFileSync(join(folder, "outside", name), `SECRET ${name}\n`);
  symlinkSync("a", join(cwd, "to-a"));
  symlinkSync("deep", join(cwd, "to-deep"));
  symlinkSync("../outside/a", join(cwd, "to-secret"));
  symlinkSync("../outside", join(cwd, "to-outside"));
  symlinkSync("../outside/new", join(cwd, "to-nothing"));
  symlinkSync("loop", join(cwd, "loop"));
  symlinkSync("..", join(cwd, "up"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const owner = { userId: null, agentId: "main", sessionId: "s1" };
const filesIn = (folder: string, root: string | null = null) =>
  clientFiles({ cwd: folder, owner, files: fileBoundary({ rootFolders: root === null ? [] : [root] }) });

/** `@` stands for the working directory. */
const at = (path: string) => path.replace("@", cwd);
const read = async (path: string, line: number | null = null, limit: number | null = null) =>
  (await filesIn(cwd).readTextFile({ path: at(path), line, limit })).content;
const write = (path: string, content: string) => filesIn(cwd).writeTextFile({ path: at(path), content });

describe("reading", () => {
  test.each([
    ["@/a", "inside a\n"],
    ["@/deep/er/c", "inside deep/er/c\n"],
    ["@/to-deep/b", "inside deep/b\n"],
    ["@/deep/../a", "inside a\n"],
    ["@//deep/./b", "inside deep/b\n"],
    ["@/../cwd/a", "inside a\n"],
    ["@/up/cwd/a", "inside a\n"],
    ["@/to-deep/../a", "inside a\n"],
  ])("%s is inside", async (path, content) => {
    expect(await read(path)).toBe(content);
  });

  test.each([
    ["a", "not the absolute path"],
    ["", "not the absolute path"],
    ["@/", "not the absolute path"],
    ["@", "is outside this session's working directory"],
    ["@/..", "is outside this session's working directory"],
    ["@/a\0", "not the absolute path"],
    ["/etc/passwd", "/etc/passwd is outside this session's working directory "],
    ["@/../outside/a", "is outside"],
    ["@/../cwdx/a", "is outside"],
    ["@/to-outside/a", "is outside"],
    ["@/up/outside/a", "is outside"],
    ["@/to-outside/deep/../a", "is outside"],
    ["@/to-deep/../../outside/a", "is outside"],
    ["/proc/self/cwd/a", "is outside"],
    ["@/none/../../outside/a", "is outside"],
    ["@/to-a", "is a link"],
    ["@/to-secret", "is a link"],
    ["@/to-nothing", "is a link"],
    ["@/loop", "is a link"],
    ["@/loop/a", "is a link"],
    ["@/deep", "not a regular file"],
    ["@/none", "there is no file"],
    ["@/none/none", "there is no file"],
    ["@/a/b", "not a folder"],
  ])("%j is refused: %s", async (path, why) => {
    await expect(read(path)).rejects.toThrow(why);
  });

  test("refuses a pipe and a device at once", async () => {
    execFileSync("mkfifo", [join(cwd, "pipe")]);
    await expect(read("@/pipe")).rejects.toThrow("not a regular file");
    await expect(write("@/pipe", "x")).rejects.toThrow("not a regular file");
    await expect(filesIn("/dev").readTextFile({ path: "/dev/zero" })).rejects.toThrow("not a regular file");
  });

  test("reads UTF-8 text exactly, and refuses anything else and anything large", async () => {
    writeFileSync(join(cwd, "text"), "\ufeffä\r\n🦆\0");
    expect(await read("@/text")).toBe("\ufeffä\r\n🦆\0");
    writeFileSync(join(cwd, "latin"), Buffer.from([0x61, 0xe4, 0x61]));
    await expect(read("@/latin")).rejects.toThrow("is not UTF-8 text");
    writeFileSync(join(cwd, "most"), Buffer.alloc(10 * 1024 * 1024, "x"));
    expect(await read("@/most", 1, 1)).toHaveLength(10 * 1024 * 1024);
    writeFileSync(join(cwd, "large"), Buffer.alloc(10 * 1024 * 1024 + 1, "x"));
    await expect(read("@/large", 1, 1)).rejects.toThrow("has more than 10485760 bytes");
  });

  test.each<[line: number | null | undefined, limit: number | null | undefined, content: string]>([
    [undefined, undefined, "1\n2\r\n\n4"],
    [null, null, "1\n2\r\n\n4"],
    [1, 1, "1\n"],
    [2, 2, "2\r\n\n"],
    [4, 9, "4"],
    [5, undefined, ""],
    [undefined, 0, ""],
  ])("from line %s on, %s lines: %j", async (line, limit, content) => {
    writeFileSync(join(cwd, "lines"), "1\n2\r\n\n4");
    expect(await read("@/lines", line, limit)).toBe(content);
    await expect(read("@/lines", 0)).rejects.toThrow("there is no line 0; the first line is 1");
  });

  test("consecutive slices of lines add up to the text", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom("a", "\n", "\r\n", "🦆")),
        fc.integer({ min: 1, max: 5 }),
        (parts, step) => {
          const text = parts.join("");
          const pieces = Array.from({ length: parts.length + 1 }, (_, index) =>
            selectLines(text, 1 + index * step, step),
          );
          expect(pieces.join("")).toBe(text);
        },
      ),
    );
  });
});

describe("writing", () => {
  test.each(["@/a", "@/new", "@/deep/new", "@/x/y/z", "@/to-deep/new", "@/to-deep/x/y", "@/up/cwd/x/./new"])(
    "writes %s and creates missing folders",
    async (path) => {
      expect(await write(path, "ä🦆")).toEqual({});
      expect(readFileSync(at(path), "utf8")).toBe("ä🦆");
      expect(everything(folder).filter((each) => each.includes(".skein-"))).toEqual([]);
    },
  );

  test.each([
    ["new", "not the absolute path"],
    ["@/new/", "not the absolute path"],
    ["@/../outside/new", "is outside"],
    ["@/../new/new", "is outside"],
    ["@/to-outside/new", "is outside"],
    ["@/to-outside/x/new", "is outside"],
    ["@/x/../../outside/new", "is outside"],
    ["@/x/../new", "is outside"],
    ["@/to-nothing/new", "one of its parents is a link"],
    ["@/to-a", "is a link"],
    ["@/to-secret", "is a link"],
    ["@/to-nothing", "is a link"],
    ["@/deep", "is not a regular file"],
    ["@/a/new", "not a folder"],
  ])("refuses %s and changes nothing: %s", async (path, why) => {
    const before = everything(folder);
    await expect(write(path, "x")).rejects.toThrow(why);
    expect(everything(folder)).toEqual(before);
  });

  test("keeps the mode of a file, and leaves its hard links unchanged", async () => {
    chmodSync(join(cwd, "a"), 0o750);
    linkSync(join(folder, "outside/a"), join(cwd, "hard"));
    await write("@/a", "x");
    await write("@/hard", "x");
    expect(statSync(join(cwd, "a")).mode & 0o777).toBe(0o750);
    expect(readFileSync(join(folder, "outside/a"), "utf8")).toBe("SECRET a\n");
  });

  test("refuses content that is not text or is too large", async () => {
    await expect(write("@/new", "\ud800")).rejects.toThrow("not valid text");
    await expect(write("@/new", "ä".repeat(5 * 1024 * 1024 + 1))).rejects.toThrow("more than 10485760 bytes");
    expect(existsSync(join(cwd, "new"))).toBe(false);
  });
});

test("[ARU6] stays in the original working directory, whatever replaces it", async () => {
  const files = filesIn(cwd);
  renameSync(cwd, join(folder, "moved"));
  symlinkSync("outside", cwd);
  await expect(files.readTextFile({ path: join(cwd, "a") })).rejects.toThrow("is outside");
  await expect(files.writeTextFile({ path: join(cwd, "new"), content: "x" })).rejects.toThrow("is outside");
  expect(existsSync(join(folder, "outside/new"))).toBe(false);
});

test.runIf(process.platform === "linux")(
  "[ARU6] nothing outside is read or changed while folders are swapped for links",
  async () => {
    const outside = everything(join(folder, "outside"));
    const swapping = new AbortController();
    // A concurrent write can recreate the folder between the removal and `put`, so this retries.
    const instead = (put: () => void): void => {
      for (let isDone = false; !isDone; ) {
        rmSync(join(cwd, "deep"), { recursive: true, force: true });
        try {
          put();
          isDone = true;
        } catch (error) {
          expect(["EEXIST", "ENOTEMPTY"]).toContain((error as { code?: unknown }).code);
        }
      }
    };
    const swap = (async () => {
      for (let turn = 0; !swapping.signal.aborted; turn++) {
        renameSync(join(cwd, "deep"), join(cwd, "aside"));
        instead(() => symlinkSync("../outside", join(cwd, "deep")));
        for (let wait = 0; wait < turn % 7; wait++) await new Promise((next) => setImmediate(next));
        instead(() => renameSync(join(cwd, "aside"), join(cwd, "deep")));
        for (let wait = 0; wait < turn % 5; wait++) await new Promise((next) => setImmediate(next));
      }
    })();
    const seen: string[] = [];
    for (let turn = 0; turn < 300; turn++) {
      const [found] = await Promise.allSettled([read("@/deep/b"), write(`@/deep/deep/new${turn}`, "x")]);
      if (found.status === "fulfilled") seen.push(found.value);
    }
    swapping.abort();
    await swap;
    expect(new Set([...seen, "inside deep/b\n"])).toEqual(new Set(["inside deep/b\n"]));
    expect(everything(join(folder, "outside"))).toEqual(outside);
  },
);

test("[ARU6] for any requested path, nothing outside is read or changed", async () => {
  const outside = everything(join(folder, "outside"));
  const names = fc.constantFrom(
    ...["a", "b", "deep", "er", "to-a", "to-deep", "to-secret", "to-outside", "to-nothing", "loop", "up"],
    ...["..", "..", ".", "", "cwd", "outside", "new", "x"],
  );
  const path = fc
    .tuple(fc.constantFrom("@/", "@/", "@/../", "/", ""), fc.array(names, { maxLength: 6 }))
    .map(([start, rest]) => start + rest.join("/"));
  await fc.assert(
    fc.asyncProperty(path, fc.boolean(), async (asked, writes) => {
      if (writes) await write(asked, "written\n").catch(isPlain);
      else expect(await read(asked).catch(isPlain)).not.toContain("SECRET");
      expect(everything(join(folder, "outside"))).toEqual(outside);
      expect(readdirSync(folder).toSorted()).toEqual(["cwd", "outside"]);
    }),
  );
});

/** Checks that the message contains no internal details and returns it. */
function isPlain(error: unknown): string {
  expect(error).toBeInstanceOf(Error);
  const { message } = error as Error;
  // The name of the temporary folder is random, and can look like an error code.
  expect(message.replaceAll(folder, "")).not.toMatch(/\/proc\/self|for an unknown reason|E[A-Z]{3,}/);
  return message;
}

/** Lists every name under a folder together with its type. */
function everything(under: string): string[] {
  return readdirSync(under, { recursive: true, encoding: "utf8" })
    .toSorted()
    .map((name) => {
      const path = join(under, name);
      const found = lstatSync(path);
      if (found.isSymbolicLink()) return `${name} → ${readlinkSync(path)}`;
      return found.isFile() ? `${name}: ${readFileSync(path, "utf8")}` : name;
    });
}

describe("the session's own attachments", () => {
  test("[FBD1] are read as attachments/<name>, even inside the root folder", async () => {
    const own = join(folder, "root", "attachments", "s1");
    mkdirSync(own, { recursive: true });
    writeFileSync(join(own, "a.txt"), "attached\n");
    writeFileSync(join(folder, "root", "token"), "SECRET");
    const boundary = fileBoundary({ rootFolders: [join(folder, "root")], attachments: () => own });
    const files = clientFiles({ cwd, owner, files: boundary });
    expect(await files.readTextFile({ path: "attachments/a.txt" })).toEqual({ content: "attached\n" });
    await expect(files.readTextFile({ path: "attachments/b.txt" })).rejects.toThrow(/there is no file/);
    for (const path of ["attachments/../../token", "attachments/../s2/a.txt", "attachments//../../../token"])
      await expect(files.readTextFile({ path })).rejects.toThrow(/outside|not the absolute path/);
    await expect(files.readTextFile({ path: join(folder, "root", "token") })).rejects.toThrow(/outside/);
    await expect(files.writeTextFile({ path: "attachments/.env", content: "" })).rejects.toThrow(
      /configuration/,
    );
    const none = clientFiles({
      cwd,
      owner,
      files: fileBoundary({ attachments: () => join(folder, "none") }),
    });
    await expect(none.readTextFile({ path: "attachments/a.txt" })).rejects.toThrow(/there is no file/);
  });
});

describe("Skein's root folder", () => {
  test.each(["deep/b", "deep/er/c", "deep/new", "to-deep/b", "deep/er/../b", "deep/new/folder/file"])(
    "[FBD1] %s is not accessible to agents",
    async (name) => {
      const files = filesIn(cwd, join(cwd, "to-deep"));
      const path = join(cwd, "/").concat(name);
      const why = /is inside Skein.s own folder/;
      await expect(files.readTextFile({ path })).rejects.toThrow(why);
      await expect(files.writeTextFile({ path, content: "mine" })).rejects.toThrow(why);
      expect(readFileSync(join(cwd, "deep/b"), "utf8")).toBe("inside deep/b\n");
      expect(existsSync(join(cwd, "deep/new"))).toBe(false);
      expect(await files.readTextFile({ path: join(cwd, "a") })).toEqual({ content: "inside a\n" });
    },
  );

  test("[FBD1] a root folder that does not exist yet is protected", async () => {
    const files = filesIn(cwd, join(cwd, ".skein"));
    const path = join(cwd, ".skein", "token");
    await expect(files.writeTextFile({ path, content: "mine" })).rejects.toThrow(/own folder/);
    expect((await files.writeTextFile({ path: join(cwd, ".skeins"), content: "x" })) && true).toBe(true);
  });
});
