import { execFileSync } from "node:child_process";
import { linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fileBoundary } from "../../test/support/file-boundary.ts";
import { gifOf, jpegOf, pngOf, webpOf } from "../../test/support/images.ts";
import { typedPaths } from "./find-image-paths.ts";
import type { PromptImagesOptions, PromptOrigin } from "./prompt-images.ts";
import { promptImages } from "./prompt-images.ts";

let base = "";
let cwd = "";
const images: Readonly<Record<string, Buffer>> = {
  "a.png": pngOf(1, 1),
  "b.JPG": jpegOf(2, 2),
  "c.jpeg": jpegOf(3, 3),
  "d.gif": gifOf(4, 4),
  "e.webp": webpOf(5, 5),
  "deep/er/f.png": pngOf(6, 6),
  "with space.png": pngOf(7, 7),
  "photo (1).png": pngOf(8, 8),
  "照片.png": pngOf(9, 9),
  "dots.v2.final.png": pngOf(10, 10),
  "it's.png": pngOf(11, 11),
  "9.41\u202fAM.png": pngOf(12, 12),
};

beforeAll(() => {
  base = mkdtempSync(join(tmpdir(), "skein-prompt-"));
  cwd = join(base, "work");
  for (const [name, bytes] of Object.entries(images)) {
    mkdirSync(dirname(join(cwd, name)), { recursive: true });
    writeFileSync(join(cwd, name), bytes);
  }
  writeFileSync(join(base, "secret.png"), pngOf(99, 99));
});

afterAll(() => rmSync(base, { recursive: true, force: true }));

const ask = (text: string, options: Partial<PromptImagesOptions> = {}) =>
  promptImages(text, {
    origin: "cli",
    seesImages: true,
    cwd,
    owner: { userId: null, agentId: "main", sessionId: "s1" },
    files: fileBoundary(),
    home: join(base, "home"),
    ...options,
  });

/** Returns the names of the attached images, which are identified by their bytes. */
async function taken(text: string, options: Partial<PromptImagesOptions> = {}): Promise<string[]> {
  const { content } = await ask(text, options);
  if (typeof content === "string") return [];
  expect(content[0]).toEqual({ type: "text", text });
  return content.slice(1).map((block) => {
    const data = block.type === "image" ? block.data : "";
    const name = Object.entries(images).find(([, bytes]) => bytes.toString("base64") === data)?.[0];
    return name ?? "another";
  });
}

describe("paths in a prompt", () => {
  test.each<[string, string[]]>([
    ["What is on a.png?", ["a.png"]],
    ["a.png", ["a.png"]],
    [
      "Compare a.png, b.JPG; c.jpeg and (d.gif) with ./e.webp.",
      ["a.png", "b.JPG", "c.jpeg", "d.gif", "e.webp"],
    ],
    ["a.png,b.JPG", ["a.png", "b.JPG"]],
    ["see deep/er/f.png!", ["deep/er/f.png"]],
    ["deep/../a.png", ["a.png"]],
    ['"with space.png" please', ["with space.png"]],
    ["'with space.png', 'a.png'", ["with space.png", "a.png"]],
    ["`a.png`", ["a.png"]],
    ["“with space.png” and «a.png»", ["with space.png", "a.png"]],
    ["with\\ space.png", ["with space.png"]],
    ["photo\\ \\(1\\).png", ["photo (1).png"]],
    ['"photo (1).png"', ["photo (1).png"]],
    ["![the plan](a.png)", ["a.png"]],
    ["<img src=\"with space.png\"> <img src='a.png'>", ["with space.png", "a.png"]],
    ["image=a.png", ["a.png"]],
    ["@a.png describe", ["a.png"]],
    ["**a.png**", ["a.png"]],
    ["看看照片.png，再看a.png吧", ["照片.png", "a.png"]],
    ["dots.v2.final.png", ["dots.v2.final.png"]],
    ["it's a.png that I don't like", ["a.png"]],
    ["it's.png", ["it's.png"]],
    ["9.41\u202fAM.png", ["9.41\u202fAM.png"]],
    ['He said "look at a.png"', ["a.png"]],
    ["a.png a.png ./a.png", ["a.png"]],
    ["line one\na.png\tb.JPG\r\nc.jpeg", ["a.png", "b.JPG", "c.jpeg"]],
  ])("[LBR18] %j", async (text, names) => {
    expect(await taken(text)).toEqual(names);
  });

  test("[LBR18] accepts absolute paths, file URLs, and paths from the home folder", async () => {
    expect(await taken(`Look at ${join(cwd, "a.png")}`)).toEqual(["a.png"]);
    expect(await taken(String(pathToFileURL(join(cwd, "with space.png"))))).toEqual(["with space.png"]);
    expect(await taken(`(${pathToFileURL(join(cwd, "照片.png"))})`)).toEqual(["照片.png"]);
    expect(await taken("~/a.png", { home: cwd })).toEqual(["a.png"]);
    expect(await taken(`~/${basename(cwd)}/a.png`, { home: base })).toEqual(["a.png"]);
  });

  test.each([
    "Nothing to see here",
    "the .png format, and deep/.png",
    "https://example.org/a.png",
    "![x](https://example.org/a.png) and ftp://h/a.png",
    "data:image/png;base64,AAAA",
    "a.png2 a.pngs a.png_old",
    "file://elsewhere/share/a.png",
    "",
  ])("[LBR18] %j names no image, and the text is returned unchanged", async (text) => {
    expect(await ask(text)).toEqual({ content: text, notes: [] });
  });

  test("[LBR18] the type is detected from the bytes", async () => {
    writeFileSync(join(cwd, "really-a.gif"), pngOf(20, 20));
    const { content } = await ask("really-a.gif");
    expect(content).toMatchObject([{ type: "text" }, { type: "image", mimeType: "image/png" }]);
  });
});

describe("permissions", () => {
  test.each<[PromptOrigin, number]>([
    ["cli", 1],
    ["console", 1],
    ["channel", 0],
    ["webhook", 0],
    ["inter_session", 0],
    ["api", 0],
  ])("[LBR18] a path from %s becomes an image: %d", async (origin, count) => {
    expect(await taken("a.png", { origin })).toHaveLength(count);
    if (count === 0)
      expect(await ask("a.png gone.png", { origin })).toEqual({ content: "a.png gone.png", notes: [] });
  });

  test("[LBR18] a model without vision gets only the text", async () => {
    expect(await ask("a.png", { seesImages: false })).toEqual({ content: "a.png", notes: [] });
  });
});

describe("refused paths", () => {
  const noteOf = async (text: string, options: Partial<PromptImagesOptions> = {}) => {
    const { content, notes } = await ask(text, options);
    expect(content).toBe(text);
    return notes;
  };
  const outside = "was not attached: it is outside the session's folder.";

  test("[LBR18] files outside the folder, by any path", async () => {
    symlinkSync(join(base, "secret.png"), join(cwd, "link.png"));
    symlinkSync(base, join(cwd, "up"));
    symlinkSync(join(cwd, "link.png"), join(cwd, "link-of-link.png"));
    mkdirSync(join(base, "work-not"), { recursive: true });
    writeFileSync(join(base, "work-not", "a.png"), pngOf(98, 98));
    const ways = ["../secret.png", "link.png", "up/secret.png", "link-of-link.png", "deep/../../secret.png"];
    const absolute = [join(base, "secret.png"), join(base, "work-not", "a.png"), `${cwd}/../secret.png`];
    for (const way of [...ways, ...absolute, String(pathToFileURL(join(base, "secret.png")))])
      expect(await noteOf(way)).toEqual([`${way} ${outside}`]);
    expect(await noteOf("~/secret.png", { home: base })).toEqual([`~/secret.png ${outside}`]);
  });

  test("[LBR18] does not reveal whether a file exists outside", async () => {
    expect(await noteOf("../nothing.png")).toEqual([`../nothing.png ${outside}`]);
    expect(await noteOf("/nowhere/nothing.png")).toEqual([`/nowhere/nothing.png ${outside}`]);
  });

  test("[LBR18] a link inside the folder, and a folder reached by a link, are accepted", async () => {
    symlinkSync(join(cwd, "a.png"), join(cwd, "inside.png"));
    expect(await taken("inside.png")).toEqual(["a.png"]);
    symlinkSync(cwd, join(base, "other-way"));
    expect(await taken("a.png", { cwd: join(base, "other-way") })).toEqual(["a.png"]);
    expect(await taken(join(base, "other-way", "a.png"))).toEqual(["a.png"]);
  });

  test("[LBR18] folders, pipes, devices, broken links, loops and missing files", async () => {
    mkdirSync(join(cwd, "folder.png"));
    execFileSync("mkfifo", [join(cwd, "pipe.png")]);
    symlinkSync("/dev/zero", join(cwd, "zero.png"));
    symlinkSync(join(cwd, "loop.png"), join(cwd, "loop.png"));
    symlinkSync(join(cwd, "nowhere.png"), join(cwd, "broken.png"));
    expect(await noteOf("folder.png")).toEqual(["folder.png was not attached: it is not a regular file."]);
    expect(await noteOf("pipe.png")).toEqual(["pipe.png was not attached: it is not a regular file."]);
    expect(await noteOf("zero.png")).toEqual([`zero.png ${outside}`]);
    for (const name of ["loop.png", "broken.png", "gone.png"])
      expect(await noteOf(name)).toEqual([`${name} was not attached: no such file exists.`]);
    expect(await noteOf(`${"x".repeat(300)}.png`)).toHaveLength(1);
    expect(await noteOf("a.png", { cwd: join(base, "not-there") })).toEqual([`a.png ${outside}`]);
  });

  test("[LBR18] files that are too large, empty, or not an image", async () => {
    writeFileSync(join(cwd, "huge.png"), pngOf(1, 1));
    truncateSync(join(cwd, "huge.png"), 3 * 1024 ** 3);
    writeFileSync(join(cwd, "empty.png"), "");
    writeFileSync(join(cwd, "text.png"), "PASSWORD=1");
    expect(await noteOf("huge.png")).toEqual(["huge.png was not attached: it is too large."]);
    expect(await noteOf("a.png", { maxBytes: 10 })).toEqual(["a.png was not attached: it is too large."]);
    for (const name of ["empty.png", "text.png"])
      expect(await noteOf(name)).toEqual([
        `${name} was not attached: its content is not a PNG, JPEG, GIF or WebP image.`,
      ]);
  });

  test("[LBR18] a note cannot break a line or control a terminal", async () => {
    const [note] = await noteOf('"bad\u001b[31m\u202ename.png"');
    expect(note).toBe("bad\\u001b[31m\\u202ename.png was not attached: no such file exists.");
  });
});

describe("large numbers of paths", () => {
  test("of a thousand paths, the first twenty images are used, with few notes", async () => {
    for (let index = 0; index < 30; index++) linkSync(join(cwd, "a.png"), join(cwd, `copy-${index}.png`));
    const names = Array.from({ length: 1000 }, (_, index) => `copy-${index}.png`);
    const { content, notes } = await ask(names.join(" "));
    expect(content).toHaveLength(1 + 20);
    expect(notes).toHaveLength(21);
    expect(notes[0]).toBe("copy-20.png was not attached: there are too many images.");
    expect(notes.at(-1)).toBe("960 more were not attached.");
  });

  test("of a hundred thousand, the first thousand are checked", async () => {
    const text = Array.from({ length: 100_000 }, (_, index) => `${index}.png`).join(" ");
    expect((await ask(text)).notes.at(-1)).toBe("981 more were not attached.");
  });

  test("beyond the total size, nothing more is read", async () => {
    const names = ["big-1.png", "big-2.png", "big-3.png", "big-4.png"];
    for (const name of names) {
      writeFileSync(join(cwd, name), pngOf(1, 1));
      truncateSync(join(cwd, name), 19 * 1024 * 1024);
    }
    const { content, notes } = await ask(`${names.join(" ")} a.png`);
    expect(content).toHaveLength(1 + 2);
    expect(notes).toEqual(
      ["big-3.png", "big-4.png", "a.png"].map(
        (name) => `${name} was not attached: there are too many images.`,
      ),
    );
  });

  test("for any text, parsing ends, and each path is absolute and names an image", () => {
    const piece = fc.constantFrom(
      ..."\"'`“”«»「」\\ /.~@([=:，\n",
      ".png",
      "a.png",
      "file://",
      "http://",
      "照",
      "../",
    );
    fc.assert(
      fc.property(fc.array(fc.oneof(piece, fc.string({ unit: "binary" }))), (pieces) => {
        for (const { meant } of typedPaths(pieces.join(""), "/w", "/h"))
          for (const path of meant) expect(path).toMatch(/^\/.*\.(png|jpe?g|gif|webp)$/is);
      }),
    );
  });
});

describe("the file boundary", () => {
  test("[FBD1] attachments/<name> is an image among the session's own attachments", async () => {
    const own = join(base, "root", "attachments", "s1");
    mkdirSync(own, { recursive: true });
    writeFileSync(join(own, "a.png"), pngOf(1, 1));
    writeFileSync(join(base, "root", "b.png"), pngOf(1, 1));
    const files = fileBoundary({ rootFolders: [join(base, "root")], attachments: () => own });
    expect(await taken("Look at attachments/a.png", { files })).toEqual(["a.png"]);
    expect(await taken("Look at attachments/../../b.png", { files })).toEqual([]);
    expect(await taken("Look at root/b.png", { cwd: base, files })).toEqual([]);
  });
});
