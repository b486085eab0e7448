import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { parseSession, SessionTree } from "../../src/index.ts";
import { exportHtml } from "../../src/interchange/export-html.ts";
import { exportJsonl } from "../../src/interchange/export-jsonl.ts";
import { exportMarkdown } from "../../src/interchange/export-markdown.ts";

const folder = fileURLToPath(new URL("interchange/", import.meta.url));

/** An image of one pixel, under the hash that the sample names. */
const pixel = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
const blobOf = (sha256: string) => (sha256 === "b".repeat(64) ? pixel : null);

/** Each kind of export, with the extension of its reviewed file. */
const kinds: Record<string, (tree: SessionTree) => Iterable<string>> = {
  "[INT10] out.jsonl": (tree) => exportJsonl(tree, blobOf),
  "active.md": (tree) => exportMarkdown(tree, blobOf),
  "all.md": (tree) => exportMarkdown(tree, blobOf, { branches: "all" }),
  "[INT12] out.html": (tree) => exportHtml(tree, blobOf),
};

describe("golden exports", () => {
  for (const sample of ["every-kind", "hostile"]) {
    test.each(Object.keys(kinds))(`%s of ${sample}`, async (kind) => {
      const tree = SessionTree.from(parseSession(readFileSync(`${folder}${sample}.jsonl`)));
      const text = [...(kinds[kind]?.(tree) ?? [])].join("");
      await expect(text).toMatchFileSnapshot(`${folder}${sample}.${kind.split(" ").at(-1)}`);
    });
  }
});
