import type { SessionTree } from "../core/tree.ts";
import { exportHtml } from "../interchange/export-html.ts";
import { exportJsonl } from "../interchange/export-jsonl.ts";
import { exportMarkdown } from "../interchange/export-markdown.ts";
import type { ReadBlob } from "../interchange/export-view.ts";

export const exportFormats = ["jsonl", "md", "html"] as const;
export type ExportFormat = (typeof exportFormats)[number];

interface ExportAs {
  readonly format: ExportFormat;
  /**
   * For Markdown, whether to export every branch instead of only the active one. The other formats always contain all
   * branches.
   */
  readonly all: boolean;
}

/** Exports a session as text, chunk by chunk. */
export function exportPieces(
  tree: SessionTree,
  readBlob: ReadBlob,
  { format, all }: ExportAs,
): Iterable<string> {
  switch (format) {
    case "jsonl":
      return exportJsonl(tree, readBlob);
    case "md":
      return exportMarkdown(tree, readBlob, { branches: all ? "all" : "active" });
    case "html":
      return exportHtml(tree, readBlob);
  }
}
