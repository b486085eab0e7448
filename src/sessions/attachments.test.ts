import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  foldedName,
  isNote,
  nameProblem,
  readAttachments,
  receiptByNotes,
  receiptOf,
  sizeOf,
  withoutContents,
} from "./attachments.ts";

const limits = { maxFileBytes: 10, maxTotalBytes: 15 };
const sumOf = (text: string) => createHash("sha256").update(text).digest("hex");

describe("names", () => {
  test.each([
    "",
    ".",
    "..",
    ".env",
    "a/b",
    "..\\x",
    "a\u0000b",
    "a\nb",
    "a\u202eb",
    "end.",
    "end ",
    " begin",
    "CON",
    "nul.txt",
    "Lpt1.log",
    "a:b",
    "Manifest.JSON",
    "\ud800",
    "x".repeat(201),
  ])("%j is not a valid attachment name", (name) => {
    expect(nameProblem(name)).not.toBeNull();
    const read = readAttachments([{ name, content: "x" }], limits);
    expect(read).toMatchObject({ code: "attachments_invalid_name" });
  });

  test.each(["a.txt", "報告.md", "a b.csv", "über", "constant.txt", "a..b"])("%j is valid", (name) => {
    expect(nameProblem(name.normalize("NFC"))).toBeNull();
  });

  test("an accepted name is one segment without characters that are special to a file system", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 30 }), (name) => {
        const nfc = name.normalize("NFC");
        if (nameProblem(nfc) !== null) return;
        expect(nfc).not.toMatch(/[/\\\p{Cc}]|^\.|[. ]$/u);
        expect(foldedName(nfc)).not.toBe("manifest.json");
      }),
    );
  });

  test.each([
    ["A.txt", "a.TXT"],
    ["\u00e9.txt", "e\u0301.txt"],
    ["stra\u00dfe", "STRASSE"],
    ["\ufb01le", "file"],
  ])("%j and %j are the same name", (a, b) => {
    const files = [a, b].map((name) => ({ name, content: "x" }));
    expect(readAttachments(files, limits)).toMatchObject({ code: "attachments_duplicate_name" });
  });

  test("names are normalized to NFC", () => {
    const read = readAttachments([{ name: "e\u0301.txt", content: "x" }], limits);
    expect(read).toMatchObject({ attachments: [{ name: "\u00e9.txt" }] });
  });
});

describe("contents", () => {
  test.each(["a", "aGk", "aG k=", "aGk=\n", "aG-_", "aGl=", "====", "a===", "=aGk"])(
    "%j is not base64",
    (content) => {
      const read = readAttachments([{ name: "a", content, encoding: "base64" }], limits);
      expect(read).toMatchObject({ code: "attachments_invalid_base64_or_too_large" });
    },
  );

  test("base64 is decoded exactly, and its size is known before", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 10 }), (bytes) => {
        const content = Buffer.from(bytes).toString("base64");
        expect(sizeOf({ content, encoding: "base64" })).toBe(bytes.length);
        const read = readAttachments([{ name: "a", content, encoding: "base64" }], limits);
        if (!("attachments" in read)) throw new Error(read.error);
        expect(Buffer.from(read.attachments[0]?.bytes ?? [])).toEqual(Buffer.from(bytes));
      }),
    );
  });

  test("each size and the total are limited, and at most 50 are accepted", () => {
    const file = (name: string, content: string) => ({ name, content });
    expect(readAttachments([file("a", "x".repeat(11))], limits)).toEqual({
      code: "attachments_file_bytes_exceeded",
      error: "attachments_file_bytes_exceeded (name=a bytes=11 maxFileBytes=10)",
    });
    expect(readAttachments([file("a", "12345678"), file("b", "12345678")], limits)).toEqual({
      code: "attachments_total_bytes_exceeded",
      error: "attachments_total_bytes_exceeded (totalBytes=16 maxTotalBytes=15)",
    });
    expect(readAttachments([file("a", "ééééé"), file("b", "123")], limits)).toHaveProperty("attachments");
    const many = Array.from({ length: 51 }, (_, at) => file(`f${at}`, ""));
    expect(readAttachments(many, limits)).toEqual({
      code: "attachments_file_count_exceeded",
      error: "attachments_file_count_exceeded (maxFiles=50)",
    });
  });

  test.each([
    [{ name: "a", content: "\ud800" }, "attachments_invalid_text"],
    [{ name: "a", content: "x", mimeType: "text/plain\nx" }, "attachments_invalid_mime_type"],
    [{ name: "a", content: "x", mimeType: "text" }, "attachments_invalid_mime_type"],
  ])("%j is refused", (file, code) => {
    expect(readAttachments([file], limits)).toMatchObject({ code });
  });
});

describe("notes", () => {
  const args = {
    task: "t",
    attachments: [{ name: "e\u0301", content: "aGk=", encoding: "base64" as const }],
  };

  test("[FAM17] a note has the size and checksum, and the receipt from notes equals the one from contents", () => {
    const kept = withoutContents(args);
    const content = `[not kept here: 2 bytes, sha256 ${sumOf("hi")}]`;
    expect(kept).toEqual({ task: "t", attachments: [{ name: "e\u0301", content, encoding: "base64" }] });
    expect(withoutContents(kept)).toBe(kept);
    const read = readAttachments(args.attachments, limits);
    if (!("attachments" in read)) throw new Error(read.error);
    const receipt = receiptOf(read.attachments);
    expect(receipt).toEqual({
      count: 1,
      totalBytes: 2,
      files: [{ name: "\u00e9", bytes: 2, sha256: sumOf("hi") }],
    });
    expect(receiptByNotes(args.attachments)).toEqual(receipt);
    expect(receiptByNotes([{ name: "e\u0301", content }])).toEqual(receipt);
  });

  test("[FAM17] a note in place of a content is refused, with a remedy", () => {
    const [file] = withoutContents({ attachments: [{ name: "a", content: "x" }] }).attachments as [
      { name: string; content: string },
    ];
    expect(isNote(file.content)).toBe(true);
    const read = readAttachments([file], { maxFileBytes: 1000, maxTotalBytes: 1000 });
    expect(read).toMatchObject({
      code: "attachments_content_missing",
      error: expect.stringContaining("send the content itself"),
    });
  });

  test.each([{}, { attachments: [] }, { attachments: "x" }, { attachments: [null, { name: "a" }] }])(
    "%j is ignored",
    (given) => {
      expect(withoutContents(given)).toBe(given);
    },
  );
});
