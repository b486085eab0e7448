import { isRecord } from "../../../core/shape.ts";
import { cutText, escapeToLine } from "../../../core/text.ts";
import { sizeText } from "../../../transcript/steps/settle-image.ts";

const mostName = 2000;

/** A content block of the protocol as words; what has none says what was there. */
export function contentText(block: unknown): string {
  if (!isRecord(block)) return "";
  switch (block.type) {
    case "text":
      return typeof block.text === "string" ? block.text : "";
    case "image":
    case "audio":
      return `[${block.type}: ${mediaText(block.mimeType, block.data)}]`;
    case "resource_link":
      return linkText(block);
    case "resource":
      return isRecord(block.resource) ? resourceText(block.resource) : "";
    default:
      return "";
  }
}

function linkText({ title, name, uri }: Readonly<Record<string, unknown>>): string {
  const word = [title, name, uri].find((each) => typeof each === "string" && each !== "");
  return `[${oneLine(word)}](${oneLine(uri)})`;
}

function resourceText({ uri, text, blob, mimeType }: Readonly<Record<string, unknown>>): string {
  if (typeof text === "string") return text;
  return `[resource ${oneLine(uri)}: ${mediaText(mimeType, blob)}]`;
}

function mediaText(mimeType: unknown, data: unknown): string {
  const bytes = typeof data === "string" ? Math.floor((data.length * 3) / 4) : 0;
  return `${oneLine(mimeType) || "unknown type"}, ${sizeText(bytes)}`;
}

/** A name from outside, on one line and not without end. */
export function oneLine(value: unknown, most = mostName): string {
  return typeof value === "string" ? escapeToLine(cutText(value, most)) : "";
}

/** A title or the like, of several lines maybe, on one. */
export function titleText(value: unknown, most = mostName): string {
  return typeof value === "string" ? oneLine(cutText(value, most).replace(/\s+/g, " ").trim(), most) : "";
}
