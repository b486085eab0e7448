/** The bytes, and whether the text was base64 to the letter. `null`: it is none. */
export function readBase64(text: string): { readonly bytes: Buffer; readonly isExact: boolean } | null {
  const bytes = decoded(text);
  if (bytes !== null) return { bytes, isExact: isExactAtEnd(text) };
  const mended = decoded(mend(text));
  return mended === null ? null : { bytes: mended, isExact: false };
}

/** What tools are often found to write instead: a data URL, broken lines, the alphabet of URLs, no padding. */
function mend(text: string): string {
  const body = text
    .slice(text.startsWith("data:") ? text.indexOf(",") + 1 : 0)
    .replace(/\s+/g, "")
    .replaceAll("-", "+")
    .replaceAll("_", "/");
  let end = body.length;
  while (body[end - 1] === "=") end--;
  return body.slice(0, end).padEnd(Math.ceil(end / 4) * 4, "=");
}

/** Node's own reading passes over whatever does not belong. */
function decoded(text: string): Buffer | null {
  if (text.length === 0 || text.length % 4 !== 0) return null;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  if (/[^A-Za-z0-9+/]/.test(text.slice(0, text.length - padding))) return null;
  return Buffer.from(text, "base64");
}

/** No bits behind the last byte. */
function isExactAtEnd(text: string): boolean {
  const last = text.slice(-4);
  return Buffer.from(last, "base64").toString("base64") === last;
}
