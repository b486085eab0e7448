import { isRecord } from "../../core/is-record.ts";
import { stringifyJson } from "../../core/json.ts";
import type { ImageBlock, TextBlock } from "../../core/messages.ts";
import { cutText, escapeToLine } from "../../core/text.ts";
import { sizeText } from "../../transcript/steps/settle-image.ts";
import { capTexts } from "../../transcript/steps/truncate-tool-results.ts";

/** Converts content from an agent to text and blocks of bounded size. The content has not been validated. */

type Block = TextBlock | ImageBlock;
type Fields = Readonly<Record<string, unknown>>;

/** The guard stores a result of up to this size as a blob and truncates it further for the session. */
const maxResultChars = 2_000_000;
const maxParts = 500;
const maxImages = 20;
const maxImageBase64 = 28_000_000;
const maxLineChars = 2000;

/** Returns the content of a finished tool call as result blocks. Falls back to `rawOutput` if `content` is empty. */
export function resultContent(
  { content, rawOutput }: { readonly content: unknown; readonly rawOutput: unknown },
  terminalText: (terminalId: string) => string | null,
): Block[] {
  const parts = Array.isArray(content) ? content : [];
  let imageCount = 0;
  const blocks = parts.slice(0, maxParts).flatMap((part): Block[] => {
    if (!isRecord(part)) return [];
    if (part.type === "diff") return [textBlock(diffText(part))];
    if (part.type === "terminal") {
      const output = terminalText(stringOf(part.terminalId));
      return [textBlock(output ?? `[terminal ${lineText(part.terminalId)}: its output is unknown]`)];
    }
    if (part.type !== "content") return [];
    const image = imageCount < maxImages ? imageBlock(part.content) : null;
    if (image !== null) {
      imageCount++;
      return [image];
    }
    const text = contentText(part.content);
    return text === "" ? [] : [textBlock(text)];
  });
  if (parts.length > maxParts) blocks.push(textBlock(`[… ${parts.length - maxParts} more parts omitted …]`));
  return capBlocks(blocks.length === 0 ? rawBlocks(rawOutput) : blocks);
}

function imageBlock(block: unknown): ImageBlock | null {
  if (!isRecord(block) || block.type !== "image") return null;
  const { data, mimeType } = block;
  if (typeof data !== "string" || data === "" || data.length > maxImageBase64) return null;
  return typeof mimeType === "string" ? { type: "image", data, mimeType: lineText(mimeType, 100) } : null;
}

function rawBlocks(rawOutput: unknown): Block[] {
  if (rawOutput === undefined || rawOutput === null || rawOutput === "") return [];
  if (typeof rawOutput === "string") return [textBlock(rawOutput)];
  return [textBlock(stringifyJson(fitJson(rawOutput, maxResultChars)))];
}

function capBlocks(blocks: Block[]): Block[] {
  const texts = blocks.map((block) => (block.type === "text" ? block.text : ""));
  const capped = capTexts(texts, () => "\n[… the middle is omitted …]\n", maxResultChars);
  if (capped === texts) return blocks;
  return blocks.map((block, index) => (block.type === "text" ? textBlock(capped[index] ?? "") : block));
}

function textBlock(text: string): TextBlock {
  return { type: "text", text };
}

/** Returns a content block as text. A block without text is described briefly. */
export function contentText(block: unknown): string {
  if (!isRecord(block)) return "";
  switch (block.type) {
    case "text":
      return stringOf(block.text);
    case "image":
    case "audio":
      return `[${block.type}: ${mediaText(block.mimeType, block.data)}]`;
    case "resource_link": {
      const { title, name, uri } = block;
      const shown = [title, name, uri].find((each) => typeof each === "string" && each !== "");
      return `[${lineText(shown)}](${lineText(uri)})`;
    }
    case "resource": {
      if (!isRecord(block.resource)) return "";
      const { uri, text, blob, mimeType } = block.resource;
      return typeof text === "string" ? text : `[resource ${lineText(uri)}: ${mediaText(mimeType, blob)}]`;
    }
    default:
      return "";
  }
}

function mediaText(mimeType: unknown, data: unknown): string {
  const bytes = Math.floor((stringOf(data).length * 3) / 4);
  return `${lineText(mimeType) || "unknown type"}, ${sizeText(bytes)}`;
}

/** Returns a string as one printable line of bounded length. Any other value becomes an empty string. */
export function lineText(value: unknown, maxChars = maxLineChars): string {
  return escapeToLine(cutText(stringOf(value), maxChars));
}

/** Like {@link lineText}, but collapses runs of whitespace, because titles can span several lines. */
export function titleText(value: unknown, maxChars = maxLineChars): string {
  return lineText(cutText(stringOf(value), maxChars).replace(/\s+/g, " ").trim(), maxChars);
}

function stringOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

const maxJsonDepth = 64;

/**
 * Copies a JSON value, limited to about `maxChars` characters and 64 levels. Long strings keep their beginning, and a
 * note replaces the rest.
 */
export function fitJson(value: unknown, maxChars: number): unknown {
  let left = maxChars;
  const fitText = (text: string): string => {
    const head = cutText(text, Math.max(0, left));
    left -= text.length + 8;
    return head.length === text.length
      ? text
      : `${head}[… ${text.length - head.length} characters omitted …]`;
  };
  const fitValue = (each: unknown, levels: number): unknown => {
    if (typeof each === "string") return fitText(each);
    left -= 8;
    if (each === null || typeof each === "boolean") return each;
    if (typeof each === "number") return Number.isFinite(each) ? each : null;
    if (typeof each !== "object") return null;
    if (levels === 0) return "[… nested too deeply …]";
    return Array.isArray(each) ? fitList(each, levels - 1) : fitObject(each as Fields, levels - 1);
  };
  const fitList = (list: readonly unknown[], levels: number): unknown[] => {
    const fitted: unknown[] = [];
    for (const each of list) {
      if (left <= 0) return [...fitted, `[… ${list.length - fitted.length} more omitted …]`];
      fitted.push(fitValue(each, levels));
    }
    return fitted;
  };
  const fitObject = (object: Fields, levels: number) => {
    const fields = Object.entries(object).filter(([, each]) => each !== undefined);
    const fitted: [string, unknown][] = [];
    for (const [name, each] of fields) {
      if (left <= 0) {
        fitted.push(["…", `[… ${fields.length - fitted.length} more omitted …]`]);
        break;
      }
      fitted.push([fitText(name), fitValue(each, levels)]);
    }
    // Assigning the fields one by one would invoke the setter for a field named `__proto__`.
    return Object.fromEntries(fitted);
  };
  return fitValue(value, maxJsonDepth);
}

const contextLines = 3;
const maxDiffChars = 100_000;
const lineFeed = 10;

/** Formats a file change as removed and added lines, with a few lines around them. A new file has no `oldText`. */
export function diffText({ path, oldText, newText }: Fields): string {
  const name = lineText(path);
  const [before, after] = [endLine(stringOf(oldText)), endLine(stringOf(newText))];
  const { start, line } = commonStart(before, after);
  const end = commonEnd(before, after, start);
  if (start === before.length && start === after.length) return `${name}: unchanged`;
  const tail = after.length - end;
  const lines = [
    `${name}: ${typeof oldText === "string" ? `changed at line ${line}` : "new file"}`,
    ...markLines(" ", before.slice(contextStart(before, start), start)),
    ...markLines("-", before.slice(start, before.length - end)),
    ...markLines("+", after.slice(start, tail)),
    ...markLines(" ", after.slice(tail, contextEnd(after, tail))),
  ];
  const leftOut = () => "\n[… the middle of this change is omitted …]\n";
  return capTexts([lines.join("\n")], leftOut, maxDiffChars)[0] ?? "";
}

function endLine(text: string): string {
  return text === "" || text.endsWith("\n") ? text : `${text}\n`;
}

/** Returns the offset of the first differing line and its line number. */
function commonStart(before: string, after: string): { readonly start: number; readonly line: number } {
  const shortest = Math.min(before.length, after.length);
  let [start, line] = [0, 1];
  for (let at = 0; at < shortest; at++) {
    const unit = before.charCodeAt(at);
    if (unit !== after.charCodeAt(at)) break;
    if (unit === lineFeed) [start, line] = [at + 1, line + 1];
  }
  return { start, line };
}

/** Returns the length of the common suffix after `start`, in whole lines. */
function commonEnd(before: string, after: string, start: number): number {
  const startsLine = (text: string, at: number) => at === start || text.charCodeAt(at - 1) === lineFeed;
  const longest = Math.min(before.length, after.length) - start;
  let end = 0;
  for (let back = 1; back <= longest; back++) {
    const [here, there] = [before.length - back, after.length - back];
    if (before.charCodeAt(here) !== after.charCodeAt(there)) break;
    if (startsLine(before, here) && startsLine(after, there)) end = back;
  }
  return end;
}

function contextStart(text: string, start: number): number {
  let from = start;
  for (let line = 0; line < contextLines && from > 0; line++)
    from = from === 1 ? 0 : text.lastIndexOf("\n", from - 2) + 1;
  return from;
}

function contextEnd(text: string, end: number): number {
  let to = end;
  for (let line = 0; line < contextLines && to < text.length; line++) to = text.indexOf("\n", to) + 1;
  return to;
}

function markLines(mark: string, lines: string): string[] {
  if (lines === "") return [];
  // Text too far from either end to be kept is not split into lines at all.
  const text = lines.slice(0, -1);
  const shown =
    text.length <= 2 * maxDiffChars ? text : `${text.slice(0, maxDiffChars)}\n${text.slice(-maxDiffChars)}`;
  return shown.split("\n").map((line) => `${mark} ${line}`);
}
