/** Returns an image's bytes. Data that is not base64 is kept as it is. */
export function imageBytes(data: string): Buffer {
  return readBase64(data)?.bytes ?? Buffer.from(data);
}

/** Returns the decoded bytes, and whether the text was exact base64. Returns `null` if it is not base64 at all. */
export function readBase64(text: string): { readonly bytes: Buffer; readonly isExact: boolean } | null {
  const bytes = decodeStrictly(text);
  if (bytes !== null) return { bytes, isExact: isExactAtEnd(text) };
  const repaired = decodeStrictly(repairBase64(text));
  return repaired === null ? null : { bytes: repaired, isExact: false };
}

/**
 * Repairs deviations that are common in tool output: data URLs, line breaks, the URL-safe alphabet and missing padding.
 */
function repairBase64(text: string): string {
  const body = text
    .slice(text.startsWith("data:") ? text.indexOf(",") + 1 : 0)
    .replace(/\s+/g, "")
    .replaceAll("-", "+")
    .replaceAll("_", "/");
  let end = body.length;
  while (body[end - 1] === "=") end--;
  return body.slice(0, end).padEnd(Math.ceil(end / 4) * 4, "=");
}

/** Rejects invalid characters, which Node's own decoder ignores. */
function decodeStrictly(text: string): Buffer | null {
  if (text.length === 0 || text.length % 4 !== 0) return null;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  if (/[^A-Za-z0-9+/]/.test(text.slice(0, text.length - padding))) return null;
  return Buffer.from(text, "base64");
}

/** Whether the unused bits after the last byte are zero. */
function isExactAtEnd(text: string): boolean {
  const last = text.slice(-4);
  return Buffer.from(last, "base64").toString("base64") === last;
}
