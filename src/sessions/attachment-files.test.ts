import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fileBoundary } from "../../test/support/file-boundary.ts";
import type { WrittenAttachments } from "./attachment-files.ts";
import { findWritten, removeAttachments, writeAttachments } from "./attachment-files.ts";
import type { PlaceWish } from "./attachment-place.ts";
import type { Attachment, AttachmentProblem } from "./attachments.ts";
import { readAttachments, receiptOf } from "./attachments.ts";

let root = "";

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "attachments-")));
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

const limits = { maxFileBytes: 1000, maxTotalBytes: 1000 };

const owner = { userId: null, agentId: "main", sessionId: "s1" };
const into = (at: PlaceWish["at"]): PlaceWish => ({ owner, files: fileBoundary(), at });

function files(named: Readonly<Record<string, string>>): readonly Attachment[] {
  const read = readAttachments(
    Object.entries(named).map(([name, content]) => ({ name, content })),
    limits,
  );
  if (!("attachments" in read)) throw new Error(read.error);
  return read.attachments;
}

function ok(result: WrittenAttachments | AttachmentProblem): WrittenAttachments {
  if ("code" in result) throw new Error(result.error);
  return result;
}

describe("the session's own folder", () => {
  const wish = () => into({ own: join(root, "attachments", "s1") });

  test("[FAM38] has files with 0600, folders with 0700, and a manifest with checksums", async () => {
    const attachments = files({ "a.txt": "one", "b.txt": "two" });
    const { folder } = ok(await writeAttachments(wish(), "s1", attachments));
    expect(folder).toBe(join(root, "attachments", "s1"));
    expect(readdirSync(folder).toSorted()).toEqual(["a.txt", "b.txt", "manifest.json"]);
    for (const name of readdirSync(folder)) expect(lstatSync(join(folder, name)).mode & 0o777).toBe(0o600);
    expect(lstatSync(folder).mode & 0o777).toBe(0o700);
    const manifest = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"));
    expect(manifest).toEqual({ sessionId: "s1", foldersMade: 1, files: receiptOf(attachments).files });
    await removeAttachments(folder, true);
    await removeAttachments(folder, true);
    expect(readdirSync(join(root, "attachments"))).toEqual([]);
  });

  test("[FAM38] a link in place of the folder is not followed", async () => {
    mkdirSync(join(root, "attachments"));
    mkdirSync(join(root, "elsewhere"));
    symlinkSync(join(root, "elsewhere"), join(root, "attachments", "s1"));
    ok(await writeAttachments(wish(), "s1", files({ a: "x" })));
    expect(readdirSync(join(root, "elsewhere"))).toEqual([]);
    expect(lstatSync(join(root, "attachments", "s1")).isDirectory()).toBe(true);
  });

  test("[FAM38] undoing removes what was written", async () => {
    const { folder, undo } = ok(await writeAttachments(wish(), "s1", files({ a: "x" })));
    await undo();
    expect(existsSync(folder)).toBe(false);
  });

  test("[FAM17] files of an earlier attempt are reused if complete, and rewritten if not", async () => {
    const attachments = files({ a: "x", b: "y" });
    const { folder } = ok(await writeAttachments(wish(), "s1", attachments));
    const facts = receiptOf(attachments).files;
    expect(await findWritten(wish(), "s1", facts)).toMatchObject({ folder });
    expect(await findWritten(wish(), "s2", facts)).toBeNull();
    rmSync(join(folder, "b"));
    expect(await findWritten(wish(), "s1", facts)).toBeNull();
    ok(await writeAttachments(wish(), "s1", attachments));
    expect(await findWritten(wish(), "s1", facts)).not.toBeNull();
    expect(await findWritten(into({ own: join(root, "attachments", "s9") }), "s9", facts)).toBeNull();
    expect(readdirSync(join(root, "attachments"))).toEqual(["s1"]);
  });
});

describe("a folder inside the working directory", () => {
  const wish = (mountPath: string) => into({ cwd: join(root, "cwd"), mountPath });

  beforeEach(() => mkdirSync(join(root, "cwd")));

  test("[FAM38] is removed with its own files only", async () => {
    const { folder } = ok(await writeAttachments(wish("in/put"), "s1", files({ a: "x", b: "y", c: "z" })));
    expect(folder).toBe(join(root, "cwd", "in", "put"));
    writeFileSync(join(folder, "b"), "changed");
    writeFileSync(join(folder, "mine"), "kept");
    await removeAttachments(folder, false);
    expect(readdirSync(folder).toSorted()).toEqual(["b", "mine"]);
    const other = ok(await writeAttachments(wish("in/other"), "s1", files({ a: "x" })));
    await removeAttachments(other.folder, false);
    expect(readdirSync(join(root, "cwd", "in"))).toEqual(["put"]);
  });

  test("[FAM38] an existing file refuses everything, and stays", async () => {
    mkdirSync(join(root, "cwd", "in"));
    writeFileSync(join(root, "cwd", "in", "b"), "mine");
    const refused = await writeAttachments(wish("in"), "s1", files({ a: "x", b: "y" }));
    expect(refused).toMatchObject({ code: "attachments_path_taken" });
    expect(readdirSync(join(root, "cwd", "in"))).toEqual(["b"]);
    expect(readFileSync(join(root, "cwd", "in", "b"), "utf8")).toBe("mine");
  });

  test("[FAM38] the files of another session are not touched", async () => {
    ok(await writeAttachments(wish("in"), "s1", files({ a: "x" })));
    const refused = await writeAttachments(wish("in"), "s2", files({ b: "y" }));
    expect(refused).toMatchObject({ code: "attachments_path_taken" });
    expect(readdirSync(join(root, "cwd", "in")).toSorted()).toEqual(["a", "manifest.json"]);
  });

  test.each(["/abs", "../out", "a/../../out", "a//b", "", ".", ".git/hooks", "a\\b", "C:x", "a\u0000b"])(
    "[FAM38] %j is not a mountPath",
    async (mountPath) => {
      const refused = await writeAttachments(wish(mountPath), "s1", files({ a: "x" }));
      expect(refused).toMatchObject({ code: "attachments_invalid_mount_path" });
      expect(readdirSync(root)).toEqual(["cwd"]);
      expect(readdirSync(join(root, "cwd"))).toEqual([]);
    },
  );

  test.each(["link", "link/in", "file"])(
    "[FAM38] %s leads elsewhere or is not a folder",
    async (mountPath) => {
      mkdirSync(join(root, "outside"));
      symlinkSync(join(root, "outside"), join(root, "cwd", "link"));
      writeFileSync(join(root, "cwd", "file"), "x");
      const refused = await writeAttachments(wish(mountPath), "s1", files({ a: "x" }));
      expect(refused).toMatchObject({ code: "attachments_path_not_allowed" });
      expect(readdirSync(join(root, "outside"))).toEqual([]);
    },
  );

  test("[FAM38] a forged manifest removes nothing outside its folder", async () => {
    const { folder } = ok(await writeAttachments(wish("in"), "s1", files({ a: "x" })));
    writeFileSync(join(root, "cwd", "mine"), "x");
    const manifest = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"));
    manifest.files[0].name = "../mine";
    writeFileSync(join(folder, "manifest.json"), JSON.stringify(manifest));
    await removeAttachments(folder, false);
    expect(existsSync(join(root, "cwd", "mine"))).toBe(true);
  });
});
