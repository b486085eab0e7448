import { stringifyJson } from "../../../core/json.ts";
import type { ImageBlock, TextBlock } from "../../../core/messages.ts";
import { isRecord } from "../../../core/shape.ts";
import { capTexts } from "../../../transcript/steps/truncate-tool-results.ts";
import { contentText, oneLine } from "./content-text.ts";
import { diffText } from "./diff-text.ts";
import { fitJson } from "./fit-json.ts";

type Block = TextBlock | ImageBlock;

/** The guard cuts further, and keeps the whole of what it is given as a blob: this bounds that blob. */
const mostCharacters = 2_000_000;
const mostParts = 500;
const mostImages = 20;
/** Of one image, as base64. */
const mostImageData = 28_000_000;

export interface ResultParts {
  readonly content: unknown;
  readonly rawOutput: unknown;
  /** What a terminal has printed so far; `null`: there is none of this id. */
  terminalText(terminalId: string): string | null;
}

/** What a tool of an agent gave, as blocks of a result. Empty: it gave nothing. */
export function resultContent(parts: ResultParts): Block[] {
  const given = Array.isArray(parts.content) ? parts.content : [];
  const room = { images: mostImages };
  const blocks = given.slice(0, mostParts).flatMap((each) => blockOf(each, parts, room));
  if (given.length > mostParts) blocks.push(text(`[… ${given.length - mostParts} more parts left out …]`));
  return capped(blocks.length === 0 ? rawBlocks(parts.rawOutput) : blocks);
}

function blockOf(part: unknown, { terminalText }: ResultParts, room: { images: number }): Block[] {
  if (!isRecord(part)) return [];
  switch (part.type) {
    case "content":
      return said(part.content, room);
    case "diff": {
      const { path, oldText, newText } = part;
      const change = { path: words(path), oldText: typeof oldText === "string" ? oldText : null };
      return [text(diffText({ ...change, newText: words(newText) }))];
    }
    case "terminal": {
      const printed = terminalText(words(part.terminalId));
      return [text(printed ?? `[terminal ${oneLine(part.terminalId)}: what it printed is not known]`)];
    }
    default:
      return [];
  }
}

function said(block: unknown, room: { images: number }): Block[] {
  if (isRecord(block) && block.type === "image") {
    const { data, mimeType } = block;
    const isKept = typeof data === "string" && data !== "" && data.length <= mostImageData;
    if (isKept && typeof mimeType === "string" && room.images > 0) {
      room.images--;
      return [{ type: "image", data, mimeType: oneLine(mimeType, 100) }];
    }
  }
  const found = contentText(block);
  return found === "" ? [] : [text(found)];
}

function rawBlocks(rawOutput: unknown): Block[] {
  if (rawOutput === undefined || rawOutput === null || rawOutput === "") return [];
  if (typeof rawOutput === "string") return [text(rawOutput)];
  return [text(stringifyJson(fitJson(rawOutput, mostCharacters)))];
}

function capped(blocks: Block[]): Block[] {
  const texts = blocks.map((block) => (block.type === "text" ? block.text : ""));
  const fitting = capTexts(texts, () => "\n[… the middle is left out …]\n", mostCharacters);
  if (fitting === texts) return blocks;
  return blocks.map((block, at) => (block.type === "text" ? text(fitting[at] ?? "") : block));
}

function words(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function text(value: string): TextBlock {
  return { type: "text", text: value };
}
